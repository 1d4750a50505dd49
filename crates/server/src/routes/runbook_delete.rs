//! Deleting runbooks and versions that no batch uses.

use axum::http::StatusCode;

use crate::app::Tenant;
use crate::extract::Path;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Deletes a runbook with all its versions. Refused while it has batches, ended ones included, or while its automation is
/// enabled. A runbook that is published under the name later goes on counting its versions.
#[utoipa::path(delete, path = "/v1/runbooks/{name}", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(tenant: Tenant, Path(name): Path<String>) -> Result<StatusCode, Refusal> {
    tenant.delete_runbook(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a version of a runbook. Refused for the active version, and while batches use it.
#[utoipa::path(delete, path = "/v1/runbooks/{name}/versions/{version}", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"),
    ("version" = u32, Path, description = "The version"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete_version(
    tenant: Tenant,
    Path((name, version)): Path<(String, u32)>,
) -> Result<StatusCode, Refusal> {
    tenant.delete_runbook_version(&name, version).await?;
    Ok(StatusCode::NO_CONTENT)
}
