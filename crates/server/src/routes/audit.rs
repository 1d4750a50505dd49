//! Who changed what.

use axum::Json;
use segno_actions::Listed;
use segno_api::audit::AuditList;

use super::paging::{Page, cut, limit, split};
use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Changes in a namespace and tenant, newest first.
#[utoipa::path(get, path = "/v1/audit", tag = "keys", params(ScopeParameters, Page), responses(
    (status = 200, body = AuditList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<AuditList>, Refusal> {
    let rows = limit(page.limit)?;
    let found = tenant.audit(page.cursor.as_deref(), rows + 1).await?;
    let (found, next_cursor) = cut(found, rows, |row| match row {
        Listed::Readable(entry) => entry.id.clone(),
        Listed::Unreadable(row) => row.id.clone(),
    });
    let (entries, unreadable) = split(found);
    Ok(Json(AuditList { entries, unreadable, next_cursor }))
}
