//! Queries of runbooks' data sources: the switch, decisions about removals, previews.

use axum::{Extension, Json};
use segno_api::automation::{Automation, DecideRemoval, PreviewRunbook, RunbookPreview, SetAutomation};
use segno_runbook::drive::RemovalDecision;

use crate::access::Caller;
use crate::app::Tenant;
use crate::extract::{Body, OptionalBody, Path};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// The query of a runbook's data source: when it runs, and what came of it.
#[utoipa::path(get, path = "/v1/runbooks/{name}/automation", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), responses((status = 200, body = Automation)))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Json<Automation>, Refusal> {
    Ok(Json(tenant.automation(&name).await?))
}

/// Switches the query of a runbook on or off; it is off at first. Switched on, it runs at once and then every `interval`.
/// Switched off, a run that reads its rows is cancelled and changes nothing; one that has begun to send them to batches
/// completes. Batches go on.
#[utoipa::path(put, path = "/v1/runbooks/{name}/automation", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), request_body = SetAutomation, responses((status = 200, body = Automation)))]
pub async fn set(
    tenant: Tenant,
    Path(name): Path<String>,
    Body(switch): Body<SetAutomation>,
) -> Result<Json<Automation>, Refusal> {
    Ok(Json(match switch.enabled {
        true => tenant.enable_automation(&name).await?,
        false => tenant.disable_automation(&name).await?,
    }))
}

/// Approves the removal of members that the query no longer has: those of the set that was shown, and no others. The next run,
/// which is made at once, removes them unless the query has them again.
#[utoipa::path(post, path = "/v1/runbooks/{name}/removal/approve", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), request_body = DecideRemoval, responses((status = 200, body = Automation)))]
pub async fn approve_removal(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(decided): Body<DecideRemoval>,
) -> Result<Json<Automation>, Refusal> {
    let decision = (RemovalDecision::Approve, caller.key_id());
    Ok(Json(tenant.decide_removal(&name, decided.set, decision).await?))
}

/// Keeps members that the query no longer has: those of the set that was shown. They stay until the query has had them again.
#[utoipa::path(post, path = "/v1/runbooks/{name}/removal/reject", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), request_body = DecideRemoval, responses((status = 200, body = Automation)))]
pub async fn reject_removal(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(decided): Body<DecideRemoval>,
) -> Result<Json<Automation>, Refusal> {
    let decision = (RemovalDecision::Reject, caller.key_id());
    Ok(Json(tenant.decide_removal(&name, decided.set, decision).await?))
}

/// Runs the query of a runbook and shows its rows, their batches, and what a run would change. Batches are not changed; a
/// function that is the data source is called.
#[utoipa::path(post, path = "/v1/runbooks/{name}/preview", tag = "runbooks", params(
    ("name" = String, Path, description = "Name of the runbook"), ScopeParameters,
), request_body(content = Option<PreviewRunbook>), responses((status = 200, body = RunbookPreview)))]
pub async fn preview(
    tenant: Tenant,
    Path(name): Path<String>,
    OptionalBody(request): OptionalBody<PreviewRunbook>,
) -> Result<Json<RunbookPreview>, Refusal> {
    Ok(Json(tenant.preview_runbook(&name, request).await?))
}
