//! What callers, the writer and the checkpointer share: the state, who waits for it, and who waits for a batch.
//!
//! One mutex guards it and is never held across an await or a write to disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use segno::clock::Clock;
use segno::store::memory::waiters::Waiters;
use segno::store::{ErrorKind, InstanceInfo, ProviderError};
use tokio::sync::{Notify, oneshot};

use crate::batch::Batch;
use crate::facts::Facts;
use crate::options::Limits;
use crate::overlay::Overlay;
use crate::pace::Pace;
use crate::state::State;
use crate::waiting::{DueWish, TurnWish, Wish, WorkWish};

/// Why the store does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    kind: ErrorKind,
    message: String,
}

impl Refusal {
    /// No room on the disk; goes away by itself.
    pub fn full(error: &std::io::Error) -> Self {
        let message = format!(
            "the disk is full ({error}); what was not acknowledged is written when there is room, make some"
        );
        Refusal { kind: ErrorKind::Unavailable, message }
    }

    /// A write or sync failed, so what is on the disk is not known.
    pub fn failed(what: &str) -> Self {
        let message =
            format!("the store is read-only since a write failed ({what}); check the disk and reopen it");
        Refusal { kind: ErrorKind::Unavailable, message }
    }

    /// The store is being closed.
    pub fn closed() -> Self {
        Refusal { kind: ErrorKind::Closed, message: "the store has been closed".to_owned() }
    }

    /// The error of an operation that was refused.
    pub fn at(&self, operation: &'static str) -> ProviderError {
        ProviderError::new(self.kind, operation, self.message.clone())
    }
}

/// What became of a batch.
pub type Outcome = Result<(), Refusal>;

/// What the mutex guards.
#[derive(Debug)]
pub struct Shared {
    pub state: State,
    pub turns: Waiters<TurnWish>,
    pub work: Waiters<WorkWish>,
    pub due: Waiters<DueWish>,
    /// Whoever waits for the batch that is being filled, and for the one that is being written.
    pub filling: Vec<oneshot::Sender<Outcome>>,
    pub writing: Vec<oneshot::Sender<Outcome>>,
    /// Why nothing is written, if so.
    pub refusal: Option<Refusal>,
    pub is_closing: bool,
    /// How many must wait for a batch before the writer, which sleeps, is called; `None` when it does not sleep.
    call_writer_at: Option<usize>,
}

impl Shared {
    /// Fails when the store has been closed.
    pub fn check_open(&self, operation: &'static str) -> Result<(), ProviderError> {
        if self.is_closing { Err(Refusal::closed().at(operation)) } else { Ok(()) }
    }

    /// Wakes as many waiters as there is work for.
    pub fn wake(&mut self, now_ms: u64) {
        let state = &self.state;
        self.turns.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
        self.work.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
        self.due.wake(|wish| wish.ready_count(state, now_ms), |wish| wish.next_change_ms(state, now_ms));
    }

    /// Where the outcome of a batch arrives; `None` when it is durable already.
    pub fn outcome_of(&mut self, sequence: u64) -> Option<oneshot::Receiver<Outcome>> {
        let (answer, outcome) = oneshot::channel();
        if let Some(refusal) = &self.refusal {
            // The receiver is in hand, so this cannot fail.
            let _ = answer.send(Err(refusal.clone()));
            return Some(outcome);
        }
        match self.state.unsynced.writing() {
            Some(writing) if sequence < writing => return None,
            Some(writing) if sequence == writing => self.writing.push(answer),
            _ if self.state.unsynced.newest().is_some_and(|newest| sequence <= newest) => {
                self.filling.push(answer);
            }
            _ => return None,
        }
        Some(outcome)
    }
}

/// A batch that is to be written, with what hangs on it.
pub struct Writing {
    pub sequence: u64,
    pub batch: Batch,
    pub watched: Vec<InstanceInfo>,
    /// Set when a checkpoint is to follow.
    pub frozen: Option<Frozen>,
}

/// What a checkpoint writes.
pub struct Frozen {
    pub changes: Arc<Overlay>,
    pub facts: Facts,
}

/// The shared part of a store.
pub struct Core {
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    shared: Mutex<Shared>,
    to_writer: Condvar,
    /// Told when a batch or a checkpoint has made room for more changes.
    pub room: Notify,
}

impl Core {
    pub fn new(state: State, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let shared = Shared {
            state,
            turns: Waiters::default(),
            work: Waiters::default(),
            due: Waiters::default(),
            filling: Vec::new(),
            writing: Vec::new(),
            refusal: None,
            is_closing: false,
            call_writer_at: None,
        };
        Core { clock, limits, shared: Mutex::new(shared), to_writer: Condvar::new(), room: Notify::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a defect of the store or of a caller's `ResidentExecutions`; the latter is asked
        // when the state is whole, so going on is right and a poisoned store would only hide the first message.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the writer if it sleeps and as many wait for the batch as it wishes.
    pub fn call_writer(&self, shared: &mut Shared) {
        let enough = |at: usize| shared.state.unsynced.is_wanted() && shared.filling.len() >= at;
        if shared.call_writer_at.is_some_and(enough) {
            shared.call_writer_at = None;
            self.to_writer.notify_one();
        }
    }

    /// The next batch, once somebody waits for it; `None` when the store is being closed.
    pub fn next_batch(&self, pace: &Pace) -> Option<Writing> {
        let mut shared = self.lock();
        while !shared.state.unsynced.is_wanted() {
            if shared.is_closing {
                return None;
            }
            shared.call_writer_at = Some(0);
            shared = self.to_writer.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some((enough, patience)) = pace.wish(shared.filling.len()) {
            shared.call_writer_at = Some(enough);
            let waiting = |shared: &mut Shared| shared.call_writer_at.is_some() && !shared.is_closing;
            let waited = self.to_writer.wait_timeout_while(shared, patience, waiting);
            shared = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        shared.call_writer_at = None;
        let waiting = std::mem::take(&mut shared.filling);
        shared.writing.extend(waiting);
        let limits = &self.limits;
        let state = &mut shared.state;
        let sequence = state.unsynced.begin_write();
        let batch = std::mem::take(&mut state.tables.batch);
        let watched = std::mem::take(&mut state.watched);
        let rows = &mut state.tables.rows;
        // The overlay holds exactly what the log has up to and including this batch.
        let is_due = rows.active().bytes() >= limits.checkpoint_bytes && !rows.is_frozen();
        let frozen = is_due.then(|| {
            let facts = Facts { covered: sequence, ..state.tables.facts };
            Frozen { changes: rows.freeze(), facts }
        });
        Some(Writing { sequence, batch, watched, frozen })
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
        shared.refusal = Some(refusal.clone());
        drop(shared);
        answer(waiting, &Err(refusal));
        self.room.notify_waiters();
    }

    /// A batch is durable: shows what it did and answers whoever waits for it. Returns how many that were.
    pub fn synced(&self, watched: Vec<InstanceInfo>) -> usize {
        let mut shared = self.lock();
        let now_ms = self.clock.now_ms();
        shared.refusal = None;
        shared.state.advance(now_ms);
        shared.state.synced(watched, now_ms);
        shared.wake(now_ms);
        let waiting = std::mem::take(&mut shared.writing);
        drop(shared);
        let answered = waiting.len();
        answer(waiting, &Ok(()));
        self.room.notify_waiters();
        answered
    }

    /// Asks the threads to end and refuses everything from now on. What waits is still written.
    pub fn close(&self) {
        let mut shared = self.lock();
        shared.is_closing = true;
        shared.call_writer_at = None;
        drop(shared);
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
