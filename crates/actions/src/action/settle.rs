//! The end of the call of an action, written down.

use async_trait::async_trait;
use segno::Epilogue;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::db::ActionDb;
use super::error::ActionError;
use super::model::ActionStatus;
use crate::ended::Ended;
use crate::functions::{CallEnd, FunctionError, Settle, SettleError, Settler};
use crate::keep::Keep;
use crate::moment::timestamp;
use crate::telemetry;

/// Kind of calls that are made for an action.
pub(crate) const SETTLE_KIND: &str = "action";

/// Data of such a call.
#[derive(Serialize, Deserialize)]
struct OfAction {
    /// How long the action is kept once it has ended.
    keep_ms: u64,
    /// Whether it is archived then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retires: bool,
}

/// What the call of an action is made for.
pub(crate) fn settle(id: Uuid, keep: Keep) -> Result<Settle, FunctionError> {
    let (keep_ms, retires) = keep.parts();
    Settle::new(SETTLE_KIND, id.to_string()).with(&OfAction { keep_ms, retires })
}

/// Writes the outcome into the action; nothing when that call is not what the action waits for.
pub(crate) struct ActionSettler;

#[async_trait]
impl Settler for ActionSettler {
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError> {
        Ok(epilogue(end).await?)
    }
}

async fn epilogue(end: CallEnd<'_>) -> Result<Epilogue, ActionError> {
    let Ok(id) = end.settle.id().parse::<Uuid>() else { return Ok(Epilogue::default()) };
    let OfAction { keep_ms, retires } = end.settle.data()?;
    let keep = Keep::of_parts(keep_ms, retires);
    let db = ActionDb::new(end.store.clone()).scope(end.scope.clone()).keep_finished(keep);
    let stored = match db.read(id).await {
        // It was deleted while it ran.
        Err(ActionError::Unknown { .. }) => return Ok(Epilogue::default()),
        stored => stored?,
    };
    let is_awaited = stored.action.status == ActionStatus::Running
        && stored.action.instance.as_deref() == Some(end.instance);
    if !is_awaited {
        return Ok(Epilogue::default());
    }
    let status = Ended::of(end.outcome).into_status();
    let outcome = status.name();
    let writes = db.final_writes(stored, status, timestamp(end.now_ms)).await?;
    let committed = move || metrics::counter!(telemetry::ACTIONS_ENDED, "outcome" => outcome).increment(1);
    Ok(Epilogue { writes, committed: Some(Box::new(committed)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_call_of_an_action_is_made_for_is_stored_in_a_form_that_does_not_change() {
        let stored = r#"{"kind":"action","id":"00000000-0000-0000-0000-000000000007","keep_ms":5}"#;
        let settle = |keep| serde_json::to_string(&settle(Uuid::from_u128(7), keep).unwrap()).unwrap();
        let time = std::time::Duration::from_millis(5);
        assert_eq!(settle(Keep::Expire(time)), stored);
        assert_eq!(settle(Keep::Retire(time)), stored.replace("5}", "5,\"retires\":true}"));
    }
}
