//! The store itself: one lock, one clock, and the loop in which every fetch waits.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::orchestrator_queue::OrchestratorQueue;
use super::state::State;
use super::waiters::{Seat, others_first};
use super::wishes::{AllWaiters, Queues, Wish};
use super::worker_queue::WorkerQueue;
use crate::clock::{self, Clock, SystemClock, sleep_until};

/// The reference store, in memory. Nothing outlives the process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    shared: Mutex<Shared>,
}

/// What the mutex guards.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: State,
    waiters: AllWaiters,
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

    /// Runs an operation on the state of this moment, then wakes whoever can go on because of it.
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

    /// Tries until something comes of it or the time is up. Between tries it sleeps until it is woken by a
    /// commit or, as its group's timekeeper, by the clock.
    pub(super) async fn wait_for<W: Wish, T>(
        &self,
        wish: impl Fn() -> W,
        poll_timeout: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Vec<T>,
    ) -> Vec<T> {
        let mut deadline_ms = None;
        let mut ticket: Option<Ticket<'_, W>> = None;
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
                let ticket = ticket.get_or_insert_with(|| Ticket::new(self, waiters.join(wish())));
                let change_ms =
                    waiters.park(ticket.seat, &ticket.signal, |wish| wish.next_change_ms(&*state, now_ms));
                shared.wake(now_ms);
                (change_ms.map_or(deadline_ms, |change_ms| change_ms.min(deadline_ms)), &ticket.signal)
            };
            tokio::select! {
                biased;
                // One fetch then takes what all of them enqueue.
                () = signal.notified() => others_first().await,
                () = sleep_until(&*self.clock, sleep_until_ms) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`; the latter is asked
        // when the state is whole, so going on is right and a poisoned store would only hide the first message.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Wakes as many waiters as there is work for.
    fn wake(&mut self, now_ms: u64) {
        self.waiters.wake(&self.state, now_ms);
    }
}

/// A place among the waiters that is given up when the fetch ends or is dropped.
struct Ticket<'a, W: Wish> {
    store: &'a MemoryStore,
    seat: Seat,
    /// Keeps a signal that comes before the fetch listens.
    signal: Arc<Notify>,
    wish: PhantomData<fn() -> W>,
}

impl<'a, W: Wish> Ticket<'a, W> {
    fn new(store: &'a MemoryStore, seat: Seat) -> Self {
        Ticket { store, seat, signal: Arc::new(Notify::new()), wish: PhantomData }
    }
}

impl<W: Wish> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        let mut shared = self.store.lock();
        W::waiters(&mut shared.waiters).leave(self.seat);
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
