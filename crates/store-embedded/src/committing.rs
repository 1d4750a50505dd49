//! Operations that change rows: each runs on the state of this moment and is answered when what it depends on is durable.
//!
//! One caller at a time is at work on the state. Those who come meanwhile leave their operations to that one: the state
//! stays with one processor then, and nobody waits for it who could do something else. When a caller has been left enough,
//! those who come after wait for the state themselves, so that it gets to its own answer.
//!
//! With a large crowd, operations are left even when nobody is at work: whoever leaves the last one of a group does them all,
//! so that code and state are fetched into the processor's caches once for all of them. The writer does what is left of a
//! group before it takes the batch, so nothing waits for a group that does not get full.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segno::store::{ErrorKind, ProviderError};
use tokio::sync::oneshot;

use crate::refusal::{Outcome, Refusal};
use crate::shared::{Core, Shared};
use crate::state::State;
use crate::waiting::durable;

/// Most operations that are left to one caller.
const MOST_LEFT: usize = 256;

/// How many operations a large crowd does at a time.
pub const GROUP: usize = 32;

/// Most of them that are done before others who want the state get hold of it.
const MOST_AT_ONCE: usize = 16;

/// What came of trying an operation.
enum Tried<T, F> {
    Run(Result<T, ProviderError>),
    /// There is too much in memory already.
    Crowded(Box<F>),
}

type Ran<T, F> = Result<Tried<T, F>, ProviderError>;

/// What became of an operation at first.
enum Submitted<T, F> {
    /// It was tried. The batch that it depends on is still to be heard of.
    Ran(Ran<T, F>, Option<oneshot::Receiver<Outcome>>),
    /// Somebody else tries it and says so together with what became of the batch.
    Left(Arc<Slot<T, F>>, oneshot::Receiver<Outcome>),
}

/// Where whoever tries an operation for somebody else puts what came of it.
struct Slot<T, F>(Mutex<Option<Ran<T, F>>>);

impl<T, F> Slot<T, F> {
    fn lock(&self) -> MutexGuard<'_, Option<Ran<T, F>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation that was left to somebody else.
type Job = Box<dyn FnOnce(&Core, &mut Shared, u64) + Send>;

/// Operations that wait for whoever is at work.
#[derive(Default)]
pub struct Left {
    is_somebody_at_work: bool,
    /// Whether the writer does what is left before it takes the next batch.
    is_writer_coming: bool,
    /// How many were left to them, those included that are done.
    count: usize,
    jobs: Vec<Job>,
    /// What the writer wants done before all of them.
    first: Option<Job>,
}

/// Is at work on the state. Should that end in a panic, whoever has left something hears that no answer will come.
struct AtWork<'a>(&'a Core);

impl AtWork<'_> {
    /// Does what others have left.
    fn work_off(self) {
        let mut jobs = Vec::new().into_iter();
        loop {
            let first = {
                let mut left = self.0.left();
                if jobs.len() == 0 {
                    if left.jobs.is_empty() && left.first.is_none() {
                        left.end();
                        std::mem::forget(self);
                        return;
                    }
                    jobs = std::mem::take(&mut left.jobs).into_iter();
                }
                left.first.take()
            };
            let mut shared = self.0.lock_after_others();
            let now_ms = self.0.clock.now_ms();
            let now = first.into_iter().chain(jobs.by_ref().take(MOST_AT_ONCE));
            now.for_each(|job| self.0.do_job(job, &mut shared, now_ms));
            shared.wake(now_ms);
            self.0.release(shared);
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let jobs = self.0.left().end();
        drop(jobs);
    }
}

impl Left {
    /// Nobody is at work any more. Returns what is not done.
    fn end(&mut self) -> Vec<Job> {
        self.is_somebody_at_work = false;
        self.count = 0;
        let mut jobs = std::mem::take(&mut self.jobs);
        jobs.extend(self.first.take());
        jobs
    }
}

impl Core {
    /// Runs an operation that may change rows, and answers when they are durable.
    ///
    /// It is tried before there is a future: one that held the operation would be as large as all that the operation
    /// carries, and there is one for every commit.
    pub fn commit<T, F>(
        &self,
        operation: &'static str,
        change: F,
    ) -> impl Future<Output = Result<T, ProviderError>>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
        T: Send + 'static,
    {
        let submitted = self.submit(operation, change);
        async move {
            let ran = match submitted {
                Submitted::Ran(ran, outcome) => {
                    durable(operation, outcome).await?;
                    ran
                }
                Submitted::Left(slot, outcome) => {
                    let outcome = outcome.await;
                    let ran = slot.lock().take().ok_or_else(|| panicked(operation))?;
                    let outcome = outcome.unwrap_or_else(|_| Err(Refusal::closed()));
                    outcome.map_err(|refusal| refusal.at(operation))?;
                    ran
                }
            };
            match ran? {
                Tried::Run(output) => output,
                Tried::Crowded(change) => Box::pin(self.commit_when_there_is_room(operation, *change)).await,
            }
        }
    }

    async fn commit_when_there_is_room<T, F>(
        &self,
        operation: &'static str,
        change: F,
    ) -> Result<T, ProviderError>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        self.wait_for_room().await.map_err(|refusal| refusal.at(operation))?;
        self.commit_alone(operation, change).await
    }

    /// The same, for an operation that cannot be left to others because it borrows something.
    pub async fn commit_alone<T, F>(&self, operation: &'static str, mut change: F) -> Result<T, ProviderError>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        loop {
            let (ran, outcome) = self.run_now(operation, change);
            match ran? {
                Tried::Run(output) => {
                    durable(operation, outcome).await?;
                    return output;
                }
                Tried::Crowded(unchanged) => change = *unchanged,
            }
            self.wait_for_room().await.map_err(|refusal| refusal.at(operation))?;
        }
    }

    /// Runs an operation, unless somebody is at work or the writer is sure to come: then it is left to them, if they have not
    /// been left enough.
    fn submit<T, F>(&self, operation: &'static str, change: F) -> Submitted<T, F>
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError> + Send + 'static,
        T: Send + 'static,
    {
        let mut left = self.left();
        if (left.is_somebody_at_work || left.is_writer_coming) && left.count < MOST_LEFT {
            let (slot, (answer, outcome)) = (Arc::new(Slot(Mutex::new(None))), oneshot::channel());
            let place = Arc::clone(&slot);
            left.count += 1;
            left.jobs.push(Box::new(move |core, shared, now_ms| {
                let (ran, batch) = core.run(shared, now_ms, operation, change);
                *place.lock() = Some(ran);
                shared.tell(batch, answer);
            }));
            if !left.is_somebody_at_work && left.jobs.len() >= GROUP {
                left.is_somebody_at_work = true;
                drop(left);
                AtWork(self).work_off();
            }
            return Submitted::Left(slot, outcome);
        }
        let is_at_work = !std::mem::replace(&mut left.is_somebody_at_work, true);
        drop(left);
        let at_work = is_at_work.then(|| AtWork(self));
        let (ran, outcome) = self.run_now(operation, change);
        at_work.into_iter().for_each(AtWork::work_off);
        Submitted::Ran(ran, outcome)
    }

    /// Runs an operation as soon as the state is free.
    fn run_now<T, F>(
        &self,
        operation: &'static str,
        change: F,
    ) -> (Ran<T, F>, Option<oneshot::Receiver<Outcome>>)
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        let (ran, batch) = self.run(&mut shared, now_ms, operation, change);
        let outcome = batch.and_then(|sequence| shared.outcome_of(sequence));
        shared.wake(now_ms);
        self.release(shared);
        (ran, outcome)
    }

    /// With a large crowd, lets operations be left that the writer does at the latest. It is sure to come: somebody waits
    /// for the batch that is being filled.
    pub fn leave_to_writer(&self, shared: &mut Shared) {
        let is_sure = shared.state.unsynced.is_wanted() && shared.refusal.is_none();
        if shared.is_processor_short && is_sure && !shared.is_left_to_writer {
            shared.is_left_to_writer = true;
            self.left().is_writer_coming = true;
        }
    }

    /// Does what was left to the writer. Whatever comes from now on is not.
    pub fn do_left(&self, shared: &mut Shared, now_ms: u64) {
        if !std::mem::take(&mut shared.is_left_to_writer) {
            return;
        }
        let jobs = {
            let mut left = self.left();
            left.is_writer_coming = false;
            if left.is_somebody_at_work {
                // They are in good hands.
                return;
            }
            left.count = 0;
            std::mem::take(&mut left.jobs)
        };
        jobs.into_iter().for_each(|job| self.do_job(job, shared, now_ms));
        shared.wake(now_ms);
    }

    /// Does something with the state before anybody else does. If somebody is at work, it is left to them: whoever wants a lock
    /// that another takes again and again is woken up in vain most of the time. `None` when it has panicked. It blocks, so it
    /// is for the writer only.
    pub fn do_first<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core, &mut Shared, u64) -> T + Send + 'static,
    ) -> Option<T> {
        let wish = Arc::new(Mutex::new(Some(work)));
        let take = |wish: &Mutex<Option<_>>| wish.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut left = self.left();
        if left.is_somebody_at_work {
            let (answer, output) = oneshot::channel();
            let left_wish = Arc::clone(&wish);
            left.first = Some(Box::new(move |core, shared, now_ms| {
                if let Some(work) = take(&left_wish) {
                    // The writer waits for it.
                    let _heard = answer.send(work(core, shared, now_ms));
                }
            }));
            drop(left);
            if let Ok(output) = output.blocking_recv() {
                return Some(output);
            }
        } else {
            drop(left);
        }
        // It was left to nobody, or to somebody who panicked before they got to it.
        let work = take(&wish)?;
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        let output = catch_unwind(AssertUnwindSafe(|| work(self, &mut shared, now_ms))).ok()?;
        shared.wake(now_ms);
        self.release(shared);
        Some(output)
    }

    fn do_job(&self, job: Job, shared: &mut Shared, now_ms: u64) {
        // Whoever left a job that panics hears of it by an answer that does not come.
        drop(catch_unwind(AssertUnwindSafe(|| job(self, shared, now_ms))));
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation if there is room for what it changes. Returns the batch that it depends on as well.
    fn run<T, F>(
        &self,
        shared: &mut Shared,
        now_ms: u64,
        operation: &'static str,
        change: F,
    ) -> (Ran<T, F>, Option<u64>)
    where
        F: FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    {
        if let Err(error) = shared.check_open(operation) {
            return (Err(error), None);
        }
        if let Some(refusal) = &shared.refusal {
            return (Err(refusal.at(operation)), None);
        }
        if self.is_crowded(shared) {
            return (Ok(Tried::Crowded(Box::new(change))), None);
        }
        let state = &mut shared.state;
        state.advance(now_ms);
        let before = state.tables.batch.len();
        let output = change(state, now_ms);
        let batch = if state.tables.batch.len() > before {
            Some(state.unsynced.want())
        } else {
            // What changes nothing tells what it has seen, like a read: that somebody else was first, for example.
            state.unsynced.newest()
        };
        (Ok(Tried::Run(output)), batch)
    }

    /// Whether a checkpoint that is being made must end before more is taken in.
    fn is_behind(&self, shared: &Shared) -> bool {
        let rows = &shared.state.tables.rows;
        rows.is_frozen() && self.limits.is_crowded(rows.active(), &shared.tail)
    }

    /// Whether there is too much that is not written or not in a checkpoint.
    fn is_crowded(&self, shared: &Shared) -> bool {
        shared.state.tables.batch.len() > self.limits.max_batch_bytes || self.is_behind(shared)
    }

    /// Waits while there is too much that is not written or not in a checkpoint. A checkpoint that waits for room on the
    /// disk is not waited for.
    async fn wait_for_room(&self) -> Result<(), Refusal> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let shared = self.lock();
                if !self.is_crowded(&shared) || shared.refusal.is_some() || shared.is_closing {
                    return Ok(());
                }
                if let Some(error) = self.full_disk.refused().filter(|_| self.is_behind(&shared)) {
                    return Err(Refusal::full(&error));
                }
            }
            room.await;
        }
    }
}

/// The answer to an operation that ended in a panic while somebody else did it.
fn panicked(operation: &'static str) -> ProviderError {
    ProviderError::new(
        ErrorKind::Internal,
        operation,
        "the operation panicked; this is a defect of the store",
    )
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::store::EmbeddedStore;

    fn open() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
        (directory, store)
    }

    /// A thread that commits a change and is at work on the state as soon as it gets hold of it.
    fn at_work(store: &Arc<EmbeddedStore>) -> thread::JoinHandle<Result<u32, ProviderError>> {
        let worker = Arc::clone(store);
        let commit = move || block_on(worker.core().commit("first", |state, _| touch(state, 1)));
        let at_work = thread::spawn(commit);
        while !store.core().left().is_somebody_at_work {
            thread::yield_now();
        }
        at_work
    }

    fn touch(state: &mut State, said: u32) -> Result<u32, ProviderError> {
        state.touch();
        Ok(said)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime without drivers").block_on(future)
    }

    #[test]
    fn whoever_is_at_work_does_what_others_leave() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let first = at_work(&store);
        let refused = |state: &mut State, _| {
            state.touch();
            Err(ProviderError::unavailable("second", "it says so"))
        };
        let second = store.core().commit::<(), _>("second", refused);
        let third = store.core().commit("third", |state, _| touch(state, 3));
        assert_eq!(store.core().left().jobs.len(), 2, "nobody waits for the lock who has something to leave");
        drop(hold);
        assert_eq!(block_on(second), Err(ProviderError::unavailable("second", "it says so")));
        assert_eq!(block_on(third), Ok(3));
        assert_eq!(first.join().expect("the thread has not panicked"), Ok(1));
        assert!(!store.core().left().is_somebody_at_work);
    }

    /// Has operations left to the writer, which cannot come as long as the state is held.
    fn with_writer_coming(store: &Arc<EmbeddedStore>) -> MutexGuard<'_, Shared> {
        let mut shared = store.core().lock();
        shared.is_processor_short = true;
        shared.state.touch();
        shared.state.unsynced.want();
        store.core().leave_to_writer(&mut shared);
        shared
    }

    fn leave(store: &EmbeddedStore, count: usize) -> Vec<impl Future<Output = Result<u32, ProviderError>>> {
        (0..count).map(|_| store.core().commit("left", |state, _| touch(state, 2))).collect()
    }

    #[test]
    fn the_writer_comes_before_all_that_is_left() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let first = at_work(&store);
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |who: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().expect("nobody has panicked").push(who)
        };
        let (left, writer) = (note("left"), note("writer"));
        let left = store.core().commit("left", move |state, _| {
            left();
            touch(state, 2)
        });
        let waits = Arc::clone(&store);
        let writer = thread::spawn(move || waits.core().do_first(move |_, _, _| writer()));
        while store.core().left().first.is_none() {
            thread::yield_now();
        }
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(()));
        assert_eq!(block_on(left), Ok(2));
        assert_eq!(first.join().expect("the thread has not panicked"), Ok(1));
        assert_eq!(*order.lock().expect("nobody has panicked"), ["writer", "left"]);
    }

    #[test]
    fn a_panic_of_whoever_is_at_work_does_not_hold_the_writer_up() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let panics = Arc::clone(&store);
        let at_work =
            thread::spawn(move || drop(panics.core().commit::<(), _>("first", |_, _| panic!("a defect"))));
        while !store.core().left().is_somebody_at_work {
            thread::yield_now();
        }
        let waits = Arc::clone(&store);
        let writer = thread::spawn(move || waits.core().do_first(|_, _, _| 7));
        while store.core().left().first.is_none() {
            thread::yield_now();
        }
        drop(hold);
        assert!(at_work.join().is_err());
        assert_eq!(writer.join().expect("the thread has not panicked"), Some(7));
        assert_eq!(block_on(store.core().commit("later", |state, _| touch(state, 5))), Ok(5));
    }

    #[test]
    fn the_writer_hears_that_its_wish_has_panicked() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let first = at_work(&store);
        let waits = Arc::clone(&store);
        let writer = thread::spawn(move || waits.core().do_first::<()>(|_, _, _| panic!("a defect")));
        while store.core().left().first.is_none() {
            thread::yield_now();
        }
        drop(hold);
        assert_eq!(writer.join().expect("the thread has not panicked"), None);
        assert_eq!(first.join().expect("the thread has not panicked"), Ok(1));
    }

    #[test]
    fn the_writer_does_what_is_left_of_a_group() {
        let (_directory, store) = open();
        let hold = with_writer_coming(&store);
        let left = leave(&store, GROUP - 1);
        assert_eq!(store.core().left().jobs.len(), GROUP - 1, "nobody is in a hurry");
        store.core().release(hold);
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
        assert!(!store.core().left().is_writer_coming);
    }

    #[test]
    fn whoever_leaves_the_last_of_a_group_does_it() {
        let (_directory, store) = open();
        let hold = with_writer_coming(&store);
        let left = leave(&store, GROUP - 1);
        let leaves = Arc::clone(&store);
        let last = thread::spawn(move || block_on(leaves.core().commit("last", |state, _| touch(state, 3))));
        while !store.core().left().is_somebody_at_work {
            thread::yield_now();
        }
        store.core().release(hold);
        assert_eq!(last.join().expect("the thread has not panicked"), Ok(3));
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
        assert_eq!(store.core().left().count, 0);
    }

    #[test]
    fn what_is_left_to_a_writer_that_gives_up_is_refused() {
        let (_directory, store) = open();
        let hold = with_writer_coming(&store);
        let left = leave(&store, 2);
        // The state is not let go in between, so the writer, which would do them, does not come first.
        let mut shared = hold;
        shared.refusal = Some(Refusal::failed("a test"));
        store.core().do_left(&mut shared, 0);
        drop(shared);
        for left in left {
            assert_eq!(block_on(left).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        }
        let late = store.core().commit("late", |state, _| touch(state, 3));
        assert_eq!(block_on(late).map_err(|error| error.kind()), Err(ErrorKind::Unavailable));
        assert!(store.core().left().jobs.is_empty(), "nothing is left to a writer that does not come");
    }

    #[test]
    fn a_full_disk_does_not_heal_a_store_that_only_reads() {
        let (_directory, store) = open();
        let failed = Refusal::failed("a test");
        store.core().refuse(failed.clone());
        store.core().refuse(Refusal::full(&"a test"));
        assert_eq!(store.core().lock().refusal, Some(failed));
    }

    #[test]
    fn a_caller_has_its_answer_however_many_come() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let first = at_work(&store);
        let left = leave(&store, MOST_LEFT);
        assert_eq!(store.core().left().jobs.len(), MOST_LEFT);
        let waits = Arc::clone(&store);
        let last = thread::spawn(move || block_on(waits.core().commit("last", |state, _| touch(state, 3))));
        while store.core().waiting_for_lock() < 2 {
            thread::yield_now();
        }
        assert_eq!(store.core().left().jobs.len(), MOST_LEFT, "whoever comes now waits for the state");
        drop(hold);
        assert_eq!(first.join().expect("the thread has not panicked"), Ok(1));
        assert_eq!(last.join().expect("the thread has not panicked"), Ok(3));
        left.into_iter().for_each(|left| assert_eq!(block_on(left), Ok(2)));
        assert!(!store.core().left().is_somebody_at_work);
    }

    #[test]
    fn a_panic_is_the_end_of_one_operation_only() {
        let (_directory, store) = open();
        let hold = store.core().lock();
        let first = at_work(&store);
        let panicking = store.core().commit::<(), _>("second", |_, _| panic!("a defect"));
        let third = store.core().commit("third", |state, _| touch(state, 3));
        drop(hold);
        assert_eq!(block_on(panicking).map_err(|error| error.kind()), Err(ErrorKind::Internal));
        assert_eq!(block_on(third), Ok(3));
        assert_eq!(first.join().expect("the thread has not panicked"), Ok(1));
        let alone = catch_unwind(AssertUnwindSafe(|| {
            drop(store.core().commit::<(), _>("fourth", |_, _| panic!("a defect")));
        }));
        assert!(alone.is_err(), "whoever is at work hears of its own panic");
        assert_eq!(block_on(store.core().commit("fifth", |state, _| touch(state, 5))), Ok(5));
    }
}
