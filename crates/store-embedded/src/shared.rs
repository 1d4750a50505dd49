//! What callers, the writer and the checkpointer share: the state, who waits for it, and who waits for a batch.
//!
//! One caller at a time is [at work](crate::desk) on it, and never across an await or a write to disk.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::ProviderError;
use segno::store::core::demand::{Demand, FetchKind, WaitQueues};
use tokio::sync::{Notify, oneshot};

use crate::batch::Batch;
use crate::bell::Bell;
use crate::damage::KnownDamage;
use crate::desk::Desk;
use crate::facts::Facts;
use crate::full_disk::FullDisk;
use crate::log::SegmentId;
use crate::options::Limits;
use crate::overlay::Overlay;
use crate::refusal::{Outcome, Refusal};
use crate::snapshot::Taken;
use crate::state::State;
use crate::stored::Snapshot;
use crate::submitted::UntoldCaller;
use crate::tail::Tail;

/// The operation that goes on while a store is being filled.
pub const IMPORT: &str = "import";

/// Whoever waits for a batch. Dropped, it hears that the store has been closed.
pub enum Waiter {
    Caller(oneshot::Sender<Outcome>),
    Commit(UntoldCaller),
}

impl Waiter {
    fn tell(self, outcome: Outcome) {
        match self {
            // A caller that has gone away meanwhile is no error.
            Waiter::Caller(caller) => drop(caller.send(outcome)),
            Waiter::Commit(caller) => caller.tell(outcome),
        }
    }
}

/// What one caller at a time is at work on.
pub struct Shared {
    pub state: State,
    pub waiters: WaitQueues,
    /// Whoever waits for the batch that is being filled, and for the one that is being written.
    pub filling: Vec<Waiter>,
    pub writing: Vec<Waiter>,
    /// Why nothing is written, if so.
    pub refusal: Option<Refusal>,
    pub is_closing: bool,
    /// What the log has beyond the last checkpoint.
    pub tail: Tail,
    /// Whether there is somebody to make checkpoints.
    pub has_checkpointer: bool,
    /// Whether somebody waits for a checkpoint.
    pub checkpoint_wanted: bool,
    /// How many checkpoints have been made since the store was opened.
    checkpoints: u64,
    /// Whether an import has begun and not finished.
    pub is_filling: bool,
    /// How many imports have begun since the store was opened.
    pub imports: u64,
    /// Whoever waits for a snapshot.
    pub snapshots: Vec<oneshot::Sender<Taken>>,
    /// How many must wait for a batch before the writer, which sleeps, is called; `None` when it does not sleep.
    pub call_writer_at: Option<usize>,
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
    pub fn check_fetch<W: Demand>(&self, operation: &'static str) -> Result<(), ProviderError> {
        match &self.refusal {
            Some(refusal) if W::KIND == FetchKind::Work => Err(refusal.at(operation)),
            _ => Ok(()),
        }
    }

    /// Whether the writer, which sleeps, is to be called: as many wait for the batch as it wishes.
    pub fn call_writer(&mut self) -> bool {
        let is_wanted = self.state.unsynced.is_wanted();
        let filling = self.filling.len();
        self.call_writer_at.take_if(|at| is_wanted && filling >= *at).is_some()
    }

    /// Whether the writer is there, and sure to come for what is left.
    pub fn has_writer(&self) -> bool {
        self.refusal.is_none() && !self.is_closing
    }

    /// Wakes as many waiters as there is work for.
    pub fn wake(&mut self, now_ms: u64) {
        self.waiters.wake(&self.state, now_ms);
    }

    /// Whether there is anything that the last checkpoint does not have, and somebody to put it there.
    pub fn can_checkpoint(&self) -> bool {
        let tables = &self.state.tables;
        self.has_checkpointer
            && self.refusal.is_none()
            && !(tables.rows.active().is_empty() && tables.batch.is_empty())
    }

    /// Hands everything up to a batch to a checkpoint.
    pub fn freeze(&mut self, covered: u64, at_ms: u64) -> Frozen {
        self.tail = Tail::default();
        self.checkpoint_wanted = false;
        let snapshots = std::mem::take(&mut self.snapshots);
        let tables = &mut self.state.tables;
        let facts = Facts { covered, ..tables.facts };
        Frozen { changes: tables.rows.freeze(), facts, at_ms, snapshots, anchor: None }
    }

    /// Where the outcome of a batch arrives; `None` when it is durable already.
    pub fn outcome_of(&mut self, sequence: u64) -> Option<oneshot::Receiver<Outcome>> {
        if self.refusal.is_none() && self.is_durable(sequence) {
            return None;
        }
        let (answer, outcome) = oneshot::channel();
        self.tell(Some(sequence), Waiter::Caller(answer));
        Some(outcome)
    }

    /// Has somebody told what becomes of a batch.
    pub fn tell(&mut self, batch: Option<u64>, waiter: Waiter) {
        match (batch, &self.refusal) {
            (Some(_), Some(refusal)) => waiter.tell(Err(refusal.clone())),
            (Some(sequence), None) if !self.is_durable(sequence) => {
                let is_writing = self.state.unsynced.writing() == Some(sequence);
                if is_writing { self.writing.push(waiter) } else { self.filling.push(waiter) }
            }
            _ => waiter.tell(Ok(())),
        }
    }

    fn is_durable(&self, sequence: u64) -> bool {
        let unsynced = &self.state.unsynced;
        let is_older = |batch| sequence < batch;
        unsynced.writing().is_some_and(is_older) || unsynced.newest().is_none_or(|newest| newest < sequence)
    }
}

/// What a checkpoint writes.
pub struct Frozen {
    pub changes: Arc<Overlay>,
    pub facts: Facts,
    /// When it was frozen, and whoever wants a snapshot of then.
    pub at_ms: u64,
    pub snapshots: Vec<oneshot::Sender<Taken>>,
    /// The segment in which the log goes on; set by the writer.
    pub anchor: Option<SegmentId>,
}

/// The shared part of a store.
pub struct Core {
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    pub desk: Desk,
    pub to_writer: Bell,
    pub full_disk: Arc<FullDisk>,
    pub damage: Arc<KnownDamage>,
    /// Told when a batch or a checkpoint has made room for more changes.
    pub room: Arc<Notify>,
}

impl Core {
    pub fn new(
        recovered: (State, Tail, Arc<KnownDamage>),
        clock: Arc<dyn Clock>,
        limits: Limits,
        full_disk: Arc<FullDisk>,
    ) -> Self {
        let (state, tail, damage) = recovered;
        let shared = Shared {
            state,
            waiters: WaitQueues::default(),
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
        };
        let room = Arc::clone(&full_disk.room);
        let (desk, to_writer) = (Desk::new(shared), Bell::default());
        Core { clock, limits, desk, to_writer, full_disk, damage, room }
    }

    /// A checkpoint is on disk: takes over its rows.
    pub fn checkpointed(&self, snapshot: Snapshot) {
        let mut shared = self.lock();
        shared.state.tables.rows.thaw(snapshot);
        shared.checkpoints += 1;
        drop(shared);
        self.to_writer.call();
        self.room.notify_waiters();
    }

    /// Whether somebody waits for the checkpoint that is being made, or the next one is due already.
    pub fn is_checkpoint_wanted(&self, shared: &Shared) -> bool {
        let is_asked_for = shared.is_closing || shared.checkpoint_wanted || !shared.snapshots.is_empty();
        let changes = shared.state.tables.rows.active();
        is_asked_for || shared.tail.is_due(changes, &self.limits.tail, self.clock.now_ms())
    }

    /// Has everything that is there now moved into the state.
    ///
    /// # Errors
    /// When that is not possible now; a disk that is full is not waited for.
    pub async fn checkpoint(&self) -> Result<(), Refusal> {
        let mut target = None;
        loop {
            let made = self.room.notified();
            tokio::pin!(made);
            made.as_mut().enable();
            {
                let mut shared = self.lock();
                if let Some(refusal) = &shared.refusal {
                    return Err(refusal.clone());
                }
                if let Some(refusal) = self.full_disk.refused() {
                    return Err(refusal);
                }
                if shared.is_closing || !shared.can_checkpoint() {
                    return Ok(());
                }
                // One that is being made does not have everything.
                let being_made = u64::from(shared.state.tables.rows.is_frozen());
                let target = *target.get_or_insert(shared.checkpoints + being_made + 1);
                if shared.checkpoints >= target {
                    return Ok(());
                }
                shared.checkpoint_wanted = true;
            }
            self.to_writer.call();
            made.await;
        }
    }

    /// There are no checkpoints any more.
    pub fn checkpointer_ended(&self) {
        self.lock().has_checkpointer = false;
        self.to_writer.call();
        self.room.notify_waiters();
    }

    /// Tells everybody who waits for a batch that it will not be durable for now.
    pub fn refuse(&self, refusal: Refusal) {
        self.refuse_batch(refusal, None);
    }

    /// The same with the batch that could not be written.
    pub fn refuse_batch(&self, refusal: Refusal, batch: Option<&Batch>) {
        let mut shared = self.lock();
        // While a refusal stands, no commit changes anything.
        if shared.refusal.is_none() {
            shared.state.set_apart(refusal.condition(), batch);
        }
        let mut waiting = std::mem::take(&mut shared.writing);
        waiting.append(&mut shared.filling);
        // A store that only reads does so until it is reopened, even if its disk is full as well.
        let refusal = shared.refusal.take().filter(|standing| !standing.passes).unwrap_or(refusal);
        shared.refusal = Some(refusal.clone());
        shared.snapshots.clear();
        drop(shared);
        answer(waiting, &Err(refusal));
        self.room.notify_waiters();
    }

    /// Asks the threads to end and refuses everything from now on, what is left included. What waits for a batch is still written.
    pub fn close(&self) {
        self.lock().is_closing = true;
        self.full_disk.give_up();
        self.to_writer.call();
        self.room.notify_waiters();
    }
}

/// Tells everybody what became of a batch.
pub fn answer(waiting: Vec<Waiter>, outcome: &Outcome) {
    waiting.into_iter().for_each(|waiter| waiter.tell(outcome.clone()));
}
