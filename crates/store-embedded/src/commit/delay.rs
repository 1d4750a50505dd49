//! Group-commit delay: how long the writer waits for more commits before it writes a batch.
//!
//! A sync costs as much processor time as several commits. Callers that one batch has answered submit
//! their next commits soon. So under load the writer waits for half as many commits as it has just
//! answered, but no longer than a sync takes: half of the callers run while the others wait for the
//! disk. With many callers the processor is the bottleneck, so the writer waits for as many commits
//! as it has answered, for up to two syncs. The commit of a single caller is never delayed.

use std::time::Duration;

/// With fewer expected commits, there is no delay.
const MIN_GROUP: usize = 4;

/// From this many commits in a batch on, the processor is the bottleneck.
const LARGE_GROUP: usize = 32;

/// Longest delay, however slow the disk is.
const MAX_DELAY: Duration = Duration::from_millis(2);

/// Shortest delay under load, however fast the disk is.
const MIN_DELAY: Duration = Duration::from_micros(200);

/// Sizes and durations of the last batches.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CommitDelay {
    answered: usize,
    sync: Duration,
}

impl CommitDelay {
    /// The number of commits to wait for, and the longest wait, when a batch has `waiting` commits;
    /// `None` if the batch is written at once.
    pub(crate) fn for_batch(&self, waiting: usize) -> Option<(usize, Duration)> {
        let (enough, patience) = match self.answered {
            group if group >= LARGE_GROUP => (group, self.sync * 2),
            group => (group / 2, self.sync),
        };
        let is_worth_it = enough >= MIN_GROUP && waiting < enough;
        is_worth_it.then(|| (enough, patience.clamp(MIN_DELAY, MAX_DELAY)))
    }

    /// Records the duration of a write, and the number of commits that it has answered.
    pub(crate) fn record(&mut self, answered: usize, took: Duration) {
        self.answered = answered;
        self.sync = (self.sync * 7 + took) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_of_a_single_caller_is_never_delayed() {
        let mut delay = CommitDelay::default();
        assert_eq!(delay.for_batch(1), None);
        for _ in 0..10 {
            delay.record(2 * MIN_GROUP - 1, Duration::from_secs(1));
            assert_eq!(delay.for_batch(1), None);
        }
    }

    #[test]
    fn the_delay_is_at_most_one_sync_and_two_for_a_large_group() {
        for (group, expected, least_us) in [(30, 15, 900), (LARGE_GROUP, LARGE_GROUP, 1_800), (50, 50, 1_800)]
        {
            let mut delay = CommitDelay::default();
            for _ in 0..100 {
                delay.record(group, Duration::from_millis(1));
            }
            let (enough, patience) = delay.for_batch(expected - 1).expect("a group was just answered");
            assert_eq!(enough, expected, "{group}");
            let least = Duration::from_micros(least_us);
            assert!(patience > least && patience <= least * 10 / 9, "{group}: {patience:?}");
            assert_eq!(delay.for_batch(expected), None, "{group}");
            delay.record(group, Duration::from_secs(100));
            assert_eq!(delay.for_batch(1), Some((expected, MAX_DELAY)), "{group}");
        }
    }
}
