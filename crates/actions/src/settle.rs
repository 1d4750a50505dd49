//! How a call ended, told to whatever asked for it.
//!
//! The commit that ends an `invoke`, or an orchestration that an action has started, also writes the outcome into the record that it
//! was started for: both are there, or neither. Should an instance end without that, because it was deleted or its code could not be run, the
//! scheduler finds out by itself: what runs has a time at which it is looked after.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::client::Instance;
use segno::clock::Clock;
use segno::store::{ExecutionStatus, ProviderError, Store};
use segno::{Category, Context, Epilogue, Failure, InstanceEnd, Payload};
use serde::{Deserialize, Serialize};

use crate::action::{ActionError, ActionStatus, RECOVERED, settle as action};
use crate::functions::{Namespace, Scope, Tenant};
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

/// What an orchestration is started with, so that its end is settled: whose it is, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settlement {
    namespace: Namespace,
    tenant: Tenant,
    #[serde(flatten)]
    target: Settle,
}

impl Settlement {
    pub(crate) fn new(scope: &Scope, target: Settle) -> Self {
        Settlement { namespace: scope.namespace.clone(), tenant: scope.tenant.clone(), target }
    }
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
    Completed(Payload),
    /// For this reason.
    Failed(String),
    /// It was cancelled for the next occurrence of a recurring action.
    Superseded,
}

impl Ended {
    fn of(result: &Result<Payload, Failure>) -> Self {
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

/// Has the target told how the call ended, in the commit that ends it.
pub(crate) fn at_end(ctx: &Context, settling: Settling) {
    let instance = ctx.instance_id().to_owned();
    let settling = Arc::new(settling);
    ctx.at_end(move |result| {
        let (settling, instance) = (Arc::clone(&settling), instance.clone());
        async move { settling.settled(&instance, &result).await }
    });
}

/// The same for an orchestration that was started with a [`Settlement`].
pub(crate) async fn end_of_start(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    end: InstanceEnd,
) -> Result<Epilogue, ProviderError> {
    let InstanceEnd { instance, settle, outcome } = end;
    let settlement = match settle.decode::<Settlement>() {
        Ok(settlement) => settlement,
        Err(error) => {
            tracing::warn!(%instance, %error, "an instance has ended that was started for something unknown");
            return Ok(Epilogue::default());
        }
    };
    let scope = Scope { namespace: settlement.namespace, tenant: settlement.tenant };
    // Data can be written by hand; the id was checked by what has started the instance.
    if !scope.owns(&instance) {
        tracing::warn!(%instance, "an instance has ended that was started for another tenant");
        return Ok(Epilogue::default());
    }
    Settling { store, clock, scope, target: settlement.target }.settled(&instance, &outcome).await
}

impl Settling {
    /// What is written when an instance ends. Only a store that is away keeps it from ending.
    async fn settled(
        &self,
        instance: &str,
        result: &Result<Payload, Failure>,
    ) -> Result<Epilogue, ProviderError> {
        match self.epilogue(instance, Ended::of(result)).await {
            Err(ActionError::Store(error)) if error.is_retryable() => Err(error),
            Err(error) => {
                // The call has ended all the same. What it was for is looked after by its scheduler.
                tracing::warn!(instance, %error, "the outcome of a call could not be written down");
                Ok(Epilogue::default())
            }
            epilogue => Ok(epilogue.unwrap_or_default()),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_orchestration_is_started_for_is_stored_in_a_form_that_does_not_change() {
        let scope = Scope::new("eu", "acme").unwrap();
        let time = "2026-02-10T14:00:00Z".parse().unwrap();
        for (target, text) in [
            (
                Settle::Action { id: "7".to_owned(), keep_ms: 5 },
                r#"{"namespace":"eu","tenant":"acme","kind":"action","id":"7","keep_ms":5}"#,
            ),
            (
                Settle::Recurring { id: "7".to_owned(), time, keep_ms: 5 },
                r#"{"namespace":"eu","tenant":"acme","kind":"recurring","id":"7","time":"2026-02-10T14:00:00Z","keep_ms":5}"#,
            ),
        ] {
            let settlement = Settlement::new(&scope, target);
            assert_eq!(serde_json::to_string(&settlement).unwrap(), text);
            assert_eq!(serde_json::from_str::<Settlement>(text).unwrap(), settlement);
        }
    }
}
