//! Tasks of runs: their inputs, outputs and logs, and states that are set by hand.

use axum::response::Response;
use axum::{Extension, Json};
use segno_api::function::FunctionLogList;
use segno_api::run::{MarkTask, RunChanged, RunTask, RunTaskDetails, RunTaskList, TaskStatus};
use segno_api::{Json as AnyJson, several};
use segno_ledger::drive::TaskQuery;
use serde::Deserialize;
use utoipa::IntoParams;

use super::instances::logs as instance_logs;
use super::paging::{self, Found, Page, limit};
use super::runs::{changed, requester};
use crate::access::Caller;
use crate::app::{Tenant, task_state};
use crate::extract::{Body, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Which tasks of a run.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListTasksQuery {
    /// Only tasks in one of these states, repeated or with commas.
    #[serde(default, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<TaskStatus>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Tasks of a run, by key.
#[utoipa::path(get, path = "/v1/runs/{id}/tasks", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"), ScopeParameters, ListTasksQuery,
), responses((status = 200, body = RunTaskList)))]
pub async fn list(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<ListTasksQuery>,
) -> Result<Json<RunTaskList>, Refusal> {
    let rows = limit(query.limit)?;
    let wanted = TaskQuery {
        key: None,
        states: query.status.into_iter().map(task_state).collect(),
        after: paging::text_of(query.cursor.as_deref())?,
        limit: rows + 1,
    };
    let tasks = tenant.run_tasks(&id, &wanted).await?;
    let Found { rows: tasks, unreadable, next_cursor } =
        paging::of_rows(rows, tasks, |task: &RunTask| paging::of_text(&task.key))?;
    Ok(Json(RunTaskList { tasks, unreadable, next_cursor }))
}

/// A task of a run with its input and output.
#[utoipa::path(get, path = "/v1/runs/{id}/tasks/{task}", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"),
    ("task" = String, Path, description = "Key of the task"), ScopeParameters,
), responses((status = 200, body = RunTaskDetails)))]
pub async fn get(
    tenant: Tenant,
    Path((id, task)): Path<(String, String)>,
) -> Result<Json<RunTaskDetails>, Refusal> {
    Ok(Json(tenant.run_task(&id, &task).await?))
}

/// What a task returned, whatever its size.
#[utoipa::path(get, path = "/v1/runs/{id}/tasks/{task}/output", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"),
    ("task" = String, Path, description = "Key of the task"), ScopeParameters,
), responses((status = 200, body = AnyJson)))]
pub async fn output(
    tenant: Tenant,
    Path((id, task)): Path<(String, String)>,
) -> Result<Json<AnyJson>, Refusal> {
    Ok(Json(tenant.run_task_output(&id, &task).await?))
}

/// What the tools of the last attempt of a task wrote to stderr. It is kept for seven days.
#[utoipa::path(get, path = "/v1/runs/{id}/tasks/{task}/logs", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"),
    ("task" = String, Path, description = "Key of the task"), ScopeParameters, Page,
), responses((status = 200, body = FunctionLogList)))]
pub async fn logs(
    tenant: Tenant,
    Path((id, task)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Result<Json<FunctionLogList>, Refusal> {
    limit(page.limit)?;
    match tenant.instance_of_task(&id, &task).await? {
        Some(instance) => instance_logs::page(&tenant, &instance, page).await,
        None => Ok(Json(FunctionLogList { logs: Vec::new(), unreadable: Vec::new(), next_cursor: None })),
    }
}

/// Sets the state of a task by hand.
#[utoipa::path(post, path = "/v1/runs/{id}/tasks/{task}/mark", tag = "runs", params(
    ("id" = String, Path, description = "Id of the run"),
    ("task" = String, Path, description = "Key of the task"), ScopeParameters,
), request_body = MarkTask, responses(
    (status = 200, body = RunChanged),
    (status = 202, description = "It is stored and will be applied", body = RunChanged),
))]
pub async fn mark(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path((id, task)): Path<(String, String)>,
    Body(request): Body<MarkTask>,
) -> Result<Response, Refusal> {
    Ok(changed(tenant.mark_task((&id, task), request, requester(&repeat, &caller)).await?))
}
