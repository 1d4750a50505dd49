//! Reading one instance.

use axum::Json;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno_api::history::{Execution, ExecutionList, History};
use segno_api::instance::{CustomStatus, Instance, Tree};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::limit;
use super::view;
use crate::access::timestamp;
use crate::app::Tenant;
use crate::extract::{Path, Query, wait_of};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// How long to wait.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Wait up to so many milliseconds for the instance to end; the answer shows its state then, ended or not.
    #[param(maximum = 60000)]
    wait_ms: Option<u64>,
}

/// One instance.
#[utoipa::path(get, path = "/v1/instances/{id}", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance; a slash in it is written %2F"), ScopeParameters, Wait,
), responses(
    (status = 200, body = Instance, headers(("etag" = String, description = "The revision"))),
))]
pub async fn get(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Response, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    let mut found = tenant.instance(&id).await?;
    if !wait.is_zero() && !found.has_ended() {
        found = match tenant.ended(&id, wait).await? {
            Some(ended) => ended,
            None => tenant.instance(&id).await?,
        };
    }
    let shown = view::instance(&tenant, found)?;
    let tag = format!("\"{}\"", shown.revision);
    Ok(([(ETAG, tag)], Json(shown)).into_response())
}

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct HistoryPage {
    /// Which execution; the current one without it.
    #[param(minimum = 1)]
    execution: Option<u64>,
    /// Only events after this one.
    after: Option<u64>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Recorded events of one execution.
#[utoipa::path(get, path = "/v1/instances/{id}/history", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, HistoryPage,
), responses(
    (status = 200, body = History),
))]
pub async fn history(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<HistoryPage>,
) -> Result<Json<History>, Refusal> {
    let limit = match page.limit {
        None => MAX_PAGE_ROWS,
        some => limit(some)?,
    };
    let execution = match page.execution {
        Some(execution) => execution,
        None => tenant.instance(&id).await?.execution_id,
    };
    let query = HistoryQuery {
        instance_id: id,
        execution_id: execution,
        after_event_id: page.after.unwrap_or(0),
        limit,
    };
    let (events, next_after) = tenant.history(query).await?;
    let events = events.iter().map(view::event).collect::<Result<_, _>>()?;
    Ok(Json(History { execution, events, next_after }))
}

/// All executions of an instance.
#[utoipa::path(get, path = "/v1/instances/{id}/executions", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses(
    (status = 200, body = ExecutionList),
))]
pub async fn executions(tenant: Tenant, Path(id): Path<String>) -> Result<Json<ExecutionList>, Refusal> {
    tenant.instance(&id).await?;
    let mut executions = Vec::new();
    for number in tenant.executions(&id).await? {
        let info = tenant.execution(&id, number).await?;
        executions.push(Execution {
            execution: number,
            status: view::status(info.status),
            started_at: timestamp(info.started_at_ms),
            completed_at: info.completed_at_ms.map(timestamp),
            events: info.event_count,
        });
    }
    Ok(Json(ExecutionList { executions }))
}

/// An instance and all its descendants.
#[utoipa::path(get, path = "/v1/instances/{id}/tree", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses(
    (status = 200, body = Tree),
))]
pub async fn tree(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Tree>, Refusal> {
    tenant.instance(&id).await?;
    let ids = tenant.tree(&id).await?;
    Ok(Json(Tree { root: id, ids }))
}

/// Which change of the status.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct StatusAfter {
    /// Wait for a version above this one.
    after: Option<u64>,
    /// Wait up to so many milliseconds for it; the answer shows what is there then.
    #[param(maximum = 60000)]
    wait_ms: Option<u64>,
}

/// The status that the code of an instance has set.
#[utoipa::path(get, path = "/v1/instances/{id}/status", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, StatusAfter,
), responses(
    (status = 200, body = CustomStatus),
))]
pub async fn status(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<StatusAfter>,
) -> Result<Json<CustomStatus>, Refusal> {
    let wait = wait_of(query.wait_ms)?;
    let after = query.after.unwrap_or(0);
    let mut found = tenant.instance(&id).await?;
    if !wait.is_zero() && found.custom_status_version <= after && !found.has_ended() {
        tenant.status_changed(&id, after, wait).await?;
        found = tenant.instance(&id).await?;
    }
    Ok(Json(CustomStatus {
        ended: found.has_ended(),
        version: found.custom_status_version,
        status: found.custom_status.as_ref().map(view::json).transpose()?,
    }))
}
