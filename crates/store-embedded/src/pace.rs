//! How long the writer waits for a batch to fill before it takes it.
//!
//! A sync costs the processor as much as several commits. Callers that one batch has answered come back with their next
//! commits within a moment. So under load the writer waits for about as many as it has just answered, but no
//! longer than a sync takes; whoever is alone never waits.

use std::time::Duration;

/// Below this many callers at a time, waiting is not worth it.
const LEAST_CROWD: usize = 4;

/// Longest wait, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(2);

/// Shortest wait under load, however fast the disk is.
const SHORTEST: Duration = Duration::from_micros(200);

/// What the last batches were like.
#[derive(Debug, Default)]
pub struct Pace {
    answered: usize,
    sync: Duration,
}

impl Pace {
    /// For how many callers, and how long, a batch is kept open that so many wait for; `None` when it goes at once.
    pub fn wish(&self, waiting: usize) -> Option<(usize, Duration)> {
        let is_worth_it = self.answered >= LEAST_CROWD && waiting < self.answered;
        is_worth_it.then(|| (self.answered, self.sync.clamp(SHORTEST, LONGEST)))
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
        assert_eq!(pace.wish(1), None);
        for _ in 0..10 {
            pace.written(LEAST_CROWD - 1, Duration::from_secs(1));
            assert_eq!(pace.wish(1), None);
        }
    }

    #[test]
    fn a_crowd_is_waited_for_no_longer_than_a_sync_takes() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.written(50, Duration::from_millis(1));
        }
        let (enough, patience) = pace.wish(20).expect("a crowd was just answered");
        assert_eq!(enough, 50);
        assert!(
            patience <= Duration::from_millis(1) && patience > Duration::from_micros(900),
            "{patience:?}"
        );
        assert_eq!(pace.wish(50), None);
        pace.written(50, Duration::from_secs(100));
        assert_eq!(pace.wish(1), Some((50, LONGEST)));
    }
}
