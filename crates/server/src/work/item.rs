//! A leased call as it goes over the wire.

use segno::Payload;
use segno::work::LeasedActivity;
use segno_actions::functions::Call;
use segno_api::Json;
use segno_api::work::WorkItem;

use crate::access::timestamp;

/// A call with its lease as text, for the worker to see.
///
/// # Errors
/// When stored data is not JSON.
pub fn item(leased: &LeasedActivity, call: &Call, lease: String) -> Result<WorkItem, serde_json::Error> {
    let json = |payload: &Payload| Json::from_text(payload.as_str().to_owned());
    let activity = &leased.activity;
    let prefix = format!("{}/{}/", call.namespace, call.tenant);
    Ok(WorkItem {
        lease,
        lease_expires_at: timestamp(leased.lease.expires_at_ms),
        function: call.function.to_string(),
        input: json(&call.input)?,
        attempt: activity.attempt,
        delivery: leased.delivery,
        idempotency_key: activity.idempotency_key.clone(),
        instance: activity.instance.strip_prefix(&prefix).unwrap_or(&activity.instance).to_owned(),
        deadline: activity.options.deadline_at_ms.map(timestamp),
        timeout_ms: activity.options.timeout_ms,
        heartbeat_timeout_ms: activity.options.heartbeat_timeout_ms,
        progress: leased.last_progress.as_ref().map(json).transpose()?,
        traceparent: activity.traceparent.clone(),
    })
}
