//! Starting.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use segno_api::instance::{OnConflict, Restart, StartInstance, Started};
use serde::Deserialize;
use utoipa::IntoParams;

use super::awaited_end::AwaitedEnd;
use super::steer::reason_or;
use super::{list, view};
use crate::app::{App, NewInstance, Restarting, Start, Tenant};
use crate::audit::{self, Audited};
use crate::extract::{Body, OptionalBody, Path, Query, wait_of};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;
use crate::trace::TraceContext;

/// How long to wait.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct WaitForEnd {
    /// Wait up to so many milliseconds for the instance to end, and show it if it did. If the key is revoked or expires meanwhile,
    /// the answer is 401 and says that the instance was started.
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
    tenant: Tenant,
    repeat: RepeatSafe,
    Query(query): Query<WaitForEnd>,
    trace: TraceContext,
    Body(request): Body<StartInstance>,
) -> Result<Response, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    // A repeated request must find what its first try made, so its id follows from the idempotency key.
    let made_up = request.id.is_none();
    let id = request.id.or_else(|| repeat.id().map(str::to_owned));
    let new = NewInstance {
        id: id.unwrap_or_else(|| app.ids.new_uuid().to_string()),
        orchestration: request.orchestration,
        version: request.version,
        input: view::payload(&tenant, "input", &request.input).await?,
        labels: request.labels,
        reserved_labels: BTreeMap::new(),
        start_at_ms: request.start_at.map(list::unix_ms),
        request_id: repeat.uuid().filter(|_| matches!(request.on_conflict, OnConflict::Replace)),
        on_conflict: match (made_up, request.on_conflict) {
            (true, _) => segno::client::OnConflict::UseExisting,
            (false, OnConflict::Reject) => segno::client::OnConflict::Reject,
            (false, OnConflict::UseExisting) => segno::client::OnConflict::UseExisting,
            (false, OnConflict::Replace) => segno::client::OnConflict::Replace,
        },
    };
    let start = tenant.start_of(new).await?;
    if let Some(answer) = answer_once(&app, &tenant, &repeat, (&start, &trace), wait).await? {
        return Ok(answer);
    }
    let started = tenant.start(start, trace).await?;
    Ok(answer(&tenant, &repeat, (started.instance, started.created || made_up), wait))
}

/// Starts an instance that has ended again, with the input of its last start or with `input`. Its next execution begins, and the earlier ones stay;
/// with `new_id` a new instance is started instead. A call of a function is checked as a new one is, and made as the function is
/// declared now.
#[utoipa::path(post, path = "/v1/instances/{id}/restart", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
    ("traceparent" = Option<String>, Header, description = "W3C trace context, handed on to the instance"),
), request_body = Restart, responses(
    (status = 201, body = Started),
))]
pub async fn restart(
    State(app): State<App>,
    tenant: Tenant,
    repeat: RepeatSafe,
    Path(id): Path<String>,
    trace: TraceContext,
    OptionalBody(request): OptionalBody<Restart>,
) -> Result<Response, Refusal> {
    let reason = request.reason.map(|reason| reason_or(Some(reason), "")).transpose()?;
    let input = match &request.input {
        Some(input) => Some(view::payload(&tenant, "input", input).await?),
        None => None,
    };
    let Some(new_id) = request.new_id else {
        let restarting = Restarting { force: request.force, request_id: repeat.uuid(), input };
        tenant.in_store(&id, tenant.restart(&id, restarting, trace)).await?;
        let answer = answer(&tenant, &repeat, (id, true), Duration::ZERO);
        return Ok(audit::with_reason(answer, reason));
    };
    let start = tenant.in_store(&id, tenant.start_again(&id, new_id.clone(), input)).await?;
    let repeat = repeat.because(reason.as_deref());
    if let Some(answer) = answer_once(&app, &tenant, &repeat, (&start, &trace), Duration::ZERO).await? {
        return Ok(answer);
    }
    let started = tenant.start(start, trace).await.map_err(|refusal| taken(refusal, &new_id))?;
    Ok(audit::with_reason(answer(&tenant, &repeat, (started.instance, true), Duration::ZERO), reason))
}

/// A new id that another instance has: a restart has no `on_conflict` that the engine's own words advise to set.
fn taken(refusal: Refusal, new_id: &str) -> Refusal {
    if refusal.code() != segno::Code::InstanceExists.as_str() {
        return refusal;
    }
    let detail = format!("an instance with the id {new_id:?} exists already; choose another new_id");
    Refusal::told(refusal.status(), segno::Code::InstanceExists.as_str(), detail).in_field("new_id")
}

/// Starts an instance in one commit with its audit entry and the answer under the idempotency key
/// of the request, if it has one: all of it is there, or nothing. `None` when the instance is there
/// already: then nothing was done.
///
/// # Errors
/// Those of the start.
pub async fn answer_once(
    app: &App,
    tenant: &Tenant,
    repeat: &RepeatSafe,
    (start, trace): (&Start, &TraceContext),
    wait: Duration,
) -> Result<Option<Response>, Refusal> {
    let Some(keyed) = repeat.keyed() else {
        return answer_audited(app, tenant, repeat, (start, trace), wait).await;
    };
    if !start.is_one_commit() {
        return keyed.claim(app).await;
    }
    let answer = |wait| answer(tenant, repeat, (start.id().to_owned(), true), wait);
    let writes = keyed.writes(app, repeat, answer(Duration::ZERO)).await?;
    match tenant.start_with(start.clone(), trace.clone(), writes).await? {
        Some(version) => Ok(Some(keyed.committed(answer(wait), version))),
        None => keyed.faster(app).await,
    }
}

/// The same without a key.
async fn answer_audited(
    app: &App,
    tenant: &Tenant,
    repeat: &RepeatSafe,
    (start, trace): (&Start, &TraceContext),
    wait: Duration,
) -> Result<Option<Response>, Refusal> {
    let audit = repeat.audit_write(app, StatusCode::CREATED).filter(|_| start.is_one_commit());
    let Some(audit) = audit else { return Ok(None) };
    if tenant.start_with(start.clone(), trace.clone(), vec![audit]).await?.is_none() {
        return Ok(None);
    }
    let mut response = answer(tenant, repeat, (start.id().to_owned(), true), wait);
    response.extensions_mut().insert(Audited);
    Ok(Some(response))
}

/// Says that an instance was started, or was there already. Before it is sent, the end of the
/// instance is waited for.
pub fn answer(
    tenant: &Tenant,
    repeat: &RepeatSafe,
    (id, created): (String, bool),
    wait: Duration,
) -> Response {
    let path: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let location = tenant.location(&format!("/v1/instances/{}", path.replace('+', "%20")));
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let (namespace, name) = (tenant.namespace().to_owned(), tenant.name().to_owned());
    let started = Started { namespace, tenant: name, id, created, instance: None };
    let mut response = (status, location, Json(started.clone())).into_response();
    if !wait.is_zero() {
        let awaited = AwaitedEnd { tenant: tenant.clone(), repeat: repeat.clone(), started, wait };
        response.extensions_mut().insert(awaited);
    }
    response
}
