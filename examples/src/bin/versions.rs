//! Two versions of an orchestration side by side: an instance that runs stays with the version it began with, and new
//! ones get the latest.
//!
//! Run it: `cargo run -p segno-examples --bin versions`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, Registry, RegistryBuilder, Runtime, Signal,
};

const SEND: Activity<String, String> = Activity::new("send");
const SIGNED: Signal<String> = Signal::new("signed");
const CONTRACT: Orchestration<String, String> = Orchestration::new("contract");

async fn send(_ctx: ActivityContext, letter: String) -> Result<String, Failure> {
    Ok(format!("sent {letter}"))
}

/// The first version: by post.
async fn contract_by_post(ctx: Context, customer: String) -> Result<String, Failure> {
    ctx.set_status(&"waiting for a signature")?;
    let name = ctx.signal(SIGNED).await?;
    ctx.activity(SEND, format!("a letter to {customer}, signed {name}")).await
}

/// The second version is different from the first line on, which is why it is a version and not a patch.
async fn contract_by_mail(ctx: Context, customer: String) -> Result<String, Failure> {
    ctx.activity(SEND, format!("a draft to {customer}")).await?;
    ctx.set_status(&"waiting for a signature")?;
    let name = ctx.signal(SIGNED).await?;
    ctx.activity(SEND, format!("a mail to {customer}, signed {name}")).await
}

fn first_release() -> RegistryBuilder {
    Registry::builder().orchestration(CONTRACT.at("1.0.0"), contract_by_post).activity(SEND, send)
}

fn second_release() -> RegistryBuilder {
    first_release().orchestration(CONTRACT.at("2.0.0"), contract_by_mail)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();

    let runtime = Runtime::builder(store.clone()).registry(first_release().build()?).start().await?;
    runtime.client().start(CONTRACT, "Ada".to_owned()).id("contract-ada").await?;
    runtime.client().status_change("contract-ada", 0).await?;
    println!("first release: contract-ada waits for a signature");
    runtime.shutdown(Duration::from_secs(1)).await;

    let runtime = Runtime::builder(store).registry(second_release().build()?).start().await?;
    let client = runtime.client();
    println!("second release: contract-bob and contract-cyd start");
    client.start(CONTRACT, "Bob".to_owned()).id("contract-bob").await?;
    client.start(CONTRACT.at("1.0.0"), "Cyd".to_owned()).id("contract-cyd").await?;

    for instance in ["contract-ada", "contract-bob", "contract-cyd"] {
        client.signal(instance, SIGNED, "E. Noether".to_owned()).await?;
        let result = client.result(CONTRACT, instance).await?;
        let version = client.instance(instance).await?.version.unwrap_or_default();
        println!("{instance} ({version}): {result}");
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
