//! Calls of functions. An invocation is an instance of the orchestration `invoke`; all else is done to it as to any instance.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use segno::event::EventKind;
use segno::limits::MAX_LABELS;
use segno_actions::functions::{
    CallName, FunctionError, HumanDuration, INVOKE, Invocation, InvokeRequest, PoolName, RetryPolicy, Route,
    Tag,
};
use segno_actions::pools::{POOL_LABEL, PoolCall};
use segno_api::instance::Started;
use segno_api::invocation::{self as wire, Invoke};

use super::instances::start::{WaitForEnd, answer, answer_once};
use super::instances::view;
use crate::app::{App, Tenant};
use crate::extract::{Body, Query, named_key, wait_of};
use crate::idempotency::RepeatSafe;
use crate::problem::{Code, Refusal};
use crate::same_json::is_same_json;
use crate::scope::ScopeParameters;
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
    tenant: Tenant,
    repeat: RepeatSafe,
    Query(query): Query<WaitForEnd>,
    trace: TraceContext,
    Body(request): Body<Invoke>,
) -> Result<Response, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    let (made_up, mut labels) = (request.key.is_none(), request.labels.clone());
    if let Some(pool) = request.pool.clone().filter(|_| labels.len() < MAX_LABELS) {
        labels.entry(POOL_LABEL.to_owned()).or_insert(pool);
    }
    // A repeated request must find what its first try made, so its key follows from the idempotency key.
    let key = named_key(request.key.clone())?.or_else(|| repeat.id().map(str::to_owned));
    let key = key.unwrap_or_else(|| app.ids.new_uuid().to_string());
    let prepared = match request.pool.is_some() {
        true => tenant.prepare_pool_call(read_pool_call(request, &tenant).await?).await,
        false => tenant.prepare(read(request, &tenant).await?).await,
    };
    let invocation = prepared.map_err(|error| tenant.refused(error))?;
    let start = tenant.start_of_call(&key, &invocation, labels)?;
    if let Some(answer) = answer_once(&app, &tenant, &repeat, (&start, &trace), wait).await? {
        return Ok(answer);
    }
    let started = tenant.start(start, trace).await?;
    if !started.created {
        check_same(&tenant, &started.instance, &invocation).await?;
    }
    Ok(answer(&tenant, &repeat, (started.instance, started.created || made_up), wait))
}

/// The request as the catalogue takes it.
async fn read(request: Invoke, tenant: &Tenant) -> Result<InvokeRequest, Refusal> {
    let refused = |error: FunctionError| tenant.refused(error);
    Ok(InvokeRequest {
        input: view::payload(tenant, "input", &request.input).await?,
        function: request.function.parse().map_err(refused)?,
        tag: request.tag.map(Tag::new).transpose().map_err(refused)?,
        retry: request.retry.map(read_retry).transpose()?,
        timeout: duration("timeout", request.timeout)?,
        deadline: duration("deadline", request.deadline)?,
        heartbeat_timeout: duration("heartbeat_timeout", request.heartbeat_timeout)?,
    })
}

/// The same for a call through a pool.
async fn read_pool_call(request: Invoke, tenant: &Tenant) -> Result<PoolCall, Refusal> {
    let refused = |error: FunctionError| tenant.refused(error);
    if request.tag.is_some() {
        return Err(Refusal::field("tag", "cannot be used with pool; any worker of the pool takes the call"));
    }
    Ok(PoolCall {
        pool: PoolName::new(request.pool.unwrap_or_default()).map_err(refused)?,
        function: CallName::new(request.function).map_err(refused)?,
        input: view::payload(tenant, "input", &request.input).await?,
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
async fn check_same(tenant: &Tenant, id: &str, invocation: &Invocation) -> Result<(), Refusal> {
    let mut found = tenant.instance(id).await?;
    if found.orchestration.is_none() {
        match tenant.changed(id, found.revision, WAIT_FOR_FIRST_TURN).await? {
            Some(begun) => found = begun,
            None => return Ok(()),
        }
    }
    let history = tenant.whole_history(id, found.execution_id).await?;
    let first = history.into_iter().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted(begun) => Some(begun),
        _ => None,
    });
    let Some(first) = first else { return Ok(()) };
    let is_same = first.name == INVOKE.name()
        && first.input.decode::<Invocation>().is_ok_and(|first| {
            first.function == invocation.function
                && pool_of(&first.route) == pool_of(&invocation.route)
                && is_same_json(first.input.as_str(), invocation.input.as_str())
        });
    if is_same {
        return Ok(());
    }
    let detail = "the key was used for another call; use a new key for each";
    Err(Refusal::new(Code::Conflict, detail))
}

/// The pool whose workers take a call.
fn pool_of(route: &Route) -> Option<&PoolName> {
    match route {
        Route::Pool { pool } => Some(pool),
        Route::Local { .. } | Route::Node { .. } | Route::Remote { .. } | Route::Push { .. } => None,
    }
}
