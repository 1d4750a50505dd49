//! What the tools of an instance wrote.

use axum::Json;
use segno_api::function::{FunctionLog, FunctionLogList};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::limit;
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// How many.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Most {
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// What the tools of an instance wrote to stderr, of every attempt. It is kept for seven days.
#[utoipa::path(get, path = "/v1/instances/{id}/logs", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters, Most,
), responses(
    (status = 200, body = FunctionLogList),
))]
pub async fn logs(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<Most>,
) -> Result<Json<FunctionLogList>, Refusal> {
    let rows = limit(query.limit)?;
    tenant.instance(&id).await?;
    let logs = tenant.logs(&id, rows).await?.into_iter().map(|log| FunctionLog {
        call: log.key.call,
        attempt: log.key.attempt,
        total_bytes: log.total_bytes,
        is_cut: log.is_cut,
        text: log.text,
    });
    Ok(Json(FunctionLogList { logs: logs.collect() }))
}
