//! Throttling of checkpoints: a checkpoint pauses while a burst of messages is fetched, for example
//! when many timers fire together, so that all processors are free for the burst. The pauses are
//! bounded, and there are none once the next checkpoint is due.

use std::time::Duration;

use crate::commit::shared::Core;

/// Rows between two checks of the queue.
const ROWS_BETWEEN_CHECKS: usize = 1_024;

/// Visible messages from which on they are a burst.
const BURST_MESSAGES: u64 = 4_096;

/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(20);

/// Most pauses of one checkpoint: two seconds together.
const MAX_PAUSES: usize = 100;

/// Counts the rows of one checkpoint and pauses between them.
pub(crate) struct CheckpointThrottle<R> {
    /// Pauses and returns true, or returns false.
    pause: R,
    rows: usize,
    pauses_left: usize,
}

impl<R: FnMut() -> bool> CheckpointThrottle<R> {
    pub(crate) fn new(pause: R) -> Self {
        CheckpointThrottle { pause, rows: 0, pauses_left: MAX_PAUSES }
    }

    /// Records a written row.
    pub(crate) fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN_CHECKS) {
            while self.pauses_left > 0 && (self.pause)() {
                self.pauses_left -= 1;
            }
        }
    }
}

impl Core {
    /// Pauses if there is a burst and no caller waits for the checkpoint.
    pub(crate) fn pause_for_burst(&self) -> bool {
        let shared = self.lock();
        let is_burst = shared.state.orchestrations.depths().visible >= BURST_MESSAGES;
        if !is_burst || self.is_checkpoint_wanted(&shared) {
            return false;
        }
        drop(shared);
        // Not interrupted by closing: a pause is short.
        std::thread::park_timeout(PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_checks_periodically_and_its_pauses_are_bounded() {
        let (mut checks, mut pauses) = (0, 0);
        let mut throttle = CheckpointThrottle::new(|| {
            checks += 1;
            let is_burst = checks > 1;
            pauses += usize::from(is_burst);
            is_burst
        });
        (0..ROWS_BETWEEN_CHECKS - 1).for_each(|_| throttle.row());
        assert_eq!(throttle.pauses_left, MAX_PAUSES);
        (0..9 * ROWS_BETWEEN_CHECKS).for_each(|_| throttle.row());
        assert_eq!(throttle.pauses_left, 0);
        assert_eq!((checks, pauses), (MAX_PAUSES + 1, MAX_PAUSES));
    }
}
