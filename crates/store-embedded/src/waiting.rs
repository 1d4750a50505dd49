//! Operations that change no rows, answered when what they have seen is durable; and the loop in which every fetch waits.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{duration_ms, sleep_until};
use segno::store::memory::orchestrator_queue::OrchestratorQueue;
use segno::store::memory::peek_lock::Attempt;
use segno::store::memory::waiters::{Seat, others_first};
use segno::store::memory::wishes::{Queues, Wish};
use segno::store::memory::worker_queue::WorkerQueue;
use segno::store::{InstanceInfo, LockToken, ProviderError, WatchUntil};
use tokio::sync::{Notify, oneshot};

use crate::error::RowError;
use crate::refusal::{Outcome, Refusal};
use crate::shared::{Core, Shared};
use crate::state::State;

/// Waits for the outcome of a batch.
pub async fn durable(
    operation: &'static str,
    outcome: Option<oneshot::Receiver<Outcome>>,
) -> Result<(), ProviderError> {
    match outcome {
        None => Ok(()),
        Some(outcome) => {
            let outcome = outcome.await.unwrap_or_else(|_| Err(Refusal::closed()));
            outcome.map_err(|refusal| refusal.at(operation))
        }
    }
}

/// Waits until a batch is written or refused.
async fn decided(outcome: Option<oneshot::Receiver<Outcome>>) {
    if let Some(outcome) = outcome {
        let _ = outcome.await;
    }
}

/// What came of a watch on an instance.
pub enum Watched {
    /// The instance is as wished. It may be told once its last commit is durable.
    Met { info: Box<InstanceInfo>, outcome: Option<oneshot::Receiver<Outcome>> },
    /// The commit that makes it so will answer.
    Waits { id: u64, answer: oneshot::Receiver<InstanceInfo> },
}

/// What a fetch found, and the batch that must be durable before it may be handed out.
pub struct Found<T> {
    pub items: Vec<T>,
    pub depends_on: Option<u64>,
}

impl Core {
    /// Runs an operation that changes no rows: locks, leases, watches.
    pub fn change<T>(&self, operation: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        shared.state.advance(now_ms);
        let output = operation(&mut shared.state, now_ms);
        shared.wake(now_ms);
        output
    }

    /// Reads, and answers when everything that could be seen is durable.
    pub async fn look<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&mut State, u64) -> Result<T, RowError>,
    ) -> Result<T, ProviderError> {
        let (output, outcome) = {
            let mut shared = self.lock();
            shared.check_open(operation)?;
            let output = read(&mut shared.state, self.clock.now_ms());
            // With a disk that refuses, reads go on: they show what is written when it does not any more.
            let newest = shared.state.unsynced.newest().filter(|_| shared.refusal.is_none());
            (output, newest.and_then(|sequence| shared.outcome_of(sequence)))
        };
        // Whatever became of the batch, it is decided then.
        decided(outcome).await;
        output.map_err(|error| error.at(operation))
    }

    /// Watches an instance unless it is already as wished. Nothing is told of the instance until it is, so whoever
    /// waits need not wait for what others commit meanwhile.
    pub fn watch(
        &self,
        operation: &'static str,
        instance: &str,
        until: WatchUntil,
    ) -> Result<Watched, ProviderError> {
        let mut shared = self.lock();
        shared.check_open(operation)?;
        let row = shared.state.tables.busy_instance(instance).map_err(|error| error.at(operation))?;
        let info = row.filter(|row| row.meets(until)).map(|row| row.info(instance));
        Ok(match info {
            Some(info) => {
                let batch = shared.state.unsynced.of_instance(instance);
                let outcome = batch.and_then(|sequence| shared.outcome_of(sequence));
                Watched::Met { info: Box::new(info), outcome }
            }
            None => {
                let (id, answer) = shared.state.watches.add(instance, until);
                Watched::Waits { id, answer }
            }
        })
    }

    /// Tries until something comes of it or the time is up. Between tries it sleeps until it is woken by a
    /// commit or, as its group's timekeeper, by the clock.
    pub async fn wait_for<W: Wish, T>(
        &self,
        operation: &'static str,
        wish: impl Fn() -> W,
        poll_timeout: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Result<Found<T>, RowError>,
        give_back: impl Fn(&T) -> Option<Taken>,
    ) -> Result<Vec<T>, ProviderError> {
        let mut deadline_ms = None;
        let mut ticket: Option<Ticket<'_, W>> = None;
        let (items, outcome) = loop {
            let (sleep_until_ms, signal) = {
                let mut shared = self.lock();
                shared.check_open(operation)?;
                shared.check_fetch::<W>(operation)?;
                let now_ms = self.clock.now_ms();
                let deadline_ms =
                    *deadline_ms.get_or_insert_with(|| now_ms.saturating_add(duration_ms(poll_timeout)));
                shared.state.advance(now_ms);
                let found = attempt(&mut shared.state, now_ms).map_err(|error| error.at(operation))?;
                if !found.items.is_empty() || now_ms >= deadline_ms {
                    let outcome = found.depends_on.and_then(|sequence| shared.outcome_of(sequence));
                    shared.wake(now_ms);
                    self.release(shared);
                    break (found.items, outcome);
                }
                let Shared { state, waiters, .. } = &mut *shared;
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
        };
        drop(ticket);
        if outcome.is_some() {
            let taken = items.iter().filter_map(&give_back).collect();
            let mut unanswered = Unanswered { core: self, taken };
            durable(operation, outcome).await?;
            unanswered.taken.clear();
        }
        Ok(items)
    }
}

/// A lock that a fetch has taken.
#[derive(Debug, Clone, Copy)]
pub enum Taken {
    Turn(LockToken),
    Work(LockToken),
}

/// Gives locks back that were taken but not handed out, because the caller went away or the disk refused.
struct Unanswered<'a> {
    core: &'a Core,
    taken: Vec<Taken>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        self.core.change(|state, now_ms| {
            for lock in taken {
                match lock {
                    Taken::Turn(token) => state.abandon_turn(token, now_ms, Attempt::Ignored, now_ms),
                    Taken::Work(token) => state.abandon_work(token, now_ms, Attempt::Ignored, now_ms),
                };
            }
        });
    }
}

/// A place among the waiters that is given up when the fetch ends or is dropped.
struct Ticket<'a, W: Wish> {
    core: &'a Core,
    seat: Seat,
    /// Keeps a signal that comes before the fetch listens.
    signal: Arc<Notify>,
    wish: PhantomData<fn() -> W>,
}

impl<'a, W: Wish> Ticket<'a, W> {
    fn new(core: &'a Core, seat: Seat) -> Self {
        Ticket { core, seat, signal: Arc::new(Notify::new()), wish: PhantomData }
    }
}

impl<W: Wish> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        let mut shared = self.core.lock();
        W::waiters(&mut shared.waiters).leave(self.seat);
        shared.wake(self.core.clock.now_ms());
    }
}

impl Queues for State {
    fn orchestrations(&self) -> &OrchestratorQueue {
        &self.orchestrations
    }

    fn work(&self) -> &WorkerQueue {
        &self.work
    }

    fn next_due_ms(&self, kind: &str, now_ms: u64) -> Option<u64> {
        self.records.next_due_ms(kind, now_ms)
    }
}
