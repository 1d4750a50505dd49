//! The state that callers, the writer and the checkpointer share, with the waiting fetches and the
//! callers that wait for a batch.
//!
//! One caller at a time holds its [lock](crate::commit::combiner), never across an await or a write to
//! disk.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::ProviderError;
use segno::store::core::demand::{Demand, FetchKind, WaitQueues};
use tokio::sync::{Notify, oneshot};

use crate::checkpoint::snapshot::StoreSnapshot;
use crate::commit::combiner::Combiner;
use crate::commit::refusal::{Outcome, Refusal};
use crate::commit::submission::PendingReply;
use crate::commit::writer_signal::WriterSignal;
use crate::disk::full_disk::FullDisk;
use crate::log::SegmentId;
use crate::log::batch::Batch;
use crate::log::tail::Tail;
use crate::options::Limits;
use crate::repair::damage::KnownDamage;
use crate::rows::checkpoint_meta::CheckpointMeta;
use crate::rows::overlay::Overlay;
use crate::rows::stored::Snapshot;
use crate::state::machine::State;

/// The only operation of a store that is being filled.
pub(crate) const IMPORT: &str = "import";

/// A caller that waits for a batch. Dropped, it gets the answer that the store has been closed.
pub(crate) enum BatchWaiter {
    Caller(oneshot::Sender<Outcome>),
    Commit(PendingReply),
}

impl BatchWaiter {
    fn answer(self, outcome: Outcome) {
        match self {
            // A receiver that was dropped meanwhile is no error.
            BatchWaiter::Caller(caller) => drop(caller.send(outcome)),
            BatchWaiter::Commit(caller) => caller.answer(outcome),
        }
    }
}

/// The part under the lock.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) waiters: WaitQueues,
    /// Callers that wait for the batch that is being filled, and for the one that is being written.
    pub(crate) filling: Vec<BatchWaiter>,
    pub(crate) writing: Vec<BatchWaiter>,
    /// Why the store refuses writes, if it does.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) is_closing: bool,
    /// The log beyond the last checkpoint.
    pub(crate) tail: Tail,
    /// Whether the checkpoint thread runs.
    pub(crate) has_checkpointer: bool,
    /// Whether a caller waits for a checkpoint.
    pub(crate) checkpoint_wanted: bool,
    /// Number of checkpoints since the store was opened.
    checkpoints: u64,
    /// Whether an import has begun and not finished.
    pub(crate) is_filling: bool,
    /// Number of imports that have begun since the store was opened.
    pub(crate) imports: u64,
    /// Callers that wait for a snapshot.
    pub(crate) snapshots: Vec<oneshot::Sender<StoreSnapshot>>,
    /// Number of callers that must wait for a batch before the sleeping writer is notified; `None` while
    /// it is awake.
    pub(crate) notify_writer_at: Option<usize>,
}

impl Shared {
    /// Fails if the store has been closed, or is being filled by another operation.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<(), ProviderError> {
        if self.is_closing {
            return Err(Refusal::closed().at(operation));
        }
        if self.is_filling && operation != IMPORT {
            let text = "an import into this store has not finished; finish it, or begin it again";
            return Err(ProviderError::unavailable(operation, text));
        }
        Ok(())
    }

    /// Fails if a fetch would deliver work while the store refuses writes: its result could not be
    /// committed, and the work itself may never become durable.
    pub(crate) fn check_fetch<W: Demand>(&self, operation: &'static str) -> Result<(), ProviderError> {
        match &self.refusal {
            Some(refusal) if W::KIND == FetchKind::Work => Err(refusal.at(operation)),
            _ => Ok(()),
        }
    }

    /// Whether the sleeping writer has to be notified, because enough callers wait for the batch. The
    /// caller notifies it.
    pub(crate) fn take_writer_notification(&mut self) -> bool {
        let is_wanted = self.state.pending.is_write_requested();
        let filling = self.filling.len();
        self.notify_writer_at.take_if(|at| is_wanted && filling >= *at).is_some()
    }

    /// Whether the writer runs, so that it will run the queued commits.
    pub(crate) fn has_writer(&self) -> bool {
        self.refusal.is_none() && !self.is_closing
    }

    /// Wakes as many fetches as there is work for.
    pub(crate) fn wake(&mut self, now_ms: u64) {
        self.waiters.wake(&self.state, now_ms);
    }

    /// Whether there are changes beyond the last checkpoint, and a checkpoint is possible.
    pub(crate) fn can_checkpoint(&self) -> bool {
        let tables = &self.state.tables;
        self.has_checkpointer
            && self.refusal.is_none()
            && !(tables.rows.active().is_empty() && tables.batch.is_empty())
    }

    /// Freezes all changes up to a batch for a checkpoint.
    pub(crate) fn freeze(&mut self, covered: u64, at_ms: u64) -> Frozen {
        self.tail = Tail::default();
        self.checkpoint_wanted = false;
        let snapshots = std::mem::take(&mut self.snapshots);
        let tables = &mut self.state.tables;
        let meta = CheckpointMeta { covered, ..tables.meta };
        Frozen { changes: tables.rows.freeze(), meta, at_ms, snapshots, anchor: None }
    }

    /// The channel for the outcome of a batch; `None` if it is durable already.
    pub(crate) fn outcome_of(&mut self, sequence: u64) -> Option<oneshot::Receiver<Outcome>> {
        if self.refusal.is_none() && self.is_durable(sequence) {
            return None;
        }
        let (answer, outcome) = oneshot::channel();
        self.answer_after(Some(sequence), BatchWaiter::Caller(answer));
        Some(outcome)
    }

    /// Answers a caller once its batch is durable or refused.
    pub(crate) fn answer_after(&mut self, batch: Option<u64>, waiter: BatchWaiter) {
        match (batch, &self.refusal) {
            (Some(_), Some(refusal)) => waiter.answer(Err(refusal.clone())),
            (Some(sequence), None) if !self.is_durable(sequence) => {
                let is_writing = self.state.pending.writing() == Some(sequence);
                if is_writing { self.writing.push(waiter) } else { self.filling.push(waiter) }
            }
            _ => waiter.answer(Ok(())),
        }
    }

    fn is_durable(&self, sequence: u64) -> bool {
        let pending = &self.state.pending;
        let is_older = |batch| sequence < batch;
        pending.writing().is_some_and(is_older) || pending.newest().is_none_or(|newest| newest < sequence)
    }
}

/// The changes that a checkpoint writes.
pub(crate) struct Frozen {
    pub(crate) changes: Arc<Overlay>,
    pub(crate) meta: CheckpointMeta,
    /// The time of the freeze, and the callers that wait for a snapshot of it.
    pub(crate) at_ms: u64,
    pub(crate) snapshots: Vec<oneshot::Sender<StoreSnapshot>>,
    /// The next segment of the log; set by the writer.
    pub(crate) anchor: Option<SegmentId>,
}

/// The shared part of a store.
pub(crate) struct Core {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) combiner: Combiner,
    pub(crate) writer_signal: WriterSignal,
    pub(crate) full_disk: Arc<FullDisk>,
    pub(crate) damage: Arc<KnownDamage>,
    /// Notified when a batch or a checkpoint has made room for more changes.
    pub(crate) room: Arc<Notify>,
}

impl Core {
    pub(crate) fn new(
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
            notify_writer_at: None,
        };
        let room = Arc::clone(&full_disk.room);
        let (combiner, writer_signal) = (Combiner::new(shared), WriterSignal::default());
        Core { clock, limits, combiner, writer_signal, full_disk, damage, room }
    }

    /// A checkpoint is on disk: its rows replace the frozen changes.
    pub(crate) fn checkpointed(&self, snapshot: Snapshot) {
        let mut shared = self.lock();
        shared.state.tables.rows.thaw(snapshot);
        shared.checkpoints += 1;
        drop(shared);
        self.writer_signal.notify();
        self.room.notify_waiters();
    }

    /// Whether a caller waits for the current checkpoint, or the next one is due already.
    pub(crate) fn is_checkpoint_wanted(&self, shared: &Shared) -> bool {
        let is_requested = shared.is_closing || shared.checkpoint_wanted || !shared.snapshots.is_empty();
        let changes = shared.state.tables.rows.active();
        is_requested || shared.tail.is_due(changes, &self.limits.tail, self.clock.now_ms())
    }

    /// Makes a checkpoint of all changes so far.
    ///
    /// # Errors
    /// If that is not possible now; it does not wait for a full disk.
    pub(crate) async fn checkpoint(&self) -> Result<(), Refusal> {
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
                // A checkpoint that is being made does not have all changes.
                let being_made = u64::from(shared.state.tables.rows.is_frozen());
                let target = *target.get_or_insert(shared.checkpoints + being_made + 1);
                if shared.checkpoints >= target {
                    return Ok(());
                }
                shared.checkpoint_wanted = true;
            }
            self.writer_signal.notify();
            made.await;
        }
    }

    /// The checkpoint thread has ended.
    pub(crate) fn checkpointer_ended(&self) {
        self.lock().has_checkpointer = false;
        self.writer_signal.notify();
        self.room.notify_waiters();
    }

    /// Refuses writes, and answers all callers that wait for a batch: it will not be durable for now.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refuse_batch(refusal, None);
    }

    /// Refuses writes, because this batch could not be written.
    pub(crate) fn refuse_batch(&self, refusal: Refusal, batch: Option<&Batch>) {
        let mut shared = self.lock();
        // During a refusal, no commit changes the state.
        if shared.refusal.is_none() {
            shared.state.quarantine_pending(refusal.condition(), batch);
        }
        let mut waiting = std::mem::take(&mut shared.writing);
        waiting.append(&mut shared.filling);
        // A read-only store stays read-only until it is reopened, even if its disk is full as well.
        let refusal = shared.refusal.take().filter(|standing| !standing.passes).unwrap_or(refusal);
        shared.refusal = Some(refusal.clone());
        shared.snapshots.clear();
        drop(shared);
        answer(waiting, &Err(refusal));
        self.room.notify_waiters();
    }

    /// Stops the threads and refuses all operations from now on, queued ones included. Commits that wait
    /// for a batch are still written.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.full_disk.give_up();
        self.writer_signal.notify();
        self.room.notify_waiters();
    }
}

/// Answers all callers of a batch.
pub(crate) fn answer(waiting: Vec<BatchWaiter>, outcome: &Outcome) {
    waiting.into_iter().for_each(|waiter| waiter.answer(outcome.clone()));
}
