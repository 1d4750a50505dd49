//! The workloads, and what they share.

mod fanout;
mod hello;
mod inline;
mod long;
mod sequence;
mod timers;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use hdrhistogram::Histogram;
use segno::{Activity, ActivityContext, Failure, RegistryBuilder};

pub use fanout::Fanout;
pub use hello::Hello;
pub use inline::Inline;
pub use long::Long;
pub use sequence::Sequence;
pub use timers::Timers;

use crate::nodes::{Nodes, Spent};

/// Something to measure.
pub trait Workload: Send + Sync {
    /// Its name, as on the command line and in reports.
    fn name(&self) -> &'static str;

    /// What it does, in a few words.
    fn about(&self) -> &'static str;

    /// Registers the code that it runs.
    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder;

    /// Runs it.
    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a>;
}

/// A running workload.
pub type Measuring<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Measured>> + Send + 'a>>;

/// What a workload runs on.
pub struct Bench {
    /// Start instances and run them, in this process.
    pub nodes: Nodes,
    /// Clients at once.
    pub concurrency: u32,
    /// How long to measure.
    pub duration: Duration,
    /// How many timers there are, and over how many milliseconds their due times are spread.
    pub timers: u32,
    pub spread_ms: u64,
}

/// What a workload measured.
pub struct Measured {
    /// Clients at once, as it was.
    pub concurrency: u32,
    /// Instances that ended with a result.
    pub runs: u64,
    /// Activities, inline steps or timers in them.
    pub steps: u64,
    /// Over which time.
    pub elapsed: Duration,
    /// Of a run, in microseconds; of a step for `long`.
    pub latency_us: Histogram<u64>,
    /// Runs that failed.
    pub errors: u64,
    /// What it took meanwhile.
    pub spent: Spent,
    /// Cost of a late step over that of an early one.
    pub cost_ratio: Option<f64>,
    /// How late timers were.
    pub lateness: Option<Lateness>,
}

/// How late timers were.
pub struct Lateness {
    /// In microseconds.
    pub late_us: Histogram<u64>,
    /// Timers that fired before they were due.
    pub early: u64,
}

/// The activity of all workloads: it does nothing.
pub const NOTHING: Activity<u32, u32> = Activity::new("nothing");

/// Does nothing.
pub async fn nothing(_ctx: ActivityContext, number: u32) -> Result<u32, Failure> {
    Ok(number)
}

/// Longest duration that a histogram tells apart: an hour, the longest run.
const MAX_RECORDED_US: u64 = 3_600_000_000;

/// An empty histogram of microseconds, good to three digits. Its bounds are fixed, because a histogram that grows by
/// itself does not grow for `saturating_record`, and would file everything long under its shortest values.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_RECORDED_US, 3)
        .expect("the bounds and digits are within the limits of the crate")
}

/// Records a duration, in whole microseconds.
pub fn record_ns(histogram_us: &mut Histogram<u64>, nanos: u64) {
    histogram_us.saturating_record(nanos / 1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_from_microseconds_to_an_hour_are_kept_to_three_digits() {
        for us in [1, 900, 2_047, 2_048, 8_900, 250_000, 30_000_000, MAX_RECORDED_US] {
            let mut histogram_us = new_histogram();
            record_ns(&mut histogram_us, us * 1_000);
            let kept_us = histogram_us.value_at_percentile(50.0);
            assert!(kept_us.abs_diff(us) <= us / 1_000, "{us} us were kept as {kept_us} us");
        }
    }
}
