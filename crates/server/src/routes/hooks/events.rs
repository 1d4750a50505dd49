//! What became of what came in.

use axum::Json;
use segno_actions::Listed;
use segno_actions::hooks::{HookName, ListEvents};
use segno_api::hook as wire;

use super::super::paging::{Page, cursor, cut, limit, split};
use super::view;
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::{ScopeParameters, TenantParameter};

/// What became of requests at all routes of a namespace and tenant, newest first. The last 500 or so are kept.
#[utoipa::path(get, path = "/v1/hooks/events", tag = "hooks", params(ScopeParameters, Page), responses(
    (status = 200, body = wire::HookEventList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<wire::HookEventList>, Refusal> {
    events(&tenant, None, page).await
}

/// What became of requests at one route, newest first.
#[utoipa::path(get, path = "/v1/hooks/{namespace}/{route}/events", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter, Page,
), responses(
    (status = 200, body = wire::HookEventList),
))]
pub async fn list_of_route(
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Result<Json<wire::HookEventList>, Refusal> {
    events(&tenant, Some(view::name(&route, &tenant)?), page).await
}

async fn events(
    tenant: &Tenant,
    route: Option<HookName>,
    page: Page,
) -> Result<Json<wire::HookEventList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |id| id.parse().ok())?;
    let request = ListEvents { route: route.as_ref(), after, limit: rows + 1 };
    let found = tenant.hook_events(&request).await.map_err(|error| tenant.refused(error))?;
    let (found, next_cursor) = cut(found, rows, |row| match row {
        Listed::Readable(event) => event.id.to_string(),
        Listed::Unreadable(row) => row.id.clone(),
    });
    let (events, unreadable) = split(found);
    let events = events.into_iter().map(view::event).collect();
    Ok(Json(wire::HookEventList { events, unreadable, next_cursor }))
}
