//! The store itself: one lock, one clock, and the loop in which every fetch waits.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::state::State;
use super::waiters::{Seat, Waiters};
use super::worker_queue::WorkWanted;
use crate::clock::{Clock, SystemClock, duration_ms, sleep_until};
use crate::store::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};

/// The reference store, in memory. Nothing outlives the process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    shared: Mutex<Shared>,
}

/// What the mutex guards.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: State,
    turns: Waiters<TurnWish>,
    work: Waiters<WorkWish>,
    due: Waiters<DueWish>,
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
                    *deadline_ms.get_or_insert_with(|| now_ms.saturating_add(duration_ms(poll_timeout)));
                shared.state.advance(now_ms);
                let found = attempt(&mut shared.state, now_ms);
                if !found.is_empty() || now_ms >= deadline_ms {
                    shared.wake(now_ms);
                    return found;
                }
                let (waiters, state) = W::waiters(&mut shared);
                let ticket = ticket.get_or_insert_with(|| Ticket::new(self, waiters.join(wish())));
                let change_ms =
                    waiters.park(ticket.seat, &ticket.signal, |wish| wish.next_change_ms(state, now_ms));
                shared.wake(now_ms);
                (change_ms.map_or(deadline_ms, |change_ms| change_ms.min(deadline_ms)), &ticket.signal)
            };
            tokio::select! {
                biased;
                // Others that are ready go first: one fetch then takes what all of them enqueue.
                () = signal.notified() => tokio::task::yield_now().await,
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
        let state = &self.state;
        self.turns.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
        self.work.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
        self.due.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
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
        W::waiters(&mut shared).0.leave(self.seat);
        shared.wake(self.store.clock.now_ms());
    }
}

/// What a fetch waits for.
pub(super) trait Wish: PartialEq + Sized {
    /// Where fetches of this sort wait, and the state that they wait for.
    fn waiters(shared: &mut Shared) -> (&mut Waiters<Self>, &State);

    /// For how many fetches there is something now; not zero exactly when a fetch would find something.
    fn ready_count(&self, state: &State, now_ms: u64) -> usize;

    /// When time alone may change that.
    fn next_change_ms(&self, state: &State, now_ms: u64) -> Option<u64>;
}

/// Turns of instances that a runtime can replay.
#[derive(Debug, PartialEq)]
pub(super) struct TurnWish {
    pub(super) filter: Option<DispatcherCapabilityFilter>,
}

impl Wish for TurnWish {
    fn waiters(shared: &mut Shared) -> (&mut Waiters<Self>, &State) {
        (&mut shared.turns, &shared.state)
    }

    fn ready_count(&self, state: &State, _now_ms: u64) -> usize {
        state.orchestrations.ready_count(self.filter.as_ref())
    }

    fn next_change_ms(&self, state: &State, _now_ms: u64) -> Option<u64> {
        state.orchestrations.next_change_ms()
    }
}

/// Activities by tag and session.
#[derive(Debug, PartialEq)]
pub(super) struct WorkWish {
    pub(super) tags: TagFilter,
    pub(super) session: Option<SessionFetchConfig>,
}

impl Wish for WorkWish {
    fn waiters(shared: &mut Shared) -> (&mut Waiters<Self>, &State) {
        (&mut shared.work, &shared.state)
    }

    fn ready_count(&self, state: &State, _now_ms: u64) -> usize {
        state.work.ready_count(&WorkWanted { tags: &self.tags, session: self.session.as_ref() })
    }

    fn next_change_ms(&self, state: &State, _now_ms: u64) -> Option<u64> {
        // Time brings nothing to a node that takes no activities; without this it would wake for every lock.
        if self.tags == TagFilter::None { None } else { state.work.next_change_ms() }
    }
}

/// Due records of a kind.
#[derive(Debug, PartialEq)]
pub(super) struct DueWish {
    pub(super) kind: String,
}

impl Wish for DueWish {
    fn waiters(shared: &mut Shared) -> (&mut Waiters<Self>, &State) {
        (&mut shared.due, &shared.state)
    }

    fn ready_count(&self, state: &State, now_ms: u64) -> usize {
        // Reading a due record takes it from nobody, so one is enough for all.
        match state.records.next_due_ms(&self.kind, now_ms) {
            Some(due_at_ms) if due_at_ms <= now_ms => usize::MAX,
            _ => 0,
        }
    }

    fn next_change_ms(&self, state: &State, now_ms: u64) -> Option<u64> {
        state.records.next_due_ms(&self.kind, now_ms)
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
