//! What is wrong in a tenant now.

use std::sync::Arc;

use axum::{Extension, Json};
use segno_api::problems::ProblemReport;

use super::stats::of_store;
use crate::access::Caller;
use crate::app::Tenant;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What is wrong in the tenant now, each with a count, its oldest and where it is listed. Each
/// check looks at a bounded number of rows; `unknown` has those that could not look at all. With a
/// key for all tenants also the store, the clock and the nodes.
#[utoipa::path(get, path = "/v1/problems", tag = "overview", params(ScopeParameters), responses(
    (status = 200, body = ProblemReport),
))]
pub async fn get(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Arc<ProblemReport>>, Refusal> {
    Ok(Json(tenant.problems(of_store(&caller)).await?))
}
