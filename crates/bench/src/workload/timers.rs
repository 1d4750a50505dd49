//! Many durable timers that are due within a second: how late are they, and is none early?

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use segno::clock::{Clock, SystemClock, sleep, sleep_until};
use segno::{Client, Context, Failure, Orchestration, RegistryBuilder};
use tokio::task::JoinSet;

use super::{Bench, Lateness, Measured, Measuring, Workload, new_histogram};

const WAIT: Orchestration<u64, ()> = Orchestration::new("wait-until");
/// Every timer must be set before it is due; a store that sets fewer per second than this shows errors.
const LEAST_TIMERS_SET_PER_S: u64 = 5_000;
const LEAST_LEAD_MS: u64 = 1_000;
/// How often to look whether all have fired, and when to give up if no more do.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const GIVE_UP_MS: u64 = 30_000;

/// Instances that each sleep until their moment.
#[derive(Default)]
pub struct Timers {
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    late_us: Histogram<u64>,
    early: u64,
    /// Timers that were set only after they were due, so that they say nothing.
    set_too_late: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Seen { late_us: new_histogram(), early: 0, set_too_late: 0 }
    }
}

impl Seen {
    fn all(&self) -> u64 {
        self.late_us.len() + self.early + self.set_too_late
    }

    fn fired(&mut self, set_at_ms: u64, due_at_ms: u64, now_ms: u64) {
        if set_at_ms >= due_at_ms {
            self.set_too_late += 1;
        } else if now_ms < due_at_ms {
            self.early += 1;
        } else {
            self.late_us.saturating_record((now_ms - due_at_ms) * 1_000);
        }
    }
}

impl Timers {
    async fn run(&self, bench: &Bench) -> anyhow::Result<Measured> {
        let meter = bench.nodes.meter()?;
        let lead_ms = LEAST_LEAD_MS + u64::from(bench.timers) * 1_000 / LEAST_TIMERS_SET_PER_S;
        let due_at_ms = SystemClock.now_ms() + lead_ms;
        let mut clients = JoinSet::new();
        for client in 0..bench.concurrency {
            let share = (client..bench.timers).step_by(bench.concurrency as usize);
            let moment =
                |timer: u32| due_at_ms + u64::from(timer) * bench.spread_ms / u64::from(bench.timers);
            clients.spawn(set(bench.nodes.client(client), share.map(moment).collect()));
        }
        let set: Vec<(Client, Vec<String>, u64)> = clients.join_all().await;
        let started: u64 = set.iter().map(|(_, instances, _)| instances.len() as u64).sum();
        sleep_until(&SystemClock, due_at_ms).await;
        self.all_fired(started).await;
        let elapsed_ms = SystemClock.now_ms().saturating_sub(due_at_ms).max(1);
        let mut clients = JoinSet::new();
        set.into_iter().for_each(|(client, instances, failed)| {
            clients.spawn(results(client, instances, failed));
        });
        let failed: u64 = clients.join_all().await.into_iter().sum();
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let fired = seen.late_us.len() + seen.early;
        Ok(Measured {
            concurrency: bench.concurrency,
            runs: fired,
            steps: fired,
            elapsed: Duration::from_millis(elapsed_ms),
            latency_us: seen.late_us.clone(),
            errors: failed + seen.set_too_late,
            spent: meter.read()?,
            cost_ratio: None,
            lateness: Some(Lateness { late_us: seen.late_us, early: seen.early }),
        })
    }

    /// Waits until so many have fired. Nobody asks for their results meanwhile: what is measured is the timers.
    async fn all_fired(&self, started: u64) {
        let (mut fired, mut last_ms) = (0, SystemClock.now_ms());
        while fired < started && SystemClock.now_ms() < last_ms + GIVE_UP_MS {
            sleep(&SystemClock, LOOK_EVERY).await;
            let now = self.seen.lock().unwrap_or_else(PoisonError::into_inner).all();
            if now > fired {
                (fired, last_ms) = (now, SystemClock.now_ms());
            }
        }
    }
}

/// Starts an instance for each moment; returns them, and how many could not be started.
async fn set(client: Client, moments: Vec<u64>) -> (Client, Vec<String>, u64) {
    let mut failed = 0;
    let mut started = Vec::with_capacity(moments.len());
    for due_at_ms in moments {
        match client.start(WAIT, due_at_ms).await {
            Ok(instance) => started.push(instance.id().to_owned()),
            Err(error) => {
                eprintln!("a start failed: {error}");
                failed += 1;
            }
        }
    }
    (client, started, failed)
}

/// Waits for the ends of all of them; returns how many failed, with those that failed before.
async fn results(client: Client, instances: Vec<String>, mut failed: u64) -> u64 {
    for instance in instances {
        if let Err(error) = client.result(WAIT, instance).await {
            eprintln!("a run failed: {error}");
            failed += 1;
        }
    }
    failed
}

impl Workload for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn about(&self) -> &'static str {
        "instances that sleep until moments within a second"
    }

    fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        let seen = self.seen.clone();
        let wait = move |ctx: Context, due_at_ms: u64| {
            let seen = seen.clone();
            async move {
                let set_at_ms = ctx.now_ms();
                ctx.sleep_until(due_at_ms).await?;
                if !ctx.is_replaying() {
                    let now_ms = SystemClock.now_ms();
                    seen.lock().unwrap_or_else(PoisonError::into_inner).fired(set_at_ms, due_at_ms, now_ms);
                }
                Ok::<(), Failure>(())
            }
        };
        registry.orchestration(WAIT, wait)
    }

    fn measure<'a>(&'a self, bench: &'a Bench) -> Measuring<'a> {
        Box::pin(self.run(bench))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_late_early_or_set_too_late() {
        let mut seen = Seen::default();
        seen.fired(10, 1_000, 1_000);
        seen.fired(10, 1_000, 1_003);
        seen.fired(10, 1_000, 999);
        seen.fired(1_000, 1_000, 1_001);
        assert_eq!((seen.late_us.len(), seen.early, seen.set_too_late), (2, 1, 1));
        assert!(seen.late_us.equivalent(seen.late_us.max(), 3_000));
    }
}
