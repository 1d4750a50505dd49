//! What the tools of an instance wrote.

use std::num::NonZeroU32;

use axum::Json;
use segno_actions::functions::LogRow;
use segno_api::function::{FunctionLog, FunctionLogList};

use super::super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What the tools of an instance wrote to stderr, of every attempt. It is kept for seven days.
#[utoipa::path(get, path = "/v1/instances/{id}/logs", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, Page,
), responses(
    (status = 200, body = FunctionLogList),
))]
pub async fn logs(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<FunctionLogList>, Refusal> {
    self::page(&tenant, &id, page).await
}

/// A page of the logs of an instance.
///
/// # Errors
/// `not-found` when there is no such instance, `invalid-request` for a wrong page.
pub async fn page(tenant: &Tenant, id: &str, page: Page) -> Result<Json<FunctionLogList>, Refusal> {
    let rows = limit(page.limit)?;
    cursor(page.cursor.as_deref(), call_and_attempt)?;
    // Without its row, its logs can be read all the same.
    if let Err(refusal) = tenant.instance_in_store(id).await
        && refusal.damage().is_none()
    {
        return Err(refusal);
    }
    let read = |after: Option<String>, rows| async move {
        Ok(Chunk::of(tenant.logs(id, after.as_deref(), rows).await?, rows))
    };
    let Found { rows: logs, unreadable, next_cursor } = paging::page(rows, page.cursor, read, show).await?;
    Ok(Json(FunctionLogList { logs, unreadable, next_cursor }))
}

/// A log is listed by its call and attempt, with a slash between.
fn call_and_attempt(text: &str) -> Option<(&str, NonZeroU32)> {
    let (call, attempt) = text.rsplit_once('/')?;
    Some((call, attempt.parse().ok()?))
}

fn show(row: LogRow) -> Result<Row<FunctionLog>, Refusal> {
    let shown = row.log.map(|log| FunctionLog {
        call: log.key.call,
        attempt: log.key.attempt,
        total_bytes: log.total_bytes,
        is_cut: log.is_cut,
        text: log.text,
    });
    Ok(Row { matches: row.is_own, ..Row::new(row.cursor, shown) })
}
