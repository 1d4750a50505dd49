//! A crash in the middle: the process goes away while a step runs, another one starts on the same store, and the instance
//! goes on where it was. What had ended is not done again.
//!
//! Run it: `cargo run -p segno-examples --bin crash`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions};
use std::sync::Arc;
use tokio::sync::Notify;

const RESERVE: Activity<String, ()> = Activity::new("reserve-stock");
const CHARGE: Activity<String, ()> = Activity::new("charge-card");
const SHIP: Activity<String, ()> = Activity::new("ship");
const ORDER: Orchestration<String, String> = Orchestration::new("order");

static CHARGING: Notify = Notify::const_new();

async fn reserve(_ctx: ActivityContext, order: String) -> Result<(), Failure> {
    println!("  stock reserved for {order}");
    Ok(())
}

/// Hangs when it is delivered for the first time: that is where the crash comes.
async fn charge(ctx: ActivityContext, order: String) -> Result<(), Failure> {
    if ctx.delivery() == 1 {
        println!("  charging the card for {order} ...");
        CHARGING.notify_one();
        std::future::pending::<()>().await;
    }
    // The key is the same in every attempt and delivery, so the bank does not charge twice.
    assert!(!ctx.idempotency_key().is_empty());
    println!("  card charged for {order}, in delivery {}", ctx.delivery());
    Ok(())
}

async fn ship(_ctx: ActivityContext, order: String) -> Result<(), Failure> {
    println!("  {order} shipped");
    Ok(())
}

async fn order(ctx: Context, order: String) -> Result<String, Failure> {
    ctx.activity(RESERVE, order.clone()).await?;
    ctx.activity(CHARGE, order.clone()).await?;
    ctx.activity(SHIP, order.clone()).await?;
    Ok(format!("{order} is on its way"))
}

async fn start_process(store: Arc<MemoryStore>) -> anyhow::Result<Runtime> {
    let registry = Registry::builder()
        .orchestration(ORDER, order)
        .activity(RESERVE, reserve)
        .activity(CHARGE, charge)
        .activity(SHIP, ship)
        .build()?;
    // A dead process is noticed when its locks run out. The default is longer; this keeps the example short.
    let options =
        RuntimeOptions { worker_lock_timeout: Duration::from_millis(300), ..RuntimeOptions::default() };
    Ok(Runtime::builder(store).registry(registry).options(options).start().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();

    println!("first process:");
    let process = start_process(store.clone()).await?;
    process.client().start(ORDER, "order-42".to_owned()).id("order-42").await?;
    CHARGING.notified().await;
    drop(process);
    println!("  *** the process is gone ***");

    println!("second process:");
    let process = start_process(store).await?;
    let result = process.client().result(ORDER, "order-42").await?;
    println!("{result}");

    process.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
