//! Executions that stay in memory between turns, least recently used out first.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use tokio::sync::oneshot;

use crate::limits::{MAX_RESIDENT_BYTES, MAX_RESIDENT_EXECUTION_BYTES};
use crate::replay::Execution;
use crate::store::{ExecutionPosition, ResidentExecutions};

/// Confirms that the commit which led to the state of an execution succeeded. Dropped, it failed.
pub(super) struct Confirmation(oneshot::Sender<()>);

impl Confirmation {
    pub(super) fn confirm(self) {
        // There is no receiver if the execution has been evicted meanwhile.
        let _ = self.0.send(());
    }
}

struct Entry {
    execution: Box<Execution>,
    confirmed: oneshot::Receiver<()>,
}

/// A cache of executions by instance, bounded in number and in bytes of user data.
///
/// An execution is added just before its turn is committed, so that it is available when the next
/// message follows at once, and is valid only after the commit has been confirmed.
pub(super) struct Resident {
    entries: Option<Mutex<Entries<Entry>>>,
}

/// Entries by instance with the bytes of each, least recently used out first.
struct Entries<E> {
    by_instance: LruCache<Arc<str>, (E, usize)>,
    bytes: usize,
    max_bytes: usize,
}

impl<E> Entries<E> {
    fn new(capacity: NonZeroUsize, max_bytes: usize) -> Self {
        Entries { by_instance: LruCache::new(capacity), bytes: 0, max_bytes }
    }

    /// Adds an entry. Returns the entries that are evicted for it; itself if it alone exceeds the
    /// bound.
    fn push(&mut self, instance: Arc<str>, entry: E, bytes: usize) -> Vec<E> {
        self.bytes += bytes;
        let mut evicted = Vec::new();
        if let Some((_, (entry, bytes))) = self.by_instance.push(instance, (entry, bytes)) {
            self.bytes -= bytes;
            evicted.push(entry);
        }
        while self.bytes > self.max_bytes
            && let Some((_, (entry, bytes))) = self.by_instance.pop_lru()
        {
            self.bytes -= bytes;
            evicted.push(entry);
        }
        evicted
    }

    fn peek(&self, instance: &str) -> Option<&E> {
        self.by_instance.peek(instance).map(|(entry, _)| entry)
    }

    fn pop(&mut self, instance: &str) -> Option<E> {
        let (entry, bytes) = self.by_instance.pop(instance)?;
        self.bytes -= bytes;
        Some(entry)
    }
}

impl Resident {
    pub(super) fn new(capacity: usize) -> Self {
        let entries = |capacity| Mutex::new(Entries::new(capacity, MAX_RESIDENT_BYTES));
        Resident { entries: NonZeroUsize::new(capacity).map(entries) }
    }

    fn lock(entries: &Mutex<Entries<Entry>>) -> MutexGuard<'_, Entries<Entry>> {
        entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, execution: Box<Execution>) -> Confirmation {
        let (confirmation, confirmed) = oneshot::channel();
        if let Some(entries) = &self.entries {
            let instance = execution.id().instance.clone();
            let bytes = execution.payload_bytes().min(MAX_RESIDENT_EXECUTION_BYTES);
            let entry = Entry { execution, confirmed };
            // Evicted entries are dropped after the lock is released: that runs destructors of user
            // code.
            let evicted = Self::lock(entries).push(instance, entry, bytes);
            drop(evicted);
        }
        Confirmation(confirmation)
    }

    /// Removes an execution if it is exactly at this event of this execution. The store may deliver
    /// the next turn before the previous one has got the answer to its commit: waiting for that
    /// answer is far cheaper than a replay.
    pub(super) async fn take(
        &self,
        instance: &str,
        execution_id: u64,
        last_event_id: u64,
    ) -> Option<Box<Execution>> {
        let entry = Self::lock(self.entries.as_ref()?).pop(instance)?;
        let fits = entry.execution.id().execution_id == execution_id
            && entry.execution.last_event_id() == last_event_id;
        (fits && entry.confirmed.await.is_ok()).then_some(entry.execution)
    }

    /// Removes an execution if an activity that has ended is its only open operation.
    pub(super) async fn take_waiting(
        &self,
        instance: &str,
        activity_id: u64,
        idempotency_key: &str,
    ) -> Option<Box<Execution>> {
        let entry = {
            let mut entries = Self::lock(self.entries.as_ref()?);
            let waits = entries.peek(instance)?.execution.waits_only_for(activity_id, idempotency_key);
            waits.then(|| entries.pop(instance)).flatten()?
        };
        entry.confirmed.await.is_ok().then_some(entry.execution)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_in_number_and_in_bytes() {
        let mut entries = Entries::new(NonZeroUsize::new(3).unwrap(), 100);
        for (instance, bytes, evicted, left) in [
            ("a", 40, vec![], 40),
            ("b", 40, vec![], 80),
            ("c", 10, vec![], 90),
            ("d", 10, vec!["a"], 60),
            ("d", 20, vec!["d"], 70),
            ("e", 80, vec!["b", "c"], 100),
            ("f", 101, vec!["d", "e", "f"], 0),
            ("g", 100, vec![], 100),
        ] {
            assert_eq!(entries.push(instance.into(), instance, bytes), evicted, "{instance}");
            assert_eq!(entries.bytes, left, "{instance}");
        }
        assert_eq!(entries.peek("g"), Some(&"g"));
        assert_eq!((entries.pop("g"), entries.pop("g")), (Some("g"), None));
        assert_eq!(entries.bytes, 0);
    }
}
