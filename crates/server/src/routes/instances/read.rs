//! Reading one instance.

use axum::Json;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use segno::client::{TreeNode, TreeQuery};
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno_api::history::{Execution, ExecutionList, History};
use segno_api::instance::{CustomStatus, Instance, Tree};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::{Page, cursor, limit};
use super::{call, view};
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

/// One instance; a call of a function with how far it is: its input, its failed attempts, the worker that has it, and what it
/// waits for.
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
        let _place = tenant.wait_place()?;
        found = match tenant.ended(&id, wait).await? {
            Some(ended) => ended,
            None => tenant.instance(&id).await?,
        };
    }
    let call = tenant.call_of_instance(&mut found).await?;
    let call = call.map(|call| call::details(&found, call)).transpose()?;
    let mut shown = view::instance(&tenant, found)?;
    if let Some(call) = call {
        // One that was made before calls had labels is known by its input.
        shown.function.get_or_insert_with(|| call.function.clone());
        shown.kind.get_or_insert(call.made_by.kind);
        shown.call = Some(Box::new(call));
    }
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

/// Executions of an instance, newest first.
#[utoipa::path(get, path = "/v1/instances/{id}/executions", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, Page,
), responses(
    (status = 200, body = ExecutionList),
))]
pub async fn executions(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<ExecutionList>, Refusal> {
    let rows = limit(page.limit)?;
    let before = cursor(page.cursor.as_deref(), |text| text.parse::<u64>().ok())?;
    // One whose start is queued is known, and has no execution yet.
    if tenant.instance(&id).await?.revision == 0 {
        return Ok(Json(ExecutionList { executions: Vec::new(), next_cursor: None }));
    }
    let page = tenant.execution_page(&id, before, rows).await?;
    let shown = page.executions.into_iter().map(|info| Execution {
        execution: info.execution_id,
        status: view::status(info.status),
        started_at: timestamp(info.started_at_ms),
        completed_at: info.completed_at_ms.map(timestamp),
        events: info.event_count,
    });
    Ok(Json(ExecutionList {
        executions: shown.collect(),
        next_cursor: page.next.map(|before| before.to_string()),
    }))
}

/// An instance and its descendants, depth first: each before its children, those newest first.
#[utoipa::path(get, path = "/v1/instances/{id}/tree", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, Page,
), responses(
    (status = 200, body = Tree),
))]
pub async fn tree(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Tree>, Refusal> {
    let limit = limit(page.limit)?;
    let root = tenant.instance(&id).await?;
    if root.revision == 0 {
        // Its start is queued: it has no children.
        let nodes = vec![view::tree_node(&tenant, TreeNode { depth: 0, instance: root })];
        return Ok(Json(Tree { root: id, nodes, next_cursor: None }));
    }
    let query = TreeQuery { instance: id.clone(), after: page.cursor, limit };
    let page = tenant.tree(query).await?;
    let nodes = page.nodes.into_iter().map(|node| view::tree_node(&tenant, node)).collect();
    Ok(Json(Tree { root: id, nodes, next_cursor: page.next }))
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
        let _place = tenant.wait_place()?;
        tenant.status_changed(&id, after, wait).await?;
        found = tenant.instance(&id).await?;
    }
    Ok(Json(CustomStatus {
        ended: found.has_ended(),
        version: found.custom_status_version,
        status: found.custom_status.as_ref().map(view::json).transpose()?,
    }))
}
