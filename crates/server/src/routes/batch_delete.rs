//! Deleting batches that have ended.

use axum::http::StatusCode;

use crate::app::Tenant;
use crate::extract::Path;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Deletes a batch that has ended, with its members, steps and requests. It is unknown from then on; its rows are removed in the
/// background.
#[utoipa::path(delete, path = "/v1/batches/{id}", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), responses((status = 204, description = "It is deleted")))]
pub async fn delete(tenant: Tenant, Path(id): Path<u64>) -> Result<StatusCode, Refusal> {
    tenant.delete_batch(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
