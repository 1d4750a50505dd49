//! Retrying: with growing pauses, not at all when it cannot help, and, when the attempts are used up, by pausing the
//! instance until a person has mended what is broken.
//!
//! Run it: `cargo run -p segno-examples --bin retries`

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use segno::store::ExecutionStatus;
use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Client, Context, Failure, Orchestration, Registry, Retry, Runtime};

const CHARGE: Activity<String, String> = Activity::new("charge");
const PAYMENT: Orchestration<String, String> = Orchestration::new("payment");
const PATIENT_PAYMENT: Orchestration<String, String> = Orchestration::new("patient-payment");

static BANK_IS_OPEN: AtomicBool = AtomicBool::new(false);

async fn charge(ctx: ActivityContext, card: String) -> Result<String, Failure> {
    match card.as_str() {
        "flaky" if ctx.attempt() < 3 => Err(Failure::application("the line is busy")),
        "expired" => Err(Failure::application("the card has expired").code("expired").non_retryable()),
        "closed-bank" if !BANK_IS_OPEN.load(Ordering::Relaxed) => {
            Err(Failure::application("the bank is closed"))
        }
        _ => Ok(format!("charged in attempt {}", ctx.attempt())),
    }
}

fn four_times() -> Retry {
    Retry::exponential(4, Duration::from_millis(10)).max_delay(Duration::from_secs(60))
}

async fn payment(ctx: Context, card: String) -> Result<String, Failure> {
    ctx.activity(CHARGE, card).retry(four_times()).await
}

/// Never fails: when the attempts are used up, it waits for a person.
async fn patient_payment(ctx: Context, card: String) -> Result<String, Failure> {
    ctx.activity(CHARGE, card).retry(four_times()).pause_when_exhausted().await
}

async fn wait_until_paused(client: &Client, instance: &str) -> anyhow::Result<String> {
    let mut revision = 0;
    loop {
        let seen = client.wait_for_revision(instance, revision, Duration::from_secs(10)).await?;
        if seen.status == ExecutionStatus::Paused {
            return Ok(seen.pause_reason().unwrap_or_default().to_owned());
        }
        revision = seen.revision;
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder()
        .orchestration(PAYMENT, payment)
        .orchestration(PATIENT_PAYMENT, patient_payment)
        .activity(CHARGE, charge)
        .build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    println!("flaky: {}", client.start(PAYMENT, "flaky".to_owned()).result().await?);

    // A failure that no retry can mend ends the payment at once, whatever the policy says.
    client.start(PAYMENT, "expired".to_owned()).id("payment-expired").await?;
    let ended = client.wait_until_ended("payment-expired", Duration::from_secs(10)).await?;
    println!("expired: {}", ended.failure().map(ToString::to_string).unwrap_or_default());

    client.start(PATIENT_PAYMENT, "closed-bank".to_owned()).id("payment-closed").await?;
    println!("closed bank: paused, {}", wait_until_paused(client, "payment-closed").await?);
    BANK_IS_OPEN.store(true, Ordering::Relaxed);
    client.resume("payment-closed").await?;
    println!("closed bank, after resuming: {}", client.result(PATIENT_PAYMENT, "payment-closed").await?);

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
