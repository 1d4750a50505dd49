//! Time series of a tenant.

use std::sync::Arc;

use axum::{Extension, Json};
use segno_api::stats::{GetStats, Stats};

use crate::access::{Caller, Need};
use crate::app::{OfStore, StatsRange, Tenant};
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;
use crate::stats::KEPT_MINUTES;

/// Minutes of an answer unless the request says otherwise.
const DEFAULT_MINUTES: u64 = 60;

/// What was started in the tenant and how it ended, by the minute, with rates and run times by
/// function and orchestration. The numbers are counts that nodes keep: what a node has counted in
/// the 5 seconds before it was killed is missing.
#[utoipa::path(get, path = "/v1/stats", tag = "overview", params(ScopeParameters, GetStats), responses(
    (status = 200, body = Stats),
))]
pub async fn get(
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Query(request): Query<GetStats>,
) -> Result<Json<Arc<Stats>>, Refusal> {
    let minutes = request.minutes.unwrap_or(DEFAULT_MINUTES);
    if !(1..=KEPT_MINUTES).contains(&minutes) {
        return Err(Refusal::field("minutes", format!("must be 1 to {KEPT_MINUTES}")));
    }
    let step = request.step.unwrap_or(60);
    if step == 0 || !step.is_multiple_of(60) || step / 60 > KEPT_MINUTES {
        return Err(Refusal::field("step", "must be a multiple of 60 seconds, at most 86400"));
    }
    let range = StatsRange { minutes, step: step / 60, of_store: of_store(&caller) };
    Ok(Json(tenant.stats(range).await?))
}

/// What of the store a caller may see.
pub fn of_store(caller: &Caller) -> OfStore {
    if caller.may(Need::System) { OfStore::Shown } else { OfStore::Hidden }
}
