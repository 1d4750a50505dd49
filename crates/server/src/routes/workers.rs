//! Who fetches work.

use axum::Json;
use segno_api::worker::{Worker, WorkerList};

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What a list of workers is ordered by: the name and the node, with an @ between, which no name has.
pub fn place(worker: &Worker) -> String {
    format!("{}@{}", worker.worker, worker.node)
}

/// Whether a cursor can be the place of a worker.
pub fn is_place(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(worker, node)| !worker.is_empty() && !node.is_empty())
}

/// Workers that were heard of in the last two minutes, by name. What other nodes know may be 10 seconds old.
#[utoipa::path(get, path = "/v1/workers", tag = "workers", params(ScopeParameters, Page), responses(
    (status = 200, body = WorkerList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<WorkerList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |text| is_place(text).then_some(text))?;
        Ok(Chunk::of(tenant.workers(after, rows).await?, rows))
    };
    let Found { rows: workers, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, |(place, row)| Ok(Row::new(place, row))).await?;
    Ok(Json(WorkerList { workers, unreadable, next_cursor }))
}
