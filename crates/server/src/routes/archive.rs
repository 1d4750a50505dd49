//! The archive: what is in it, and erasure.

use axum::Json;
use segno_api::archive::{ArchiveSummary, Erased};

use crate::app::Tenant;
use crate::extract::Path;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What the archive of the tenant has: files by kind.
#[utoipa::path(get, path = "/v1/archive", tag = "archive", params(ScopeParameters), responses(
    (status = 200, body = ArchiveSummary),
))]
pub async fn get(tenant: Tenant) -> Result<Json<ArchiveSummary>, Refusal> {
    Ok(Json(tenant.archive_summary().await?))
}

/// Erases all archived rows of an instance that have ended by now: its row and its events. An instance that is still in the
/// store stays there; delete it first, and erase it then. Repeating it is safe.
#[utoipa::path(delete, path = "/v1/archive/instances/{id}", tag = "archive", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
), responses((status = 200, body = Erased)))]
pub async fn erase_instance(tenant: Tenant, Path(id): Path<String>) -> Result<Json<Erased>, Refusal> {
    Ok(Json(tenant.erase_archived(&id).await?))
}

/// Erases the archive of the tenant: all that has ended by now. Repeating it is safe.
#[utoipa::path(delete, path = "/v1/archive", tag = "archive", params(ScopeParameters), responses(
    (status = 200, body = Erased),
))]
pub async fn erase(tenant: Tenant) -> Result<Json<Erased>, Refusal> {
    Ok(Json(tenant.erase_archive().await?))
}
