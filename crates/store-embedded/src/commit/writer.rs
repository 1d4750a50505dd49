//! The writer thread, which does group commit: it takes all waiting changes as one batch, appends the
//! batch to the log, syncs once, and answers all callers. Meanwhile the next batch is filled. If the
//! state is locked, the writer delegates its operations to the lock holder.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use segno::telemetry;

use crate::checkpoint::checkpointer::CheckpointerOrder;
use crate::commit::combiner::CombinerGuard;
use crate::commit::delay::CommitDelay;
use crate::commit::refusal::Refusal;
use crate::commit::shared::{Core, Frozen, Shared, answer};
use crate::log::batch::Batch;
use crate::log::{AppendError, Log};
use crate::state::machine::FulfilledWatch;
use crate::state::quarantine::Quarantine;

/// Work that the writer does without the lock.
enum WriterTask {
    /// Write a batch.
    Write(Writing),
    /// Order a checkpoint of what is written.
    Checkpoint(Frozen),
}

/// What the writer does next.
enum WriterStep {
    Do(Box<WriterTask>),
    /// Check again at once.
    Check,
    /// Wait for a notification, or until a timeout, because there is nothing to do.
    Sleep(Option<Duration>),
    /// Group-commit delay: wait for more commits, or until a timeout.
    Gather(Duration),
    /// The store is closed and there is nothing left to do.
    End,
}

impl WriterStep {
    fn write(writing: Writing) -> Self {
        WriterStep::Do(Box::new(WriterTask::Write(writing)))
    }

    /// Whether the writer has work, and takes the lock again after it.
    fn is_task(&self) -> bool {
        matches!(self, WriterStep::Do(_))
    }
}

/// A batch that is to be written, with everything that depends on it.
struct Writing {
    sequence: u64,
    batch: Batch,
    watched: Vec<FulfilledWatch>,
    /// Set when a checkpoint is to follow.
    frozen: Option<Frozen>,
}

/// The result of a batch that is durable.
struct Synced {
    /// Number of answered commits.
    answered: usize,
    delay: CommitDelay,
    spare: Batch,
    step: WriterStep,
}

/// Runs until the store is closed or the disk fails.
pub(crate) fn run(core: &Arc<Core>, mut log: Log, checkpointer: &SyncSender<CheckpointerOrder>) {
    let mut delay = CommitDelay::default();
    let mut spare = Batch::default();
    let mut step = WriterStep::Check;
    loop {
        let Some(next) = core.next_task(delay, &mut spare, step) else {
            return core.refuse(Refusal::failed("the choice of the next batch has panicked"));
        };
        let Some(task) = next else { return };
        step = WriterStep::Check;
        let mut frozen = match task {
            WriterTask::Checkpoint(frozen) => frozen,
            WriterTask::Write(mut writing) => {
                let started_ns = core.clock.monotonic_ns();
                if !append(core, &mut log, &mut writing) {
                    return;
                }
                let took = Duration::from_nanos(core.clock.monotonic_ns().saturating_sub(started_ns));
                let Writing { watched, frozen, batch, .. } = writing;
                let Some(synced) = core.synced(watched, took, delay, batch.recycled()) else {
                    return core.refuse(Refusal::failed("the publication of a batch has panicked"));
                };
                telemetry::store_committed(took, synced.answered);
                Synced { delay, spare, step, .. } = synced;
                let Some(frozen) = frozen else { continue };
                frozen
            }
        };
        if let Err(error) = log.rotate(frozen.meta.covered + 1) {
            tracing::error!(%error, "the log could not start a new segment");
            return core.refuse(Refusal::failed(&error.to_string()));
        }
        frozen.anchor = Some(log.current());
        // The channel has room: changes are frozen only when the previous ones are in a checkpoint.
        if checkpointer.send(CheckpointerOrder::Checkpoint(frozen)).is_err() {
            return core.refuse(Refusal::failed("the checkpointer has ended"));
        }
    }
}

/// Makes a batch durable; waits while the disk is full. Returns `false` if the store is being closed
/// or the write failed.
fn append(core: &Core, log: &mut Log, writing: &mut Writing) -> bool {
    let mut is_full = false;
    loop {
        match log.append(writing.sequence, writing.batch.record_mut()) {
            Ok(()) => {
                if is_full {
                    tracing::info!("the disk has room again; what waited for it is written");
                }
                return true;
            }
            Err(AppendError::Full(error)) => {
                if !is_full {
                    tracing::warn!(%error, "the disk is full; nothing is acknowledged until there is room");
                    is_full = true;
                }
                core.refuse_batch(Refusal::full(&error), Some(&writing.batch));
                if !core.wait_for_room_on_disk() {
                    return false;
                }
            }
            Err(AppendError::Failed(error)) => {
                tracing::error!(%error, "the log could not be written; the store is read-only until it is reopened");
                core.refuse_batch(Refusal::failed(&error.to_string()), Some(&writing.batch));
                return false;
            }
        }
    }
}

impl Core {
    /// The next batch, once a caller waits for it, or the next checkpoint, when no caller does for a
    /// while or the store is being closed. `spare` is filled after the batch. `None` after a panic.
    fn next_task(
        &self,
        delay: CommitDelay,
        spare: &mut Batch,
        mut step: WriterStep,
    ) -> Option<Option<WriterTask>> {
        loop {
            let is_up = match step {
                WriterStep::Do(task) => return Some(Some(*task)),
                WriterStep::End => return Some(None),
                WriterStep::Check => false,
                WriterStep::Sleep(time) => !self.writer_signal.wait(time),
                WriterStep::Gather(time) => {
                    self.writer_signal.wait(Some(time));
                    true
                }
            };
            let mut next_batch = std::mem::take(spare);
            let (next, guard) = self.run_first(move |core, shared, now_ms| {
                (core.next_step(shared, &delay, &mut next_batch, is_up, now_ms), next_batch)
            })?;
            (step, *spare) = next;
            guard.filter(|_| step.is_task()).into_iter().for_each(CombinerGuard::release);
        }
    }

    /// The next step of the writer; `is_up` after the timeout of its wait.
    fn next_step(
        &self,
        shared: &mut Shared,
        delay: &CommitDelay,
        spare: &mut Batch,
        is_up: bool,
        now_ms: u64,
    ) -> WriterStep {
        shared.notify_writer_at = None;
        // The reason of a notification is in the state by now.
        self.writer_signal.clear();
        self.run_queued_commits(shared);
        if shared.state.pending.is_write_requested() {
            if let Some((enough, patience)) = delay.for_batch(shared.filling.len())
                && !is_up
                && !shared.is_closing
            {
                shared.notify_writer_at = Some(enough);
                return WriterStep::Gather(patience);
            }
            return WriterStep::write(self.take_batch(shared, spare, false, now_ms));
        }
        let can_checkpoint = shared.can_checkpoint();
        let is_frozen = shared.state.tables.rows.is_frozen();
        let is_checkpoint_due = if shared.is_closing && !(is_frozen && shared.has_checkpointer) {
            if !can_checkpoint {
                return WriterStep::End;
            }
            true
        } else {
            (shared.checkpoint_wanted || is_up) && can_checkpoint && !is_frozen
        };
        if !is_checkpoint_due {
            shared.notify_writer_at = Some(0);
            // With nothing to do, it waits without a timeout.
            return WriterStep::Sleep((can_checkpoint && !is_frozen).then_some(self.limits.tail.age));
        }
        if shared.state.tables.batch.is_empty() {
            let covered = shared.state.pending.last();
            return WriterStep::Do(Box::new(WriterTask::Checkpoint(shared.freeze(covered, now_ms))));
        }
        WriterStep::write(self.take_batch(shared, spare, true, now_ms))
    }

    /// Takes the batch that is being filled.
    fn take_batch(
        &self,
        shared: &mut Shared,
        spare: &mut Batch,
        is_checkpoint_due: bool,
        now_ms: u64,
    ) -> Writing {
        let is_snapshot_due = !shared.snapshots.is_empty() && !shared.state.tables.rows.is_frozen();
        if is_snapshot_due {
            shared.state.store_attempts_of_locked(now_ms);
        }
        let waiting = std::mem::take(&mut shared.filling);
        shared.writing.extend(waiting);
        let state = &mut shared.state;
        let sequence = state.pending.begin_write();
        let batch = std::mem::replace(&mut state.tables.batch, std::mem::take(spare));
        let watched = std::mem::take(&mut state.watched);
        shared.tail.grow(batch.len(), now_ms);
        let rows = &shared.state.tables.rows;
        let is_due = is_checkpoint_due
            || is_snapshot_due
            || shared.tail.is_due(rows.active(), &self.limits.tail, now_ms);
        // The overlay contains exactly the changes that the log has up to and including this batch.
        let frozen = (is_due && !rows.is_frozen()).then(|| shared.freeze(sequence, now_ms));
        Writing { sequence, batch, watched, frozen }
    }

    /// A batch is durable: publishes its changes, answers its callers, and takes the next batch if it
    /// need not wait. `None` after a panic.
    fn synced(
        &self,
        watched: Vec<FulfilledWatch>,
        took: Duration,
        mut delay: CommitDelay,
        mut spare: Batch,
    ) -> Option<Synced> {
        let ((waiting, synced), guard) = self.run_first(move |core, shared, now_ms| {
            shared.refusal.take_if(|refusal| refusal.passes);
            shared.state.advance(now_ms);
            shared.state.synced(&watched, now_ms);
            match &shared.refusal {
                Some(refusal) => shared.state.quarantine_pending(refusal.condition(), None),
                None => shared.state.quarantine = Quarantine::default(),
            }
            let waiting = std::mem::take(&mut shared.writing);
            let answered = waiting.len();
            delay.record(answered, took);
            let step = core.next_step(shared, &delay, &mut spare, false, now_ms);
            (waiting, Synced { answered, delay, spare, step })
        })?;
        match guard {
            Some(guard) if synced.step.is_task() => {
                guard.release();
                answer(waiting, &Ok(()));
            }
            // The callers may continue before the queued commits have run.
            guard => {
                answer(waiting, &Ok(()));
                drop(guard);
            }
        }
        self.room.notify_waiters();
        Some(synced)
    }

    /// Waits before the next try on a full disk. Returns `false` when the store is being closed.
    fn wait_for_room_on_disk(&self) -> bool {
        if !self.lock().is_closing {
            self.writer_signal.wait(Some(self.limits.retry_full_disk_after));
        }
        !self.lock().is_closing
    }
}
