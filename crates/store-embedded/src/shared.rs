//! What callers, the writer and the checkpointer share: the state, who waits for it, and who waits for a batch.
//!
//! One mutex guards it and is never held across an await or a write to disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use segno::clock::Clock;
use segno::store::ProviderError;
use segno::store::memory::wishes::{AllWaiters, Fetches, Wish};
use tokio::sync::{Notify, oneshot};

use crate::batch::Batch;
use crate::committing::{GROUP, Left};
use crate::facts::Facts;
use crate::full_disk::FullDisk;
use crate::instance_row::InstanceRow;
use crate::options::Limits;
use crate::overlay::Overlay;
use crate::pace::Pace;
use crate::refusal::{Outcome, Refusal};
use crate::snapshot::Taken;
use crate::state::State;
use crate::stored::Snapshot;
use crate::tail::Tail;

/// How often the lock is tried before whoever wants it sleeps. It is held for some microseconds, or some tens of them when
/// several operations are done at once, and waking up takes longer.
const SPINS: u32 = 400;

/// The operation that goes on while a store is being filled.
pub const IMPORT: &str = "import";

/// What the mutex guards.
#[derive(Debug)]
pub struct Shared {
    pub state: State,
    pub waiters: AllWaiters,
    /// Whoever waits for the batch that is being filled, and for the one that is being written.
    pub filling: Vec<oneshot::Sender<Outcome>>,
    pub writing: Vec<oneshot::Sender<Outcome>>,
    /// Why nothing is written, if so.
    pub refusal: Option<Refusal>,
    pub is_closing: bool,
    /// What the log has beyond the last checkpoint.
    pub tail: Tail,
    /// Whether there is somebody to make checkpoints.
    has_checkpointer: bool,
    /// Whether somebody waits for a checkpoint.
    checkpoint_wanted: bool,
    /// How many checkpoints have been made since the store was opened.
    checkpoints: u64,
    /// Whether an import has begun and not finished.
    pub is_filling: bool,
    /// How many imports have begun since the store was opened.
    pub imports: u64,
    /// Whoever waits for a snapshot.
    pub snapshots: Vec<oneshot::Sender<Taken>>,
    /// How many must wait for a batch before the writer, which sleeps, is called; `None` when it does not sleep.
    call_writer_at: Option<usize>,
    /// Whether there are so many callers, and the disk is so fast, that it is the processor that is short.
    pub is_processor_short: bool,
    /// Whether operations may be left to the writer: what [`Left`] says too, known here without its lock.
    pub is_left_to_writer: bool,
}

impl Shared {
    /// Fails when the store has been closed, or is being filled and this is not what fills it.
    pub fn check_open(&self, operation: &'static str) -> Result<(), ProviderError> {
        if self.is_closing {
            return Err(Refusal::closed().at(operation));
        }
        if self.is_filling && operation != IMPORT {
            let text = "an import into this store has not finished; finish it, or begin it again";
            return Err(ProviderError::unavailable(operation, text));
        }
        Ok(())
    }

    /// Fails when a fetch would hand out work while nothing is written. What came of it could not be committed, and what it
    /// is made of may never become durable.
    pub fn check_fetch<W: Wish>(&self, operation: &'static str) -> Result<(), ProviderError> {
        match &self.refusal {
            Some(refusal) if W::FETCHES == Fetches::Work => Err(refusal.at(operation)),
            _ => Ok(()),
        }
    }

    /// Wakes as many waiters as there is work for.
    pub fn wake(&mut self, now_ms: u64) {
        self.waiters.wake(&self.state, now_ms);
    }

    /// Whether there is anything that the last checkpoint does not have, and somebody to put it there.
    fn can_checkpoint(&self) -> bool {
        let tables = &self.state.tables;
        self.has_checkpointer
            && self.refusal.is_none()
            && !(tables.rows.active().is_empty() && tables.batch.is_empty())
    }

    /// Hands everything up to a batch to a checkpoint.
    fn freeze(&mut self, covered: u64, at_ms: u64) -> Frozen {
        self.tail = Tail::default();
        self.checkpoint_wanted = false;
        let snapshots = std::mem::take(&mut self.snapshots);
        let tables = &mut self.state.tables;
        let facts = Facts { covered, ..tables.facts };
        Frozen { changes: tables.rows.freeze(), facts, at_ms, snapshots }
    }

    /// For how many callers, and how long, the batch that is being filled is kept open; `None` when it goes at once. So many
    /// more may have left something.
    fn wish(&mut self, pace: &Pace, left: usize) -> Option<(usize, Duration)> {
        self.is_processor_short = pace.is_processor_short();
        let (enough, patience) = pace.wish(self.filling.len() + left)?;
        Some((enough.saturating_sub(left), patience))
    }

    /// Where the outcome of a batch arrives; `None` when it is durable already.
    pub fn outcome_of(&mut self, sequence: u64) -> Option<oneshot::Receiver<Outcome>> {
        if self.refusal.is_none() && self.is_durable(sequence) {
            return None;
        }
        let (answer, outcome) = oneshot::channel();
        self.tell(Some(sequence), answer);
        Some(outcome)
    }

    /// Has somebody told what becomes of a batch.
    pub fn tell(&mut self, batch: Option<u64>, answer: oneshot::Sender<Outcome>) {
        // A caller that has gone away meanwhile is no error.
        match (batch, &self.refusal) {
            (Some(_), Some(refusal)) => drop(answer.send(Err(refusal.clone()))),
            (Some(sequence), None) if !self.is_durable(sequence) => {
                let is_writing = self.state.unsynced.writing() == Some(sequence);
                if is_writing { self.writing.push(answer) } else { self.filling.push(answer) }
            }
            _ => drop(answer.send(Ok(()))),
        }
    }

    fn is_durable(&self, sequence: u64) -> bool {
        let unsynced = &self.state.unsynced;
        let is_older = |batch| sequence < batch;
        unsynced.writing().is_some_and(is_older) || unsynced.newest().is_none_or(|newest| newest < sequence)
    }
}

/// What the writer has to do.
pub enum Task {
    /// Write a batch.
    Write(Writing),
    /// Have a checkpoint made of what is written.
    Checkpoint(Frozen),
}

/// A batch that is to be written, with what hangs on it.
pub struct Writing {
    pub sequence: u64,
    pub batch: Batch,
    pub watched: Vec<(Arc<str>, Arc<InstanceRow>)>,
    /// Set when a checkpoint is to follow.
    pub frozen: Option<Frozen>,
}

/// What came of a batch that is durable.
pub struct Synced {
    /// How many it has answered.
    pub answered: usize,
    pub pace: Pace,
    pub spare: Batch,
    /// The next one.
    pub next: Option<Writing>,
}

/// What a checkpoint writes.
pub struct Frozen {
    pub changes: Arc<Overlay>,
    pub facts: Facts,
    /// When it was frozen, and whoever wants a snapshot of then.
    pub at_ms: u64,
    pub snapshots: Vec<oneshot::Sender<Taken>>,
}

/// The shared part of a store.
pub struct Core {
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    shared: Mutex<Shared>,
    /// How many wait for the lock.
    wanted: AtomicUsize,
    /// Operations that whoever is at work does for others.
    pub left: Mutex<Left>,
    to_writer: Condvar,
    /// Where a checkpoint rests.
    pub calm: Condvar,
    pub full_disk: Arc<FullDisk>,
    /// Told when a batch or a checkpoint has made room for more changes.
    pub room: Arc<Notify>,
}

impl Core {
    pub fn new(
        recovered: (State, Tail),
        clock: Arc<dyn Clock>,
        limits: Limits,
        full_disk: Arc<FullDisk>,
    ) -> Self {
        let (state, tail) = recovered;
        let shared = Shared {
            state,
            waiters: AllWaiters::default(),
            filling: Vec::new(),
            writing: Vec::new(),
            refusal: None,
            is_closing: false,
            tail,
            has_checkpointer: true,
            checkpoint_wanted: false,
            checkpoints: 0,
            is_filling: false,
            imports: 0,
            snapshots: Vec::new(),
            call_writer_at: None,
            is_processor_short: false,
            is_left_to_writer: false,
        };
        let room = Arc::clone(&full_disk.room);
        let (to_writer, calm) = (Condvar::new(), Condvar::new());
        Core {
            clock,
            limits,
            shared: Mutex::new(shared),
            wanted: AtomicUsize::new(0),
            left: Mutex::default(),
            to_writer,
            calm,
            full_disk,
            room,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        if let Ok(shared) = self.shared.try_lock() {
            return shared;
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let shared = self.wait_for_lock();
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        shared
    }

    /// How many wait for the lock.
    #[cfg(test)]
    pub fn waiting_for_lock(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Takes the lock that the caller may just have had, but lets others have it first who try for it.
    pub fn lock_after_others(&self) -> MutexGuard<'_, Shared> {
        for _ in 0..SPINS {
            if self.wanted.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        self.lock()
    }

    fn wait_for_lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`; the latter is asked
        // when the state is whole, so going on is right and a poisoned store would only hide the first message.
        for _ in 0..SPINS {
            match self.shared.try_lock() {
                Ok(shared) => return shared,
                Err(TryLockError::Poisoned(error)) => return error.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an operation, and calls the writer if it sleeps and as many wait for the batch as it wishes. It is called
    /// when the lock is free: called earlier, it would wake up only to sleep again at the lock.
    pub fn release(&self, mut shared: MutexGuard<'_, Shared>) {
        self.leave_to_writer(&mut shared);
        let enough = |at: usize| shared.state.unsynced.is_wanted() && shared.filling.len() >= at;
        let is_called = shared.call_writer_at.is_some_and(enough);
        if is_called {
            shared.call_writer_at = None;
        }
        drop(shared);
        if is_called {
            self.to_writer.notify_one();
        }
    }

    /// The next batch, once somebody waits for it, or the next checkpoint, when nobody does for a while or the store is
    /// being closed; `None` when it is closed and there is nothing left to do. `spare` is filled after the batch.
    pub fn next_task(&self, pace: &Pace, spare: &mut Batch) -> Option<Task> {
        let (mut shared, is_checkpoint_due) = self.wait_for_task()?;
        shared.call_writer_at = None;
        if is_checkpoint_due && shared.state.tables.batch.is_empty() {
            let covered = shared.state.unsynced.last();
            return Some(Task::Checkpoint(shared.freeze(covered, self.clock.now_ms())));
        }
        // What is left of a group waits for the writer, not the writer for it.
        let left = if pace.is_processor_short() { GROUP - 1 } else { 0 };
        if let Some((enough, patience)) = shared.wish(pace, left) {
            shared.call_writer_at = Some(enough);
            let waiting = |shared: &mut Shared| shared.call_writer_at.is_some() && !shared.is_closing;
            let waited = self.to_writer.wait_timeout_while(shared, patience, waiting);
            shared = waited.unwrap_or_else(PoisonError::into_inner).0;
            shared.call_writer_at = None;
        }
        let now_ms = self.clock.now_ms();
        Some(Task::Write(self.take_batch(&mut shared, spare, is_checkpoint_due, now_ms)))
    }

    /// Takes what is being filled.
    fn take_batch(
        &self,
        shared: &mut Shared,
        spare: &mut Batch,
        is_checkpoint_due: bool,
        now_ms: u64,
    ) -> Writing {
        self.do_left(shared, now_ms);
        let is_snapshot_due = !shared.snapshots.is_empty() && !shared.state.tables.rows.is_frozen();
        if is_snapshot_due {
            shared.state.store_attempts_of_locked(now_ms);
        }
        let waiting = std::mem::take(&mut shared.filling);
        shared.writing.extend(waiting);
        let state = &mut shared.state;
        let sequence = state.unsynced.begin_write();
        let batch = std::mem::replace(&mut state.tables.batch, std::mem::take(spare));
        let watched = std::mem::take(&mut state.watched);
        shared.tail.grow(batch.len(), now_ms);
        let rows = &shared.state.tables.rows;
        let is_due = is_checkpoint_due
            || is_snapshot_due
            || shared.tail.is_due(rows.active(), &self.limits.tail, now_ms);
        // The overlay holds exactly what the log has up to and including this batch.
        let frozen = (is_due && !rows.is_frozen()).then(|| shared.freeze(sequence, now_ms));
        Writing { sequence, batch, watched, frozen }
    }

    /// Waits until somebody wants a batch, or until it is time for a checkpoint.
    fn wait_for_task(&self) -> Option<(MutexGuard<'_, Shared>, bool)> {
        let mut shared = self.lock();
        while !shared.state.unsynced.is_wanted() {
            let can_checkpoint = shared.can_checkpoint();
            let is_frozen = shared.state.tables.rows.is_frozen();
            if shared.is_closing && !(is_frozen && shared.has_checkpointer) {
                return can_checkpoint.then_some((shared, true));
            }
            if shared.checkpoint_wanted && can_checkpoint && !is_frozen {
                return Some((shared, true));
            }
            shared.call_writer_at = Some(0);
            if can_checkpoint && !is_frozen {
                let waited = self.to_writer.wait_timeout(shared, self.limits.tail.age);
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                shared = woken;
                if timeout.timed_out() && !shared.state.unsynced.is_wanted() && shared.can_checkpoint() {
                    return Some((shared, true));
                }
            } else {
                // Nothing to do, however long it takes.
                shared = self.to_writer.wait(shared).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Some((shared, false))
    }

    /// A checkpoint is on disk: takes over its rows.
    pub fn checkpointed(&self, snapshot: Snapshot) {
        let mut shared = self.lock();
        shared.state.tables.rows.thaw(snapshot);
        shared.checkpoints += 1;
        shared.call_writer_at = None;
        drop(shared);
        self.to_writer.notify_one();
        self.room.notify_waiters();
    }

    /// Whether somebody waits for the checkpoint that is being made, or the next one is due already.
    pub fn is_checkpoint_wanted(&self, shared: &Shared) -> bool {
        let is_asked_for = shared.is_closing || shared.checkpoint_wanted || !shared.snapshots.is_empty();
        let changes = shared.state.tables.rows.active();
        is_asked_for || shared.tail.is_due(changes, &self.limits.tail, self.clock.now_ms())
    }

    /// Has everything that is there now moved into the state, as far as that is possible.
    pub async fn checkpoint(&self) {
        let mut target = None;
        loop {
            let made = self.room.notified();
            tokio::pin!(made);
            made.as_mut().enable();
            {
                let mut shared = self.lock();
                if shared.is_closing || !shared.can_checkpoint() {
                    return;
                }
                // One that is being made does not have everything.
                let being_made = u64::from(shared.state.tables.rows.is_frozen());
                let target = *target.get_or_insert(shared.checkpoints + being_made + 1);
                if shared.checkpoints >= target {
                    return;
                }
                shared.checkpoint_wanted = true;
                shared.call_writer_at = None;
            }
            self.to_writer.notify_one();
            made.await;
        }
    }

    /// There are no checkpoints any more.
    pub fn checkpointer_ended(&self) {
        self.lock().has_checkpointer = false;
        self.to_writer.notify_one();
        self.room.notify_waiters();
    }

    /// Waits a moment before the disk is tried again; `false` when the store is being closed.
    pub fn wait_for_room_on_disk(&self) -> bool {
        let shared = self.lock();
        if shared.is_closing {
            return false;
        }
        let waited = self.to_writer.wait_timeout(shared, self.limits.retry_full_disk_after);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closing
    }

    /// Tells everybody who waits for a batch that it will not be durable for now.
    pub fn refuse(&self, refusal: Refusal) {
        let mut shared = self.lock();
        let mut waiting = std::mem::take(&mut shared.writing);
        waiting.append(&mut shared.filling);
        // A store that only reads does so until it is reopened, even if its disk is full as well.
        let refusal = shared.refusal.take().filter(|standing| !standing.passes).unwrap_or(refusal);
        shared.refusal = Some(refusal.clone());
        shared.snapshots.clear();
        self.do_left(&mut shared, self.clock.now_ms());
        drop(shared);
        answer(waiting, &Err(refusal));
        self.room.notify_waiters();
    }

    /// A batch became durable in so much time: shows what it did, answers whoever waits for it, and takes the next one if it need
    /// not wait. `None` when that has panicked.
    pub fn synced(
        &self,
        watched: Vec<(Arc<str>, Arc<InstanceRow>)>,
        took: Duration,
        mut pace: Pace,
        mut spare: Batch,
    ) -> Option<Synced> {
        let (waiting, synced) = self.do_first(move |core, shared, now_ms| {
            shared.refusal.take_if(|refusal| refusal.passes);
            shared.state.advance(now_ms);
            shared.state.synced(&watched, now_ms);
            let waiting = std::mem::take(&mut shared.writing);
            let answered = waiting.len();
            pace.written(answered, took);
            let is_next = shared.state.unsynced.is_wanted() && shared.wish(&pace, 0).is_none();
            let next = is_next.then(|| core.take_batch(shared, &mut spare, false, now_ms));
            (waiting, Synced { answered, pace, spare, next })
        })?;
        answer(waiting, &Ok(()));
        self.room.notify_waiters();
        Some(synced)
    }

    /// Asks the threads to end and refuses everything from now on. What waits is still written.
    pub fn close(&self) {
        let mut shared = self.lock();
        self.do_left(&mut shared, self.clock.now_ms());
        shared.is_closing = true;
        shared.call_writer_at = None;
        drop(shared);
        self.full_disk.give_up();
        self.to_writer.notify_all();
        self.room.notify_waiters();
    }
}

fn answer(waiting: Vec<oneshot::Sender<Outcome>>, outcome: &Outcome) {
    for caller in waiting {
        // A caller that has gone away meanwhile is no error.
        let _ = caller.send(outcome.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EmbeddedStore;

    #[test]
    fn the_writer_does_not_wait_for_what_is_left_to_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
        let mut shared = store.core().lock();
        let mut pace = Pace::default();
        pace.written(100, Duration::from_micros(100));
        let enough = |shared: &mut Shared, left| shared.wish(&pace, left).map(|(enough, _)| enough);
        assert_eq!(enough(&mut shared, 0), Some(100));
        assert_eq!(enough(&mut shared, GROUP - 1), Some(100 - (GROUP - 1)));
        assert_eq!(enough(&mut shared, 100), None, "all of them may be there");
        assert!(shared.is_processor_short);
    }
}
