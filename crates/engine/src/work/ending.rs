//! The end of an attempt as one commit. Pure, and the same for a node's own worker and for workers elsewhere.

use crate::failure::Failure;
use crate::payload::Payload;
use crate::store::{AckWorkItem, LockToken, RecordWrite, ScheduledActivityIdentifier};
use crate::telemetry;
use crate::work_item::WorkItem;

/// An attempt of an activity, and the lock under which it runs.
pub(crate) struct HeldAttempt {
    pub(crate) lock_token: LockToken,
    pub(crate) activity: ScheduledActivityIdentifier,
    pub(crate) attempt: u32,
}

impl HeldAttempt {
    /// The commit that ends the attempt: it removes the item and sends the end to its orchestration.
    pub(crate) fn ended(self, result: Result<Payload, Failure>, records: Vec<RecordWrite>) -> AckWorkItem {
        let ScheduledActivityIdentifier { instance, execution_id, activity_id } = self.activity;
        let completion = completion((execution_id, activity_id), self.attempt, result);
        let completion = Some(completion.for_orchestrator(instance));
        AckWorkItem { lock_token: self.lock_token, completion, records }
    }
}

/// The message about the end of an attempt to the execution of its activity.
pub(crate) fn completion(
    (execution_id, id): (u64, u64),
    attempt: u32,
    result: Result<Payload, Failure>,
) -> WorkItem {
    match result {
        Ok(result) => WorkItem::ActivityCompleted { execution_id, id, result },
        Err(failure) => WorkItem::ActivityFailed { execution_id, id, attempt, details: failure.bounded() },
    }
}

/// Counts an attempt, once its end is committed.
pub(crate) fn count(succeeded: bool) {
    // Labels are written out: one that is not known when the code is built takes memory every time.
    if succeeded {
        metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => "completed").increment(1);
    } else {
        metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => "failed").increment(1);
    }
}

/// The failure of an attempt that took longer than its call allows.
pub(crate) fn attempt_timeout(name: &str, timeout_ms: u64) -> Failure {
    Failure::timeout("attempt-timeout", format!("activity {name:?} took longer than {timeout_ms} ms"))
}
