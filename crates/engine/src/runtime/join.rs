//! Turns that are committed together with the end of the activity that causes them: one commit for
//! both, and no message in between.

use std::sync::{Arc, Weak};

use tracing::Instrument;

use super::Shared;
use super::batch::Batch;
use super::turn::{Turn, TurnError};
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

/// The outcome of a commit for both.
pub(crate) enum Joined {
    /// Both are committed.
    Committed,
    /// Nothing was changed: the end of the activity has to be committed by itself, if its lock
    /// still holds.
    Not,
    /// Whether they are committed is unknown.
    Unknown(ProviderError),
}

impl TurnJoiner {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        TurnJoiner(Arc::downgrade(shared))
    }

    /// Ends the attempt of a lease together with the turn that its end causes, if the node has the
    /// execution in memory.
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

/// The execution of an activity, if the end of the activity can be part of its next turn.
///
/// That is not so if the execution waits for more than this activity: others end at the same time,
/// and one turn for all of them is cheaper than one for each.
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

/// Runs the turn that the end of an activity causes, and commits both.
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
    let executed = async { turn.execute(execution, batch).await };
    let error = match executed.instrument(span).await {
        Ok(()) => {
            metrics::counter!(telemetry::EXECUTIONS_LOADED, "path" => "resident").increment(1);
            turn.record_duration();
            return Joined::Committed;
        }
        Err(error) => error,
    };
    shared.resident.remove(&instance);
    let reason = match error {
        TurnError::Unavailable(error) if error.outcome() == WriteOutcome::Unknown => {
            return Joined::Unknown(error);
        }
        TurnError::LockLost(error) | TurnError::Unavailable(error) => error.to_string(),
        // The turn that the end of the activity causes applies the delay, if there is any use in
        // it.
        TurnError::Abandon { reason, .. } | TurnError::Release { reason, .. } => reason,
    };
    tracing::debug!(instance = &*instance, reason, "the turn could not join its activity");
    Joined::Not
}
