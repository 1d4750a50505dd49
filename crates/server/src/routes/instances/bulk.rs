//! One thing for many instances.

use axum::Json;
use axum::extract::State;
use segno::limits::MAX_BULK_INSTANCES;
use segno::store::InstanceQuery;
use segno_api::instance::{Bulk, BulkAction, BulkFilter, BulkResult};

use super::{list, view};
use crate::app::App;
use crate::extract::Body;
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};

/// Cancels, pauses, resumes or deletes all instances that match, or counts them (`dry_run`).
#[utoipa::path(post, path = "/v1/instances/bulk", tag = "instances", params(ScopeParameters), request_body = Bulk, responses(
    (status = 200, body = BulkResult),
))]
pub async fn bulk(
    State(app): State<App>,
    scope: Scope,
    Body(request): Body<Bulk>,
) -> Result<Json<BulkResult>, Refusal> {
    if request.filter == BulkFilter::default() {
        return Err(Refusal::field(
            "filter",
            "is empty; say which instances are meant, for all of them prefix \"\"",
        ));
    }
    let limit = match request.limit {
        None => MAX_BULK_INSTANCES,
        Some(limit) if (1..=MAX_BULK_INSTANCES).contains(&limit) => limit,
        Some(_) => return Err(Refusal::field("limit", format!("must be 1 to {MAX_BULK_INSTANCES}"))),
    };
    let mut query = query(&scope, request.filter)?;
    query.cursor = request.cursor.as_deref().map(|cursor| list::decode_cursor(&scope, cursor)).transpose()?;
    let bulk = app.client.bulk(query).limit(limit);
    let reason = request.reason.as_deref().unwrap_or("asked for through the API, together with others");
    let done = match request.action {
        _ if request.dry_run => bulk.count().await,
        BulkAction::Cancel => bulk.cancel(reason).await,
        BulkAction::Pause => bulk.pause(reason).await,
        BulkAction::Resume => bulk.resume().await,
        BulkAction::Delete => bulk.delete(request.force).await,
    };
    let done = done.map_err(|error| Refusal::from_engine(&error, &scope))?;
    let next_cursor = done.next.map(|cursor| list::encode_cursor(&scope, &cursor));
    Ok(Json(BulkResult { matched: done.matched, changed: done.done, next_cursor }))
}

fn query(scope: &Scope, filter: BulkFilter) -> Result<InstanceQuery, Refusal> {
    Ok(InstanceQuery {
        id_prefix: Some(scope.stored(filter.prefix.as_deref().unwrap_or_default())),
        status: filter.status.map(view::engine_status),
        orchestration_name: filter.orchestration,
        label: filter.label.as_deref().map(|label| list::parse_label("filter.label", label)).transpose()?,
        created_from_ms: filter.created_from.map(list::unix_ms),
        created_before_ms: filter.created_before.map(list::unix_ms),
        ..InstanceQuery::default()
    })
}
