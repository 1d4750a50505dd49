//! Talking to one instance: signals, messages, cancel, pause, resume, delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use segno::client::SendCall;
use segno::{Mailbox, Payload, Signal};
use segno_api::instance::{Accepted, Deleted, Reason, Send};
use serde::Deserialize;
use utoipa::IntoParams;

use super::find::find;
use super::view;
use crate::app::App;
use crate::extract::{Body, OptionalBody, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};

/// What is written into the history when a caller gives no reason.
const NO_REASON: &str = "asked for through the API";

type Taken = Result<(StatusCode, Json<Accepted>), Refusal>;

fn accepted(id: String) -> Taken {
    Ok((StatusCode::ACCEPTED, Json(Accepted { id })))
}

/// Sends a message under the id that makes it safe to repeat.
async fn send(call: SendCall, message_id: Option<&str>, scope: &Scope, id: String) -> Taken {
    let call = match message_id {
        Some(message_id) => call.message_id(message_id),
        None => call,
    };
    call.only_if_present().await.map_err(|error| Refusal::from_engine(&error, scope))?;
    accepted(id)
}

/// Raises a signal.
#[utoipa::path(post, path = "/v1/instances/{id}/raise", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Send, responses(
    (status = 202, body = Accepted, description = "It is stored and will be delivered"),
))]
pub async fn raise(
    State(app): State<App>,
    scope: Scope,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    Body(request): Body<Send>,
) -> Taken {
    let data = view::payload("data", &request.data)?;
    let call = app.client.raise(scope.stored(&id), Signal::<Payload>::named(request.name), data);
    send(call, request.id.as_deref().or(repeat.id()), &scope, id).await
}

/// Puts a message into a mailbox.
#[utoipa::path(post, path = "/v1/instances/{id}/enqueue", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Send, responses(
    (status = 202, body = Accepted, description = "It is stored and will be delivered"),
))]
pub async fn enqueue(
    State(app): State<App>,
    scope: Scope,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    Body(request): Body<Send>,
) -> Taken {
    let data = view::payload("data", &request.data)?;
    let call = app.client.enqueue(scope.stored(&id), Mailbox::<Payload>::named(request.name), data);
    send(call, request.id.as_deref().or(repeat.id()), &scope, id).await
}

/// Cancels an instance with its children. One that has ended stays as it is.
#[utoipa::path(post, path = "/v1/instances/{id}/cancel", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Reason, responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn cancel(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<Reason>,
) -> Taken {
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let stored = scope.stored(&id);
    if !find(&app, &scope, &id).await?.has_ended() {
        let reason = request.reason.unwrap_or_else(|| NO_REASON.to_owned());
        if_running(app.client.cancel(&stored, reason).await).map_err(refused)?;
    }
    accepted(id)
}

/// Holds an instance.
#[utoipa::path(post, path = "/v1/instances/{id}/pause", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), request_body = Reason, responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn pause(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<Reason>,
) -> Taken {
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let stored = scope.stored(&id);
    let reason = request.reason.unwrap_or_else(|| NO_REASON.to_owned());
    app.client.pause(&stored, reason).await.map_err(refused)?;
    accepted(id)
}

/// Lets a held instance go on.
#[utoipa::path(post, path = "/v1/instances/{id}/resume", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses(
    (status = 202, body = Accepted, description = "It is stored and will be done"),
))]
pub async fn resume(State(app): State<App>, scope: Scope, Path(id): Path<String>) -> Taken {
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let stored = scope.stored(&id);
    app.client.resume(&stored).await.map_err(refused)?;
    accepted(id)
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
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    Query(query): Query<Force>,
) -> Result<Json<Deleted>, Refusal> {
    let deleted = app.client.delete(&scope.stored(&id), query.force).await;
    let deleted = deleted.map_err(|error| Refusal::from_engine(&error, &scope))?;
    Ok(Json(Deleted {
        instances: deleted.instances_deleted,
        events: deleted.events_deleted,
        queued_messages: deleted.queue_messages_deleted,
    }))
}

/// It may have ended between the look and the call, which is as good.
fn if_running(outcome: Result<(), segno::Error>) -> Result<(), segno::Error> {
    match outcome {
        Err(error) if error.code() == segno::Code::InstanceEnded => Ok(()),
        outcome => outcome,
    }
}
