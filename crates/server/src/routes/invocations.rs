//! Calls of functions. An invocation is an instance of the orchestration `invoke`; all else is done to it as to any instance.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use segno::client::OnConflict;
use segno::event::EventKind;
use segno_actions::functions::{
    FunctionError, HumanDuration, INVOKE, Invocation, InvokeRequest, RetryPolicy, Tag, invocation_id,
};
use segno_api::instance::Started;
use segno_api::invocation::{self as wire, Invoke};
use serde_json::Value;

use super::instances::start::{WaitForEnd, answer};
use super::instances::view;
use crate::app::App;
use crate::extract::{Body, Query, wait_of};
use crate::idempotency::RepeatSafe;
use crate::problem::{Code, Refusal};
use crate::scope::{Scope, ScopeParameters};
use crate::trace::TraceContext;

/// How long a call that has just been made is waited for, to be compared with one of the same key.
const WAIT_FOR_FIRST_TURN: Duration = Duration::from_secs(5);

/// Calls a function. Once this has answered, the call is stored and will happen. The same key is the same call; with another
/// function or input it is refused.
#[utoipa::path(post, path = "/v1/invocations", tag = "invocations", params(ScopeParameters, WaitForEnd,
    ("traceparent" = Option<String>, Header, description = "W3C trace context, handed on to the worker"),
), request_body = Invoke, responses(
    (status = 201, body = Started, description = "The call was made; the id is that of an instance"),
    (status = 200, body = Started, description = "It had been made already"),
))]
pub async fn invoke(
    State(app): State<App>,
    scope: Scope,
    repeat: RepeatSafe,
    Query(query): Query<WaitForEnd>,
    trace: TraceContext,
    Body(request): Body<Invoke>,
) -> Result<Response, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    let (made_up, labels) = (request.key.is_none(), request.labels.clone());
    // A repeated request must find what its first try made, so its key follows from the idempotency key.
    let key = request.key.clone().or_else(|| repeat.id().map(str::to_owned));
    let key = key.unwrap_or_else(|| app.ids.new_uuid().to_string());
    let owner = scope.for_functions();
    let prepared = app.functions.prepare(&owner, read(request, &scope)?).await;
    let invocation = prepared.map_err(|error| Refusal::from_function(&error, &scope))?;
    let stored = invocation_id(&owner, &key);
    let mut call =
        app.client.start(INVOKE, invocation.clone()).id(stored.clone()).on_conflict(OnConflict::UseExisting);
    for (key, value) in labels {
        call = call.label(key, value);
    }
    let started = trace.hand_to(call).await.map_err(|error| Refusal::from_engine(&error, &scope))?;
    if !started.created {
        check_same(&app, &scope, &stored, &invocation).await?;
    }
    let id = scope.shown(&stored).unwrap_or(&stored).to_owned();
    answer(&app, &scope, id, started.created || made_up, wait).await
}

/// The request as the catalogue takes it.
fn read(request: Invoke, scope: &Scope) -> Result<InvokeRequest, Refusal> {
    let refused = |error: FunctionError| Refusal::from_function(&error, scope);
    Ok(InvokeRequest {
        input: view::payload("input", &request.input)?,
        function: request.function.parse().map_err(refused)?,
        tag: request.tag.map(Tag::new).transpose().map_err(refused)?,
        retry: request.retry.map(read_retry).transpose()?,
        timeout: duration("timeout", request.timeout)?,
        deadline: duration("deadline", request.deadline)?,
        heartbeat_timeout: duration("heartbeat_timeout", request.heartbeat_timeout)?,
    })
}

fn read_retry(retry: wire::RetryPolicy) -> Result<RetryPolicy, Refusal> {
    let defaults = RetryPolicy::attempts(retry.attempts);
    Ok(RetryPolicy {
        attempts: retry.attempts,
        initial_delay: duration("retry.initial_delay", retry.initial_delay)?
            .unwrap_or(defaults.initial_delay),
        factor: retry.factor.unwrap_or(defaults.factor),
        max_delay: duration("retry.max_delay", retry.max_delay)?.unwrap_or(defaults.max_delay),
    })
}

fn duration(field: &str, text: Option<String>) -> Result<Option<HumanDuration>, Refusal> {
    let parsed = text.map(|text| text.parse::<HumanDuration>()).transpose();
    parsed.map_err(|error| Refusal::field(field, error.to_string()))
}

/// Refuses a key that stands for another call. A call that no node has begun yet cannot be compared, and is taken for the same.
async fn check_same(app: &App, scope: &Scope, stored: &str, invocation: &Invocation) -> Result<(), Refusal> {
    let refused = |error: segno::Error| Refusal::from_engine(&error, scope);
    let mut found = app.client.instance(stored).await.map_err(refused)?;
    if found.orchestration.is_none() {
        match app.client.wait_for_revision(stored, found.revision, WAIT_FOR_FIRST_TURN).await {
            Ok(begun) => found = begun,
            Err(error) if error.code() == segno::Code::WaitTimedOut => return Ok(()),
            Err(error) => return Err(refused(error)),
        }
    }
    let history = app.client.history_of_execution(stored, found.execution_id).await.map_err(refused)?;
    let first = history.into_iter().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted(begun) => Some(begun),
        _ => None,
    });
    let Some(first) = first else { return Ok(()) };
    let is_same = first.name == INVOKE.name()
        && first.input.decode::<Invocation>().is_ok_and(|first| {
            let value = |invocation: &Invocation| invocation.input.decode::<Value>().ok();
            first.function == invocation.function && value(&first) == value(invocation)
        });
    if is_same {
        return Ok(());
    }
    let detail = "the key was used for another call; use a new key for each";
    Err(Refusal::new(Code::Conflict, detail))
}
