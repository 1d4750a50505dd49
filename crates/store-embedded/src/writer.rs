//! The writer: does what was left to it, takes everything that waits as one batch, appends it to the log, syncs once, answers all. While it
//! does so, the next batch is being filled.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use segno::telemetry;

use crate::batch::Batch;
use crate::checkpointer::Order;
use crate::log::{AppendError, Log};
use crate::pace::Pace;
use crate::refusal::Refusal;
use crate::shared::{Core, Synced, Task, Writing};

/// Runs until the store is closed or the disk fails.
pub fn run(core: &Arc<Core>, mut log: Log, checkpointer: &SyncSender<Order>) {
    let mut pace = Pace::default();
    let mut spare = Batch::default();
    let mut next = None;
    while let Some(task) = next.take().map(Task::Write).or_else(|| core.next_task(&pace, &mut spare)) {
        let frozen = match task {
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
                Synced { pace, spare, next, .. } = synced;
                let Some(frozen) = frozen else { continue };
                frozen
            }
        };
        if let Err(error) = log.rotate(frozen.facts.covered + 1) {
            tracing::error!(%error, "the log could not start a new segment");
            return core.refuse(Refusal::failed(&error.to_string()));
        }
        // There is room: changes are only frozen when those before them are in a checkpoint.
        if checkpointer.send(Order::Checkpoint(frozen)).is_err() {
            return core.refuse(Refusal::failed("the checkpointer has ended"));
        }
    }
}

/// Makes a batch durable; waits as long as the disk is full. `false` when that is not to be.
fn append(core: &Core, log: &mut Log, writing: &mut Writing) -> bool {
    loop {
        match log.append(writing.sequence, writing.batch.record_mut()) {
            Ok(()) => return true,
            Err(AppendError::Full(error)) => {
                tracing::warn!(%error, "the disk is full; nothing is acknowledged until there is room");
                core.refuse(Refusal::full(&error));
                if !core.wait_for_room_on_disk() {
                    return false;
                }
            }
            Err(AppendError::Failed(error)) => {
                tracing::error!(%error, "the log could not be written; the store is read-only until it is reopened");
                core.refuse(Refusal::failed(&error.to_string()));
                return false;
            }
        }
    }
}
