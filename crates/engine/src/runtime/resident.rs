//! Executions that stay in memory between turns, least recently used out first.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::replay::Execution;
use crate::store::{ExecutionPosition, ResidentExecutions};

/// Whether the commit that made an execution what it is has been confirmed.
#[derive(Debug, Clone, Default)]
pub(super) struct Confirmation(Arc<AtomicBool>);

impl Confirmation {
    pub(super) fn confirm(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_confirmed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Entry {
    execution: Box<Execution>,
    confirmation: Confirmation,
}

/// A bounded cache of executions by instance.
///
/// An execution is put in just before its turn is committed, so that it is there when the next message follows at
/// once, and counts only after the commit has been confirmed.
pub(super) struct Resident {
    entries: Option<Mutex<LruCache<String, Entry>>>,
}

impl Resident {
    pub(super) fn new(capacity: usize) -> Self {
        Resident { entries: NonZeroUsize::new(capacity).map(|capacity| Mutex::new(LruCache::new(capacity))) }
    }

    fn lock(entries: &Mutex<LruCache<String, Entry>>) -> MutexGuard<'_, LruCache<String, Entry>> {
        entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, execution: Box<Execution>) -> Confirmation {
        let confirmation = Confirmation::default();
        if let Some(entries) = &self.entries {
            let instance = execution.id().instance.clone();
            let entry = Entry { execution, confirmation: confirmation.clone() };
            // What falls out is dropped after the lock is released: it runs destructors of user code.
            let evicted = Self::lock(entries).push(instance, entry);
            drop(evicted);
        }
        confirmation
    }

    /// Takes an execution out if it is exactly at this event of this execution.
    pub(super) fn take(
        &self,
        instance: &str,
        execution_id: u64,
        last_event_id: u64,
    ) -> Option<Box<Execution>> {
        let entries = self.entries.as_ref()?;
        let entry = Self::lock(entries).pop(instance)?;
        let fits = entry.execution.id().execution_id == execution_id
            && entry.execution.last_event_id() == last_event_id
            && entry.confirmation.is_confirmed();
        fits.then_some(entry.execution)
    }

    pub(super) fn remove(&self, instance: &str) {
        if let Some(entries) = &self.entries {
            let removed = Self::lock(entries).pop(instance);
            drop(removed);
        }
    }
}

impl ResidentExecutions for Resident {
    fn holds(&self, position: &ExecutionPosition<'_>) -> bool {
        let Some(entries) = &self.entries else { return false };
        Self::lock(entries).peek(position.instance).is_some_and(|entry| {
            let execution = &entry.execution;
            execution.id().execution_id == position.execution_id
                && Some(execution.started().seed) == position.incarnation
                && execution.last_event_id() == position.last_event_id
        })
    }
}
