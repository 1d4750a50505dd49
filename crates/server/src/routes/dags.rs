//! DAGs and their versions, and partitions of the assets that they make.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::Listed;
use segno_api::asset::{AssetPartition, AssetPartitionList};
use segno_api::dag::{Dag, DagDetails, DagList, DagVersion, DagVersionList, PublishDag};
use segno_ledger::plan::NameKind;
use segno_ledger::plan::limits::MAX_DAG_BYTES;

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use crate::access::Caller;
use crate::app::Tenant;
use crate::extract::{Body, Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Largest body with a DAG in bytes: a document of 4 MiB whose every character is escaped, and what is around it.
pub const MAX_DAG_BODY_BYTES: usize = 2 * MAX_DAG_BYTES + 64 * 1024;

fn key_of(caller: &Caller) -> Option<String> {
    caller.key_id().map(str::to_owned)
}

/// Publishes a DAG. The version is active from then on: new runs follow it. Publishing the active version again changes
/// nothing.
#[utoipa::path(post, path = "/v1/dags", tag = "dags", params(ScopeParameters), request_body = PublishDag, responses(
    (status = 201, body = DagVersion),
))]
pub async fn publish(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Body(request): Body<PublishDag>,
) -> Result<Response, Refusal> {
    let version = tenant.publish_dag(request, key_of(&caller)).await?;
    let location = tenant.location(&format!("/v1/dags/{}/versions/{}", version.name, version.version));
    Ok((StatusCode::CREATED, location, Json(version)).into_response())
}

/// DAGs by name.
#[utoipa::path(get, path = "/v1/dags", tag = "dags", params(ScopeParameters, Page), responses(
    (status = 200, body = DagList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<DagList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let checked = |name: &str| NameKind::Dag.check(name).ok().map(|()| name.to_owned());
        let after = paging::name_of(after.as_deref(), checked)?;
        Ok(Chunk::of(tenant.dags(after.as_deref(), rows).await?, rows))
    };
    let show = |row: Listed<Dag>| match &row {
        Listed::Readable(dag) => Ok(Row::new(paging::of_text(&dag.name), row)),
        Listed::Unreadable(unreadable) => Ok(Row::new(paging::of_text(&unreadable.id), row)),
    };
    let Found { rows: dags, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(DagList { dags, unreadable, next_cursor }))
}

/// A DAG with the tasks of its active version.
#[utoipa::path(get, path = "/v1/dags/{name}", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"), ScopeParameters,
), responses((status = 200, body = DagDetails)))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Json<DagDetails>, Refusal> {
    Ok(Json(tenant.dag(&name).await?))
}

/// Versions of a DAG, oldest first, without their documents.
#[utoipa::path(get, path = "/v1/dags/{name}/versions", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"), ScopeParameters, Page,
), responses((status = 200, body = DagVersionList)))]
pub async fn versions(
    tenant: Tenant,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<DagVersionList>, Refusal> {
    let (tenant, name) = (&tenant, name.as_str());
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |text| text.parse().ok())?;
        Ok(Chunk::of(tenant.dag_versions(name, after, rows).await?, rows))
    };
    let show = |row: Listed<DagVersion>| match &row {
        Listed::Readable(version) => Ok(Row::new(version.version.to_string(), row)),
        Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
    };
    let Found { rows: versions, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(DagVersionList { versions, unreadable, next_cursor }))
}

/// A version of a DAG with its document.
#[utoipa::path(get, path = "/v1/dags/{name}/versions/{version}", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"),
    ("version" = u32, Path, description = "The version"), ScopeParameters,
), responses((status = 200, body = DagVersion)))]
pub async fn version(
    tenant: Tenant,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Json<DagVersion>, Refusal> {
    Ok(Json(tenant.dag_version(&name, version).await?))
}

/// Deletes a DAG with all its versions. Its runs stay.
#[utoipa::path(delete, path = "/v1/dags/{name}", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    tenant.delete_dag(&name, key_of(&caller)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a DAG: its schedule, sensors and backfills start no runs. Callers still may.
#[utoipa::path(post, path = "/v1/dags/{name}/pause", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"), ScopeParameters,
), responses((status = 200, body = Dag)))]
pub async fn pause(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Dag>, Refusal> {
    Ok(Json(tenant.pause_dag(&name, key_of(&caller)).await?))
}

/// Resumes a paused DAG.
#[utoipa::path(post, path = "/v1/dags/{name}/resume", tag = "dags", params(
    ("name" = String, Path, description = "Name of the DAG"), ScopeParameters,
), responses((status = 200, body = Dag)))]
pub async fn resume(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Dag>, Refusal> {
    Ok(Json(tenant.resume_dag(&name, key_of(&caller)).await?))
}

/// Partitions of an asset that were made or attempted, by key.
#[utoipa::path(get, path = "/v1/assets/{asset}/partitions", tag = "dags", params(
    ("asset" = String, Path, description = "Key of the asset"), ScopeParameters, Page,
), responses((status = 200, body = AssetPartitionList)))]
pub async fn partitions(
    tenant: Tenant,
    Path(asset): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<AssetPartitionList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = paging::text_of(page.cursor.as_deref())?;
    let read = tenant.asset_partitions(&asset, after.as_deref(), rows + 1).await?;
    let Found { rows: partitions, unreadable, next_cursor } =
        paging::of_rows(rows, read, |row: &AssetPartition| paging::of_text(&row.partition))?;
    Ok(Json(AssetPartitionList { partitions, unreadable, next_cursor }))
}
