//! Changing code under running instances: `ctx.patched` is true for those that reach the change for the first time, and
//! false for those that went past the place before, so that each replays what it did.
//!
//! Run it: `cargo run -p segno-examples --bin patching`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, Registry, RegistryBuilder, Runtime, Signal,
};

const CHECK_FRAUD: Activity<String, ()> = Activity::new("check-fraud");
const CHARGE: Activity<String, ()> = Activity::new("charge");
const DELIVERED: Signal<()> = Signal::new("delivered");
const ORDER: Orchestration<String, String> = Orchestration::new("order");

async fn call_service(ctx: ActivityContext, order: String) -> Result<(), Failure> {
    println!("  {} for {order}", ctx.activity_name());
    Ok(())
}

/// The code that is in production.
async fn order_as_it_was(ctx: Context, order: String) -> Result<String, Failure> {
    ctx.activity(CHARGE, order).await?;
    ctx.set_status(&"on its way")?;
    ctx.signal(DELIVERED).await?;
    Ok("delivered".to_owned())
}

/// The same with a check in front. Without `patched`, orders that were charged already could not be replayed, and the
/// engine would say so: it finds `ActivityScheduled("charge")` where the code asks for `check-fraud`.
async fn order_with_check(ctx: Context, order: String) -> Result<String, Failure> {
    if ctx.patched("check-fraud-first") {
        ctx.activity(CHECK_FRAUD, order.clone()).await?;
    }
    ctx.activity(CHARGE, order).await?;
    ctx.set_status(&"on its way")?;
    ctx.signal(DELIVERED).await?;
    Ok("delivered".to_owned())
}

fn activities() -> RegistryBuilder {
    Registry::builder().activity(CHECK_FRAUD, call_service).activity(CHARGE, call_service)
}

/// Starts an order and waits until it is on its way.
async fn send_off(runtime: &Runtime, order: &str) -> anyhow::Result<()> {
    runtime.client().start(ORDER, order.to_owned()).id(order).await?;
    runtime.client().status_change(order, 0).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();

    println!("with the old code:");
    let registry = activities().orchestration(ORDER, order_as_it_was).build()?;
    let runtime = Runtime::builder(store.clone()).registry(registry).start().await?;
    send_off(&runtime, "order-1").await?;
    runtime.shutdown(Duration::from_secs(1)).await;

    println!("with the new code on the same store:");
    let registry = activities().orchestration(ORDER, order_with_check).build()?;
    let runtime = Runtime::builder(store).registry(registry).start().await?;
    send_off(&runtime, "order-2").await?;

    for order in ["order-1", "order-2"] {
        runtime.client().signal(order, DELIVERED, ()).await?;
        println!("{order}: {}", runtime.client().result(ORDER, order).await?);
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
