//! The end of the call of an action, written down.

use std::time::Duration;

use segno::store::RecordBatch;
use uuid::Uuid;

use super::db::ActionDb;
use super::error::ActionError;
use super::model::ActionStatus;
use crate::moment::timestamp;
use crate::settle::{Ended, Settling};
use crate::telemetry;

/// How often it is tried again when others change the same action.
const MAX_TRIES: usize = 100;

/// Writes how the call of an action ended, if that call is what the action waits for.
pub(crate) async fn settle(
    settling: Settling,
    id: &str,
    keep: Duration,
    instance: &str,
    ended: Ended,
) -> Result<(), ActionError> {
    let Ok(id) = id.parse::<Uuid>() else { return Ok(()) };
    let db =
        ActionDb::new(settling.store).scope(settling.scope).clock(settling.clock.clone()).keep_finished(keep);
    for _ in 0..MAX_TRIES {
        let stored = match db.read(id).await {
            // It was deleted while it ran.
            Err(ActionError::Unknown { .. }) => return Ok(()),
            stored => stored?,
        };
        let is_awaited = stored.action.status == ActionStatus::Running
            && stored.action.instance.as_deref() == Some(instance);
        if !is_awaited {
            return Ok(());
        }
        let status = ended.clone().into_status();
        let outcome = status.name();
        let now = timestamp(settling.clock.now_ms());
        if db.finish(stored, status, now, RecordBatch::default()).await? {
            metrics::counter!(telemetry::ACTIONS_ENDED, "outcome" => outcome).increment(1);
            return Ok(());
        }
    }
    Err(ActionError::State { problem: format!("action {id} is changed by others all the time") })
}
