//! The smallest program: one orchestration that calls one activity.
//!
//! Run it: `cargo run -p segno-examples --bin hello`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};

const GREET: Activity<String, String> = Activity::new("greet");
const HELLO: Orchestration<String, String> = Orchestration::new("hello");

/// An activity may do anything: call a service, write a file, ask a model.
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, Failure> {
    Ok(format!("Hello, {name}!"))
}

/// An orchestration says what happens in which order. Whatever it awaits is recorded, so that it goes on from there after
/// a crash.
async fn hello(ctx: Context, name: String) -> Result<String, Failure> {
    ctx.activity(GREET, name).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder().orchestration(HELLO, hello).activity(GREET, greet).build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;

    let greeting = runtime.client().start(HELLO, "world".to_owned()).result().await?;
    println!("{greeting}");

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
