//! Runs of DAGs.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use segno_api::run::{
    CancelRun, ClearTasks, RerunRun, Run, RunChanged, RunDetails, RunList, RunStatus, StartRun, StartedRun,
};
use segno_api::several;
use segno_ledger::drive::RunQuery;
use segno_ledger::plan::NameKind;
use serde::Deserialize;
use utoipa::IntoParams;

use super::paging::{MAX_PAGE_BYTES, json_bytes, limit, named};
use crate::access::Caller;
use crate::app::{Requester, Tenant, run_state};
use crate::extract::{Body, OptionalBody, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Which runs. All that is given must hold.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListRunsQuery {
    /// Only runs of this DAG.
    pub dag: Option<String>,
    /// Only runs in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
    #[serde(default, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<RunStatus>,
    /// Only runs with this label, `key=value`.
    #[param(pattern = "^[^=]+=")]
    pub label: Option<String>,
    /// Only runs that were triggered at this time or later.
    pub triggered_from: Option<Timestamp>,
    /// Only runs that were triggered before this time.
    pub triggered_before: Option<Timestamp>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Who requests something, and under which key.
pub(super) fn requester(repeat: &RepeatSafe, caller: &Caller) -> Requester {
    Requester { key: repeat.id().map(str::to_owned), by: caller.key_id().map(str::to_owned) }
}

/// Starts a run of a DAG. Once this has answered, the run is stored. A run key makes one run of many requests: a later request
/// with the same key and payload answers with the same run and `created: false`, one with another payload is refused with 409.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", params(ScopeParameters), request_body = StartRun, responses(
    (status = 201, body = StartedRun),
    (status = 200, description = "The run key has this run already", body = StartedRun),
))]
pub async fn start(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Body(request): Body<StartRun>,
) -> Result<Response, Refusal> {
    let started = tenant.start_run(request, requester(&repeat, &caller)).await?;
    Ok(started_answer(&tenant, started))
}

/// Repeats a run that has ended, as a new run with its parameters: what did not succeed, or the tasks that are named. Outputs of
/// the other tasks are those of the earlier run.
#[utoipa::path(post, path = "/v1/runs/{id}/rerun", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), request_body = RerunRun, responses(
    (status = 201, body = StartedRun),
    (status = 200, description = "The same request has started this run already", body = StartedRun),
))]
pub async fn rerun(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<RerunRun>,
) -> Result<Response, Refusal> {
    let started = tenant.rerun_run(&id, request, requester(&repeat, &caller)).await?;
    Ok(started_answer(&tenant, started))
}

fn started_answer(tenant: &Tenant, started: StartedRun) -> Response {
    let status = if started.created { StatusCode::CREATED } else { StatusCode::OK };
    let location = tenant.location(&format!("/v1/runs/{}", started.id));
    (status, location, Json(started)).into_response()
}

/// Runs, newest first.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(ScopeParameters, ListRunsQuery), responses(
    (status = 200, body = RunList),
))]
pub async fn list(tenant: Tenant, Query(query): Query<ListRunsQuery>) -> Result<Json<RunList>, Refusal> {
    let label = query.label.map(|text| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Refusal::field("label", "must be key=value")),
    });
    let mut request = RunQuery {
        dag: query.dag,
        states: query.status.into_iter().map(run_state).collect(),
        label: label.transpose()?,
        since_ms: query.triggered_from.map(Timestamp::as_millisecond),
        until_ms: query.triggered_before.map(Timestamp::as_millisecond),
        after: query.cursor,
        limit: limit(query.limit)?,
    };
    check_cursor(request.after.as_deref())?;
    named("dag", request.dag.as_deref(), |name| NameKind::Dag.check(name))?;
    let mut list = RunList { runs: Vec::new(), unreadable: Vec::new(), next_cursor: None };
    let mut bytes = 0;
    // A page may end early at its bytes, so it is read again from where it ended.
    let page = tenant.runs(&request).await?;
    for row in &page.runs {
        let run: Run = tenant.shown_run(row);
        let row_bytes = json_bytes(&run)?;
        if !list.runs.is_empty() && bytes + row_bytes > MAX_PAGE_BYTES {
            request.limit = list.runs.len();
            list.next_cursor = tenant.runs(&request).await?.next;
            return Ok(Json(list));
        }
        bytes += row_bytes;
        list.runs.push(run);
    }
    list.next_cursor = page.next;
    Ok(Json(list))
}

/// A cursor is the time and the id of a run.
fn check_cursor(text: Option<&str>) -> Result<(), Refusal> {
    match text.map(|text| text.split_once(':').map(|(at, _)| at.parse::<i64>().is_ok())) {
        None | Some(Some(true)) => Ok(()),
        Some(_) => Err(Refusal::broken_cursor()),
    }
}

/// A run with its first tasks, and why it waits.
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), responses((status = 200, body = RunDetails)))]
pub async fn get(tenant: Tenant, Path(id): Path<String>) -> Result<Json<RunDetails>, Refusal> {
    Ok(Json(tenant.run(&id).await?))
}

/// Cancels a run: tasks that have not started end at once, running ones are cancelled.
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), request_body = CancelRun, responses(
    (status = 200, body = RunChanged),
    (status = 202, description = "It is stored and will be applied", body = RunChanged),
))]
pub async fn cancel(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    OptionalBody(request): OptionalBody<CancelRun>,
) -> Result<Response, Refusal> {
    Ok(changed(tenant.cancel_run(&id, request.reason, requester(&repeat, &caller)).await?))
}

/// Pauses a run: no further attempts are dispatched; running ones go on.
#[utoipa::path(post, path = "/v1/runs/{id}/pause", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), responses(
    (status = 200, body = RunChanged),
    (status = 202, description = "It is stored and will be applied", body = RunChanged),
))]
pub async fn pause(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    Ok(changed(tenant.pause_run(&id, requester(&repeat, &caller)).await?))
}

/// Resumes a paused run.
#[utoipa::path(post, path = "/v1/runs/{id}/resume", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), responses(
    (status = 200, body = RunChanged),
    (status = 202, description = "It is stored and will be applied", body = RunChanged),
))]
pub async fn resume(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    Ok(changed(tenant.resume_run(&id, requester(&repeat, &caller)).await?))
}

/// Clears tasks that have ended, so that they run again in the same run.
#[utoipa::path(post, path = "/v1/runs/{id}/clear", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters,
), request_body = ClearTasks, responses(
    (status = 200, body = RunChanged),
    (status = 202, description = "It is stored and will be applied", body = RunChanged),
))]
pub async fn clear(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<ClearTasks>,
) -> Result<Response, Refusal> {
    Ok(changed(tenant.clear_tasks(&id, request, requester(&repeat, &caller)).await?))
}

/// The answer to a request about a run.
pub(super) fn changed(changed: RunChanged) -> Response {
    let status = if changed.is_visible { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, Json(changed)).into_response()
}
