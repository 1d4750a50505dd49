//! Routes: listed, read, declared, changed, deleted.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use segno_actions::Listed;
use segno_actions::hooks::{Hook, HookError, HookName, Route};
use segno_actions::objects::Objects;
use segno_api::hook as wire;
use serde_json::{Map, Value};

use super::super::paging::{self, Chunk, Found, Page, Row, limit};
use super::super::versions::{Expected, expected, version};
use super::view;
use crate::app::Tenant;
use crate::extract::{Body, Path, Query};
use crate::problem::{Code, Refusal};
use crate::scope::{ScopeParameters, TenantParameter};

/// Webhook routes, by name.
#[utoipa::path(get, path = "/v1/hooks", tag = "hooks", params(ScopeParameters, Page), responses(
    (status = 200, body = wire::HookList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<wire::HookList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = paging::name_of(after.as_deref(), |name| HookName::new(name).ok())?;
        let found = tenant.hooks(after.as_ref(), rows).await;
        Ok(Chunk::of(found.map_err(|error| tenant.refused(error))?, rows))
    };
    let show = |row: Listed<Route>| match row {
        Listed::Readable(route) => {
            Ok(Row::new(paging::of_text(&route.name.to_string()), Listed::Readable(view::hook(&route)?)))
        }
        Listed::Unreadable(row) => Ok(Row::new(paging::of_text(&row.id), Listed::Unreadable(row))),
    };
    let Found { rows: hooks, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(wire::HookList { hooks, unreadable, next_cursor }))
}

/// One webhook route.
#[utoipa::path(get, path = "/v1/hooks/{namespace}/{route}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter,
), responses(
    (status = 200, body = wire::Hook, headers(("etag" = String, description = "The version"))),
))]
pub async fn get(tenant: Tenant, Path((_, route)): Path<(String, String)>) -> Result<Response, Refusal> {
    view::answer(StatusCode::OK, &find(&tenant, &route).await?)
}

/// Creates or replaces a webhook route. `If-None-Match: *` creates it; `If-Match` with the `ETag` of a version replaces that
/// one. Without either nothing is written, so that nobody overwrites what they have not seen.
#[utoipa::path(put, path = "/v1/hooks/{namespace}/{route}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter,
    ("if-none-match" = Option<String>, Header, description = "`*`: there must be none yet"),
    ("if-match" = Option<String>, Header, description = "The version that is replaced"),
), request_body(content = segno_api::Json, description = "The declaration, as the guide's page \"webhooks\" describes it"), responses(
    (status = 201, body = wire::Hook, description = "It was created"),
    (status = 200, body = wire::Hook, description = "It was replaced"),
))]
pub async fn put(
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    headers: HeaderMap,
    Body(hook): Body<Hook>,
) -> Result<Response, Refusal> {
    let name = view::name(&route, &tenant)?;
    check_known(&tenant, &hook).await?;
    let (status, stored) = match expected(&headers)? {
        Expected::Absent => (StatusCode::CREATED, tenant.create_hook(name, hook).await),
        Expected::Version(version) => (StatusCode::OK, tenant.replace_hook(name, hook, version).await),
    };
    view::answer(status, &stored.map_err(|error| not_as_expected(&error, &tenant))?)
}

/// Changes settings of a webhook route: those that are named; `null` takes one back to its default.
#[utoipa::path(patch, path = "/v1/hooks/{namespace}/{route}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter,
    ("if-match" = Option<String>, Header, description = "Only this version"),
), request_body(content = segno_api::Json, description = "An object with the settings to change"), responses(
    (status = 200, body = wire::Hook),
))]
pub async fn patch(
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    headers: HeaderMap,
    Body(changes): Body<Map<String, Value>>,
) -> Result<Response, Refusal> {
    let known = version(&headers)?;
    let found = find(&tenant, &route).await?;
    let hook = changed(&found.hook, changes)?;
    check_known(&tenant, &hook).await?;
    let replaced = tenant.replace_hook(found.name, hook, known.unwrap_or(found.version)).await;
    view::answer(StatusCode::OK, &replaced.map_err(|error| not_as_expected(&error, &tenant))?)
}

/// Removes a webhook route. Its payloads stay until their time is over.
#[utoipa::path(delete, path = "/v1/hooks/{namespace}/{route}", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter,
    ("if-match" = Option<String>, Header, description = "Only this version"),
), responses(
    (status = 204, description = "It is removed"),
))]
pub async fn delete(
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Refusal> {
    let name = view::name(&route, &tenant)?;
    let deleted = tenant.delete_hook(&name, version(&headers)?).await;
    deleted.map_err(|error| match error {
        HookError::Unknown { .. } => tenant.refused(error),
        _ => not_as_expected(&error, &tenant),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses an orchestration that no node has.
async fn check_known(tenant: &Tenant, hook: &Hook) -> Result<(), Refusal> {
    match &hook.orchestration {
        Some(name) => tenant.check_known(name.as_str()).await.map(drop),
        None => Ok(()),
    }
}

async fn find(tenant: &Tenant, route: &str) -> Result<Route, Refusal> {
    tenant.hook(&view::name(route, tenant)?).await.map_err(|error| tenant.refused(error))
}

/// A declaration with some settings changed. Only whole settings are: an input template may have a null of its own.
fn changed(hook: &Hook, changes: Map<String, Value>) -> Result<Hook, Refusal> {
    let mut settings = match serde_json::to_value(hook) {
        Ok(Value::Object(settings)) => settings,
        _ => return Err(Refusal::new(Code::Internal, "the declaration cannot be changed")),
    };
    for (name, value) in changes {
        match value {
            Value::Null => settings.remove(&name),
            value => settings.insert(name, value),
        };
    }
    serde_path_to_error::deserialize(Objects(Value::Object(settings))).map_err(|error| {
        let path = error.path().to_string();
        Refusal::unread(path, error.into_inner().to_string())
    })
}

/// A route that is not as the caller expects is told as HTTP has it.
fn not_as_expected(error: &HookError, tenant: &Tenant) -> Refusal {
    match error {
        HookError::Exists { .. } | HookError::Changed { .. } | HookError::Unknown { .. } => {
            Refusal::new(Code::PreconditionFailed, error.to_string())
        }
        _ => tenant.refused(error),
    }
}
