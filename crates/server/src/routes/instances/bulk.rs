//! One thing for many instances.

use axum::Json;
use segno::client::BulkPreview;
use segno::limits::MAX_BULK_INSTANCES;
use segno_api::instance::{Bulk, BulkAction, BulkFilter, BulkLeft, BulkResult};

use super::steer::reason_or;
use super::{list, view};
use crate::app::{BulkChange, InstanceFilter, Tenant};
use crate::extract::Body;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What is written into histories when a caller gives no reason.
const NO_REASON: &str = "asked for through the API, together with others";

/// Cancels, pauses, resumes or deletes all instances that match, or counts them (`dry_run`). What does not fit into the time of
/// a request is left for the next one, which goes on at `next_cursor`.
#[utoipa::path(post, path = "/v1/instances/bulk", tag = "instances", params(ScopeParameters), request_body = Bulk, responses(
    (status = 200, body = BulkResult),
))]
pub async fn bulk(tenant: Tenant, Body(request): Body<Bulk>) -> Result<Json<BulkResult>, Refusal> {
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
    let cursor = request.cursor.as_deref().map(list::decode_cursor).transpose()?;
    let filter = InstanceFilter { cursor, limit, ..filter(request.filter)? };
    let reason = reason_or(request.reason, NO_REASON)?;
    let change = match request.action {
        BulkAction::Delete if request.dry_run && request.force => BulkChange::Count(BulkPreview::ForceDelete),
        BulkAction::Delete if request.dry_run => BulkChange::Count(BulkPreview::Delete),
        _ if request.dry_run => BulkChange::Count(BulkPreview::Send),
        BulkAction::Cancel => BulkChange::Cancel { reason },
        BulkAction::Pause => BulkChange::Pause { reason },
        BulkAction::Resume => BulkChange::Resume,
        BulkAction::Delete => BulkChange::Delete { force: request.force },
    };
    let done = tenant.bulk(filter, change).await?;
    let next_cursor = done.next.map(|cursor| list::encode_cursor(&cursor));
    let (changed, would_change) = match request.dry_run {
        true => (0, Some(done.done)),
        false => (done.done, None),
    };
    let left = BulkLeft {
        batch_calls: done.left.passed_over,
        ended: done.left.ended,
        running: done.left.running,
        children: done.left.children,
        gone: done.left.gone,
        unreadable: done.left.unreadable,
    };
    Ok(Json(BulkResult { matched: done.matched, changed, would_change, left, next_cursor }))
}

fn filter(filter: BulkFilter) -> Result<InstanceFilter, Refusal> {
    Ok(InstanceFilter {
        prefix: filter.prefix,
        statuses: filter.status.into_iter().map(view::engine_status).collect(),
        orchestration: filter.orchestration,
        function: filter
            .function
            .as_deref()
            .map(|name| list::parse_function("filter.function", name))
            .transpose()?,
        labels: list::parse_labels("filter.label", &filter.label)?,
        created_from_ms: filter.created_from.map(list::unix_ms),
        created_before_ms: filter.created_before.map(list::unix_ms),
        ..InstanceFilter::default()
    })
}
