//! Clients in a closed loop: each starts an instance, waits for its result, and starts the next.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use segno::Client;
use segno::clock::{Clock, SystemClock};
use tokio::task::JoinSet;

use crate::workload::{Bench, Measured, new_histogram, record_ns};

/// Nothing is counted before caches are warm and the first instances have gone through.
const WARM_UP: Duration = Duration::from_millis(500);

/// What the clients saw. They share it: a histogram for each would be some hundred kilobytes, and none of them in a cache.
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
    let all = Arc::new(Mutex::new(Seen { latency_us: new_histogram(), runs: 0, errors: 0 }));
    let mut clients = JoinSet::new();
    for number in 0..bench.concurrency {
        let (client, run, all) = (bench.nodes.client(number), run.clone(), Arc::clone(&all));
        clients.spawn(async move { loop_until(to_ns, from_ns, &all, || run(client.clone())).await });
    }
    segno::clock::sleep(&SystemClock, WARM_UP).await;
    let meter = bench.nodes.meter()?;
    segno::clock::sleep(&SystemClock, bench.duration).await;
    let spent = meter.read()?;

    while let Some(ended) = clients.join_next().await {
        ended?;
    }
    let Some(all) = Arc::into_inner(all) else { anyhow::bail!("a client is still there") };
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
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

async fn loop_until<Fut>(to_ns: u64, from_ns: u64, all: &Mutex<Seen>, run: impl Fn() -> Fut)
where
    Fut: Future<Output = Result<(), segno::Error>>,
{
    let mut began_ns = SystemClock.monotonic_ns();
    while began_ns < to_ns {
        let result = run().await;
        let ended_ns = SystemClock.monotonic_ns();
        let mut seen = all.lock().unwrap_or_else(PoisonError::into_inner);
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
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
