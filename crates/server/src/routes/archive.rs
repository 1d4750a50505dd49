//! The archive: what is in it, and erasure.

use axum::{Extension, Json};
use segno_api::archive::{ArchiveSummary, ArchivedGroup, Erased};
use segno_ledger::archive::Group;

use crate::access::{Caller, Need};
use crate::app::Tenant;
use crate::extract::Path;
use crate::problem::{Code, Refusal};
use crate::scope::ScopeParameters;

/// What the archive of the tenant has: files by kind.
#[utoipa::path(get, path = "/v1/archive", tag = "archive", params(ScopeParameters), responses(
    (status = 200, body = ArchiveSummary),
))]
pub async fn get(tenant: Tenant) -> Result<Json<ArchiveSummary>, Refusal> {
    Ok(Json(tenant.archive_summary().await?))
}

/// Erases all archived rows of an id that have ended by now: of an instance its row and its events, of an action its row, of a
/// recurring action its history. What is still in the store stays there; delete it first, and erase it then. Repeating it is safe.
#[utoipa::path(delete, path = "/v1/archive/{of}/{id}", tag = "archive", params(
    ("of" = ArchivedGroup, Path, description = "What the id is the id of"),
    ("id" = String, Path, description = "The id"), ScopeParameters,
), responses((status = 200, body = Erased)))]
pub async fn erase_id(
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Path((of, id)): Path<(String, String)>,
) -> Result<Json<Erased>, Refusal> {
    let Some(group) = Group::ALL.into_iter().find(|group| group.name() == of) else {
        return Err(Refusal::not_found("kind of archived rows", &of));
    };
    if group == Group::Audit && !caller.may(Need::Admin) {
        let detail = "entries of the audit log are erased by administrators with a grant for every namespace and tenant";
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    Ok(Json(tenant.erase_archived(group, &id).await?))
}

/// Erases the archive of the tenant: all that has ended by now. Repeating it is safe.
#[utoipa::path(delete, path = "/v1/archive", tag = "archive", params(ScopeParameters), responses(
    (status = 200, body = Erased),
))]
pub async fn erase(tenant: Tenant) -> Result<Json<Erased>, Refusal> {
    Ok(Json(tenant.erase_archive().await?))
}
