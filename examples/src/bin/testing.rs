//! Testing with virtual time: the clock skips to the next timer whenever there is nothing else to do, so three days pass
//! in milliseconds and the outcome is exact. The same lines make a `#[tokio::test(start_paused = true)]`.
//!
//! Run it: `cargo run -p segno-examples --bin testing`

use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, Signal};
use segno_testkit::clock::VirtualClock;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MAIL: Activity<String, ()> = Activity::new("mail");
const PAID: Signal<u32> = Signal::new("paid");
const INVOICE: Orchestration<String, String> = Orchestration::new("invoice");

/// The code under test: reminds once a day, for three days at most.
async fn invoice(ctx: Context, customer: String) -> Result<String, Failure> {
    let sent_at_ms = ctx.now_ms();
    for reminder in 1..=3 {
        if let Some(euros) = ctx.timeout(DAY, ctx.signal(PAID)).await? {
            return Ok(format!("{customer} paid {euros} EUR"));
        }
        let days = (ctx.now_ms() - sent_at_ms) / 86_400_000;
        ctx.activity(MAIL, format!("reminder {reminder} to {customer} after {days} days")).await?;
    }
    Ok(format!("{customer} did not pay"))
}

/// A fake stands in for the mail service.
async fn fake_mail(_ctx: ActivityContext, text: String) -> Result<(), Failure> {
    println!("  {text}");
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> anyhow::Result<()> {
    let clock = VirtualClock::auto();
    let began_ns = SystemClock.monotonic_ns();
    let registry = Registry::builder().orchestration(INVOICE, invoice).activity(MAIL, fake_mail).build()?;
    let store = MemoryStore::with_clock(clock.clone());
    let runtime = Runtime::builder(store).registry(registry).clock(clock.clone()).start().await?;
    let client = runtime.client();

    println!("nobody pays:");
    let outcome = client.start(INVOICE, "Bob".to_owned()).result().await?;
    assert_eq!(outcome, "Bob did not pay");

    println!("paid on the second day:");
    let ada = client.start(INVOICE, "Ada".to_owned()).id("invoice-ada").await?;
    segno::clock::sleep(&*clock, DAY + DAY / 2).await;
    ada.signal(PAID, 120).await?;
    assert_eq!(ada.result().await?, "Ada paid 120 EUR");

    runtime.shutdown(Duration::from_secs(1)).await;
    let took = Duration::from_nanos(SystemClock.monotonic_ns() - began_ns);
    assert!(took < Duration::from_secs(2), "virtual days took {took:?}");
    println!("four and a half days have passed in a moment");
    Ok(())
}
