//! Reading one instance.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use segno::client::{EventList, TreeNode, TreeQuery, UnreadableNode};
use segno::event::Event;
use segno::limits::MAX_PAGE_ROWS;
use segno::store::{ExecutionInfo, HistoryQuery, UnreadableEvents};
use segno_actions::Listed;
use segno_api::Unreadable;
use segno_api::history::{Execution, ExecutionList, History};
use segno_api::instance::{self as wire, CustomStatus, Instance, Tree};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::{self, Chunk, Page, Row, cursor, limit};
use super::{call, view};
use crate::access::timestamp;
use crate::app::{Located, Tenant};
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
    let Located { instance: mut found, archived } = tenant.instance_or_archived(&id).await?;
    if !wait.is_zero() && !found.has_ended() {
        let _place = tenant.wait_place()?;
        found = match tenant.ended(&id, wait).await? {
            Some(ended) => ended,
            None => tenant.instance(&id).await?,
        };
    }
    let call = tenant.call_of_instance(&mut found).await?;
    let call = call.map(|call| call::details(&found, call)).transpose()?;
    let mut shown = wire::Instance { archived, ..view::instance(&tenant, found)? };
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
        None => tenant.instance_or_archived(&id).await?.instance.execution_id,
    };
    let (tenant, id) = (&tenant, &id);
    let lost = &Mutex::new(Vec::new());
    let archived = &AtomicBool::new(false);
    let read = |after: Option<String>, limit| async move {
        let after_event_id = cursor(after.as_deref(), |after| after.parse().ok())?.unwrap_or(0);
        let query = HistoryQuery { instance_id: id.clone(), execution_id: execution, after_event_id, limit };
        let (page, is_archived) = tenant.history_or_archived(query).await?;
        archived.store(is_archived, Ordering::Relaxed);
        let EventList { events, unreadable, next } = page;
        lost.lock().unwrap_or_else(PoisonError::into_inner).extend(unreadable);
        Ok(Chunk { rows: events, is_last: next.is_none(), damaged: None })
    };
    let show =
        |event: Event| Ok(Row::new(event.event_id.to_string(), Listed::Readable(view::event(&event)?)));
    let found = paging::page(limit, page.after.map(|after| after.to_string()), read, show).await?;
    let next_after: Option<u64> = found.next_cursor.and_then(|after| after.parse().ok());
    let lost = std::mem::take(&mut *lost.lock().unwrap_or_else(PoisonError::into_inner));
    // What lies behind the last event that is shown belongs to the next page.
    let is_of_page = |lost: &UnreadableEvents| next_after.is_none_or(|next| lost.after_event_id < next);
    let unreadable = lost.into_iter().filter(is_of_page).map(view::unreadable_events).collect();
    let archived = archived.load(Ordering::Relaxed);
    Ok(Json(History { execution, events: found.rows, unreadable, archived, next_after }))
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
    let before = |text: Option<&str>| cursor(text, |text| text.parse::<u64>().ok());
    before(page.cursor.as_deref())?;
    let located = tenant.instance_or_archived(&id).await?;
    // One whose start is queued is known, and has no execution yet.
    if located.instance.revision == 0 {
        let (executions, unreadable) = (Vec::new(), Vec::new());
        return Ok(Json(ExecutionList { executions, unreadable, next_cursor: None }));
    }
    let (tenant, located) = (&tenant, &located);
    let read = |after: Option<String>, rows| async move {
        let page = tenant.execution_page(located, before(after.as_deref())?, rows).await?;
        let mut rows: Vec<(u64, Result<ExecutionInfo, String>)> =
            page.executions.into_iter().map(|info| (info.execution_id, Ok(info))).collect();
        rows.extend(page.unreadable.into_iter().map(|(number, reason)| (number, Err(reason))));
        rows.sort_by_key(|(number, _)| Reverse(*number));
        Ok(Chunk { rows, is_last: page.next.is_none(), damaged: None })
    };
    let show = |(number, info): (u64, Result<ExecutionInfo, String>)| {
        let info = match info {
            Ok(info) => info,
            Err(reason) => {
                let row = segno_actions::Unreadable { id: number.to_string(), reason };
                return Ok(Row::new(number.to_string(), Listed::Unreadable(row)));
            }
        };
        let shown = Execution {
            execution: info.execution_id,
            status: view::status(info.status),
            started_at: timestamp(info.started_at_ms),
            completed_at: info.completed_at_ms.map(timestamp),
            events: info.event_count,
        };
        let row = Row::new(info.execution_id.to_string(), Listed::Readable(shown));
        Ok(Row { unshown_bytes: info.output.map_or(0, |output| output.len()), ..row })
    };
    let found = paging::page(rows, page.cursor, read, show).await?;
    let paging::Found { rows: executions, unreadable, next_cursor } = found;
    Ok(Json(ExecutionList { executions, unreadable, next_cursor }))
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
    // An id has no control characters, and not every store can look for them.
    let id_of = |text: Option<&str>| {
        paging::name_of(text, |id| (!id.contains(char::is_control)).then(|| id.to_owned()))
    };
    let first = id_of(page.cursor.as_deref())?;
    let root = tenant.instance_in_store(&id).await?;
    if root.revision == 0 {
        // Its start is queued: it has no children.
        let nodes = vec![view::tree_node(&tenant, TreeNode { depth: 0, instance: root })];
        return Ok(Json(Tree { root: id, nodes, unreadable: Vec::new(), next_cursor: None }));
    }
    let (tenant, root) = (&tenant, &id);
    let lost = &Mutex::new(Vec::new());
    let read = |after: Option<String>, limit| async move {
        let after = id_of(after.as_deref())?;
        let page = tenant.tree(TreeQuery { instance: root.clone(), after, limit }).await?;
        lost.lock().unwrap_or_else(PoisonError::into_inner).extend(page.unreadable);
        Ok(Chunk { rows: page.nodes, is_last: page.next.is_none(), damaged: None })
    };
    let show = |node: TreeNode| {
        let unshown_bytes = node.instance.result().map_or(0, |result| result.as_str().len());
        let cursor = paging::of_text(&node.instance.id);
        let row = Row::new(cursor, Listed::Readable(view::tree_node(tenant, node)));
        Ok(Row { unshown_bytes, ..row })
    };
    let found = paging::page(limit, page.cursor, read, show).await?;
    let (nodes, next_cursor) = (found.rows, found.next_cursor);
    let next = id_of(next_cursor.as_deref())?;
    // What lies behind the last node that is shown belongs to the next page.
    let is_of_page = |lost: &UnreadableNode| {
        let is_shown = nodes.iter().any(|node| node.id == lost.after);
        (is_shown || first.as_ref() == Some(&lost.after)) && next.as_ref() != Some(&lost.after)
    };
    let lost = std::mem::take(&mut *lost.lock().unwrap_or_else(PoisonError::into_inner));
    let shown = |lost: UnreadableNode| Unreadable { id: lost.id.unwrap_or_default(), reason: lost.reason };
    let unreadable = lost.into_iter().filter(is_of_page).map(shown).collect();
    Ok(Json(Tree { root: id, nodes, unreadable, next_cursor }))
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
    let mut found = tenant.instance_in_store(&id).await?;
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
