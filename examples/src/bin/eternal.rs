//! An instance that lives for years: it reads its mailbox in a loop, and continues as new before its history grows long.
//! Messages that wait unread come along.
//!
//! Run it: `cargo run -p segno-examples --bin eternal`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Context, Failure, Mailbox, Orchestration, Registry, Runtime};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum Transfer {
    Deposit { euros: i64 },
    Withdraw { euros: i64 },
    Close,
}

const TRANSFERS: Mailbox<Transfer> = Mailbox::new("transfers");
const ACCOUNT: Orchestration<i64, i64> = Orchestration::new("account");

/// Some thousands in earnest; few here, so that the example shows several executions.
const TRANSFERS_PER_EXECUTION: usize = 3;

async fn account(ctx: Context, mut balance: i64) -> Result<i64, Failure> {
    let transfers = ctx.mailbox(TRANSFERS);
    for _ in 0..TRANSFERS_PER_EXECUTION {
        match transfers.receive().await? {
            Transfer::Deposit { euros } => balance += euros,
            Transfer::Withdraw { euros } => balance -= euros,
            Transfer::Close => return Ok(balance),
        }
        ctx.set_status(&balance)?;
    }
    ctx.continue_as_new(balance).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder().orchestration(ACCOUNT, account).build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    client.start(ACCOUNT, 0).id("account-ada").await?;
    for euros in [100, 50, 25, 10] {
        client.enqueue("account-ada", TRANSFERS, Transfer::Deposit { euros }).await?;
    }
    for euros in [40, 5, 15] {
        client.enqueue("account-ada", TRANSFERS, Transfer::Withdraw { euros }).await?;
    }
    client.enqueue("account-ada", TRANSFERS, Transfer::Close).await?;

    println!("closed with {} EUR", client.result(ACCOUNT, "account-ada").await?);
    for execution_id in client.executions("account-ada").await? {
        let execution = client.execution("account-ada", execution_id).await?;
        println!("execution {execution_id}: {}", execution.status);
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
