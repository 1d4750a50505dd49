//! One instance with a long history: a step must cost the same at the end as at the beginning.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::{Context, Failure, Orchestration, RegistryBuilder};

use super::{Bench, Measured, Measuring, NOTHING, Workload, new_histogram, nothing, record_ns};
use crate::nodes::Spent;

const LONG: Orchestration<u32, u32> = Orchestration::new("long");
const STEPS: usize = 10_000;
/// Early enough to have a short history, late enough to be warm.
const EARLY: Range<usize> = 100..1_100;
const LATE: Range<usize> = STEPS - 1_000..STEPS;

/// One instance with 10,000 activities, one after the other; again until the time is up.
#[derive(Default)]
pub struct Long {
    /// When each step of the instance that runs had ended.
    ended_ns: Arc<Mutex<Vec<u64>>>,
}

impl Long {
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.ended_ns.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn run(&self, bench: &Bench) -> anyhow::Result<Measured> {
        let (meter, client) = (bench.nodes.meter()?, bench.nodes.client(0));
        let mut measured = Measured {
            concurrency: 1,
            runs: 0,
            steps: 0,
            elapsed: Duration::ZERO,
            latency_us: new_histogram(),
            errors: 0,
            spent: Spent::default(),
            cost_ratio: None,
            lateness: None,
        };
        let mut ratios = Vec::new();
        let began_ns = SystemClock.monotonic_ns();
        while measured.elapsed < bench.duration {
            match client.start(LONG, 7).result().await {
                Ok(_) => measured.runs += 1,
                Err(error) => {
                    eprintln!("a run failed: {error}");
                    measured.errors += 1;
                }
            }
            let ended_ns = self.take();
            for pair in ended_ns.windows(2) {
                record_ns(&mut measured.latency_us, pair[1] - pair[0]);
            }
            measured.steps += ended_ns.len() as u64;
            ratios.extend(cost_ratio(&ended_ns));
            measured.elapsed = Duration::from_nanos(SystemClock.monotonic_ns() - began_ns);
        }
        measured.cost_ratio = median(ratios);
        measured.spent = meter.read()?;
        Ok(measured)
    }
}

impl Workload for Long {
    fn name(&self) -> &'static str {
        "long"
    }

    fn about(&self) -> &'static str {
        "one instance with 10,000 activities, one after the other"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        let ended_ns = self.ended_ns.clone();
        let long = move |ctx: Context, mut number: u32| {
            let ended_ns = ended_ns.clone();
            async move {
                for _ in 0..STEPS {
                    number = ctx.activity(NOTHING, number).await?;
                    if !ctx.is_replaying() {
                        let now_ns = SystemClock.monotonic_ns();
                        ended_ns.lock().unwrap_or_else(PoisonError::into_inner).push(now_ns);
                    }
                }
                Ok::<u32, Failure>(number)
            }
        };
        registry.orchestration(LONG, long).activity(NOTHING, nothing)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        Box::pin(self.run(bench))
    }
}

/// What a step costs late in the history over what it costs early in it.
fn cost_ratio(ended_ns: &[u64]) -> Option<f64> {
    let time_per_step = |steps: Range<usize>| {
        let from_ns = ended_ns.get(steps.start.checked_sub(1)?)?;
        let to_ns = ended_ns.get(steps.end - 1)?;
        Some((to_ns - from_ns) as f64 / steps.len() as f64)
    };
    Some(time_per_step(LATE)? / time_per_step(EARLY)?)
}

/// The middle one, which a pause of the machine in one of the runs does not move.
fn median(mut ratios: Vec<f64>) -> Option<f64> {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_equal_cost_have_a_ratio_of_one() {
        let ended_ns: Vec<u64> = (1..=STEPS as u64).map(|step| step * 50).collect();
        assert_eq!(cost_ratio(&ended_ns), Some(1.0));
    }

    #[test]
    fn the_ratio_compares_the_last_thousand_steps_with_those_after_the_first_hundred() {
        let mut now_ns = 0;
        let ended_ns: Vec<u64> = (0..STEPS)
            .map(|step| {
                now_ns += if EARLY.contains(&step) {
                    10
                } else if LATE.contains(&step) {
                    25
                } else {
                    1_000
                };
                now_ns
            })
            .collect();
        assert_eq!(cost_ratio(&ended_ns), Some(2.5));
    }

    #[test]
    fn a_run_that_broke_off_has_no_ratio() {
        assert_eq!(cost_ratio(&[]), None);
        assert_eq!(cost_ratio(&[1; 5_000]), None);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
    }
}
