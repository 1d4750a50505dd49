//! Many finished instances: opening after a kill, memory and disk.
//!
//! `SEGNO_STORED_INSTANCES=1000000 cargo nextest run --release -p segno-embedded size --no-capture` prints figures.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, ExecutionMetadata, ExecutionStatus, FetchOrchestrationItems, OrchestratorMessage,
    Provider, ProviderAdmin, RecordBatch, Records, StoredEvent,
};
use segno_embedded::EmbeddedStore;

use crate::cases;

/// Tells the child where to write.
const DIRECTORY: &str = "SEGNO_SIZE_DIRECTORY";
const LOCK: Duration = Duration::from_secs(600);
const CHUNK: u64 = 1_000;

/// Ends one instance per message.
async fn finish_all(store: &Arc<EmbeddedStore>) {
    let request = FetchOrchestrationItems { max_items: CHUNK as usize, ..FetchOrchestrationItems::one(LOCK) };
    let mut turns = tokio::task::JoinSet::new();
    for item in store.fetch_orchestration_items(request).await.unwrap() {
        let store = Arc::clone(store);
        turns.spawn(async move {
            let event = |event_id| StoredEvent { event_id, data: Bytes::from(vec![event_id as u8; 200]) };
            let turn = AckOrchestrationItem {
                history_delta: (1..=5).map(event).collect(),
                metadata: ExecutionMetadata {
                    orchestration_name: Some("Flow".into()),
                    status: Some(ExecutionStatus::Completed),
                    output: Some(Bytes::from(vec![1; 100])),
                    ..ExecutionMetadata::default()
                },
                ..AckOrchestrationItem::empty(item.lock_token, item.execution_id)
            };
            store.ack_orchestration_item(Arc::new(turn)).await.unwrap();
        });
    }
    turns.join_all().await;
}

async fn fill(store: &Arc<EmbeddedStore>, instances: u64) {
    for chunk in 0..instances.div_ceil(CHUNK) {
        let message =
            |number| OrchestratorMessage::new(format!("tenant/flow-{number:012}"), Bytes::from("go"));
        let numbers = chunk * CHUNK..((chunk + 1) * CHUNK).min(instances);
        let orchestrator_items = numbers.map(message).collect();
        store.commit_records(RecordBatch { orchestrator_items, ..RecordBatch::default() }).await.unwrap();
        finish_all(store).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures the real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn status(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with(field)).unwrap_or_default().to_owned()
}

fn instances() -> u64 {
    cases("SEGNO_STORED_INSTANCES", 1_000)
}

/// The child: fills a store and waits to be killed. Not a test by itself.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_stores_much() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let store = EmbeddedStore::open(directory).unwrap();
    fill(&store, instances()).await;
    println!("\nfilled");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn many_finished_instances_are_all_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let started = now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "size::child_that_stores_much", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "filled"));
    println!("filled {} in {:?}", instances(), started.elapsed().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let mut metrics = Vec::new();
    for after in ["a kill", "closing", "closing again"] {
        let started = now();
        let store = EmbeddedStore::open(directory.path()).unwrap();
        println!("opened after {after} in {:?}, {}", started.elapsed().unwrap(), status("VmRSS"));
        metrics.push(store.get_system_metrics().await.unwrap());
        let started = now();
        store.close();
        println!("closed in {:?}", started.elapsed().unwrap());
    }
    for metrics in metrics {
        assert_eq!((metrics.completed_instances, metrics.total_events), (instances(), 5 * instances()));
    }
    let started = now();
    let report = segno_embedded::check(directory.path(), |_| {}).unwrap();
    println!("checked {} rows in {:?}", report.rows, started.elapsed().unwrap());
    assert!(report.is_sound(), "{:?}", report.findings);
}
