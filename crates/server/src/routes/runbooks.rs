//! Runbooks and their versions.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::Listed;
use segno_api::runbook::{PublishRunbook, Runbook, RunbookList, RunbookVersion, RunbookVersionList};
use segno_runbook::limits::MAX_RUNBOOK_BYTES;
use segno_runbook::names::NameKind;

use super::paging::{Page, cursor, cut, limit, split};
use crate::access::Caller;
use crate::app::Tenant;
use crate::extract::{Body, Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Largest body with a runbook in bytes: a text of 1 MiB whose every character is escaped, and what is around it.
pub const MAX_RUNBOOK_BODY_BYTES: usize = 2 * MAX_RUNBOOK_BYTES + 64 * 1024;

/// Publishes a runbook. The version is active from then on: new batches follow it, and running batches with a start time
/// move to it. Publishing the active version again changes nothing.
#[utoipa::path(post, path = "/v1/runbooks", tag = "runbooks", params(ScopeParameters), request_body = PublishRunbook, responses(
    (status = 201, body = RunbookVersion),
))]
pub async fn publish(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Body(request): Body<PublishRunbook>,
) -> Result<Response, Refusal> {
    let version = tenant.publish_runbook(request, caller.key_id().map(str::to_owned)).await?;
    let location = format!("/v1/runbooks/{}/versions/{}", version.name, version.version);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(version)).into_response())
}

/// Runbooks by name.
#[utoipa::path(get, path = "/v1/runbooks", tag = "runbooks", params(ScopeParameters, Page), responses(
    (status = 200, body = RunbookList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<RunbookList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |name| NameKind::Runbook.check(name).ok().map(|()| name))?;
    let found = tenant.runbooks(after, rows + 1).await?;
    let (found, next_cursor) = cut(found, rows, |row| match row {
        Listed::Readable(runbook) => runbook.name.clone(),
        Listed::Unreadable(row) => row.id.clone(),
    });
    let (runbooks, unreadable) = split(found);
    Ok(Json(RunbookList { runbooks, unreadable, next_cursor }))
}

/// A runbook.
#[utoipa::path(get, path = "/v1/runbooks/{name}", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), responses((status = 200, body = Runbook)))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Json<Runbook>, Refusal> {
    Ok(Json(tenant.runbook(&name).await?))
}

/// Versions of a runbook, oldest first, without their texts.
#[utoipa::path(get, path = "/v1/runbooks/{name}/versions", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters, Page,
), responses((status = 200, body = RunbookVersionList)))]
pub async fn versions(
    tenant: Tenant,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<RunbookVersionList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |text| text.parse().ok())?;
    let found = tenant.runbook_versions(&name, after, rows + 1).await?;
    let (found, next_cursor) = cut(found, rows, |row| match row {
        Listed::Readable(version) => version.version.to_string(),
        Listed::Unreadable(row) => row.id.clone(),
    });
    let (versions, unreadable) = split(found);
    Ok(Json(RunbookVersionList { versions, unreadable, next_cursor }))
}

/// A version of a runbook with its text.
#[utoipa::path(get, path = "/v1/runbooks/{name}/versions/{version}", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"),
    ("version" = u32, Path, description = "The version"), ScopeParameters,
), responses((status = 200, body = RunbookVersion)))]
pub async fn version(
    tenant: Tenant,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Json<RunbookVersion>, Refusal> {
    Ok(Json(tenant.runbook_version(&name, version).await?))
}
