//! Operations that change no rows, answered when what they have seen is durable; and the loop in which every fetch waits.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{deadline_ms, sleep_until};
use segno::store::memory::orchestrator_queue::OrchestratorQueue;
use segno::store::memory::peek_lock::Attempt;
use segno::store::memory::waiters::{Seat, others_first};
use segno::store::memory::wishes::{Queues, Wish};
use segno::store::memory::worker_queue::WorkerQueue;
use segno::store::{InstanceInfo, LockToken, ProviderError, WatchUntil};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot};

use crate::committing::panicked;
use crate::error::RowError;
use crate::leasing::LeaseTerms;
use crate::queue_row::RecordRow;
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

/// Waits until a batch is written or refused; whether it is durable.
async fn decided(outcome: Option<oneshot::Receiver<Outcome>>) -> bool {
    match outcome {
        None => true,
        Some(outcome) => matches!(outcome.await, Ok(Ok(()))),
    }
}

/// What came of something that was asked of the state, and can be undone when nobody hears of it.
pub trait Answer: Send + 'static {
    fn undo(self, state: &mut Shared, now_ms: u64);
}

/// Hears what came of something that was left to whoever is at work.
struct Asked<'a, T: Answer> {
    core: &'a Core,
    answer: oneshot::Receiver<T>,
}

impl<T: Answer> Drop for Asked<'_, T> {
    fn drop(&mut self) {
        // What was asked may hold the last reference to something of the caller, which must not be dropped by whoever is at
        // work. So the caller sees to it that it is done first.
        let unheard = loop {
            match self.answer.try_recv() {
                Ok(unheard) => break unheard,
                Err(TryRecvError::Closed) => return,
                Err(TryRecvError::Empty) => drop(self.core.lock()),
            }
        };
        self.core.change_shared(|shared, now_ms| unheard.undo(shared, now_ms));
    }
}

/// What came of a watch on an instance.
pub enum Watched {
    /// The instance is as wished. It may be told once its last commit is durable.
    Met { info: Box<InstanceInfo>, outcome: Option<oneshot::Receiver<Outcome>> },
    /// The commit that makes it so will answer.
    Waits { id: u64, answer: oneshot::Receiver<InstanceInfo> },
}

impl Answer for (Arc<str>, Result<Watched, ProviderError>) {
    fn undo(self, shared: &mut Shared, _now_ms: u64) {
        if let (instance, Ok(Watched::Waits { id, .. })) = self {
            shared.state.watches.remove(&instance, id);
        }
    }
}

/// What was seen of a record. It may be told once the batch that it is from is durable.
struct SeenRecord {
    row: Result<Option<RecordRow>, RowError>,
    outcome: Option<oneshot::Receiver<Outcome>>,
}

impl Answer for Result<SeenRecord, ProviderError> {
    fn undo(self, _shared: &mut Shared, _now_ms: u64) {}
}

/// What a fetch found, and the batch that must be durable before it may be handed out.
pub struct Found<T> {
    pub items: Vec<T>,
    pub depends_on: Option<u64>,
}

/// Something that a fetch hands out.
pub trait Fetched: Send + 'static {
    /// The lock that was taken for it.
    fn taken(&self) -> Option<Taken>;

    /// What was leased to a fetch while it waited.
    fn leased(_state: &mut State, _lessee: u64) -> Option<Found<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// A fetch: what it waits for, and how it tries.
pub struct Fetch<W, A> {
    pub operation: &'static str,
    pub wish: W,
    pub poll_timeout: Duration,
    /// What is leased to it as it comes, while it waits.
    pub lease: Option<Arc<LeaseTerms>>,
    pub attempt: A,
}

/// What came of a try.
enum Tried<W: Wish, T: Fetched> {
    Ended(Vec<T>, Option<oneshot::Receiver<Outcome>>),
    /// It sleeps until it is woken, or until this time.
    Parked(Place<W>, u64),
}

impl<W: Wish + 'static, T: Fetched> Answer for Result<Tried<W, T>, ProviderError> {
    fn undo(self, shared: &mut Shared, now_ms: u64) {
        match self {
            Ok(Tried::Ended(items, _)) => {
                let taken = items.iter().filter_map(Fetched::taken);
                taken.for_each(|lock| shared.state.give_back(lock, now_ms));
            }
            Ok(Tried::Parked(place, _)) => place.leave(shared, now_ms),
            Err(_) => {}
        }
    }
}

/// A place among the waiters.
struct Place<W> {
    seat: Seat,
    /// Keeps a signal that comes before the fetch listens.
    signal: Arc<Notify>,
    /// Its number among those to whom activities are leased as they come.
    lessee: Option<u64>,
    wish: PhantomData<fn() -> W>,
}

impl<W: Wish> Place<W> {
    fn leave(&self, shared: &mut Shared, now_ms: u64) {
        W::waiters(&mut shared.waiters).leave(self.seat);
        self.lessee.into_iter().for_each(|lessee| shared.state.lessee_leaves(lessee, now_ms));
    }
}

impl Core {
    /// Runs an operation that changes no rows: locks, leases, watches.
    pub fn change<T>(&self, operation: impl FnOnce(&mut State, u64) -> T) -> T {
        self.change_shared(|shared, now_ms| operation(&mut shared.state, now_ms))
    }

    fn change_shared<T>(&self, operation: impl FnOnce(&mut Shared, u64) -> T) -> T {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        shared.state.advance(now_ms);
        operation(&mut shared, now_ms)
    }

    /// Reads, and answers when everything that could be seen is durable. With a disk that refuses, reads go on: instances whose
    /// last change is not durable are [set apart](crate::apart::Apart), and what was read before the refusal is read again.
    pub async fn look<T>(
        &self,
        operation: &'static str,
        mut read: impl FnMut(&mut State, u64) -> Result<T, RowError>,
    ) -> Result<T, ProviderError> {
        let output = loop {
            let (output, outcome) = {
                let mut shared = self.lock();
                shared.check_open(operation)?;
                let output = read(&mut shared.state, self.clock.now_ms());
                let newest = shared.state.unsynced.newest().filter(|_| shared.refusal.is_none());
                (output, newest.and_then(|sequence| shared.outcome_of(sequence)))
            };
            if decided(outcome).await {
                break output;
            }
        };
        self.noted(operation, output)
    }

    /// Reads one record, and answers when what was seen of it is durable. It waits for no other change, and leaves the read
    /// to whoever is at work: servers read records for every call.
    pub async fn look_at_record(&self, kind: &str, id: &str) -> Result<Option<RecordRow>, ProviderError> {
        const OPERATION: &str = "get_record";
        let name = Arc::new((kind.to_owned(), id.to_owned()));
        loop {
            let name = Arc::clone(&name);
            let look = move |shared: &mut Shared, now_ms| shared.look_at_record(OPERATION, &name, now_ms);
            let SeenRecord { row, outcome } = self.ask(OPERATION, look).await??;
            if decided(outcome).await {
                return self.noted(OPERATION, row);
            }
        }
    }

    /// What was read; damage is noted.
    fn noted<T>(&self, operation: &'static str, output: Result<T, RowError>) -> Result<T, ProviderError> {
        output.map_err(|error| {
            if let RowError::Corrupt(what) = &error {
                self.damage.note(what);
            }
            error.at(operation)
        })
    }

    /// Has something done with the state that changes no rows: at once, or by whoever is at work.
    async fn ask<T: Answer>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Shared, u64) -> T + Send + 'static,
    ) -> Result<T, ProviderError> {
        let answer = match self.try_lock() {
            Ok(mut shared) => {
                let now_ms = self.clock.now_ms();
                return Ok(work(&mut shared, now_ms));
            }
            Err(leaving) => {
                let (heard, answer) = oneshot::channel();
                leaving.ask(Box::new(move |_, shared, now_ms| {
                    // Whoever asked hears it, even if only to undo it.
                    let _heard = heard.send(work(shared, now_ms));
                }));
                answer
            }
        };
        let mut asked = Asked { core: self, answer };
        (&mut asked.answer).await.map_err(|_| panicked(operation))
    }

    /// Watches an instance unless it is already as wished. Nothing is told of the instance until it is, so whoever
    /// waits need not wait for what others commit meanwhile.
    pub async fn watch(
        &self,
        operation: &'static str,
        instance: Arc<str>,
        until: WatchUntil,
    ) -> Result<Watched, ProviderError> {
        let watch = move |shared: &mut Shared, _| {
            let watched = shared.watch(operation, &instance, until);
            (instance, watched)
        };
        self.ask(operation, watch).await?.1
    }

    /// Tries until something comes of it or the time is up. Between tries it sleeps until it is woken by a
    /// commit or, as its group's timekeeper, by the clock.
    pub async fn wait_for<W, T, A>(&self, fetch: Fetch<W, A>) -> Result<Vec<T>, ProviderError>
    where
        W: Wish + Clone + Send + Sync + 'static,
        T: Fetched,
        A: Fn(&mut State, u64) -> Result<Found<T>, RowError> + Send + Sync + 'static,
    {
        let operation = fetch.operation;
        let deadline_ms = deadline_ms(&*self.clock, fetch.poll_timeout);
        let fetch = Arc::new(fetch);
        let mut ticket: Ticket<'_, W> = Ticket { core: self, place: None };
        let (items, outcome) = loop {
            let (place, fetch) = (ticket.place.take(), Arc::clone(&fetch));
            let attempt =
                move |shared: &mut Shared, now_ms: u64| shared.try_fetch(&fetch, place, deadline_ms, now_ms);
            let sleep_until_ms = match self.ask(operation, attempt).await?? {
                Tried::Ended(items, outcome) => break (items, outcome),
                Tried::Parked(place, until_ms) => {
                    ticket.place = Some(place);
                    until_ms
                }
            };
            let Some(place) = &ticket.place else { continue };
            tokio::select! {
                biased;
                // One fetch then takes what all of them enqueue.
                () = place.signal.notified() => others_first().await,
                () = sleep_until(&*self.clock, sleep_until_ms) => {}
            }
        };
        if outcome.is_some() {
            let taken = items.iter().filter_map(Fetched::taken).collect();
            let mut unanswered = Unanswered { core: self, taken };
            durable(operation, outcome).await?;
            unanswered.taken.clear();
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
    ) -> Result<Watched, ProviderError> {
        self.check_open(operation)?;
        let row = self.state.tables.busy_instance(instance).map_err(|error| error.at(operation))?;
        let info = row.filter(|row| row.meets(until)).map(|row| row.info(instance));
        Ok(match info {
            Some(info) => {
                let batch = self.state.unsynced.of_instance(instance);
                let outcome = batch.and_then(|sequence| self.outcome_of(sequence));
                Watched::Met { info: Box::new(info), outcome }
            }
            None => {
                let (id, answer) = self.state.watches.add(Arc::clone(instance), until);
                Watched::Waits { id, answer }
            }
        })
    }

    fn look_at_record(
        &mut self,
        operation: &'static str,
        (kind, id): &(String, String),
        now_ms: u64,
    ) -> Result<SeenRecord, ProviderError> {
        self.check_open(operation)?;
        let row = self.state.tables.record(kind, id);
        let row = row.map(|row| row.filter(|row| row.lives(now_ms)));
        let version = row.as_ref().ok().and_then(|row| Some(row.as_ref()?.version));
        let batch = self.state.unsynced.of_record(version).filter(|_| self.refusal.is_none());
        Ok(SeenRecord { row, outcome: batch.and_then(|sequence| self.outcome_of(sequence)) })
    }

    /// Tries a fetch once. A place among the waiters is kept only if it has to go on waiting.
    fn try_fetch<W, T, A>(
        &mut self,
        fetch: &Fetch<W, A>,
        place: Option<Place<W>>,
        deadline_ms: u64,
        now_ms: u64,
    ) -> Result<Tried<W, T>, ProviderError>
    where
        W: Wish + Clone,
        T: Fetched,
        A: Fn(&mut State, u64) -> Result<Found<T>, RowError>,
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
                Place { seat: waiters.join(fetch.wish.clone()), signal, lessee, wish: PhantomData }
            });
            let state = &self.state;
            let change_ms =
                waiters.park(place.seat, &place.signal, |wish| wish.next_change_ms(state, now_ms));
            let until_ms = change_ms.map_or(deadline_ms, |change_ms| change_ms.min(deadline_ms));
            return Ok(Tried::Parked(place, until_ms));
        }
        place.iter().for_each(|place| place.leave(self, now_ms));
        let Found { items, depends_on } = found?;
        Ok(Tried::Ended(items, depends_on.and_then(|sequence| self.outcome_of(sequence))))
    }

    fn find<W: Wish, T: Fetched, A>(
        &mut self,
        fetch: &Fetch<W, A>,
        lessee: Option<u64>,
        now_ms: u64,
    ) -> Result<Found<T>, ProviderError>
    where
        A: Fn(&mut State, u64) -> Result<Found<T>, RowError>,
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
        self.core.change(|state, now_ms| taken.into_iter().for_each(|lock| state.give_back(lock, now_ms)));
    }
}

/// A place among the waiters that is given up when the fetch is dropped.
struct Ticket<'a, W: Wish> {
    core: &'a Core,
    place: Option<Place<W>>,
}

impl<W: Wish> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.core.change_shared(|shared, now_ms| place.leave(shared, now_ms));
        }
    }
}

impl State {
    /// Gives a lock back that was taken but not handed out.
    fn give_back(&mut self, lock: Taken, now_ms: u64) {
        match lock {
            Taken::Turn(token) => {
                self.abandon_turn(token, now_ms, Attempt::Ignored, now_ms);
            }
            Taken::Work(token) => self.give_work_back(token, now_ms),
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

#[cfg(test)]
mod tests {
    use segno::store::{Expect, RecordBatch, RecordWrite};

    use super::*;
    use crate::at_rest::open;

    #[test]
    fn a_read_of_a_record_waits_for_the_batch_that_it_is_from_and_for_no_other() {
        let (_directory, store) = open();
        let core = store.core();
        let (kind, expect) = ("kind".to_owned(), Expect::Anything);
        let delete = |id: &str| RecordWrite::Delete { kind: kind.clone(), id: id.to_owned(), expect };
        let put = |id: &str| RecordWrite::Put {
            kind: kind.clone(),
            id: id.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: None,
            body: "body".into(),
        };
        // As long as it is held, no batch is taken.
        let mut shared = core.lock();
        let commit = |shared: &mut Shared, write| {
            let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
            let change = move |state: &mut State, now_ms| state.commit_records(batch, now_ms);
            assert!(core.run(shared, 1, "commit_records", change).0.is_ok());
        };
        let waits = |shared: &mut Shared, id: &str| {
            let seen = shared.look_at_record("get_record", &("kind".to_owned(), id.to_owned()), 1);
            seen.expect("the store is open").outcome.is_some()
        };
        commit(&mut shared, put("written"));
        commit(&mut shared, delete("never there"));
        assert_eq!((waits(&mut shared, "written"), waits(&mut shared, "never there")), (true, false));
        commit(&mut shared, delete("written"));
        assert!(waits(&mut shared, "written"), "what deleted it is not durable");
    }
}
