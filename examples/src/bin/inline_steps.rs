//! Inline steps: short pieces of work that run inside the orchestration, without a trip through a queue. Each runs once;
//! a replay gets the recorded result.
//!
//! Run it: `cargo run -p segno-examples --bin inline_steps`

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions};

const CHECKOUT: Orchestration<u32, String> = Orchestration::new("checkout");

static REPLAYS: AtomicU32 = AtomicU32::new(0);
static RATE_LOOKUPS: AtomicU32 = AtomicU32::new(0);

/// Stands for a call to a fast service nearby, which answers the second time it is asked.
async fn look_up_rate() -> Result<f64, Failure> {
    match RATE_LOOKUPS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Failure::application("no answer")),
        _ => Ok(1.25),
    }
}

async fn checkout(ctx: Context, euros: u32) -> Result<String, Failure> {
    if ctx.is_replaying() {
        REPLAYS.fetch_add(1, Ordering::Relaxed);
    }
    let rate = ctx.run("look-up-rate", look_up_rate).attempts(3).await?;
    let dollars = ctx.run("convert", move || async move { Ok(f64::from(euros) * rate) }).await?;

    // The instance rests here. With nothing kept in memory, what comes after it begins with a replay.
    ctx.sleep(Duration::from_millis(20)).await?;

    Ok(format!("{euros} EUR are {dollars} USD"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder().orchestration(CHECKOUT, checkout).build()?;
    let options = RuntimeOptions { resident_executions: 0, ..RuntimeOptions::default() };
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).options(options).start().await?;

    println!("{}", runtime.client().start(CHECKOUT, 80).result().await?);
    println!("times the code was replayed: {}", REPLAYS.load(Ordering::Relaxed));
    println!("times the rate was looked up: {}", RATE_LOOKUPS.load(Ordering::Relaxed));

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
