//! Many finished instances: opening after a kill, memory and disk.
//!
//! `SEGNO_STORED_INSTANCES=1000000 cargo nextest run --release -p segno-embedded size --no-capture` prints figures.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, ExecutionMetadata, ExecutionStatus, FetchOrchestrationItems, OrchestratorMessage,
    Provider, ProviderAdmin, RecordBatch, Records, StoredEvent,
};
use segno_embedded::EmbeddedStore;

use crate::cases;

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
                    orchestration_name: Some("Flow".to_owned()),
                    status: Some(ExecutionStatus::Completed),
                    output: Some(Bytes::from(vec![1; 100])),
                    ..ExecutionMetadata::default()
                },
                ..AckOrchestrationItem::empty(item.lock_token, item.execution_id)
            };
            store.ack_orchestration_item(turn).await.unwrap();
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

/// The files as a kill leaves them.
fn killed(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // A socket is not a file that could be copied.
        if !entry.file_type().unwrap().is_file() {
            continue;
        }
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn bytes_of(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| format!("{:?} {}", entry.file_name(), entry.metadata().unwrap().len())).collect()
}

#[expect(clippy::disallowed_methods, reason = "this measures the real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_finished_instances_are_all_there_after_a_kill() {
    let instances = cases("SEGNO_STORED_INSTANCES", 3_000);
    let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let started = now();
    fill(&store, instances).await;
    println!("filled {instances} in {:?}", started.elapsed().unwrap());
    killed(directory.path(), copy.path());
    println!("{:?}", bytes_of(copy.path()));
    let started = now();
    let opened = EmbeddedStore::open(copy.path()).unwrap();
    println!("opened after a kill in {:?}", started.elapsed().unwrap());
    let metrics = opened.get_system_metrics().await.unwrap();
    assert_eq!((metrics.completed_instances, metrics.total_events), (instances, 5 * instances));
    drop(opened);
    let started = now();
    store.close();
    println!("closed in {:?}", started.elapsed().unwrap());
    let started = now();
    let opened = EmbeddedStore::open(directory.path()).unwrap();
    println!("opened after closing in {:?}", started.elapsed().unwrap());
    assert_eq!(opened.get_system_metrics().await.unwrap(), metrics);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{:?}", status.lines().filter(|line| line.starts_with("VmRSS")).collect::<Vec<_>>());
}
