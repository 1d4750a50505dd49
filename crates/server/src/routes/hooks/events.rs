//! What became of what came in.

use axum::Json;
use segno_actions::Listed;
use segno_actions::hooks::{HookEvent, HookName, ListEvents};
use segno_api::hook as wire;

use super::super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
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
    let route = route.as_ref();
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |id| id.parse().ok())?;
        let request = ListEvents { route, after, limit: rows };
        let found = tenant.hook_events(&request).await.map_err(|error| tenant.refused(error))?;
        Ok(Chunk::of(found, rows))
    };
    let show = |row: Listed<HookEvent>| match row {
        Listed::Readable(event) => Ok(Row::new(event.id.to_string(), Listed::Readable(view::event(event)))),
        Listed::Unreadable(row) => Ok(Row::new(row.id.clone(), Listed::Unreadable(row))),
    };
    let Found { rows: events, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(wire::HookEventList { events, unreadable, next_cursor }))
}
