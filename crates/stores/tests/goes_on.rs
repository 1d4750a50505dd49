//! An orchestration that is half way through goes on in the store that it was moved to.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

use std::sync::Arc;
use std::time::Duration;

use segno::store::Transfer;
use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, Signal};
use segno_stores::{BackupReader, IfThere, NoLedger, StoreUrl, back_up, fill};

const DOUBLE: Activity<u64, u64> = Activity::new("double");
const GO: Signal<u64> = Signal::new("go");
const FLOW: Orchestration<u64, u64> = Orchestration::new("flow");
const INSTANCES: u64 = 20;

async fn double(_: ActivityContext, number: u64) -> Result<u64, Failure> {
    Ok(2 * number)
}

async fn flow(ctx: Context, number: u64) -> Result<u64, Failure> {
    let doubled = ctx.activity(DOUBLE, number).await?;
    let more = ctx.signal(GO).await?;
    ctx.sleep(Duration::from_millis(1)).await?;
    ctx.activity(DOUBLE, doubled + more).await
}

fn registry() -> Registry {
    Registry::builder().activity(DOUBLE, double).orchestration(FLOW, flow).build().unwrap()
}

#[tokio::test]
async fn orchestrations_go_on_in_the_store_that_they_were_moved_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup.segno");
    let memory = MemoryStore::new();
    let runtime = Runtime::builder(Arc::clone(&memory) as _).registry(registry()).start().await.unwrap();
    for number in 0..INSTANCES {
        runtime.client().start(FLOW, number).id(format!("flow-{number}")).await.unwrap();
    }
    // Some of them have their signal, in the queue or taken; the backup is made while the node works.
    for number in 0..INSTANCES / 2 {
        runtime.client().signal(format!("flow-{number}"), GO, 1).await.unwrap();
    }
    let mut export = memory.export().await.unwrap();
    let backup =
        back_up(&mut *export, &file, IfThere::Refuse, &mut NoLedger, &mut |_| {}).await.unwrap().content;
    assert!(backup.instances + backup.messages >= INSTANCES, "{backup:?}");
    drop(export);
    runtime.shutdown(Duration::from_secs(5)).await;

    let url = StoreUrl::Embedded(directory.path().join("store"));
    let store = url.open_for_import(segno_stores::FilledBy::Restore).await.unwrap();
    fill(&mut BackupReader::open(&file).unwrap(), &*store, "store", &mut |_| {}).await.unwrap();
    let runtime = Runtime::builder(store).registry(registry()).start().await.unwrap();
    for number in INSTANCES / 2..INSTANCES {
        runtime.client().signal(format!("flow-{number}"), GO, 1).await.unwrap();
    }
    for number in 0..INSTANCES {
        let result = runtime.client().result(FLOW, format!("flow-{number}")).await.unwrap();
        assert_eq!(result, 2 * (2 * number + 1));
    }
    runtime.shutdown(Duration::from_secs(5)).await;
}
