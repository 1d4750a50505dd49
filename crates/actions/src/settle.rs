//! How a call ended, told to whatever asked for it.
//!
//! The commit that ends an `invoke` also writes the outcome into the record that the call was started for: both are there,
//! or neither. Should an instance end without that, because it was deleted or its code could not be run, the
//! scheduler finds out by itself: what runs has a time at which it is looked after.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::client::Instance;
use segno::clock::Clock;
use segno::store::{ExecutionStatus, Store};
use segno::{Category, Context, Epilogue, Failure, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{ActionError, ActionStatus, RECOVERED, settle as action};
use crate::functions::Scope;
use crate::recurring::settle as recurring;

/// What a call is done for, as it is stored with the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Settle {
    /// An action.
    Action {
        /// Its id.
        id: String,
        /// How long it is kept once it has ended.
        keep_ms: u64,
    },
    /// An occurrence of a recurring action.
    Recurring {
        /// Id of the recurring action.
        id: String,
        /// The scheduled time.
        time: Timestamp,
        /// How long it is kept what became of the occurrence.
        keep_ms: u64,
    },
}

/// Reason of runs that are cancelled for the next one.
pub(crate) const SUPERSEDED: &str = "the next occurrence is due, and overlap_policy is cancel_other";

/// All that is needed to tell somebody how a call ended.
pub(crate) struct Settling {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) scope: Scope,
    pub(crate) target: Settle,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// With this result.
    Completed(Value),
    /// For this reason.
    Failed(String),
    /// It was cancelled for the next occurrence of a recurring action.
    Superseded,
}

impl Ended {
    fn of(result: &Result<Payload, Failure>) -> Self {
        match result {
            Ok(result) => Ended::Completed(result.decode().unwrap_or_default()),
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
            (Some(result), _) => Some(Ended::Completed(result.decode().unwrap_or_default())),
            (_, Some(failure)) => Some(Ended::by(failure)),
            _ if instance.status == ExecutionStatus::Completed => Some(Ended::Completed(Value::Null)),
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

/// Has the target told how the call ended, in the commit that ends it.
pub(crate) fn at_end(ctx: &Context, settling: Settling) {
    let instance = ctx.instance_id().to_owned();
    let settling = Arc::new(settling);
    ctx.at_end(move |result| {
        let (settling, instance) = (Arc::clone(&settling), instance.clone());
        async move {
            match settling.epilogue(&instance, Ended::of(&result)).await {
                Err(ActionError::Store(error)) if error.is_retryable() => Err(error),
                Err(error) => {
                    // The call has ended all the same. What it was for is looked after by its scheduler.
                    tracing::warn!(instance, %error, "the outcome of a call could not be written down");
                    Ok(Epilogue::default())
                }
                epilogue => Ok(epilogue.unwrap_or_default()),
            }
        }
    });
}

impl Settling {
    async fn epilogue(&self, instance: &str, ended: Ended) -> Result<Epilogue, ActionError> {
        match &self.target {
            Settle::Action { id, keep_ms } => {
                let keep = Duration::from_millis(*keep_ms);
                action::epilogue(self, id, keep, instance, ended).await
            }
            Settle::Recurring { id, time, keep_ms } => {
                let keep = Duration::from_millis(*keep_ms);
                recurring::epilogue(self, recurring::Occurrence { id, time: *time, keep }, instance, ended)
                    .await
            }
        }
    }
}
