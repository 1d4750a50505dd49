//! Reading one instance.

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno_api::history::{Execution, ExecutionList, History};
use segno_api::instance::{CustomStatus, Instance, Tree};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::limit;
use super::find::find;
use super::view;
use crate::access::timestamp;
use crate::app::App;
use crate::extract::{Path, Query, wait_of};
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};

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
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Response, Refusal> {
    let stored = scope.stored(&id);
    let wait = wait_of(query.wait_ms)?;
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let mut found = find(&app, &scope, &id).await?;
    if !wait.is_zero() && !found.has_ended() {
        found = match app.client.wait_until_ended(&stored, wait).await {
            Ok(ended) => ended,
            Err(error) if error.code() == segno::Code::WaitTimedOut => {
                app.client.instance(&stored).await.map_err(refused)?
            }
            Err(error) => return Err(refused(error)),
        };
    }
    let shown = view::instance(&scope, found)?;
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
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    Query(page): Query<HistoryPage>,
) -> Result<Json<History>, Refusal> {
    let limit = match page.limit {
        None => MAX_PAGE_ROWS,
        some => limit(some)?,
    };
    let execution = match page.execution {
        Some(execution) => execution,
        None => find(&app, &scope, &id).await?.execution_id,
    };
    let query = HistoryQuery {
        instance_id: scope.stored(&id),
        execution_id: execution,
        after_event_id: page.after.unwrap_or(0),
        limit,
    };
    let list = app.client.history_page(query).await;
    let list = list.map_err(|error| Refusal::from_engine(&error, &scope))?;
    let events = list.events.iter().map(view::event).collect::<Result<_, _>>()?;
    Ok(Json(History { execution, events, next_after: list.next }))
}

/// All executions of an instance.
#[utoipa::path(get, path = "/v1/instances/{id}/executions", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses(
    (status = 200, body = ExecutionList),
))]
pub async fn executions(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<ExecutionList>, Refusal> {
    let stored = scope.stored(&id);
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    find(&app, &scope, &id).await?;
    let mut executions = Vec::new();
    for number in app.client.executions(&stored).await.map_err(refused)? {
        let info = app.client.execution(&stored, number).await.map_err(refused)?;
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
pub async fn tree(
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<Tree>, Refusal> {
    let stored = scope.stored(&id);
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    find(&app, &scope, &id).await?;
    let tree = app.client.tree(&stored).await.map_err(refused)?;
    let ids = tree.all_ids.iter().filter_map(|id| scope.shown(id)).map(str::to_owned);
    Ok(Json(Tree { root: id, ids: ids.collect() }))
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
    State(app): State<App>,
    scope: Scope,
    Path(id): Path<String>,
    Query(query): Query<StatusAfter>,
) -> Result<Json<CustomStatus>, Refusal> {
    let stored = scope.stored(&id);
    let refused = |error: segno::Error| Refusal::from_engine(&error, &scope);
    let wait = wait_of(query.wait_ms)?;
    let after = query.after.unwrap_or(0);
    let mut found = find(&app, &scope, &id).await?;
    if !wait.is_zero() && found.custom_status_version <= after && !found.has_ended() {
        match app.client.status_change(&stored, after).timeout(wait).await {
            Ok(_) => {}
            Err(error) if error.code() == segno::Code::WaitTimedOut => {}
            Err(error) => return Err(refused(error)),
        }
        found = app.client.instance(&stored).await.map_err(refused)?;
    }
    Ok(Json(CustomStatus {
        ended: found.has_ended(),
        version: found.custom_status_version,
        status: found.custom_status.as_ref().map(view::json).transpose()?,
    }))
}
