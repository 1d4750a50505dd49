//! A checkpoint can wait for a moment, and what is due cannot. While a crowd of messages waits to be fetched, as when very
//! many timers end together, the checkpoint that is being made rests, so that both processors are free for the crowd.
//! It never rests for long, and not at all once the changes after it are many themselves.

use std::time::Duration;

use crate::shared::Core;

/// Rows between two looks at who waits.
const ROWS_BETWEEN_LOOKS: usize = 1_024;

/// Messages that can be fetched, from which on they are a crowd.
const CROWD: u64 = 4_096;

/// How long a rest lasts.
const REST: Duration = Duration::from_millis(20);

/// Most rests of one checkpoint, which together are two seconds.
const MAX_RESTS: usize = 100;

/// Counts the rows of one checkpoint and rests between them.
pub struct GivingWay<R> {
    /// Rests and says so, or sees no reason to.
    rest: R,
    rows: usize,
    rests_left: usize,
}

impl<R: FnMut() -> bool> GivingWay<R> {
    pub fn new(rest: R) -> Self {
        GivingWay { rest, rows: 0, rests_left: MAX_RESTS }
    }

    /// Another row has been written.
    pub fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            while self.rests_left > 0 && (self.rest)() {
                self.rests_left -= 1;
            }
        }
    }
}

impl Core {
    /// Rests for a moment if a crowd waits and nobody waits for the checkpoint.
    pub fn rest_for_a_crowd(&self) -> bool {
        let shared = self.lock();
        let is_crowd = shared.state.orchestrations.depths().visible >= CROWD;
        if !is_crowd || self.is_checkpoint_wanted(&shared) {
            return false;
        }
        drop(shared);
        // Nobody calls: a rest is short, and closing is not in a hurry.
        std::thread::park_timeout(REST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_looks_now_and_then_and_rests_only_so_often() {
        let (mut looks, mut rests) = (0, 0);
        let mut giving_way = GivingWay::new(|| {
            looks += 1;
            let is_crowd = looks > 1;
            rests += usize::from(is_crowd);
            is_crowd
        });
        (0..ROWS_BETWEEN_LOOKS - 1).for_each(|_| giving_way.row());
        assert_eq!(giving_way.rests_left, MAX_RESTS);
        (0..9 * ROWS_BETWEEN_LOOKS).for_each(|_| giving_way.row());
        assert_eq!(giving_way.rests_left, 0);
        assert_eq!((looks, rests), (MAX_RESTS + 1, MAX_RESTS));
    }
}
