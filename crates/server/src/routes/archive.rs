//! The archive: what is in it, and erasure.

use axum::{Extension, Json};
use segno_api::archive::{ArchiveSummary, ArchivedGroup, Erased};
use segno_api::key::Role;
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
/// recurring action its history, of a batch all its rows. What is still in the store stays there; delete it first, and erase it
/// then. Repeating it is safe.
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
        let names = Group::ALL.map(Group::name).join(", ");
        return Err(Refusal::new(
            Code::NotFound,
            format!("nothing of {of:?} is archived; use one of {names}"),
        ));
    };
    if !may_erase(&caller, group) {
        let detail = "entries of the audit log are erased by administrators with a grant for every namespace and tenant";
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    Ok(Json(tenant.erase_archived(group, &id).await?))
}

/// Erases the archive of the tenant: all that has ended by now. Repeating it is safe. It needs an administrator's key. The audit
/// log of the tenant stays, unless the key has a grant for every namespace and tenant, as reading it needs one, too.
#[utoipa::path(delete, path = "/v1/archive", tag = "archive", params(ScopeParameters), responses(
    (status = 200, body = Erased),
))]
pub async fn erase(Extension(caller): Extension<Caller>, tenant: Tenant) -> Result<Json<Erased>, Refusal> {
    if caller.role() != Role::Admin {
        let detail = "only an administrator's key erases the archive of a tenant; DELETE /v1/archive/{of}/{id} erases one id";
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    let groups: Vec<Group> = Group::ALL.into_iter().filter(|group| may_erase(&caller, *group)).collect();
    let erased = tenant.erase_archive(&groups).await?;
    let kept = Group::ALL.into_iter().filter(|group| !groups.contains(group)).map(shown).collect();
    Ok(Json(Erased { kept, ..erased }))
}

/// Whether a caller who may erase what is archived may erase rows of a group. Those of the audit log are
/// for administrators of all tenants: who is in the log cannot take himself out of it.
fn may_erase(caller: &Caller, group: Group) -> bool {
    group != Group::Audit || caller.may(Need::Admin)
}

fn shown(group: Group) -> ArchivedGroup {
    match group {
        Group::Instances => ArchivedGroup::Instances,
        Group::Actions => ArchivedGroup::Actions,
        Group::Recurring => ArchivedGroup::Recurring,
        Group::Audit => ArchivedGroup::Audit,
        Group::Batches => ArchivedGroup::Batches,
    }
}
