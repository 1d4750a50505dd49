//! Who fetches work.

use axum::Json;
use segno_api::worker::WorkerList;

use super::paging::{Page, cursor, cut, limit, split};
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
    // A worker is listed by its name and its node, of which the last @ is between.
    let is_place = |text: &str| {
        text.rsplit_once('@').is_some_and(|(worker, node)| !worker.is_empty() && !node.is_empty())
    };
    let after = cursor(page.cursor.as_deref(), |text| is_place(text).then_some(text))?;
    let found = tenant.workers(after, rows + 1).await?;
    let (found, next_cursor) = cut(found, rows, |(cursor, _)| cursor.clone());
    let (workers, unreadable) = split(found.into_iter().map(|(_, row)| row).collect());
    Ok(Json(WorkerList { workers, unreadable, next_cursor }))
}
