//! The engine's words as they go over the wire.

use std::collections::BTreeMap;

use segno::client::TreeNode;
use segno::event::{Event, EventKind};
use segno::store::ExecutionStatus;
use segno::{Failure, Payload};
use segno_actions::functions::Trigger;
use segno_api::Json;
use segno_api::history::HistoryEvent;
use segno_api::instance::{self as wire, Status};
use serde_json::value::RawValue;

use crate::access::timestamp;
use crate::app::Tenant;
use crate::extract::MAX_INLINE_BODY_BYTES;
use crate::problem::{Code, Refusal};

/// An instance.
///
/// # Errors
/// When what is stored is not JSON.
pub fn instance(tenant: &Tenant, found: segno::client::Instance) -> Result<wire::Instance, Refusal> {
    let MadeOf { function, kind, labels } = made_of(tenant, &found.labels);
    Ok(wire::Instance {
        function,
        kind,
        labels,
        call: None,
        archived: false,
        namespace: tenant.namespace().to_owned(),
        tenant: tenant.name().to_owned(),
        status: status(found.status),
        execution: found.execution_id,
        result: found.result().map(json).transpose()?,
        failure: found.failure().map(failure).transpose()?,
        pause_reason: found.pause_reason().map(str::to_owned),
        custom_status: found.custom_status.as_ref().map(json).transpose()?,
        custom_status_version: found.custom_status_version,
        created_at: timestamp(found.created_at_ms),
        start_at: found.start_at_ms.map(timestamp),
        updated_at: timestamp(found.updated_at_ms),
        completed_at: found.completed_at_ms.map(timestamp),
        revision: found.revision,
        id: found.id,
        parent: found.parent,
        orchestration: found.orchestration,
        version: found.version,
        unreadable: found.unreadable,
    })
}

/// An instance in a tree.
pub fn tree_node(tenant: &Tenant, TreeNode { depth, instance }: TreeNode) -> wire::TreeNode {
    let MadeOf { function, .. } = made_of(tenant, &instance.labels);
    wire::TreeNode {
        depth,
        function,
        status: status(instance.status),
        created_at: timestamp(instance.created_at_ms),
        completed_at: instance.completed_at_ms.map(timestamp),
        id: instance.id,
        parent: instance.parent,
        orchestration: instance.orchestration,
    }
}

/// Events that cannot be read.
pub fn unreadable_events(lost: segno::store::UnreadableEvents) -> segno_api::history::UnreadableEvents {
    segno_api::history::UnreadableEvents {
        after: lost.after_event_id,
        before: lost.before_event_id,
        reason: lost.reason,
    }
}

/// What the labels of an instance say of it: its function, what made it, and the labels of its code and callers.
pub struct MadeOf {
    /// The function that it calls.
    pub function: Option<String>,
    /// What made it.
    pub kind: Option<wire::Kind>,
    /// The labels that are not Segno's own.
    pub labels: BTreeMap<String, String>,
}

/// Reads the labels of an instance.
pub fn made_of(tenant: &Tenant, labels: &BTreeMap<String, String>) -> MadeOf {
    let own = labels.iter().filter(|(key, _)| !segno::is_reserved_label(key));
    MadeOf {
        function: tenant.function_of(labels).map(str::to_owned),
        kind: Trigger::of(labels).map(kind),
        labels: own.map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}

/// What made an instance.
pub fn kind(trigger: Trigger) -> wire::Kind {
    match trigger {
        Trigger::Call => wire::Kind::Call,
        Trigger::Action => wire::Kind::Action,
        Trigger::Schedule => wire::Kind::Schedule,
        Trigger::Hook => wire::Kind::Hook,
        Trigger::Runbook => wire::Kind::Runbook,
        Trigger::Dag => wire::Kind::Dag,
    }
}

/// A state.
pub fn status(status: ExecutionStatus) -> Status {
    match status {
        ExecutionStatus::Pending => Status::Pending,
        ExecutionStatus::Running => Status::Running,
        ExecutionStatus::Paused => Status::Paused,
        ExecutionStatus::Completed => Status::Completed,
        ExecutionStatus::Failed => Status::Failed,
        ExecutionStatus::Cancelled => Status::Cancelled,
        ExecutionStatus::ContinuedAsNew => Status::ContinuedAsNew,
    }
}

/// A state as the engine calls it.
pub fn engine_status(status: Status) -> ExecutionStatus {
    match status {
        Status::Pending => ExecutionStatus::Pending,
        Status::Running => ExecutionStatus::Running,
        Status::Paused => ExecutionStatus::Paused,
        Status::Completed => ExecutionStatus::Completed,
        Status::Failed => ExecutionStatus::Failed,
        Status::Cancelled => ExecutionStatus::Cancelled,
        Status::ContinuedAsNew => ExecutionStatus::ContinuedAsNew,
    }
}

/// User data.
///
/// # Errors
/// When what is stored is not JSON.
pub fn json(payload: &Payload) -> Result<Json, Refusal> {
    Json::from_text(payload.as_str().to_owned()).map_err(unreadable)
}

/// User data as the engine takes it. Much of it is checked on the threads that tenants share fairly.
///
/// # Errors
/// `payload-too-large`, `payload-too-deep` or `payload-not-json`, with the field; `unavailable` when too much of the tenant
/// waits to be checked.
pub async fn payload(tenant: &Tenant, field: &str, json: &Json) -> Result<Payload, Refusal> {
    if json.text().len() <= MAX_INLINE_BODY_BYTES {
        return checked(field, json);
    }
    let (field, json) = (field.to_owned(), json.clone());
    tenant.compute(move || checked(&field, &json)).await?
}

/// The same at once, for a caller that has seen to it that much of it does no harm.
///
/// # Errors
/// `payload-too-large`, `payload-too-deep` or `payload-not-json`, with the field.
pub fn checked(field: &str, json: &Json) -> Result<Payload, Refusal> {
    Payload::from_json(json.text()).map_err(|error| Refusal::payload(field, &error))
}

/// A failure.
///
/// # Errors
/// When its details are not JSON.
pub fn failure(failure: &Failure) -> Result<wire::Failure, Refusal> {
    Ok(wire::Failure {
        category: failure.category.to_string(),
        message: failure.message.clone(),
        code: failure.code.clone(),
        retryable: failure.retryable,
        details: failure.details.as_ref().map(json).transpose()?,
    })
}

/// A recorded event.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn event(event: &Event) -> Result<HistoryEvent, Refusal> {
    let (kind, data) = kind_and_fields(&event.kind).map_err(unreadable)?;
    Ok(HistoryEvent { id: event.event_id, at: timestamp(event.at_ms), kind, data })
}

/// The kind's stored name and its fields. The fields stay text: user data in them is shown as it was written.
fn kind_and_fields(kind: &EventKind) -> Result<(String, Json), serde_json::Error> {
    let text = serde_json::to_string(kind)?;
    if !text.starts_with('{') {
        return Ok((serde_json::from_str(&text)?, Json::from_text("{}".to_owned())?));
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&text)?;
    let (name, data) = fields.into_iter().next().unwrap_or_else(|| (String::new(), RawValue::NULL));
    Ok((name, Json::from_text(data.get().to_owned())?))
}

fn unreadable(error: serde_json::Error) -> Refusal {
    tracing::error!(%error, "stored data cannot be shown");
    Refusal::new(Code::Internal, "stored data cannot be shown; the server's log has the reason")
}
