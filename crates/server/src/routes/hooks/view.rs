//! Webhooks as callers see them.

use axum::http::StatusCode;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use segno_actions::action::{Action, ActionStatus};
use segno_actions::hooks::{HookEvent, HookName, Outcome, Payload, Route};
use segno_api::hook as wire;
use uuid::Uuid;

use super::super::instances::view::json as user_data;
use crate::app::Tenant;
use crate::problem::{Code, Refusal};
use crate::scope::DEFAULT;

/// A route.
///
/// # Errors
/// When it has no JSON form.
pub fn hook(route: &Route) -> Result<wire::Hook, Refusal> {
    let declaration = json(&route.hook)?;
    let (namespace, tenant) = (route.scope.namespace.as_str(), route.scope.tenant.as_str());
    let parameter = if tenant == DEFAULT { String::new() } else { format!("?tenant={tenant}") };
    Ok(wire::Hook {
        name: route.name.to_string(),
        path: format!("/v1/hooks/{namespace}/{}{parameter}", route.name),
        version: route.version,
        declaration,
    })
}

/// An answer with a route in it.
///
/// # Errors
/// When it has no JSON form.
pub fn answer(status: StatusCode, route: &Route) -> Result<Response, Refusal> {
    let shown = hook(route)?;
    Ok((status, [(ETAG, format!("\"{}\"", shown.version))], axum::Json(shown)).into_response())
}

/// What became of a request.
pub fn outcome(outcome: &Outcome) -> wire::HookOutcome {
    let mut shown = wire::HookOutcome { kind: outcome.name().to_owned(), ..wire::HookOutcome::default() };
    match outcome {
        Outcome::Routed { action, function, orchestration }
        | Outcome::Replayed { action, function, orchestration } => {
            shown.action = Some(action.to_string());
            shown.function = function.as_ref().map(ToString::to_string);
            shown.orchestration = orchestration.as_ref().map(ToString::to_string);
        }
        Outcome::Deduplicated { first } => shown.first = Some(first.to_string()),
        Outcome::DispatchError { reason } => shown.reason = Some(reason.clone()),
        Outcome::Refused { reason, count } => {
            shown.reason = Some(reason.clone());
            shown.count = Some(*count);
        }
        Outcome::Stored | Outcome::Filtered => {}
    }
    shown
}

/// A payload, without its body.
pub fn payload(payload: &Payload) -> wire::HookPayload {
    wire::HookPayload {
        id: payload.id.to_string(),
        route: payload.route.to_string(),
        received_at: payload.received_at,
        content_type: payload.content_type.clone(),
        body_bytes: payload.body_bytes,
        outcome: outcome(&payload.outcome),
    }
}

/// An action that was made of a payload; one that is gone is unknown.
///
/// # Errors
/// When its result has no JSON form.
pub fn action(id: Uuid, action: Option<Action>, tenant: &Tenant) -> Result<wire::HookAction, Refusal> {
    let mut shown = wire::HookAction {
        id: id.to_string(),
        status: "unknown".to_owned(),
        instance: None,
        result: None,
        reason: None,
    };
    let Some(action) = action else { return Ok(shown) };
    action.status.name().clone_into(&mut shown.status);
    shown.instance = tenant.shown_instance(action.instance.as_deref());
    match &action.status {
        ActionStatus::Completed { result } => shown.result = Some(user_data(result)?),
        ActionStatus::Failed { reason } => shown.reason = Some(tenant.shown_text(reason)),
        ActionStatus::Pending | ActionStatus::Running => {}
    }
    Ok(shown)
}

/// An event.
pub fn event(event: HookEvent) -> wire::HookEvent {
    wire::HookEvent {
        id: event.id.to_string(),
        seq: event.seq,
        at: event.at,
        route: event.route.to_string(),
        payload: event.payload.map(|id| id.to_string()),
        content_type: event.content_type,
        body_bytes: event.body_bytes,
        outcome: outcome(&event.outcome),
    }
}

/// The name of a route in a path.
///
/// # Errors
/// When it cannot be one.
pub fn name(text: &str, tenant: &Tenant) -> Result<HookName, Refusal> {
    HookName::new(text).map_err(|error| tenant.refused(error))
}

/// The id of a payload or event in a request.
///
/// # Errors
/// When it is none.
pub fn id(field: &str, text: &str) -> Result<Uuid, Refusal> {
    text.parse().map_err(|_| Refusal::field(field, "must be an id that this server gave"))
}

fn json<T: serde::Serialize>(value: &T) -> Result<segno_api::Json, Refusal> {
    segno_api::Json::of(value).map_err(|error| {
        tracing::error!(%error, "a webhook's data cannot be shown");
        Refusal::new(Code::Internal, "it cannot be shown; the server's log has the reason")
    })
}
