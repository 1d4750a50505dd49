//! How long the writer waits for a batch to fill before it takes it.
//!
//! A sync costs the processor as much as several commits. Callers that one batch has answered come back with their next
//! commits within a moment. So under load the writer waits for half as many as it has just answered, but no longer than a
//! sync takes: half of them are at work while the others wait for the disk. With a large crowd it is the processor that is
//! short, so it waits for as many as it has answered, for up to two syncs. Whoever is alone never waits.

use std::time::Duration;

/// Below this many callers at a time, waiting is not worth it.
const LEAST_CROWD: usize = 4;

/// From this many callers at a time on, the processor is short.
const LARGE_CROWD: usize = 32;

/// Longest wait, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(2);

/// Shortest wait under load, however fast the disk is.
const SHORTEST: Duration = Duration::from_micros(200);

/// What the last batches were like.
#[derive(Debug, Default, Clone, Copy)]
pub struct Pace {
    answered: usize,
    sync: Duration,
}

impl Pace {
    /// For how many callers, and how long, a batch is kept open that so many wait for; `None` when it goes at once.
    pub fn demand(&self, waiting: usize) -> Option<(usize, Duration)> {
        let (enough, patience) = match self.answered {
            crowd if crowd >= LARGE_CROWD => (crowd, self.sync * 2),
            crowd => (crowd / 2, self.sync),
        };
        let is_worth_it = enough >= LEAST_CROWD && waiting < enough;
        is_worth_it.then(|| (enough, patience.clamp(SHORTEST, LONGEST)))
    }

    /// A batch was written in so much time and has answered so many.
    pub fn written(&mut self, answered: usize, took: Duration) {
        self.answered = answered;
        self.sync = (self.sync * 7 + took) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_alone_never_waits() {
        let mut pace = Pace::default();
        assert_eq!(pace.demand(1), None);
        for _ in 0..10 {
            pace.written(2 * LEAST_CROWD - 1, Duration::from_secs(1));
            assert_eq!(pace.demand(1), None);
        }
    }

    #[test]
    fn a_crowd_is_waited_for_no_longer_than_a_sync_takes_and_a_large_one_than_two() {
        for (crowd, expected, least_us) in [(30, 15, 900), (LARGE_CROWD, LARGE_CROWD, 1_800), (50, 50, 1_800)]
        {
            let mut pace = Pace::default();
            for _ in 0..100 {
                pace.written(crowd, Duration::from_millis(1));
            }
            let (enough, patience) = pace.demand(expected - 1).expect("a crowd was just answered");
            assert_eq!(enough, expected, "{crowd}");
            let least = Duration::from_micros(least_us);
            assert!(patience > least && patience <= least * 10 / 9, "{crowd}: {patience:?}");
            assert_eq!(pace.demand(expected), None, "{crowd}");
            pace.written(crowd, Duration::from_secs(100));
            assert_eq!(pace.demand(1), Some((expected, LONGEST)), "{crowd}");
        }
    }
}
