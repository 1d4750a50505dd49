//! An order that survives kill -9: seven steps of a second each, on the embedded store. Kill the program wherever you like
//! and start it again: it goes on where it was, and no step that has ended is done again.
//!
//! Run it: `cargo run -p segno-examples --bin order [DIRECTORY [MILLISECONDS PER STEP]]`

use std::time::Duration;

use anyhow::Context as _;
use segno::client::OnConflict;
use segno::clock::{self, SystemClock};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};
use segno_embedded::EmbeddedStore;

const STEPS: [&str; 7] = [
    "stock reserved",
    "card charged",
    "invoice written",
    "parcel packed",
    "label printed",
    "carrier called",
    "parcel handed over",
];

const WORK: Activity<usize, ()> = Activity::new("work");
const ORDER: Orchestration<(), usize> = Orchestration::new("order");

/// One order: each step is recorded when it has ended.
async fn order(ctx: Context, (): ()) -> Result<usize, Failure> {
    for step in 0..STEPS.len() {
        ctx.activity(WORK, step).await?;
        ctx.set_status(&(step + 1))?;
    }
    Ok(STEPS.len())
}

fn argument<T: std::str::FromStr>(place: usize, default: T) -> anyhow::Result<T> {
    match std::env::args().nth(place) {
        None => Ok(default),
        Some(text) => text.parse().ok().with_context(|| format!("argument {place} is wrong: {text:?}")),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let directory: String = argument(1, "segno-data".to_owned())?;
    let pause = Duration::from_millis(argument(2, 1_000)?);
    let work = move |_ctx: ActivityContext, step: usize| async move {
        clock::sleep(&SystemClock, pause).await;
        println!("  {} of {}: {}", step + 1, STEPS.len(), STEPS[step]);
        Ok::<_, Failure>(())
    };
    let registry = Registry::builder().orchestration(ORDER, order).activity(WORK, work).build()?;
    let store = EmbeddedStore::open(&directory)?;
    let runtime = Runtime::builder(store).registry(registry).start().await?;
    let client = runtime.client();

    let counts = client.system_metrics().await?;
    let unfinished = counts.running_instances > 0;
    let id = format!("order-{}", counts.total_instances + u64::from(!unfinished));
    if unfinished {
        let done = client.instance(&id).await?.custom_status.map_or(Ok(0), |done| done.decode::<usize>())?;
        println!("{id} goes on: {done} of {} steps are done", STEPS.len());
    } else {
        println!("{id} begins; its data is in {directory}");
        // A program that was killed before the first step has left its start behind: that is no conflict.
        client.start(ORDER, ()).id(&id).on_conflict(OnConflict::UseExisting).await?;
    }
    let steps = client.result(ORDER, &id).await?;
    println!("{id} is done after {steps} steps");

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
