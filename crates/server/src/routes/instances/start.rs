//! Starting.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use segno::event::EventKind;
use segno::{Orchestration, Payload};
use segno_actions::functions::{INVOKE, is_built_in};
use segno_api::instance::{OnConflict, Restart, StartInstance, Started};
use serde::Deserialize;
use utoipa::IntoParams;

use super::find::find;
use super::{list, view};
use crate::app::App;
use crate::extract::{Body, OptionalBody, Path, Query, wait_of};
use crate::idempotency::RepeatSafe;
use crate::problem::{Code, Refusal};
use crate::scope::{Scope, ScopeParameters};
use crate::trace::TraceContext;

/// How long to wait.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct WaitForEnd {
    /// Wait up to so many milliseconds for the instance to end, and show it if it did.
    #[param(maximum = 60000)]
    pub wait_ms: Option<u64>,
}

/// Starts an instance. Once this has answered, the start is stored and will happen.
#[utoipa::path(post, path = "/v1/instances", tag = "instances", params(ScopeParameters, WaitForEnd,
    ("traceparent" = Option<String>, Header, description = "W3C trace context, handed on to the instance"),
), request_body = StartInstance, responses(
    (status = 201, body = Started, description = "It was started"),
    (status = 200, body = Started, description = "It was there already (use_existing)"),
))]
pub async fn start(
    State(app): State<App>,
    scope: Scope,
    repeat: RepeatSafe,
    Query(query): Query<WaitForEnd>,
    trace: TraceContext,
    Body(request): Body<StartInstance>,
) -> Result<Response, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    if is_built_in(&request.orchestration) {
        return Err(Refusal::built_in(&request.orchestration));
    }
    let input = view::payload("input", &request.input)?;
    let mut orchestration = Orchestration::<Payload, Payload>::named(request.orchestration.clone());
    if let Some(version) = request.version {
        orchestration = orchestration.at(version);
    }
    // A repeated request must find what its first try made, so its id follows from the idempotency key.
    let made_up = request.id.is_none();
    let id = request.id.or_else(|| repeat.id().map(str::to_owned));
    let id = id.unwrap_or_else(|| app.ids.new_uuid().to_string());
    let on_conflict = match (made_up, request.on_conflict) {
        (true, _) => segno::client::OnConflict::UseExisting,
        (false, OnConflict::Reject) => segno::client::OnConflict::Reject,
        (false, OnConflict::UseExisting) => segno::client::OnConflict::UseExisting,
        (false, OnConflict::Replace) => segno::client::OnConflict::Replace,
    };
    let mut call = app.client.start(orchestration, input).id(scope.stored_new(&id)?).on_conflict(on_conflict);
    for (key, value) in request.labels {
        call = call.label(key, value);
    }
    if let Some(at) = request.start_at {
        call = call.at_ms(list::unix_ms(at));
    }
    let started = trace.hand_to(call).await.map_err(|error| Refusal::from_engine(&error, &scope))?;
    answer(&app, &scope, id, started.created || made_up, wait).await
}

/// Starts an instance again with its first input. A call of a function is checked as a new one is, and made as the function is
/// declared now.
#[utoipa::path(post, path = "/v1/instances/{id}/restart", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
    ("traceparent" = Option<String>, Header, description = "W3C trace context, handed on to the instance"),
), request_body = Restart, responses(
    (status = 201, body = Started),
))]
pub async fn restart(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    trace: TraceContext,
    OptionalBody(request): OptionalBody<Restart>,
) -> Result<Response, Refusal> {
    let stored = scope.stored(&id);
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let found = find(&app, &scope, &id).await?;
    let replaces = request.new_id.is_none();
    if replaces && !found.has_ended() && !request.force {
        let detail = format!("instance {id:?} has not ended; cancel it first, or say force");
        return Err(Refusal::new(Code::Conflict, detail));
    }
    let first = app.client.executions(&stored).await.map_err(refused)?.into_iter().min().unwrap_or(1);
    let history = app.client.history_of_execution(&stored, first).await.map_err(refused)?;
    let begun = history.into_iter().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted(begun) => Some(begun),
        _ => None,
    });
    let begun =
        begun.ok_or_else(|| Refusal::new(Code::Conflict, format!("instance {id:?} has not begun")))?;
    let target = request.new_id.unwrap_or(id);
    let on_conflict = match replaces {
        true => segno::client::OnConflict::Replace,
        false => segno::client::OnConflict::Reject,
    };
    let input = match begun.name.as_str() {
        name if name == INVOKE.name() => {
            let prepared = app.functions.prepare_again(&scope.for_functions(), &begun.input).await;
            let invocation = prepared.map_err(|error| Refusal::from_function(&error, &scope))?;
            Payload::encode(&invocation).map_err(refused)?
        }
        name if is_built_in(name) => return Err(Refusal::built_in(name)),
        _ => begun.input.clone(),
    };
    let orchestration = Orchestration::<Payload, Payload>::named(begun.name.clone());
    let mut call =
        app.client.start(orchestration, input).id(scope.stored_new(&target)?).on_conflict(on_conflict);
    for (key, value) in &begun.labels {
        call = call.label(key, value);
    }
    trace.hand_to(call).await.map_err(refused)?;
    answer(&app, &scope, target, true, std::time::Duration::ZERO).await
}

/// Says that it was started, and shows it if it ended in time.
///
/// # Errors
/// When the store is away.
pub async fn answer(
    app: &App,
    scope: &Scope,
    id: String,
    created: bool,
    wait: std::time::Duration,
) -> Result<Response, Refusal> {
    let mut instance = None;
    if !wait.is_zero() {
        match app.client.wait_until_ended(&scope.stored(&id), wait).await {
            Ok(ended) => instance = Some(Box::new(view::instance(scope, ended)?)),
            Err(error) if error.code() == segno::Code::WaitTimedOut => {}
            Err(error) => return Err(Refusal::from_engine(&error, scope)),
        }
    }
    let path: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let location = format!(
        "/v1/instances/{}?namespace={}&tenant={}",
        path.replace('+', "%20"),
        scope.namespace(),
        scope.tenant()
    );
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let (namespace, tenant) = (scope.namespace().to_owned(), scope.tenant().to_owned());
    let body = Started { namespace, tenant, id, created, instance };
    Ok((status, [(header::LOCATION, location)], Json(body)).into_response())
}
