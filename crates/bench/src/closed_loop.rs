//! Clients in a closed loop: each starts an instance, waits for its result, and starts the next.

use std::future::Future;
use std::time::Duration;

use hdrhistogram::Histogram;
use segno::Client;
use segno::clock::{Clock, SystemClock};
use tokio::task::JoinSet;

use crate::workload::{Bench, Measured, new_histogram, record_ns};

/// Nothing is counted before caches are warm and the first instances have gone through.
const WARM_UP: Duration = Duration::from_millis(500);

/// What one client saw.
struct Seen {
    latency_us: Histogram<u64>,
    runs: u64,
    errors: u64,
}

/// Runs the clients and counts the runs that ended within the measured time. `steps` is how many steps one run has.
pub async fn measure<F, Fut>(bench: &Bench, steps: u64, run: F) -> anyhow::Result<Measured>
where
    F: Fn(Client) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<(), segno::Error>> + Send,
{
    let from_ns = SystemClock.monotonic_ns() + nanos(WARM_UP);
    let to_ns = from_ns + nanos(bench.duration);
    let mut clients = JoinSet::new();
    for number in 0..bench.concurrency {
        let (client, run) = (bench.nodes.client(number), run.clone());
        clients.spawn(async move { loop_until(to_ns, from_ns, || run(client.clone())).await });
    }
    segno::clock::sleep(&SystemClock, WARM_UP).await;
    let meter = bench.nodes.meter()?;
    segno::clock::sleep(&SystemClock, bench.duration).await;
    let spent = meter.read()?;

    let mut all = Seen { latency_us: new_histogram(), runs: 0, errors: 0 };
    while let Some(seen) = clients.join_next().await {
        let seen = seen?;
        all.latency_us.add(&seen.latency_us)?;
        all.runs += seen.runs;
        all.errors += seen.errors;
    }
    Ok(Measured {
        concurrency: bench.concurrency,
        runs: all.runs,
        steps: all.runs * steps,
        elapsed: bench.duration,
        latency_us: all.latency_us,
        errors: all.errors,
        spent,
        cost_ratio: None,
        lateness: None,
    })
}

async fn loop_until<Fut>(to_ns: u64, from_ns: u64, run: impl Fn() -> Fut) -> Seen
where
    Fut: Future<Output = Result<(), segno::Error>>,
{
    let mut seen = Seen { latency_us: new_histogram(), runs: 0, errors: 0 };
    let mut began_ns = SystemClock.monotonic_ns();
    while began_ns < to_ns {
        let result = run().await;
        let ended_ns = SystemClock.monotonic_ns();
        if let Err(error) = result {
            if seen.errors == 0 {
                eprintln!("a run failed: {error}");
            }
            seen.errors += 1;
        } else if (from_ns..to_ns).contains(&ended_ns) {
            seen.runs += 1;
            record_ns(&mut seen.latency_us, ended_ns - began_ns);
        }
        began_ns = ended_ns;
    }
    seen
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
