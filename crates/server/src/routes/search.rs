//! Search across kinds.

use axum::Json;
use segno_api::search::{SearchQuery, SearchResult};

use crate::app::Tenant;
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Hits of each kind when a request does not say, and at most.
const DEFAULT_HITS: usize = 5;
const MAX_HITS: usize = 20;

/// Longest text that is searched for, in bytes.
const MAX_QUERY_BYTES: usize = 200;

/// Instances, functions, schedules, actions, runbooks, batches, DAGs and webhooks of the tenant whose ids or names begin with a
/// text. A bounded number of rows is looked at; `truncated` has the kinds of which there may be more.
#[utoipa::path(get, path = "/v1/search", tag = "overview", params(ScopeParameters, SearchQuery), responses(
    (status = 200, body = SearchResult),
))]
pub async fn search(
    tenant: Tenant,
    Query(request): Query<SearchQuery>,
) -> Result<Json<SearchResult>, Refusal> {
    if !(1..=MAX_QUERY_BYTES).contains(&request.q.len()) {
        return Err(Refusal::field("q", format!("must have 1 to {MAX_QUERY_BYTES} bytes")));
    }
    let limit = match request.limit {
        None => DEFAULT_HITS,
        Some(limit) if (1..=MAX_HITS).contains(&limit) => limit,
        Some(_) => return Err(Refusal::field("limit", format!("must be 1 to {MAX_HITS}"))),
    };
    Ok(Json(tenant.search(&request.q, limit).await?))
}
