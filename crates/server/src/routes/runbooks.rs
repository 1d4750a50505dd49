//! Runbooks and their versions.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::Listed;
use segno_api::runbook::{
    PublishPlan, PublishRunbook, Runbook, RunbookList, RunbookVersion, RunbookVersionList,
};
use segno_runbook::limits::MAX_RUNBOOK_BYTES;
use segno_runbook::names::NameKind;

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::access::Caller;
use crate::app::Tenant;
use crate::extract::{Body, Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Largest body with a runbook in bytes: a text of 1 MiB whose every character is escaped, and what is around it.
pub const MAX_RUNBOOK_BODY_BYTES: usize = 2 * MAX_RUNBOOK_BYTES + 64 * 1024;

/// Publishes a runbook. The version is active from then on: new batches follow it, and running batches with a start time
/// move to it: `moves` tells how many, and which phases run again in them. Publishing the active version again changes
/// nothing.
#[utoipa::path(post, path = "/v1/runbooks", tag = "runbooks", params(ScopeParameters), request_body = PublishRunbook, responses(
    (status = 201, body = RunbookVersion),
))]
pub async fn publish(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Body(request): Body<PublishRunbook>,
) -> Result<Response, Refusal> {
    let version = tenant.publish_runbook(request, caller.key_id().map(str::to_owned)).await?;
    let location = tenant.location(&format!("/v1/runbooks/{}/versions/{}", version.name, version.version));
    Ok((StatusCode::CREATED, location, Json(version)).into_response())
}

/// What publishing a runbook would do: its version, and what it does to open batches. Nothing is changed.
#[utoipa::path(post, path = "/v1/runbooks/{name}/plan", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook, as in the document"), ScopeParameters,
), request_body = PublishRunbook, responses((status = 200, body = PublishPlan)))]
pub async fn plan(
    tenant: Tenant,
    Path(name): Path<String>,
    Body(request): Body<PublishRunbook>,
) -> Result<Json<PublishPlan>, Refusal> {
    Ok(Json(tenant.plan_publishing(&name, request).await?))
}

/// Runbooks by name.
#[utoipa::path(get, path = "/v1/runbooks", tag = "runbooks", params(ScopeParameters, Page), responses(
    (status = 200, body = RunbookList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<RunbookList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let checked = |name: &str| NameKind::Runbook.check(name).ok().map(|()| name.to_owned());
        let after = paging::name_of(after.as_deref(), checked)?;
        Ok(Chunk::of(tenant.runbooks(after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<Runbook>| match &row {
        Listed::Readable(runbook) => Ok(Row::new(paging::of_text(&runbook.name), row)),
        Listed::Unreadable(unreadable) => Ok(Row::new(paging::of_text(&unreadable.id), row)),
    };
    let Found { rows: runbooks, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
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
    let (tenant, name) = (&tenant, name.as_str());
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |text| text.parse().ok())?;
        Ok(Chunk::of(tenant.runbook_versions(name, after, rows).await?, rows))
    };
    let show = |row: Listed<RunbookVersion>| match &row {
        Listed::Readable(version) => Ok(Row::new(version.version.to_string(), row)),
        Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
    };
    let Found { rows: versions, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
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
