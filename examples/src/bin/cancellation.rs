//! Cancelling an instance: its running activity is told to stop at once, and its code cleans up behind a shield that the
//! cancellation does not reach.
//!
//! Run it: `cargo run -p segno-examples --bin cancellation`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};
use tokio::sync::Notify;

const IMPORT_ROWS: Activity<String, ()> = Activity::new("import-rows");
const REMOVE_ROWS: Activity<String, ()> = Activity::new("remove-rows");
const IMPORT: Orchestration<String, ()> = Orchestration::new("import");

static IMPORT_RUNS: Notify = Notify::const_new();
static IMPORT_STOPPED: Notify = Notify::const_new();

/// A long activity listens for its cancellation.
async fn import_rows(ctx: ActivityContext, _table: String) -> Result<(), Failure> {
    IMPORT_RUNS.notify_one();
    let reason = ctx.cancelled().await;
    IMPORT_STOPPED.notify_one();
    Err(Failure::cancelled(reason))
}

async fn remove_rows(_ctx: ActivityContext, table: String) -> Result<(), Failure> {
    println!("removing the rows imported into {table} so far");
    Ok(())
}

async fn import(ctx: Context, table: String) -> Result<(), Failure> {
    let imported = ctx.activity(IMPORT_ROWS, table.clone()).await;
    if let Err(failure) = &imported
        && failure.is_cancelled()
    {
        // Anything else that this code awaits would end with the same cancellation.
        ctx.shielded().activity(REMOVE_ROWS, table).attempts(10).await?;
    }
    imported
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder()
        .orchestration(IMPORT, import)
        .activity(IMPORT_ROWS, import_rows)
        .activity(REMOVE_ROWS, remove_rows)
        .build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    let import = client.start(IMPORT, "customers".to_owned()).id("import-1").await?;
    IMPORT_RUNS.notified().await;
    println!("the import runs");

    import.cancel("the file was the wrong one").await?;
    let ended = import.wait_until_ended(Duration::from_secs(10)).await?;
    IMPORT_STOPPED.notified().await;
    println!("the import has stopped");
    println!("{} is {}", import.id(), ended.status);
    if let Some(failure) = ended.failure() {
        println!("because: {}", failure.message);
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
