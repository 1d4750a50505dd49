//! A leased call as it goes over the wire.

use segno::work::LeasedActivity;
use segno::{Category, Failure, Payload};
use segno_actions::functions::Call;
use segno_api::Json;
use segno_api::work::WorkItem;

use crate::access::timestamp;

/// The call that was leased.
///
/// # Errors
/// What it fails with when it cannot be read, or is not of the scope that its instance belongs to.
pub fn call_of(leased: &LeasedActivity) -> Result<Call, Failure> {
    let call: Call = leased.activity.input.decode().map_err(no_call)?;
    call.check_instance(&leased.activity.instance)?;
    Ok(call)
}

/// What work fails with that is no call, or cannot be shown as one. Trying again would not help.
pub fn no_call(reason: impl std::fmt::Display) -> Failure {
    Failure::new(Category::Configuration, format!("this is no call of a function: {reason}"))
        .code(segno::Code::PayloadMismatch.as_str())
}

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
