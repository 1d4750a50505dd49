//! What to do with a locked activity before anybody runs it. Pure, and the same for a node's own worker and for workers
//! elsewhere.

use std::sync::Arc;

use super::ending::HeldAttempt;
use crate::dead_letter::DeadLetter;
use crate::failure::{Category, Failure};
use crate::ids::IdSource;
use crate::store::{AckWorkItem, LockedWorkItem};
use crate::telemetry;
use crate::work_item::{ANY_ATTEMPT, ActivityExecute, WorkItem};

/// A locked activity, judged.
pub(crate) enum Delivery {
    /// It can be run.
    Work(Arc<ActivityExecute>),
    /// Nobody can run it.
    Refused(Refusal),
}

/// An activity that is given up before it runs.
pub(crate) struct Refusal {
    /// The commit that tells its orchestration.
    pub(crate) ack: AckWorkItem,
    reason: Reason,
}

enum Reason {
    /// It is parked where it can be seen.
    Unreadable,
    TooManyDeliveries,
}

impl Refusal {
    /// Counts it, once it is committed.
    pub(crate) fn count(&self) {
        metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => "failed").increment(1);
        match self.reason {
            Reason::Unreadable => {
                metrics::counter!(telemetry::DEAD_LETTERS, "queue" => "worker").increment(1);
            }
            Reason::TooManyDeliveries => {
                metrics::counter!(telemetry::POISONED, "what" => "activity").increment(1);
            }
        }
    }
}

/// Reads a locked activity. One that cannot be read, or that was handed out too often, is refused.
pub(crate) fn judge(locked: &LockedWorkItem, max_deliveries: u32, ids: &dyn IdSource) -> Delivery {
    let item = match WorkItem::decode(&locked.message.body) {
        Ok(WorkItem::ActivityExecute(item)) => item,
        Ok(_) => return Delivery::Refused(unreadable(locked, "it is not an activity".to_owned(), ids)),
        Err(reason) => return Delivery::Refused(unreadable(locked, reason, ids)),
    };
    if locked.attempt_count > max_deliveries {
        return Delivery::Refused(too_many_deliveries(locked, &item));
    }
    Delivery::Work(item)
}

fn unreadable(locked: &LockedWorkItem, reason: String, ids: &dyn IdSource) -> Refusal {
    let message = &locked.message;
    tracing::error!(instance = message.activity.instance, reason, "an activity cannot be read; it is parked");
    let text = format!("the queued activity cannot be read: {reason}");
    let failure = Failure::new(Category::Poison, text).code("unreadable");
    let letter = DeadLetter::of_worker(ids, message, reason, locked.fetched_at_ms);
    let held = HeldAttempt {
        lock_token: locked.lock_token,
        activity: message.activity.clone(),
        attempt: ANY_ATTEMPT,
    };
    Refusal { ack: held.ended(Err(failure), vec![letter.to_write()]), reason: Reason::Unreadable }
}

fn too_many_deliveries(locked: &LockedWorkItem, item: &ActivityExecute) -> Refusal {
    let message = format!(
        "activity {:?} was given up after {} deliveries without an answer",
        item.name,
        locked.attempt_count - 1
    );
    let failure = Failure::new(Category::Poison, message).code("too-many-deliveries");
    let ack = item.held_by(locked.lock_token).ended(Err(failure), Vec::new());
    Refusal { ack, reason: Reason::TooManyDeliveries }
}

impl ActivityExecute {
    /// This attempt, under a lock.
    pub(crate) fn held_by(&self, lock_token: crate::store::LockToken) -> HeldAttempt {
        HeldAttempt { lock_token, activity: self.identifier(), attempt: self.attempt }
    }
}
