//! Turns that join the activity whose end brings them: one commit for both, and no message in between.

use tracing::Instrument;

use super::Shared;
use super::batch::Batch;
use super::turn::{Stop, Turn};
use crate::replay::Execution;
use crate::store::{LockToken, RecordWrite, TurnLock};
use crate::telemetry;
use crate::work_item::{ActivityExecute, WorkItem};

/// The execution that an activity belongs to, if the end of the activity can be part of its next turn.
///
/// An execution that waits for more than this activity is left alone: others end at the same time, and one turn for all of
/// them is cheaper than one for each.
pub(super) async fn waiting_execution(
    shared: &Shared,
    item: &ActivityExecute,
    delivery: u32,
) -> Option<Box<Execution>> {
    // Whoever brings the process down must be counted. A turn that joins is not, so it gets one chance.
    if delivery > 1 || !shared.store.joins_turns() {
        return None;
    }
    shared.resident.take_waiting(item).await
}

/// Runs the turn that the end of an activity brings, and commits both. `false` when that did not come about, whatever the reason:
/// the end of the activity is to be committed by itself then, if its lock still holds.
pub(super) async fn run(
    shared: &Shared,
    execution: Box<Execution>,
    token: LockToken,
    end: WorkItem,
    records: Vec<RecordWrite>,
) -> bool {
    let Ok(now_ms) = shared.store.now_ms().await else { return false };
    let instance = execution.id().instance.clone();
    let turn = Turn::new(shared, token, &instance, now_ms);
    let span = turn.span(1);
    let lock = TurnLock::Activity { incarnation: execution.started().seed };
    let batch = Batch { others: vec![end], records, lock, ..Batch::default() };
    // In a future of its own, because the code runs when it is called.
    let gone_on = async { turn.go_on(execution, batch).await };
    let stop = match gone_on.instrument(span).await {
        Ok(()) => {
            metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "resident").increment(1);
            turn.note_duration();
            return true;
        }
        Err(stop) => stop,
    };
    shared.resident.remove(&instance);
    let reason = match stop {
        Stop::Lost(error) => error.to_string(),
        // The turn that the end of the activity brings waits, if that is of any use.
        Stop::Abandon { reason, .. } | Stop::NotHere { reason, .. } => reason,
    };
    tracing::debug!(instance = &*instance, reason, "the turn could not join its activity");
    false
}
