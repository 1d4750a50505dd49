//! Pools of workers.

use axum::Json;
use axum::http::StatusCode;
use segno_actions::Listed;
use segno_actions::functions::{FunctionError, PoolName};
use segno_api::pool::{PausePool, Pool, PoolDetails, PoolList};
use segno_api::worker::Worker;

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use super::workers::{is_place, place};
use crate::app::Tenant;
use crate::extract::{OptionalBody, Path, Query};
use crate::operation::damage;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Pools, by name: those of the settings, and those that workers have announced. What other nodes know of workers may be
/// 10 seconds old.
#[utoipa::path(get, path = "/v1/pools", tag = "pools", params(ScopeParameters, Page), responses(
    (status = 200, body = PoolList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<PoolList>, Refusal> {
    let (workers, missing) = damage::shown_in_parts(tenant.workers_by_pool()).await;
    let workers = workers?;
    let (tenant, workers) = (&tenant, &workers);
    let read = |after: Option<String>, rows| async move {
        let after = paging::name_of(after.as_deref(), |name| PoolName::new(name).ok())?;
        Ok(Chunk::of(tenant.pools(workers, after.as_ref(), rows).await?, rows))
    };
    let show = |row: Listed<Pool>| match &row {
        Listed::Readable(pool) => Ok(Row::new(paging::of_text(&pool.name), row)),
        Listed::Unreadable(unreadable) => Ok(Row::new(paging::of_text(&unreadable.id), row)),
    };
    let Found { rows: pools, mut unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    unreadable.extend(missing);
    Ok(Json(PoolList { pools, unreadable, next_cursor }))
}

/// One pool with a page of its workers, by name. What other nodes know of workers may be 10 seconds old.
#[utoipa::path(get, path = "/v1/pools/{name}", tag = "pools", params(
    ("name" = String, Path, description = "Name of the pool"), ScopeParameters, Page,
), responses((status = 200, body = PoolDetails)))]
pub async fn get(
    tenant: Tenant,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<PoolDetails>, Refusal> {
    let name = read(&tenant, name)?;
    cursor(page.cursor.as_deref(), |text| is_place(text).then_some(text))?;
    let (found, unreadable) = damage::shown_in_parts(tenant.pool(&name)).await;
    let (pool, workers) = found?;
    let workers = &workers;
    let read = |after: Option<String>, rows| async move {
        let is_after = |worker: &&Worker| after.as_deref().is_none_or(|after| place(worker).as_str() > after);
        Ok(Chunk::of(workers.iter().filter(is_after).take(rows).cloned().collect(), rows))
    };
    let show = |worker: Worker| Ok(Row::new(place(&worker), Listed::Readable(worker)));
    let Found { rows: workers, next_cursor, .. } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(PoolDetails { pool, workers, unreadable, next_cursor }))
}

/// Pauses a pool: its calls wait and are not handed out. Calls under way go on. Pausing again
/// changes the reason.
#[utoipa::path(post, path = "/v1/pools/{name}/pause", tag = "pools", params(
    ("name" = String, Path, description = "Name of the pool"), ScopeParameters,
), request_body(content = Option<PausePool>), responses((status = 200, body = Pool)))]
pub async fn pause(
    tenant: Tenant,
    Path(name): Path<String>,
    OptionalBody(request): OptionalBody<PausePool>,
) -> Result<Json<Pool>, Refusal> {
    let name = read(&tenant, name)?;
    Ok(Json(tenant.pause_pool(&name, request.reason).await?))
}

/// Resumes a pool, also one that rests because its workers were throttled. Resuming again is fine.
#[utoipa::path(post, path = "/v1/pools/{name}/resume", tag = "pools", params(
    ("name" = String, Path, description = "Name of the pool"), ScopeParameters,
), responses((status = 200, body = Pool)))]
pub async fn resume(tenant: Tenant, Path(name): Path<String>) -> Result<Json<Pool>, Refusal> {
    let name = read(&tenant, name)?;
    Ok(Json(tenant.resume_pool(&name).await?))
}

/// Forgets a pool that its workers have announced, with the functions that they announced. The next worker that fetches for it
/// announces it anew. Calls that wait stay.
#[utoipa::path(delete, path = "/v1/pools/{name}", tag = "pools", params(
    ("name" = String, Path, description = "Name of the pool"), ScopeParameters,
), responses((status = 204, description = "It is forgotten")))]
pub async fn delete(tenant: Tenant, Path(name): Path<String>) -> Result<StatusCode, Refusal> {
    let name = read(&tenant, name)?;
    tenant.forget_pool(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn read(tenant: &Tenant, name: String) -> Result<PoolName, Refusal> {
    PoolName::new(name).map_err(|error: FunctionError| tenant.refused(error))
}
