//! Time series of a tenant.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use segno_api::stats::{FailureStats, NameStats, QueueStats, Stats, StatsPoint};

use super::Tenant;
use crate::access::timestamp;
use crate::problem::Refusal;
use crate::stats::{MINUTE_MS, MinuteCounts, NameCounts, QueueSample, read_minutes, read_queues};

/// Names that an answer has; the rest is summed.
const MAX_NAMES: usize = 100;

/// Whether lengths of the queues of the whole store are part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfStore {
    /// They are: the key has a grant for all tenants.
    Shown,
    /// They are not.
    Hidden,
}

/// Which time series: so many minutes to now, in points of so many minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatsRange {
    /// Minutes before now.
    pub minutes: u64,
    /// Minutes of a point.
    pub step: u64,
    /// What of the store.
    pub of_store: OfStore,
}

impl Tenant {
    /// Time series; the same answer again for two seconds.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn stats(&self, range: StatsRange) -> Result<Arc<Stats>, Refusal> {
        let key = (self.scope.prefix().to_owned(), range);
        self.resources().recent_stats.get(&key, &*self.app.clock, self.computed_stats(range)).await
    }

    async fn computed_stats(&self, range: StatsRange) -> Result<Stats, Refusal> {
        let now = self.app.clock.now_ms() / MINUTE_MS;
        // Points begin at multiples of the step, so that they stay where they are while time goes
        // by.
        let first = now.saturating_sub(range.minutes - 1);
        let first = first - first % range.step;
        let (minutes, is_whole) = self.minutes(first..=now).await?;
        let mut total = MinuteCounts::default();
        minutes.values().for_each(|counts| total.merge(counts));
        let queues = match range.of_store {
            OfStore::Shown => read_queues(&*self.resources().store, first..=now).await?,
            OfStore::Hidden => Vec::new(),
        };
        Ok(Stats {
            step: range.step * 60,
            points: points(&minutes, first..=now, range.step),
            functions: names(total.functions),
            orchestrations: names(total.orchestrations),
            failures: failures(total.failures),
            queues: queues.into_iter().map(queue).collect(),
            incomplete: !is_whole,
        })
    }

    /// The counts of some minutes, and whether all of them could be read.
    pub(super) async fn minutes(
        &self,
        minutes: RangeInclusive<u64>,
    ) -> Result<(BTreeMap<u64, MinuteCounts>, bool), Refusal> {
        let resources = self.resources();
        Ok(read_minutes(&*resources.store, &resources.collector, self.scope.prefix(), minutes).await?)
    }
}

fn points(minutes: &BTreeMap<u64, MinuteCounts>, all: RangeInclusive<u64>, step: u64) -> Vec<StatsPoint> {
    let (first, last) = all.into_inner();
    let begins = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    begins
        .map(|begin| {
            let mut counts = MinuteCounts::default();
            minutes.range(begin..begin + step).for_each(|(_, minute)| counts.merge(minute));
            StatsPoint {
                at: timestamp(begin * MINUTE_MS),
                started: counts.started,
                completed: counts.completed,
                failed: counts.failed,
                cancelled: counts.cancelled,
                late_p50_ms: counts.lateness.quantile(50),
                late_p99_ms: counts.lateness.quantile(99),
            }
        })
        .collect()
}

fn names(counts: BTreeMap<String, NameCounts>) -> Vec<NameStats> {
    let mut all: Vec<(String, NameCounts)> = counts.into_iter().collect();
    let ended = |counts: &NameCounts| counts.completed + counts.failed + counts.cancelled;
    all.sort_by_key(|(name, counts)| (Reverse(ended(counts)), name.clone()));
    let rest = all.split_off(all.len().min(MAX_NAMES));
    if !rest.is_empty() {
        let mut others = NameCounts::default();
        rest.iter().for_each(|(_, counts)| others.merge(counts));
        all.push((crate::stats::OTHERS.to_owned(), others));
    }
    all.into_iter()
        .map(|(name, counts)| NameStats {
            name,
            completed: counts.completed,
            failed: counts.failed,
            cancelled: counts.cancelled,
            p50_ms: counts.times.quantile(50),
            p99_ms: counts.times.quantile(99),
        })
        .collect()
}

fn failures(counts: BTreeMap<String, u64>) -> Vec<FailureStats> {
    let mut all: Vec<_> = counts.into_iter().map(|(code, count)| FailureStats { code, count }).collect();
    all.sort_by_key(|failure| (Reverse(failure.count), failure.code.clone()));
    let rest = all.split_off(all.len().min(MAX_NAMES));
    let count = rest.iter().map(|failure| failure.count).sum();
    if count > 0 {
        all.push(FailureStats { code: crate::stats::OTHERS.to_owned(), count });
    }
    all
}

fn queue(sample: QueueSample) -> QueueStats {
    QueueStats {
        at: timestamp(sample.minute * MINUTE_MS),
        orchestrator: sample.orchestrator,
        worker: sample.worker,
        delayed: sample.delayed,
        locked: sample.locked,
    }
}
