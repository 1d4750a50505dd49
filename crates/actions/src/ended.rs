//! How the call of an action or an occurrence ended: from the commit that ends it, or from its instance when the
//! scheduler checks it.

use segno::client::Instance;
use segno::store::ExecutionStatus;
use segno::{Category, Failure, Payload};

use crate::action::ActionStatus;
use crate::functions::RECOVERED;

/// Reason of runs that are cancelled for the next one.
pub(crate) const SUPERSEDED: &str = "the next occurrence is due, and overlap_policy is cancel_other";

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// With this result.
    Completed(Payload),
    /// For this reason.
    Failed(String),
    /// It was cancelled for the next occurrence of a recurring action.
    Superseded,
}

impl Ended {
    /// How a call ended with this outcome.
    pub(crate) fn of(result: &Result<Payload, Failure>) -> Self {
        match result {
            Ok(result) => Ended::Completed(result.clone()),
            Err(failure) => Ended::by(failure),
        }
    }

    fn by(failure: &Failure) -> Self {
        match failure.category {
            Category::Cancelled if failure.message == SUPERSEDED => Ended::Superseded,
            _ => Ended::Failed(reason(failure)),
        }
    }

    /// How an instance ended; `None` while it has not.
    pub(crate) fn of_instance(instance: &Instance) -> Option<Self> {
        match (instance.result(), instance.failure()) {
            _ if !instance.has_ended() => None,
            (Some(result), _) => Some(Ended::Completed(result.clone())),
            (_, Some(failure)) => Some(Ended::by(failure)),
            _ if instance.unreadable.is_some() => {
                let problem = instance.unreadable.as_deref().unwrap_or_default();
                Some(Ended::Failed(format!("it ended as {}, but {problem}", instance.status)))
            }
            _ if instance.status == ExecutionStatus::Completed => Some(Ended::Completed(Payload::null())),
            _ => Some(Ended::Failed(format!("it ended as {}", instance.status))),
        }
    }

    /// The status of an action that ended so.
    pub(crate) fn into_status(self) -> ActionStatus {
        match self {
            Ended::Completed(result) => ActionStatus::Completed { result },
            Ended::Failed(reason) => ActionStatus::Failed { reason },
            Ended::Superseded => ActionStatus::Failed { reason: SUPERSEDED.to_owned() },
        }
    }
}

/// Why a call failed, in words. What was given up after a restart has the same words whoever has noticed it.
fn reason(failure: &Failure) -> String {
    if failure.message == RECOVERED { RECOVERED.to_owned() } else { failure.to_string() }
}
