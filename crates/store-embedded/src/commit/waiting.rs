//! Operations that change no rows, answered when what they have read is durable; and the loop of every
//! waiting fetch.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{deadline_ms, sleep_until};
use segno::store::core::demand::{Demand, Queues};
use segno::store::core::orchestrator_queue::OrchestratorQueue;
use segno::store::core::peek_lock::Attempt;
use segno::store::core::waiters::{WaiterKey, reschedule_once};
use segno::store::core::worker_queue::WorkerQueue;
use segno::store::{InstanceInfo, LockToken, ProviderError, WatchUntil};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot};

use crate::commit::execute::panicked;
use crate::commit::refusal::{Outcome, Refusal};
use crate::commit::shared::{Core, Shared};
use crate::error::RowError;
use crate::state::leasing::LeaseTerms;
use crate::state::machine::State;

/// Waits for the outcome of a batch.
pub(crate) async fn durable(
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

/// Waits until a batch is written or refused. Returns whether it is durable.
async fn decided(outcome: Option<oneshot::Receiver<Outcome>>) -> bool {
    match outcome {
        None => true,
        Some(outcome) => matches!(outcome.await, Ok(Ok(()))),
    }
}

/// The result of a request to the state, which is undone if the caller is dropped.
pub(crate) trait Undo: Send + 'static {
    fn undo(self, state: &mut Shared, now_ms: u64);
}

/// Receives the result of a delegated request.
struct PendingAnswer<'a, T: Undo> {
    core: &'a Core,
    answer: oneshot::Receiver<T>,
}

impl<T: Undo> Drop for PendingAnswer<'_, T> {
    fn drop(&mut self) {
        // The request may own the last reference to data of the caller, which the lock holder must not
        // drop. So the caller waits until the request has run.
        let dropped = loop {
            match self.answer.try_recv() {
                Ok(dropped) => break dropped,
                Err(TryRecvError::Closed) => return,
                Err(TryRecvError::Empty) => drop(self.core.lock()),
            }
        };
        self.core.change_shared(|shared, now_ms| dropped.undo(shared, now_ms));
    }
}

/// The result of a watch on an instance.
pub(crate) enum WatchResult {
    /// The condition is fulfilled. The answer waits until the last commit of the instance is durable.
    Fulfilled { info: Box<InstanceInfo>, outcome: Option<oneshot::Receiver<Outcome>> },
    /// The commit that fulfils the condition will answer.
    Registered { id: u64, answer: oneshot::Receiver<InstanceInfo> },
}

impl Undo for (Arc<str>, Result<WatchResult, ProviderError>) {
    fn undo(self, shared: &mut Shared, _now_ms: u64) {
        if let (instance, Ok(WatchResult::Registered { id, .. })) = self {
            shared.state.watches.remove(&instance, id);
        }
    }
}

/// The result of a fetch, and the batch that must be durable before it may be delivered.
pub(crate) struct FetchBatch<T> {
    pub(crate) items: Vec<T>,
    pub(crate) depends_on: Option<u64>,
}

/// An item that a fetch delivers.
pub(crate) trait Fetched: Send + 'static {
    /// The lock of the item.
    fn lock(&self) -> Option<AcquiredLock>;

    /// Items that were leased to a fetch while it waited.
    fn leased(_state: &mut State, _lessee: u64) -> Option<FetchBatch<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// A fetch: its demand, and its attempt.
pub(crate) struct Fetch<W, A> {
    pub(crate) operation: &'static str,
    pub(crate) demand: W,
    pub(crate) poll_timeout: Duration,
    /// The activities that are leased to it on arrival, while it waits.
    pub(crate) lease: Option<Arc<LeaseTerms>>,
    pub(crate) attempt: A,
}

/// The outcome of an attempt.
enum FetchOutcome<W: Demand, T: Fetched> {
    Ended(Vec<T>, Option<oneshot::Receiver<Outcome>>),
    /// The fetch sleeps until it is woken, or until this time.
    Parked(ParkedWaiter<W>, u64),
}

impl<W: Demand + 'static, T: Fetched> Undo for Result<FetchOutcome<W, T>, ProviderError> {
    fn undo(self, shared: &mut Shared, now_ms: u64) {
        match self {
            Ok(FetchOutcome::Ended(items, _)) => {
                let locks = items.iter().filter_map(Fetched::lock);
                locks.for_each(|lock| shared.state.release(lock, now_ms));
            }
            Ok(FetchOutcome::Parked(place, _)) => place.leave(shared, now_ms),
            Err(_) => {}
        }
    }
}

/// A fetch among the waiters.
struct ParkedWaiter<W> {
    key: WaiterKey,
    /// Stores a notification that arrives before the fetch waits for it.
    signal: Arc<Notify>,
    /// Its number among the fetches with leases on arrival.
    lessee: Option<u64>,
    demand: PhantomData<fn() -> W>,
}

impl<W: Demand> ParkedWaiter<W> {
    fn leave(&self, shared: &mut Shared, now_ms: u64) {
        W::waiters(&mut shared.waiters).leave(self.key);
        self.lessee.into_iter().for_each(|lessee| shared.state.lessee_leaves(lessee, now_ms));
    }
}

impl Core {
    /// Runs an operation that changes no rows: locks, leases, watches.
    pub(crate) fn change<T>(&self, operation: impl FnOnce(&mut State, u64) -> T) -> T {
        self.change_shared(|shared, now_ms| operation(&mut shared.state, now_ms))
    }

    fn change_shared<T>(&self, operation: impl FnOnce(&mut Shared, u64) -> T) -> T {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        shared.state.advance(now_ms);
        operation(&mut shared, now_ms)
    }

    /// Reads, and answers when everything visible is durable. Reads continue while the store refuses
    /// writes: instances whose last change is not durable are in
    /// [quarantine](crate::state::quarantine::Quarantine), and a read from before the refusal is repeated.
    pub(crate) async fn look<T>(
        &self,
        operation: &'static str,
        mut read: impl FnMut(&mut State, u64) -> Result<T, RowError>,
    ) -> Result<T, ProviderError> {
        let output = loop {
            let (output, outcome) = {
                let mut shared = self.lock();
                shared.check_open(operation)?;
                let output = read(&mut shared.state, self.clock.now_ms());
                let newest = shared.state.pending.newest().filter(|_| shared.refusal.is_none());
                (output, newest.and_then(|sequence| shared.outcome_of(sequence)))
            };
            if decided(outcome).await {
                break output;
            }
        };
        output.map_err(|error| {
            if let RowError::Corrupt(what) = &error {
                self.damage.note(what);
            }
            error.at(operation)
        })
    }

    /// Runs an operation that changes no rows: at once, or by the lock holder.
    async fn request<T: Undo>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Shared, u64) -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        let answer = match self.try_lock() {
            Ok(mut shared) => {
                let now_ms = self.clock.now_ms();
                return Ok(work(&mut shared, now_ms));
            }
            Err(delegation) => {
                let (sender, answer) = oneshot::channel();
                delegation.request(Box::new(move |_, shared, now_ms| {
                    // The caller receives the result, even if only to undo it.
                    let _sent = sender.send(work(shared, now_ms));
                }));
                answer
            }
        };
        let mut pending = PendingAnswer { core: self, answer };
        (&mut pending.answer).await.map_err(|_| panicked(operation))
    }

    /// Watches an instance unless its condition is fulfilled already. The caller need not wait for
    /// unrelated commits, because it gets no data of the instance before the condition is fulfilled.
    pub(crate) async fn watch(
        &self,
        operation: &'static str,
        instance: Arc<str>,
        until: WatchUntil,
    ) -> Result<WatchResult, ProviderError> {
        let watch = move |shared: &mut Shared, _| {
            let watched = shared.watch(operation, &instance, until);
            (instance, watched)
        };
        self.request(operation, watch).await?.1
    }

    /// Repeats an attempt until it returns something or the time is up. Between attempts the fetch sleeps
    /// until it is woken by a commit or, as the leader of its group, by the clock.
    pub(crate) async fn wait_for<W, T, A>(&self, fetch: Fetch<W, A>) -> Result<Vec<T>, ProviderError>
    where
        W: Demand + Clone + Send + Sync + 'static,
        T: Fetched,
        A: Fn(&mut State, u64) -> Result<FetchBatch<T>, RowError> + Send + Sync + 'static,
    {
        let operation = fetch.operation;
        let deadline_ms = deadline_ms(&*self.clock, fetch.poll_timeout);
        let fetch = Arc::new(fetch);
        let mut parked: ParkedGuard<'_, W> = ParkedGuard { core: self, place: None };
        let (items, outcome) = loop {
            let (place, fetch) = (parked.place.take(), Arc::clone(&fetch));
            let attempt =
                move |shared: &mut Shared, now_ms: u64| shared.try_fetch(&fetch, place, deadline_ms, now_ms);
            let sleep_until_ms = match self.request(operation, attempt).await?? {
                FetchOutcome::Ended(items, outcome) => break (items, outcome),
                FetchOutcome::Parked(place, until_ms) => {
                    parked.place = Some(place);
                    until_ms
                }
            };
            let Some(place) = &parked.place else { continue };
            tokio::select! {
                biased;
                // The tasks that are ready enqueue first, so that one fetch takes what all of them
                // enqueue.
                () = place.signal.notified() => reschedule_once().await,
                () = sleep_until(&*self.clock, sleep_until_ms) => {}
            }
        };
        if outcome.is_some() {
            let locks = items.iter().filter_map(Fetched::lock).collect();
            let mut undelivered = UndeliveredLocks { core: self, locks };
            durable(operation, outcome).await?;
            undelivered.locks.clear();
        }
        Ok(items)
    }
}

impl Shared {
    fn watch(
        &mut self,
        operation: &'static str,
        instance: &Arc<str>,
        until: WatchUntil,
    ) -> Result<WatchResult, ProviderError> {
        self.check_open(operation)?;
        let row = self.state.tables.busy_instance(instance).map_err(|error| error.at(operation))?;
        let info = row.filter(|row| row.meets(until)).map(|row| row.info(instance));
        Ok(match info {
            Some(info) => {
                let batch = self.state.pending.of_instance(instance);
                let outcome = batch.and_then(|sequence| self.outcome_of(sequence));
                WatchResult::Fulfilled { info: Box::new(info), outcome }
            }
            None => {
                let (id, answer) = self.state.watches.add(Arc::clone(instance), until);
                WatchResult::Registered { id, answer }
            }
        })
    }

    /// One attempt of a fetch. It stays among the waiters only if it has to wait.
    fn try_fetch<W, T, A>(
        &mut self,
        fetch: &Fetch<W, A>,
        place: Option<ParkedWaiter<W>>,
        deadline_ms: u64,
        now_ms: u64,
    ) -> Result<FetchOutcome<W, T>, ProviderError>
    where
        W: Demand + Clone,
        T: Fetched,
        A: Fn(&mut State, u64) -> Result<FetchBatch<T>, RowError>,
    {
        let lessee = place.as_ref().and_then(|place| place.lessee);
        let found = catch_unwind(AssertUnwindSafe(|| self.find(fetch, lessee, now_ms)));
        let found = found.unwrap_or_else(|panic| {
            place.iter().for_each(|place| place.leave(self, now_ms));
            resume_unwind(panic)
        });
        if let Ok(found) = &found
            && found.items.is_empty()
            && now_ms < deadline_ms
        {
            let waiters = W::waiters(&mut self.waiters);
            let lessees = &mut self.state.lessees;
            let place = place.unwrap_or_else(|| {
                let signal = Arc::new(Notify::new());
                let lessee = fetch.lease.as_ref().map(|terms| lessees.join(terms, &signal));
                ParkedWaiter { key: waiters.join(fetch.demand.clone()), signal, lessee, demand: PhantomData }
            });
            let state = &self.state;
            let change_ms =
                waiters.park(place.key, &place.signal, |demand| demand.next_change_ms(state, now_ms));
            let until_ms = change_ms.map_or(deadline_ms, |change_ms| change_ms.min(deadline_ms));
            return Ok(FetchOutcome::Parked(place, until_ms));
        }
        place.iter().for_each(|place| place.leave(self, now_ms));
        let FetchBatch { items, depends_on } = found?;
        Ok(FetchOutcome::Ended(items, depends_on.and_then(|sequence| self.outcome_of(sequence))))
    }

    fn find<W: Demand, T: Fetched, A>(
        &mut self,
        fetch: &Fetch<W, A>,
        lessee: Option<u64>,
        now_ms: u64,
    ) -> Result<FetchBatch<T>, ProviderError>
    where
        A: Fn(&mut State, u64) -> Result<FetchBatch<T>, RowError>,
    {
        self.check_open(fetch.operation)?;
        self.check_fetch::<W>(fetch.operation)?;
        self.state.advance(now_ms);
        if let Some(found) = lessee.and_then(|lessee| T::leased(&mut self.state, lessee)) {
            return Ok(found);
        }
        (fetch.attempt)(&mut self.state, now_ms).map_err(|error| error.at(fetch.operation))
    }
}

/// A lock that a fetch has acquired.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AcquiredLock {
    Turn(LockToken),
    Work(LockToken),
}

/// Releases locks of items that were not delivered, because the caller was dropped or the write failed.
struct UndeliveredLocks<'a> {
    core: &'a Core,
    locks: Vec<AcquiredLock>,
}

impl Drop for UndeliveredLocks<'_> {
    fn drop(&mut self) {
        if self.locks.is_empty() {
            return;
        }
        let locks = std::mem::take(&mut self.locks);
        self.core.change(|state, now_ms| locks.into_iter().for_each(|lock| state.release(lock, now_ms)));
    }
}

/// Removes the waiter when the fetch is dropped.
struct ParkedGuard<'a, W: Demand> {
    core: &'a Core,
    place: Option<ParkedWaiter<W>>,
}

impl<W: Demand> Drop for ParkedGuard<'_, W> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.core.change_shared(|shared, now_ms| place.leave(shared, now_ms));
        }
    }
}

impl State {
    /// Releases the lock of an item that was not delivered.
    fn release(&mut self, lock: AcquiredLock, now_ms: u64) {
        match lock {
            AcquiredLock::Turn(token) => {
                self.abandon_turn(token, now_ms, Attempt::Ignored, now_ms);
            }
            AcquiredLock::Work(token) => self.return_work(token, now_ms),
        }
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
