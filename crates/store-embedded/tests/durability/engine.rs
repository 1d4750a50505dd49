//! The engine on this store: an orchestration goes on where it stopped.

use std::time::Duration;

use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, Signal};
use segno_embedded::{EmbeddedStore, OpenOptions};

const DOUBLE: Activity<u64, u64> = Activity::new("double");
const GO: Signal<u64> = Signal::new("go");
const FLOW: Orchestration<u64, u64> = Orchestration::new("flow");

async fn double(_: ActivityContext, number: u64) -> Result<u64, Failure> {
    Ok(2 * number)
}

async fn flow(ctx: Context, number: u64) -> Result<u64, Failure> {
    let doubled = ctx.activity(DOUBLE, number).await?;
    let more = ctx.signal(GO).await?;
    ctx.activity(DOUBLE, doubled + more).await
}

fn registry() -> Registry {
    Registry::builder().activity(DOUBLE, double).orchestration(FLOW, flow).build().unwrap()
}

#[tokio::test]
async fn an_orchestration_continues_after_reopening() {
    const INSTANCES: u64 = 50;
    let directory = tempfile::tempdir().unwrap();
    let options = || OpenOptions::default().checkpoint_bytes(20_000);
    let store = EmbeddedStore::open_with(directory.path(), options()).unwrap();
    let runtime = Runtime::builder(store.clone()).registry(registry()).start().await.unwrap();
    for number in 0..INSTANCES {
        runtime.client().start(FLOW, number).id(format!("flow-{number}")).await.unwrap();
    }
    runtime.shutdown(Duration::from_secs(5)).await;
    store.close();

    let store = EmbeddedStore::open_with(directory.path(), options()).unwrap();
    let runtime = Runtime::builder(store.clone()).registry(registry()).start().await.unwrap();
    for number in 0..INSTANCES {
        runtime.client().signal(format!("flow-{number}"), GO, 1).await.unwrap();
    }
    for number in 0..INSTANCES {
        let result = runtime.client().result(FLOW, format!("flow-{number}")).await.unwrap();
        assert_eq!(result, 2 * (2 * number + 1));
    }
    runtime.shutdown(Duration::from_secs(5)).await;
}
