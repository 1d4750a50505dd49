//! How the writer is called.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls the writer, which waits for it now or later.
#[derive(Default)]
pub struct Bell {
    is_called: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub fn call(&self) {
        *self.is_called() = true;
        self.heard.notify_one();
    }

    /// Waits for a call, or so long; `false` when none came.
    pub fn wait(&self, time: Option<Duration>) -> bool {
        let is_called = self.is_called();
        let is_silent = |is_called: &mut bool| !*is_called;
        let mut is_called = match time {
            Some(time) => {
                let waited = self.heard.wait_timeout_while(is_called, time, is_silent);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.heard.wait_while(is_called, is_silent).unwrap_or_else(PoisonError::into_inner),
        };
        std::mem::take(&mut *is_called)
    }

    /// Forgets a call: what it was for is known.
    pub fn mute(&self) {
        *self.is_called() = false;
    }

    fn is_called(&self) -> MutexGuard<'_, bool> {
        self.is_called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
