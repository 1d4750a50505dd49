//! Talking to one instance: signals, messages, cancel, pause, resume, delete.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use segno_actions::free_text;
use segno_api::instance::{Accepted, Deleted, Reason, Retried, Send};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::app::{Sent, Tenant};
use crate::audit;
use crate::extract::{Body, OptionalBody, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What is written into the history when a caller gives no reason.
const NO_REASON: &str = "asked for through the API";

/// The reason of a request, or what is written when it gives none.
///
/// # Errors
/// When it has control characters. How long it is, is checked with the message that it becomes part of.
pub(super) fn reason_or(given: Option<String>, none: &str) -> Result<String, Refusal> {
    let reason = given.unwrap_or_else(|| none.to_owned());
    free_text::problem(&reason, usize::MAX)
        .map_or(Ok(reason), |problem| Err(Refusal::field("reason", problem)))
}

type Taken = Result<Response, Refusal>;

fn accepted(id: String) -> Taken {
    because(id, None)
}

fn because(id: String, reason: Option<String>) -> Taken {
    Ok(audit::with_reason((StatusCode::ACCEPTED, Json(Accepted { id })).into_response(), reason))
}

/// A message under the id that makes it safe to repeat.
async fn sent(tenant: &Tenant, request: Send, repeat: &RepeatSafe) -> Result<Sent, Refusal> {
    let data = view::payload(tenant, "data", &request.data).await?;
    let message_id = request.id.or_else(|| repeat.id().map(str::to_owned));
    Ok(Sent { name: request.name, data, message_id })
}

/// Raises a signal.
#[utoipa::path(post, path = "/v1/instances/{id}/raise", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Send, responses(
    (status = 202, body = Accepted, description = "It is stored and will be delivered"),
))]
pub async fn raise(
    tenant: Tenant,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    Body(request): Body<Send>,
) -> Taken {
    let sent = sent(&tenant, request, &repeat).await?;
    tenant.in_store(&id, tenant.raise(&id, sent)).await?;
    accepted(id)
}

/// Puts a message into a mailbox.
#[utoipa::path(post, path = "/v1/instances/{id}/enqueue", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Send, responses(
    (status = 202, body = Accepted, description = "It is stored and will be delivered"),
))]
pub async fn enqueue(
    tenant: Tenant,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    Body(request): Body<Send>,
) -> Taken {
    let sent = sent(&tenant, request, &repeat).await?;
    tenant.in_store(&id, tenant.enqueue(&id, sent)).await?;
    accepted(id)
}

/// Cancels an instance with its children. One that has ended stays as it is, and the answer is 409 `instance-ended`.
#[utoipa::path(post, path = "/v1/instances/{id}/cancel", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Reason, responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn cancel(
    tenant: Tenant,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<Reason>,
) -> Taken {
    let reason = reason_or(request.reason.clone(), NO_REASON)?;
    tenant.in_store(&id, tenant.cancel(&id, reason)).await?;
    because(id, request.reason)
}

/// Holds an instance.
#[utoipa::path(post, path = "/v1/instances/{id}/pause", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Reason, responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn pause(
    tenant: Tenant,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<Reason>,
) -> Taken {
    let reason = reason_or(request.reason.clone(), NO_REASON)?;
    tenant.in_store(&id, tenant.pause(&id, reason)).await?;
    because(id, request.reason)
}

/// Lets a held instance go on.
#[utoipa::path(post, path = "/v1/instances/{id}/resume", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn resume(tenant: Tenant, Path(id): Path<String>) -> Taken {
    tenant.in_store(&id, tenant.resume(&id)).await?;
    accepted(id)
}

/// Lets the activities of an instance that wait for their next attempt run at once, and those that were given back for later.
/// Their attempts count as before, and timers keep their time. When none is delayed, the answer is 409 `nothing-to-retry`.
#[utoipa::path(post, path = "/v1/instances/{id}/retry", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Reason, responses(
    (status = 200, body = Retried),
))]
pub async fn retry(
    tenant: Tenant,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<Reason>,
) -> Result<Response, Refusal> {
    let reason = request.reason.map(|reason| reason_or(Some(reason), NO_REASON)).transpose()?;
    let activities = tenant.in_store(&id, tenant.retry(&id)).await?;
    Ok(audit::with_reason(Json(Retried { id, activities }).into_response(), reason))
}

/// How to delete.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Force {
    /// Also when it has not ended.
    #[serde(default)]
    force: bool,
}

/// Deletes an instance with its children, its history and all that is queued for it.
#[utoipa::path(delete, path = "/v1/instances/{id}", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, Force,
), responses(
    (status = 200, body = Deleted),
))]
pub async fn delete(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<Force>,
) -> Result<Json<Deleted>, Refusal> {
    let deleted = tenant.in_store(&id, tenant.delete(&id, query.force)).await?;
    Ok(Json(Deleted {
        instances: deleted.instances_deleted,
        events: deleted.events_deleted,
        queued_messages: deleted.queue_messages_deleted,
    }))
}
