//! The end of the call of an action, written down.

use std::time::Duration;

use segno::Epilogue;
use uuid::Uuid;

use super::db::ActionDb;
use super::error::ActionError;
use super::model::ActionStatus;
use crate::moment::timestamp;
use crate::settle::{Ended, Settling};
use crate::telemetry;

/// What is written when the call of an action ends; nothing when that call is not what the action waits for.
pub(crate) async fn epilogue(
    settling: &Settling,
    id: &str,
    keep: Duration,
    instance: &str,
    ended: Ended,
) -> Result<Epilogue, ActionError> {
    let Ok(id) = id.parse::<Uuid>() else { return Ok(Epilogue::default()) };
    let db = ActionDb::new(settling.store.clone()).scope(settling.scope.clone()).keep_finished(keep);
    let stored = match db.read(id).await {
        // It was deleted while it ran.
        Err(ActionError::Unknown { .. }) => return Ok(Epilogue::default()),
        stored => stored?,
    };
    let is_awaited =
        stored.action.status == ActionStatus::Running && stored.action.instance.as_deref() == Some(instance);
    if !is_awaited {
        return Ok(Epilogue::default());
    }
    let status = ended.into_status();
    let outcome = status.name();
    let writes = db.final_writes(stored, status, timestamp(settling.clock.now_ms())).await?;
    let committed = move || metrics::counter!(telemetry::ACTIONS_ENDED, "outcome" => outcome).increment(1);
    Ok(Epilogue { writes, committed: Some(Box::new(committed)) })
}
