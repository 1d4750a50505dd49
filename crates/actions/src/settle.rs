//! How a call ended, told to whatever asked for it.
//!
//! The last step of the orchestration `invoke` writes the outcome into the record that the call was started for. The step
//! is repeated until it is done, and doing it twice is doing it once. Should it never be run, because the instance was
//! deleted or its store was away for hours, the scheduler finds out by itself: what runs has a time at which it is looked
//! after.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::client::Instance;
use segno::clock::Clock;
use segno::store::{ExecutionStatus, Store};
use segno::{Context, Failure, Payload, Retry};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{ActionError, ActionStatus, RECOVERED, settle as action};
use crate::functions::Scope;
use crate::recurring::settle as recurring;

/// How often the outcome is tried to be written. The pauses grow to five minutes: it takes more than an hour to give up.
const ATTEMPTS: u32 = 25;

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

/// All that is needed to tell somebody how a call ended.
#[derive(Clone)]
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
}

impl Ended {
    fn of(result: &Result<Payload, Failure>) -> Self {
        match result {
            Ok(result) => Ended::Completed(result.decode().unwrap_or_default()),
            Err(failure) => Ended::Failed(reason(failure)),
        }
    }

    /// How an instance ended; `None` while it has not.
    pub(crate) fn of_instance(instance: &Instance) -> Option<Self> {
        match (instance.result(), instance.failure()) {
            _ if !instance.has_ended() => None,
            (Some(result), _) => Some(Ended::Completed(result.decode().unwrap_or_default())),
            (_, Some(failure)) => Some(Ended::Failed(reason(failure))),
            _ if instance.status == ExecutionStatus::Completed => Some(Ended::Completed(Value::Null)),
            _ => Some(Ended::Failed(format!("it ended as {}", instance.status))),
        }
    }

    /// The status of an action that ended so.
    pub(crate) fn into_status(self) -> ActionStatus {
        match self {
            Ended::Completed(result) => ActionStatus::Completed { result },
            Ended::Failed(reason) => ActionStatus::Failed { reason },
        }
    }
}

/// Why a call failed, in words. What was given up after a restart has the same words whoever has noticed it.
fn reason(failure: &Failure) -> String {
    if failure.message == RECOVERED { RECOVERED.to_owned() } else { failure.to_string() }
}

/// Tells the target how its call ended, in a step of the call's own orchestration.
pub(crate) async fn in_a_step(ctx: &Context, settling: Settling, result: &Result<Payload, Failure>) {
    let (instance, ended) = (ctx.instance_id().to_owned(), Ended::of(result));
    let step = move || {
        let (settling, instance, ended) = (settling.clone(), instance.clone(), ended.clone());
        async move { settling.settle(&instance, ended).await.map_err(|error| failure(&error)) }
    };
    let retry = Retry::exponential(ATTEMPTS, Duration::from_secs(1)).max_delay(Duration::from_secs(300));
    if let Err(failure) = ctx.shielded().run("settle", step).retry(retry).await {
        ctx.warn(format_args!("the outcome could not be written down; it will be looked after: {failure}"));
    }
}

impl Settling {
    async fn settle(&self, instance: &str, ended: Ended) -> Result<(), ActionError> {
        match &self.target {
            Settle::Action { id, keep_ms } => {
                let keep = Duration::from_millis(*keep_ms);
                action::settle(self.clone(), id, keep, instance, ended).await
            }
            Settle::Recurring { id, time, keep_ms } => {
                let keep = Duration::from_millis(*keep_ms);
                recurring::settle(self, recurring::Occurrence { id, time: *time, keep }, instance, &ended)
                    .await
            }
        }
    }
}

fn failure(error: &ActionError) -> Failure {
    let failure = Failure::application(error.to_string()).code(error.code());
    if error.kind().is_retryable() || matches!(error, ActionError::State { .. }) {
        failure
    } else {
        failure.non_retryable()
    }
}
