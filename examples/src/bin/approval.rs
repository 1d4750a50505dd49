//! Waiting for a person, but not for ever: a wait for a signal with a time limit, kept by a durable timer.
//!
//! Run it: `cargo run -p segno-examples --bin approval`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, Signal};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Expense {
    what: String,
    euros: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Approval {
    by: String,
}

const PAY: Activity<Expense, ()> = Activity::new("pay");
const APPROVED: Signal<Approval> = Signal::new("approved");
const EXPENSE: Orchestration<Expense, String> = Orchestration::new("expense");

/// Three days in earnest; a moment here, so that the example ends.
const PATIENCE: Duration = Duration::from_millis(500);

async fn pay(_ctx: ActivityContext, expense: Expense) -> Result<(), Failure> {
    println!("paying {} EUR for {}", expense.euros, expense.what);
    Ok(())
}

async fn expense(ctx: Context, expense: Expense) -> Result<String, Failure> {
    let Some(approval) = ctx.timeout(PATIENCE, ctx.signal(APPROVED)).await? else {
        return Ok("sent back: nobody approved it in time".to_owned());
    };
    ctx.activity(PAY, expense).await?;
    Ok(format!("approved by {}", approval.by))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder().orchestration(EXPENSE, expense).activity(PAY, pay).build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    let chairs = Expense { what: "six chairs".to_owned(), euros: 480 };
    let chairs = client.start(EXPENSE, chairs).id("expense-chairs").await?;
    let yacht = Expense { what: "a yacht".to_owned(), euros: 900_000 };
    let yacht = client.start(EXPENSE, yacht).id("expense-yacht").await?;

    chairs.signal(APPROVED, Approval { by: "Ada".to_owned() }).await?;

    for expense in [chairs, yacht] {
        println!("{}: {}", expense.id(), expense.result().await?);
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
