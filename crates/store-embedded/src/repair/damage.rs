//! Known damage: recorded by the read that meets it, reported by the health of the store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Damage that was met since the store was opened. The first finding is kept; `segno store check` lists all.
#[derive(Debug, Default)]
pub(crate) struct KnownDamage {
    first: Mutex<Option<String>>,
    /// What of the queues could not be read when the store was opened.
    queues: OnceLock<String>,
}

impl KnownDamage {
    /// Keeps a finding, if it is the first one.
    pub(crate) fn note(&self, what: &str) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            tracing::error!(
                what,
                "the store is damaged; what is not damaged is still served: run `segno store check`, then restore a \
                 backup or run `segno store salvage`"
            );
            *first = Some(what.to_owned());
        }
    }

    /// Keeps what the damage means for the queues.
    pub(crate) fn note_queues(&self, what: String) {
        // Set once, by opening.
        let _ = self.queues.set(what);
    }

    /// The first finding, with what it means for the queues.
    pub(crate) fn first(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(match self.queues.get() {
            Some(queues) => format!("{first}; {queues}"),
            None => first,
        })
    }

    /// Notes every read of a file that fails.
    pub(crate) fn watch(self: &Arc<Self>) -> OnFailure {
        let damage = Arc::clone(self);
        Box::new(move |what| damage.note(what))
    }
}

/// What is called with the reason of a read that failed.
pub(crate) type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// Whether a read of one file has failed. redb refuses all reads and writes of that file from then on.
#[derive(Default)]
pub(crate) struct FailedReads {
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
    pub(crate) fn on_failure(&self, tell: OnFailure) {
        // Set once, by the owner of the file.
        let _ = self.tell.set(tell);
    }

    /// A read has failed.
    pub(crate) fn note(&self, what: &str) {
        self.is_met.store(true, Ordering::Release);
        if let Some(tell) = self.tell.get() {
            tell(what);
        }
    }

    /// Whether a read has failed.
    pub(crate) fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Acquire)
    }
}
