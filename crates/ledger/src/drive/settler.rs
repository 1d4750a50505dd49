//! The end of an attempt: one outbox record of its own, written in the commit that ends the call.
//!
//! It touches nothing that other results share, so tasks of a run end side by side. The scope is not woken: a scope with
//! open attempts is held, or its lease expires and is due.

use std::sync::Arc;

use async_trait::async_trait;
use segno::{Category, Epilogue, Failure, Payload};
use segno_actions::functions::{CallEnd, FunctionError, FunctionsBuilder, Settle, SettleError, Settler};
use serde::{Deserialize, Serialize};

use super::limits::{HAND_OVER_TIMEOUT, MAX_ERROR_BYTES, MAX_INLINE_OUTPUT_BYTES};
use super::notices;
use super::outbox;
use crate::event::{Attempt, Outcome, TaskError, TaskFinished, TaskOutput};
use crate::ids::DispatchName;
use crate::tables::Completion;

/// Kind of calls that are made for attempts of tasks.
pub const SETTLE_KIND: &str = "ledger";

/// The worker of attempts that nodes and workers of Segno run.
pub(super) const SEGNO_WORKER: &str = "segno";

/// Code of the failure by which a task leaves itself out.
pub const SKIPPED_CODE: &str = "task-skipped";

/// Data of such a call. Its id is that of the dispatch.
#[derive(Serialize, Deserialize)]
struct OfAttempt {
    attempt_id: Arc<str>,
    /// Whether the end of the call only hands the attempt over: a callback of the worker ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hands_over: bool,
}

/// Registers what DAG runs need with the functions of a node.
#[must_use]
pub fn register(functions: FunctionsBuilder) -> FunctionsBuilder {
    functions.settler(SETTLE_KIND, AttemptSettler)
}

/// What a call is made for.
pub(super) fn settle(
    dispatch_id: &str,
    attempt_id: &Arc<str>,
    completion: Completion,
) -> Result<Settle, FunctionError> {
    let hands_over = completion == Completion::Callback;
    let data = OfAttempt { attempt_id: Arc::clone(attempt_id), hands_over };
    let settle = Settle::new(SETTLE_KIND, dispatch_id).with(&data)?;
    Ok(if hands_over { settle.issuing() } else { settle })
}

/// The end of an attempt as an event, by the instance that ran it.
pub(super) fn finished(attempt: Attempt, instance: &str, ended: &Result<Payload, Failure>) -> TaskFinished {
    let mut event = self::ended(attempt);
    match ended {
        Ok(payload) => event.output = output(payload, instance),
        Err(failure) => {
            event.outcome = outcome(failure);
            event.error_message = Some(cut(&failure.message).into());
            event.error = Some(error(failure));
        }
    }
    event
}

/// The end of an attempt that succeeded without an output.
pub(super) fn ended(attempt: Attempt) -> TaskFinished {
    TaskFinished {
        attempt,
        worker_id: SEGNO_WORKER.into(),
        outcome: Outcome::Succeeded,
        materialization_id: None,
        error_message: None,
        output: None,
        error: None,
        metrics: None,
        cancelled_during_phase: None,
        partial_progress_json: None,
        asset_key: None,
        partition_key: None,
        code_version: None,
    }
}

/// The end of an attempt that was handed over, and that no worker has started.
pub(super) fn not_started(attempt: Attempt) -> TaskFinished {
    let message: Arc<str> =
        format!("no worker has reported the start of the attempt within {HAND_OVER_TIMEOUT:?}").into();
    TaskFinished {
        outcome: Outcome::Failed,
        error_message: Some(Arc::clone(&message)),
        error: Some(TaskError {
            category: Some("TIMEOUT".into()),
            message,
            stack_trace: None,
            retryable: Some(true),
        }),
        ..ended(attempt)
    }
}

/// What an attempt returned: the value itself, or the instance that has it.
fn output(payload: &Payload, instance: &str) -> Option<TaskOutput> {
    if payload.as_str().len() > MAX_INLINE_OUTPUT_BYTES {
        return Some(TaskOutput { reference: Some(instance.into()), ..TaskOutput::default() });
    }
    // A payload is JSON by the rule of every door; one that is not was damaged in the store, or is older than the rule.
    let payload = Payload::from_json(payload.as_str()).ok()?;
    let is_null = payload.as_str().trim() == "null";
    (!is_null).then(|| TaskOutput { value: Some(payload), ..TaskOutput::default() })
}

fn outcome(failure: &Failure) -> Outcome {
    match failure.category {
        Category::Cancelled => Outcome::Cancelled,
        _ if failure.code.as_deref() == Some(SKIPPED_CODE) => Outcome::Skipped,
        _ => Outcome::Failed,
    }
}

fn error(failure: &Failure) -> TaskError {
    let category = match failure.category {
        Category::Application => "USER_CODE",
        Category::Timeout => "TIMEOUT",
        Category::Cancelled => "CANCELLED",
        Category::Configuration => "CONFIGURATION",
        // Infrastructure, and what was delivered again and again without an answer.
        _ => "INFRASTRUCTURE",
    };
    TaskError {
        category: Some(category.into()),
        message: cut(&failure.message).into(),
        stack_trace: None,
        retryable: Some(failure.retryable),
    }
}

/// The beginning of a message, as much as an event takes.
pub(super) fn cut(message: &str) -> String {
    if message.len() <= MAX_ERROR_BYTES {
        return message.to_owned();
    }
    let end = (0..=MAX_ERROR_BYTES).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &message[..end])
}

/// Writes the ends of attempts into the outboxes of their scopes.
pub struct AttemptSettler;

#[async_trait]
impl Settler for AttemptSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        let dispatch_id = end.settle.id();
        if notices::is_notice(dispatch_id) {
            return Ok(Epilogue { writes: Vec::new(), committed: None });
        }
        let name: DispatchName = dispatch_id
            .parse()
            .map_err(|error: crate::ids::InvalidDispatchId| SettleError::Unusable(error.to_string()))?;
        let OfAttempt { attempt_id, hands_over } = end.settle.data()?;
        if hands_over && end.outcome.is_ok() {
            return Ok(Epilogue { writes: Vec::new(), committed: None });
        }
        let attempt = Attempt {
            run_id: name.run_id.into(),
            task_key: name.task_key.into(),
            attempt: name.attempt,
            attempt_id,
        };
        let event = finished(attempt, end.instance, end.outcome);
        let write = outbox::put(end.scope, &outbox_key(dispatch_id), vec![event.into()], end.now_ms);
        Ok(Epilogue { writes: vec![write], committed: None })
    }
}

/// The key of the outbox record of the end of a dispatch.
fn outbox_key(dispatch_id: &str) -> String {
    format!("finished:{dispatch_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt { run_id: "run1".into(), task_key: "extract".into(), attempt: 1, attempt_id: "att_1".into() }
    }

    fn end(ended: &Result<Payload, Failure>) -> TaskFinished {
        finished(attempt(), "eu/acme/dag:dispatch:run1:extract:1", ended)
    }

    #[test]
    fn what_a_call_is_made_for_is_stored_in_a_form_that_does_not_change() {
        let stored = r#"{"kind":"ledger","id":"dispatch:run1:extract:1","attempt_id":"att_1"}"#;
        let settle = |completion| settle("dispatch:run1:extract:1", &"att_1".into(), completion).unwrap();
        assert_eq!(serde_json::to_string(&settle(Completion::Return)).unwrap(), stored);
        let stored = r#"{"kind":"ledger","id":"dispatch:run1:extract:1","issues":true,"attempt_id":"att_1","hands_over":true}"#;
        assert_eq!(serde_json::to_string(&settle(Completion::Callback)).unwrap(), stored);
    }

    #[test]
    fn failures_become_outcomes_with_a_category() {
        for (failure, outcome, category, retryable) in [
            (Failure::application("no"), Outcome::Failed, "USER_CODE", true),
            (Failure::application("no").non_retryable(), Outcome::Failed, "USER_CODE", false),
            (Failure::application("not today").code(SKIPPED_CODE), Outcome::Skipped, "USER_CODE", true),
            (Failure::cancelled("stop"), Outcome::Cancelled, "CANCELLED", false),
            (Failure::new(Category::Timeout, "slow"), Outcome::Failed, "TIMEOUT", true),
            (Failure::new(Category::Configuration, "x"), Outcome::Failed, "CONFIGURATION", false),
        ] {
            let event = end(&Err(failure.clone()));
            let error = event.error.unwrap();
            assert_eq!((event.outcome, error.category.as_deref()), (outcome, Some(category)), "{failure:?}");
            assert_eq!(error.is_retryable(), retryable, "{failure:?}");
            assert_eq!(event.error_message.as_deref(), Some(failure.message.as_str()));
        }
    }

    #[test]
    fn a_large_output_is_kept_by_reference_and_a_long_message_is_cut() {
        let small = Payload::from_json(r#"{"rows":7}"#).unwrap();
        let output = end(&Ok(small)).output.unwrap();
        assert_eq!((output.value, output.reference), (Payload::from_json(r#"{"rows":7}"#).ok(), None));
        let digits = r#"{"n": 123456789012345678901234567890, "x": 1.10}"#;
        let output = end(&Ok(Payload::from_json(digits).unwrap())).output.unwrap();
        let written = serde_json::to_string(&output).unwrap();
        assert_eq!(written, format!(r#"{{"value":{digits}}}"#), "as the worker wrote it");
        assert_eq!(serde_json::from_str::<TaskOutput>(&written).unwrap(), output);
        let large = Payload::from_json(format!("\"{}\"", "x".repeat(MAX_INLINE_OUTPUT_BYTES))).unwrap();
        let output = end(&Ok(large)).output.unwrap();
        assert_eq!(output.reference.as_deref(), Some("eu/acme/dag:dispatch:run1:extract:1"));
        assert_eq!(output.value, None);
        assert_eq!(end(&Ok(Payload::null())).output, None);
        let long = end(&Err(Failure::application("ä".repeat(MAX_ERROR_BYTES))));
        let message = long.error_message.unwrap();
        assert!(message.len() <= MAX_ERROR_BYTES + 4 && message.ends_with('…'));
    }
}
