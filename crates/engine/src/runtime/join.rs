//! Turns that join the activity whose end brings them: one commit for both, and no message in between.

use std::sync::{Arc, Weak};

use tracing::Instrument;

use super::Shared;
use super::batch::Batch;
use super::turn::{Stop, Turn};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::replay::Execution;
use crate::store::{LockToken, ProviderError, RecordWrite, TurnLock, WriteOutcome};
use crate::telemetry;
use crate::work::{Lease, ending};
use crate::work_item::WorkItem;

/// The only delivery of an activity whose end may be part of a turn. A process that such a turn
/// brings down is not counted as a delivery, so there is one chance.
const FIRST_DELIVERY: u32 = 1;

/// Lets the turns of a node join activities that workers outside of it have run
/// ([`WorkQueueBuilder::joining`](crate::work::WorkQueueBuilder::joining)). Cheap to clone; it does
/// not keep the node alive.
#[derive(Clone)]
pub struct TurnJoiner(Weak<Shared>);

/// What became of a turn that was to join its activity.
pub(crate) enum Joined {
    /// Both are committed.
    Committed,
    /// Nothing was changed: the end of the activity is to be committed by itself, if its lock still
    /// holds.
    Not,
    /// Whether they are committed is unknown.
    Unknown(ProviderError),
}

impl TurnJoiner {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        TurnJoiner(Arc::downgrade(shared))
    }

    /// Ends the attempt of a lease together with the turn that its end brings, if the node holds
    /// the execution.
    pub(crate) async fn end(
        &self,
        lease: &Lease,
        result: &Result<Payload, Failure>,
        records: Vec<RecordWrite>,
    ) -> Joined {
        let Some(shared) = self.0.upgrade() else { return Joined::Not };
        let activity = (lease.instance.as_str(), lease.activity_id, lease.idempotency_key.as_str());
        let Some(execution) = waiting_execution(&shared, activity, lease.delivery).await else {
            return Joined::Not;
        };
        let end = ending::completion((lease.execution_id, lease.activity_id), lease.attempt, result.clone());
        Box::pin(run(&shared, execution, LockToken(lease.lock_token), end, records)).await
    }
}

/// The execution that an activity belongs to, if the end of the activity can be part of its next turn.
///
/// An execution that waits for more than this activity is left alone: others end at the same time, and one turn for all of
/// them is cheaper than one for each.
pub(super) async fn waiting_execution(
    shared: &Shared,
    (instance, activity_id, idempotency_key): (&str, u64, &str),
    delivery: u32,
) -> Option<Box<Execution>> {
    if delivery != FIRST_DELIVERY || !shared.store.joins_turns() {
        return None;
    }
    shared.resident.take_waiting(instance, activity_id, idempotency_key).await
}

/// Runs the turn that the end of an activity brings, and commits both.
pub(super) async fn run(
    shared: &Shared,
    execution: Box<Execution>,
    token: LockToken,
    end: WorkItem,
    records: Vec<RecordWrite>,
) -> Joined {
    let Ok(now_ms) = shared.store.now_ms().await else { return Joined::Not };
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
            return Joined::Committed;
        }
        Err(stop) => stop,
    };
    shared.resident.remove(&instance);
    let reason = match stop {
        Stop::Unanswered(error) if error.outcome() == WriteOutcome::Unknown => return Joined::Unknown(error),
        Stop::Lost(error) | Stop::Unanswered(error) => error.to_string(),
        // The turn that the end of the activity brings waits, if that is of any use.
        Stop::Abandon { reason, .. } | Stop::NotHere { reason, .. } => reason,
    };
    tracing::debug!(instance = &*instance, reason, "the turn could not join its activity");
    Joined::Not
}
