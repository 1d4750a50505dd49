//! Who fetches work.

use axum::Json;
use segno_api::worker::WorkerList;

use super::paging::{Page, cut, limit, split};
use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Workers that were heard of in the last two minutes, by name. What other nodes know may be 10 seconds old.
#[utoipa::path(get, path = "/v1/workers", tag = "workers", params(ScopeParameters, Page), responses(
    (status = 200, body = WorkerList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<WorkerList>, Refusal> {
    let rows = limit(page.limit)?;
    let found = tenant.workers(page.cursor.as_deref(), rows + 1).await?;
    let (found, next_cursor) = cut(found, rows, |(cursor, _)| cursor.clone());
    let (workers, unreadable) = split(found.into_iter().map(|(_, row)| row).collect());
    Ok(Json(WorkerList { workers, unreadable, next_cursor }))
}
