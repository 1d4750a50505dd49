//! What to do with a locked activity before anybody runs it. Pure, and the same for a node's own worker and for workers
//! elsewhere.

use std::sync::Arc;

use super::ending::HeldAttempt;
use crate::dead_letter::Letterbox;
use crate::failure::{Category, Failure};
use crate::store::{AckWorkItem, LockedWorkItem};
use crate::telemetry;
use crate::work_item::{ANY_ATTEMPT, ActivityExecute, WorkItem};

/// A locked activity, judged.
pub(crate) enum Delivery {
    /// It can be run.
    Work(Arc<ActivityExecute>),
    /// No worker can run it.
    Refused(Refusal),
}

/// An activity that fails before it runs.
pub(crate) struct Refusal {
    /// The commit that reports it to its orchestration.
    pub(crate) ack: AckWorkItem,
    reason: Reason,
}

enum Reason {
    Unreadable,
    TooManyDeliveries,
}

impl Refusal {
    /// Counts it, once it is committed.
    pub(crate) fn count(&self) {
        metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => "failed").increment(1);
        metrics::counter!(telemetry::DEAD_LETTERS, "queue" => "worker").increment(1);
        if matches!(self.reason, Reason::TooManyDeliveries) {
            metrics::counter!(telemetry::POISONED, "what" => "activity").increment(1);
        }
    }
}

/// Reads a locked activity. One that cannot be read, or that was delivered too often, is refused and parked.
pub(crate) fn judge(locked: &LockedWorkItem, max_deliveries: u32, letters: Letterbox<'_>) -> Delivery {
    let item = match WorkItem::decode(&locked.message.body) {
        Ok(WorkItem::ActivityExecute(item)) => item,
        Ok(_) => return Delivery::Refused(unreadable(locked, "it is not an activity".to_owned(), letters)),
        Err(reason) => return Delivery::Refused(unreadable(locked, reason, letters)),
    };
    if locked.attempt_count > max_deliveries {
        return Delivery::Refused(too_many_deliveries(locked, &item, letters));
    }
    Delivery::Work(item)
}

fn unreadable(locked: &LockedWorkItem, reason: String, letters: Letterbox<'_>) -> Refusal {
    let message = &locked.message;
    tracing::error!(instance = message.activity.instance, reason, "an activity cannot be read; it is parked");
    let text = format!("the queued activity cannot be read: {reason}");
    let failure = Failure::new(Category::Poison, text).code("unreadable");
    let letter = letters.activity(message, None, locked.attempt_count, (reason, locked.fetched_at_ms));
    let held = HeldAttempt {
        lock_token: locked.lock_token,
        activity: message.activity.clone(),
        attempt: ANY_ATTEMPT,
    };
    let writes = letter.writes(Some(message.body.clone()));
    Refusal { ack: held.ended(Err(failure), writes), reason: Reason::Unreadable }
}

fn too_many_deliveries(locked: &LockedWorkItem, item: &ActivityExecute, letters: Letterbox<'_>) -> Refusal {
    let deliveries = locked.attempt_count - 1;
    let times = if deliveries == 1 { "one delivery".to_owned() } else { format!("{deliveries} deliveries") };
    let text = format!("activity {:?} was given up after {times} without an answer", item.name);
    let letter =
        letters.activity(&locked.message, Some(item), deliveries, (text.clone(), locked.fetched_at_ms));
    let failure = Failure::new(Category::Poison, text).code("too-many-deliveries");
    let writes = letter.writes(Some(locked.message.body.clone()));
    let ack = item.held_by(locked.lock_token).ended(Err(failure), writes);
    Refusal { ack, reason: Reason::TooManyDeliveries }
}

impl ActivityExecute {
    /// This attempt, under a lock.
    pub(crate) fn held_by(&self, lock_token: crate::store::LockToken) -> HeldAttempt {
        HeldAttempt { lock_token, activity: self.identifier(), attempt: self.attempt }
    }
}
