//! Executions that stay in memory between turns, least recently used out first.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use tokio::sync::oneshot;

use crate::replay::Execution;
use crate::store::{ExecutionPosition, ResidentExecutions};
use crate::work_item::ActivityExecute;

/// Says that the commit that made an execution what it is went through. Dropped unsaid, it did not.
pub(super) struct Confirmation(oneshot::Sender<()>);

impl Confirmation {
    pub(super) fn confirm(self) {
        // Nobody listens when the execution has been pushed out meanwhile.
        let _ = self.0.send(());
    }
}

struct Entry {
    execution: Box<Execution>,
    confirmed: oneshot::Receiver<()>,
}

/// A bounded cache of executions by instance.
///
/// An execution is put in just before its turn is committed, so that it is there when the next message follows at
/// once, and counts only after the commit has been confirmed.
pub(super) struct Resident {
    entries: Option<Mutex<LruCache<Arc<str>, Entry>>>,
}

impl Resident {
    pub(super) fn new(capacity: usize) -> Self {
        Resident { entries: NonZeroUsize::new(capacity).map(|capacity| Mutex::new(LruCache::new(capacity))) }
    }

    fn lock(entries: &Mutex<LruCache<Arc<str>, Entry>>) -> MutexGuard<'_, LruCache<Arc<str>, Entry>> {
        entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, execution: Box<Execution>) -> Confirmation {
        let (confirmation, confirmed) = oneshot::channel();
        if let Some(entries) = &self.entries {
            let instance = execution.id().instance.clone();
            let entry = Entry { execution, confirmed };
            // What falls out is dropped after the lock is released: it runs destructors of user code.
            let evicted = Self::lock(entries).push(instance, entry);
            drop(evicted);
        }
        Confirmation(confirmation)
    }

    /// Takes an execution out if it is exactly at this event of this execution. The store may hand out the next turn
    /// before the one that committed it has heard so: that answer is on its way, and waiting for it is far cheaper
    /// than a replay.
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

    /// Takes an execution out if an activity that has ended is all that it waits for.
    pub(super) async fn take_waiting(&self, activity: &ActivityExecute) -> Option<Box<Execution>> {
        let instance = activity.instance.as_str();
        let entry = {
            let mut entries = Self::lock(self.entries.as_ref()?);
            let waits = entries.peek(instance)?.execution.waits_only_for(activity);
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
