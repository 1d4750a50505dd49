//! Calls in a closed loop: each client makes a call over HTTP, waits for its result, and makes the
//! next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use hdrhistogram::Histogram;
use segno::clock::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::FUNCTION;
use crate::arguments::RemoteArguments;
use crate::http::Target;
use crate::report::percentile_ms;
use crate::workload::{new_histogram, record_ns};

/// Printed when the measured time begins.
pub const BEGIN: &str = "begin";

/// Printed when it ends.
pub const END: &str = "end";

/// Nothing is counted before caches are warm.
const WARM_UP: Duration = Duration::from_secs(1);

/// What the clients have counted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Counted {
    pub runs: u64,
    pub errors: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

struct Seen {
    latency_us: Histogram<u64>,
    runs: u64,
    errors: u64,
}

/// Calls until the time is up, and prints what was counted.
pub async fn run(arguments: &RemoteArguments, server: &str) -> anyhow::Result<()> {
    let target = Target::new(server, None)?;
    let seen = Arc::new(Mutex::new(Seen { latency_us: new_histogram(), runs: 0, errors: 0 }));
    let from_ns = SystemClock.monotonic_ns() + nanos(WARM_UP);
    let to_ns = from_ns + nanos(Duration::from_secs(arguments.seconds));
    let mut clients = JoinSet::new();
    for _ in 0..arguments.clients {
        clients.spawn(call_until(target.clone(), (from_ns, to_ns), seen.clone()));
    }
    sleep_until(from_ns).await;
    println!("{BEGIN}");
    sleep_until(to_ns).await;
    println!("{END}");
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = Counted {
        runs: seen.runs,
        errors: seen.errors,
        p50_ms: percentile_ms(&seen.latency_us, 50.0),
        p99_ms: percentile_ms(&seen.latency_us, 99.0),
    };
    println!("{}", serde_json::to_string(&counted)?);
    Ok(())
}

async fn call_until(
    target: Target,
    (from_ns, to_ns): (u64, u64),
    seen: Arc<Mutex<Seen>>,
) -> anyhow::Result<()> {
    let mut connection = target.connect().await?;
    let body = format!(r#"{{"function":"{FUNCTION}","input":7}}"#);
    let call = target.post("/v1/invocations?wait_ms=60000", &body);
    let mut began_ns = SystemClock.monotonic_ns();
    while began_ns < to_ns {
        let (status, body) = connection.exchange(&call).await?;
        let ended_ns = SystemClock.monotonic_ns();
        let completed = status == 201 && has_completed(&body);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !completed {
            if seen.errors == 0 {
                eprintln!("a call failed with status {status}: {}", String::from_utf8_lossy(&body));
            }
            seen.errors += 1;
            ensure!(seen.errors < 10_000, "too many calls failed");
        } else if (from_ns..to_ns).contains(&ended_ns) {
            seen.runs += 1;
            record_ns(&mut seen.latency_us, ended_ns - began_ns);
        }
        began_ns = ended_ns;
    }
    Ok(())
}

/// Whether an answer shows a call that has completed. It is not parsed: the clients share the
/// machine with what they measure.
fn has_completed(body: &[u8]) -> bool {
    let mark = br#""status":"completed""#;
    body.windows(mark.len()).any(|window| window == mark)
}

async fn sleep_until(at_ns: u64) {
    let left_ns = at_ns.saturating_sub(SystemClock.monotonic_ns());
    segno::clock::sleep(&SystemClock, Duration::from_nanos(left_ns)).await;
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
