//! The store itself: one lock, one clock, and the loop in which every fetch waits.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::state::State;
use crate::clock::{self, Clock, SystemClock, sleep_until};
use crate::store::core::demand::{Demand, Queues, WaitQueues};
use crate::store::core::orchestrator_queue::OrchestratorQueue;
use crate::store::core::waiters::{WaiterKey, reschedule_once};
use crate::store::core::worker_queue::WorkerQueue;

/// The reference store, in memory. Nothing outlives the process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    shared: Mutex<Shared>,
}

/// What the mutex guards.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: State,
    waiters: WaitQueues,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    pub fn new() -> Arc<MemoryStore> {
        Self::with_clock(SystemClock::shared())
    }

    /// An empty store on a given clock, which alone decides visibility and expiry.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Arc<MemoryStore> {
        Arc::new(MemoryStore { clock, shared: Mutex::default() })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Runs an operation on the state of this moment, then wakes the fetches that can continue.
    pub(super) fn change<T>(&self, operation: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        shared.state.advance(now_ms);
        let output = operation(&mut shared.state, now_ms);
        shared.wake(now_ms);
        output
    }

    /// Runs an operation that changes nothing, on a state in which time may not have passed yet.
    pub(super) fn look<T>(&self, operation: impl FnOnce(&State, u64) -> T) -> T {
        operation(&self.lock().state, self.clock.now_ms())
    }

    /// Repeats an attempt until it returns something or the time is up. Between attempts the fetch
    /// sleeps until it is woken by a commit or, as the leader of its group, by the clock.
    pub(super) async fn wait_for<W: Demand, T>(
        &self,
        demand: impl Fn() -> W,
        poll_timeout: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Vec<T>,
    ) -> Vec<T> {
        let mut deadline_ms = None;
        let mut waiter: Option<WaiterGuard<'_, W>> = None;
        loop {
            let (sleep_until_ms, signal) = {
                let mut shared = self.lock();
                let now_ms = self.clock.now_ms();
                let deadline_ms =
                    *deadline_ms.get_or_insert_with(|| clock::deadline_ms(&*self.clock, poll_timeout));
                shared.state.advance(now_ms);
                let found = attempt(&mut shared.state, now_ms);
                if !found.is_empty() || now_ms >= deadline_ms {
                    shared.wake(now_ms);
                    return found;
                }
                let Shared { state, waiters } = &mut *shared;
                let waiters = W::waiters(waiters);
                let waiter = waiter.get_or_insert_with(|| WaiterGuard::new(self, waiters.join(demand())));
                let change_ms =
                    waiters.park(waiter.key, &waiter.signal, |demand| demand.next_change_ms(&*state, now_ms));
                shared.wake(now_ms);
                (change_ms.map_or(deadline_ms, |change_ms| change_ms.min(deadline_ms)), &waiter.signal)
            };
            tokio::select! {
                biased;
                // The tasks that are ready enqueue first, so that one fetch takes what all of them
                // enqueue.
                () = signal.notified() => reschedule_once().await,
                () = sleep_until(&*self.clock, sleep_until_ms) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`. The
        // latter is called when the state is consistent, so it is right to continue: a poisoned store
        // would only hide the first message.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Wakes as many fetches as there is work for.
    fn wake(&mut self, now_ms: u64) {
        self.waiters.wake(&self.state, now_ms);
    }
}

/// Removes the waiter when the fetch ends or is dropped.
struct WaiterGuard<'a, W: Demand> {
    store: &'a MemoryStore,
    key: WaiterKey,
    /// Stores a notification that arrives before the fetch waits for it.
    signal: Arc<Notify>,
    demand: PhantomData<fn() -> W>,
}

impl<'a, W: Demand> WaiterGuard<'a, W> {
    fn new(store: &'a MemoryStore, key: WaiterKey) -> Self {
        WaiterGuard { store, key, signal: Arc::new(Notify::new()), demand: PhantomData }
    }
}

impl<W: Demand> Drop for WaiterGuard<'_, W> {
    fn drop(&mut self) {
        let mut shared = self.store.lock();
        W::waiters(&mut shared.waiters).leave(self.key);
        shared.wake(self.store.clock.now_ms());
    }
}

impl Queues for State {
    fn orchestrations(&self) -> &OrchestratorQueue {
        &self.orchestrations
    }

    fn work(&self) -> &WorkerQueue {
        &self.work
    }

    fn next_due_ms(&self, kind: &str, id_prefix: &str, now_ms: u64) -> Option<u64> {
        self.records.next_due_ms(kind, id_prefix, now_ms)
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
