//! The result of a call: one inbox record of its own, written in the commit that ends the call.
//!
//! It touches nothing that other results share, so results of a batch commit side by side.

use async_trait::async_trait;
use segno::{Epilogue, Failure, Payload};
use segno_actions::functions::{CallEnd, FunctionError, FunctionsBuilder, Settle, SettleError, Settler};
use segno_actions::pools::THROTTLED;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inbox;
use super::notices::{NOTICE_SETTLE_KIND, NoticeSettler};
use super::place::BatchPlace;
use crate::message::{CallResult, Outcome, WorkReference};
use crate::rows::BatchId;

/// Kind of calls that are made for a batch.
pub const SETTLE_KIND: &str = "runbook";

/// Data of such a call. Its id is the job's.
#[derive(Serialize, Deserialize)]
struct OfBatch {
    batch_id: BatchId,
}

/// Registers what batches need with the functions of a node.
#[must_use]
pub fn register(functions: FunctionsBuilder) -> FunctionsBuilder {
    functions.settler(SETTLE_KIND, ResultSettler).settler(NOTICE_SETTLE_KIND, NoticeSettler)
}

/// What a call is made for.
pub(super) fn settle(batch_id: BatchId, job_id: &str) -> Result<Settle, FunctionError> {
    Settle::new(SETTLE_KIND, job_id).with(&OfBatch { batch_id })
}

/// How a call ended, as rows understand it.
pub(super) fn outcome(ended: &Result<Payload, Failure>) -> Outcome {
    match ended {
        Ok(result) => match result.decode::<Value>() {
            Ok(value) => Outcome::of_result(value),
            Err(error) => Outcome::failed(format!("its result cannot be read: {error}")),
        },
        Err(failure) => Outcome::Failed {
            message: failure.message.clone(),
            throttled: failure.code.as_deref() == Some(THROTTLED),
        },
    }
}

/// Writes the results of calls into the inboxes of their batches.
pub struct ResultSettler;

#[async_trait]
impl Settler for ResultSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        let job_id = end.settle.id().to_owned();
        let OfBatch { batch_id } = end.settle.data()?;
        let work = WorkReference::of_job_id(&job_id)
            .ok_or_else(|| SettleError::Unusable(format!("job {job_id:?} names no row")))?;
        let place = BatchPlace::new(end.scope.clone(), batch_id);
        let result = CallResult { job_id, work, outcome: outcome(end.outcome), pool: None };
        Ok(Epilogue { writes: vec![inbox::put_result(&place, result, end.now_ms)], committed: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_is_made_for_is_stored_in_a_form_that_does_not_change() {
        let stored = r#"{"kind":"runbook","id":"step-1042","batch_id":42}"#;
        let settle = settle(BatchId(42), "step-1042").unwrap();
        assert_eq!(serde_json::to_string(&settle).unwrap(), stored);
    }

    #[test]
    fn ends_of_calls_become_outcomes() {
        let completed = |text: &str| outcome(&Ok(Payload::from_json(text).unwrap()));
        assert_eq!(completed(r#"{"complete":false}"#), Outcome::InProgress);
        let value = serde_json::json!({"Id": 7});
        assert_eq!(completed(r#"{"Id":7}"#), Outcome::Completed { result: value });
        let failed = outcome(&Err(Failure::application("no licence")));
        assert_eq!(failed, Outcome::failed("no licence"));
        let throttled = outcome(&Err(Failure::application("slow down").code(THROTTLED)));
        assert!(matches!(throttled, Outcome::Failed { throttled: true, .. }));
    }
}
