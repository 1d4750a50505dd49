//! The wake-up of the writer thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A binary semaphore: a notification wakes the writer, now or at its next wait.
#[derive(Default)]
pub(crate) struct WriterSignal {
    is_notified: Mutex<bool>,
    changed: Condvar,
}

impl WriterSignal {
    pub(crate) fn notify(&self) {
        *self.is_notified() = true;
        self.changed.notify_one();
    }

    /// Waits for a notification, at most for `time`. Returns `false` after a timeout.
    pub(crate) fn wait(&self, time: Option<Duration>) -> bool {
        let is_notified = self.is_notified();
        let is_pending = |is_notified: &mut bool| !*is_notified;
        let mut is_notified = match time {
            Some(time) => {
                let waited = self.changed.wait_timeout_while(is_notified, time, is_pending);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait_while(is_notified, is_pending).unwrap_or_else(PoisonError::into_inner),
        };
        std::mem::take(&mut *is_notified)
    }

    /// Drops a notification whose reason has been processed.
    pub(crate) fn clear(&self) {
        *self.is_notified() = false;
    }

    fn is_notified(&self) -> MutexGuard<'_, bool> {
        self.is_notified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
