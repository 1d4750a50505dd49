//! The writer: takes everything that waits as one batch, appends it to the log, syncs once, answers all. While it does so, the
//! next batch is being filled. It leaves to others what it wants of the state if somebody is at work on that.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use segno::telemetry;

use crate::apart::Apart;
use crate::batch::Batch;
use crate::checkpointer::Order;
use crate::desk::AtWork;
use crate::log::{AppendError, Log};
use crate::pace::Pace;
use crate::refusal::Refusal;
use crate::shared::{Core, Frozen, Shared, answer};
use crate::state::Met;

/// What the writer has to do.
enum Task {
    /// Write a batch.
    Write(Writing),
    /// Have a checkpoint made of what is written.
    Checkpoint(Frozen),
}

/// What the writer does next.
enum Step {
    Do(Box<Task>),
    /// Look again at once.
    Look,
    /// Wait until it is called, or so long, for something to do.
    Sleep(Option<Duration>),
    /// Wait until it is called, or so long, for more who wait for the batch.
    Gather(Duration),
    /// The store is closed and there is nothing left to do.
    End,
}

impl Step {
    fn write(writing: Writing) -> Self {
        Step::Do(Box::new(Task::Write(writing)))
    }

    /// Whether the writer has something to do, and comes back when it is done.
    fn is_task(&self) -> bool {
        matches!(self, Step::Do(_))
    }
}

/// A batch that is to be written, with what hangs on it.
struct Writing {
    sequence: u64,
    batch: Batch,
    watched: Vec<Met>,
    /// Set when a checkpoint is to follow.
    frozen: Option<Frozen>,
}

/// What came of a batch that is durable.
struct Synced {
    /// How many it has answered.
    answered: usize,
    pace: Pace,
    spare: Batch,
    step: Step,
}

/// Runs until the store is closed or the disk fails.
pub fn run(core: &Arc<Core>, mut log: Log, checkpointer: &SyncSender<Order>) {
    let mut pace = Pace::default();
    let mut spare = Batch::default();
    let mut step = Step::Look;
    loop {
        let Some(next) = core.next_task(pace, &mut spare, step) else {
            return core.refuse(Refusal::failed("looking for something to write has panicked"));
        };
        let Some(task) = next else { return };
        step = Step::Look;
        let mut frozen = match task {
            Task::Checkpoint(frozen) => frozen,
            Task::Write(mut writing) => {
                let started_ns = core.clock.monotonic_ns();
                if !append(core, &mut log, &mut writing) {
                    return;
                }
                let took = Duration::from_nanos(core.clock.monotonic_ns().saturating_sub(started_ns));
                let Writing { watched, frozen, batch, .. } = writing;
                let Some(synced) = core.synced(watched, took, pace, batch.recycled()) else {
                    return core.refuse(Refusal::failed("showing what was written has panicked"));
                };
                telemetry::store_committed(took, synced.answered);
                Synced { pace, spare, step, .. } = synced;
                let Some(frozen) = frozen else { continue };
                frozen
            }
        };
        if let Err(error) = log.rotate(frozen.facts.covered + 1) {
            tracing::error!(%error, "the log could not start a new segment");
            return core.refuse(Refusal::failed(&error.to_string()));
        }
        frozen.anchor = Some(log.current());
        // There is room: changes are only frozen when those before them are in a checkpoint.
        if checkpointer.send(Order::Checkpoint(frozen)).is_err() {
            return core.refuse(Refusal::failed("the checkpointer has ended"));
        }
    }
}

/// Makes a batch durable; waits as long as the disk is full. `false` when that is not to be.
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
    /// The next batch, once somebody waits for it, or the next checkpoint, when nobody does for a while or the store is
    /// being closed. `spare` is filled after the batch. `None` when looking for it has panicked.
    fn next_task(&self, pace: Pace, spare: &mut Batch, mut step: Step) -> Option<Option<Task>> {
        loop {
            let is_up = match step {
                Step::Do(task) => return Some(Some(*task)),
                Step::End => return Some(None),
                Step::Look => false,
                Step::Sleep(time) => !self.to_writer.wait(time),
                Step::Gather(time) => {
                    self.to_writer.wait(Some(time));
                    true
                }
            };
            let mut given = std::mem::take(spare);
            let (next, at_work) = self.do_first(move |core, shared, now_ms| {
                (core.next_step(shared, &pace, &mut given, is_up, now_ms), given)
            })?;
            (step, *spare) = next;
            at_work.filter(|_| step.is_task()).into_iter().for_each(AtWork::let_go);
        }
    }

    /// What the writer does next. `is_up` says that it has waited long enough.
    fn next_step(
        &self,
        shared: &mut Shared,
        pace: &Pace,
        spare: &mut Batch,
        is_up: bool,
        now_ms: u64,
    ) -> Step {
        shared.call_writer_at = None;
        // Whatever the writer was called for is in the state by now.
        self.to_writer.mute();
        self.do_left(shared);
        if shared.state.unsynced.is_wanted() {
            if let Some((enough, patience)) = pace.demand(shared.filling.len())
                && !is_up
                && !shared.is_closing
            {
                shared.call_writer_at = Some(enough);
                return Step::Gather(patience);
            }
            return Step::write(self.take_batch(shared, spare, false, now_ms));
        }
        let can_checkpoint = shared.can_checkpoint();
        let is_frozen = shared.state.tables.rows.is_frozen();
        let is_checkpoint_due = if shared.is_closing && !(is_frozen && shared.has_checkpointer) {
            if !can_checkpoint {
                return Step::End;
            }
            true
        } else {
            (shared.checkpoint_wanted || is_up) && can_checkpoint && !is_frozen
        };
        if !is_checkpoint_due {
            shared.call_writer_at = Some(0);
            // With nothing to do it waits, however long it takes.
            return Step::Sleep((can_checkpoint && !is_frozen).then_some(self.limits.tail.age));
        }
        if shared.state.tables.batch.is_empty() {
            let covered = shared.state.unsynced.last();
            return Step::Do(Box::new(Task::Checkpoint(shared.freeze(covered, now_ms))));
        }
        Step::write(self.take_batch(shared, spare, true, now_ms))
    }

    /// Takes what is being filled.
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

    /// A batch became durable in so much time: shows what it did, answers whoever waits for it, and takes the next one if it need
    /// not wait. `None` when that has panicked.
    fn synced(&self, watched: Vec<Met>, took: Duration, mut pace: Pace, mut spare: Batch) -> Option<Synced> {
        let ((waiting, synced), at_work) = self.do_first(move |core, shared, now_ms| {
            shared.refusal.take_if(|refusal| refusal.passes);
            shared.state.advance(now_ms);
            shared.state.synced(&watched, now_ms);
            match &shared.refusal {
                Some(refusal) => shared.state.set_apart(refusal.condition(), None),
                None => shared.state.apart = Apart::default(),
            }
            let waiting = std::mem::take(&mut shared.writing);
            let answered = waiting.len();
            pace.written(answered, took);
            let step = core.next_step(shared, &pace, &mut spare, false, now_ms);
            (waiting, Synced { answered, pace, spare, step })
        })?;
        match at_work {
            Some(at_work) if synced.step.is_task() => {
                at_work.let_go();
                answer(waiting, &Ok(()));
            }
            // Others may go on before what is left is done.
            at_work => {
                answer(waiting, &Ok(()));
                drop(at_work);
            }
        }
        self.room.notify_waiters();
        Some(synced)
    }

    /// Waits a moment before the disk is tried again; `false` when the store is being closed.
    fn wait_for_room_on_disk(&self) -> bool {
        if !self.lock().is_closing {
            self.to_writer.wait(Some(self.limits.retry_full_disk_after));
        }
        !self.lock().is_closing
    }
}
