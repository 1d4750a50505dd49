//! What is known to be damaged: noted by the read that meets it, told by the health of the store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Damage that was met since the store was opened. The first finding is kept; `segno store check` lists all.
#[derive(Debug, Default)]
pub struct KnownDamage(Mutex<Option<String>>);

impl KnownDamage {
    /// Keeps a finding, if it is the first one.
    pub fn note(&self, what: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            tracing::error!(
                what,
                "the store is damaged; what is not damaged is still served: run `segno store check`, then restore a \
                 backup or run `segno store salvage`"
            );
            *first = Some(what.to_owned());
        }
    }

    /// The first finding.
    pub fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is called with the reason of a read that failed.
pub type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// Whether a read of one file has failed. redb refuses all reads and writes of that file from then on.
#[derive(Default)]
pub struct FailedReads {
    is_met: AtomicBool,
    tell: OnceLock<OnFailure>,
}

impl fmt::Debug for FailedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailedReads").field("is_met", &self.is_met).finish_non_exhaustive()
    }
}

impl FailedReads {
    /// Calls this for every read that fails.
    pub fn on_failure(&self, tell: OnFailure) {
        // Set once, by the owner of the file.
        let _ = self.tell.set(tell);
    }

    /// A read has failed.
    pub fn note(&self, what: &str) {
        self.is_met.store(true, Ordering::Release);
        if let Some(tell) = self.tell.get() {
            tell(what);
        }
    }

    /// Whether a read has failed.
    pub fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Acquire)
    }
}
