//! Backfills: runs of a DAG over a range of partitions.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_api::backfill::{
    Backfill, BackfillChanged, BackfillChunk, BackfillChunkList, BackfillList, CreateBackfill,
    CreatedBackfill,
};

use super::paging::{self, Found, Page, cursor, limit};
use super::runs::requester;
use crate::access::Caller;
use crate::app::{BackfillRequest, Tenant};
use crate::extract::{Body, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Creates a backfill: runs of a DAG for a range of partitions, chunk by chunk.
#[utoipa::path(post, path = "/v1/backfills", tag = "backfills", params(ScopeParameters), request_body = CreateBackfill, responses(
    (status = 201, body = CreatedBackfill),
))]
pub async fn create(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Body(request): Body<CreateBackfill>,
) -> Result<Response, Refusal> {
    let backfill = tenant.create_backfill(request, requester(&repeat, &caller)).await?;
    Ok(created(&tenant, backfill))
}

/// Runs the chunks of a backfill again that have failed, as a new backfill with the active version of the DAG. The backfill must
/// have ended.
#[utoipa::path(post, path = "/v1/backfills/{id}/retry", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters,
), responses((status = 201, body = CreatedBackfill)))]
pub async fn retry(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let backfill = tenant.retry_backfill(&id, requester(&repeat, &caller)).await?;
    Ok(created(&tenant, backfill))
}

fn created(tenant: &Tenant, created: CreatedBackfill) -> Response {
    let location = tenant.location(&format!("/v1/backfills/{}", created.id));
    (StatusCode::CREATED, location, Json(created)).into_response()
}

/// Backfills, newest first.
#[utoipa::path(get, path = "/v1/backfills", tag = "backfills", params(ScopeParameters, Page), responses(
    (status = 200, body = BackfillList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<BackfillList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |text| {
        let (at, id) = text.split_once(':')?;
        Some((at.parse().ok()?, id))
    })?;
    let read = tenant.backfills(after, rows + 1).await?;
    let place = |row: &Backfill| format!("{}:{}", row.created_at.as_millisecond(), row.id);
    let Found { rows: backfills, unreadable, next_cursor } = paging::of_rows(rows, read, place)?;
    Ok(Json(BackfillList { backfills, unreadable, next_cursor }))
}

/// A backfill.
#[utoipa::path(get, path = "/v1/backfills/{id}", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters,
), responses((status = 200, body = Backfill)))]
pub async fn get(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Backfill>, Refusal> {
    Ok(Json(tenant.backfill(&id).await?))
}

/// Chunks of a backfill that were started, in order.
#[utoipa::path(get, path = "/v1/backfills/{id}/chunks", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters, Page,
), responses((status = 200, body = BackfillChunkList)))]
pub async fn chunks(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<BackfillChunkList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |text| text.parse().ok())?;
    let read = tenant.backfill_chunks(&id, after, rows + 1).await?;
    let Found { rows: chunks, unreadable, next_cursor } =
        paging::of_rows(rows, read, |row: &BackfillChunk| row.index.to_string())?;
    Ok(Json(BackfillChunkList { chunks, unreadable, next_cursor }))
}

/// Pauses a backfill: no further chunks are started.
#[utoipa::path(post, path = "/v1/backfills/{id}/pause", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters,
), responses(
    (status = 200, body = BackfillChanged),
    (status = 202, description = "It is stored and will be applied", body = BackfillChanged),
))]
pub async fn pause(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let requester = requester(&repeat, &caller);
    Ok(changed(tenant.request_of_backfill(&id, BackfillRequest::Pause, requester).await?))
}

/// Resumes a paused backfill.
#[utoipa::path(post, path = "/v1/backfills/{id}/resume", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters,
), responses(
    (status = 200, body = BackfillChanged),
    (status = 202, description = "It is stored and will be applied", body = BackfillChanged),
))]
pub async fn resume(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let requester = requester(&repeat, &caller);
    Ok(changed(tenant.request_of_backfill(&id, BackfillRequest::Resume, requester).await?))
}

/// Cancels a backfill with its runs.
#[utoipa::path(post, path = "/v1/backfills/{id}/cancel", tag = "backfills", params(
    ("id" = String, Path, description = "Id of the backfill"), ScopeParameters,
), responses(
    (status = 200, body = BackfillChanged),
    (status = 202, description = "It is stored and will be applied", body = BackfillChanged),
))]
pub async fn cancel(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let requester = requester(&repeat, &caller);
    Ok(changed(tenant.request_of_backfill(&id, BackfillRequest::Cancel, requester).await?))
}

fn changed(changed: BackfillChanged) -> Response {
    let status = if changed.is_visible { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, Json(changed)).into_response()
}
