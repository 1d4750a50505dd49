//! One change for many instances.

use axum::Json;
use axum::response::{IntoResponse, Response};
use segno::client::{BulkObstacle, BulkPreview, BulkResult as Done};
use segno::limits::MAX_BULK_INSTANCES;
use segno_api::bulk::{Bulk, BulkAction, BulkFilter, BulkLeft, BulkResult, LeftInstance};
use segno_api::instance::ListInstances;

use super::list;
use super::selection::{Selection, select};
use super::steer::reason_or;
use crate::app::{BulkChange, BulkTarget, InstanceFilter, Tenant};
use crate::audit;
use crate::extract::Body;
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;
use crate::trace::TraceContext;

/// What is written into histories when a caller gives no reason.
const NO_REASON: &str = "asked for through the API, together with others";

/// Cancels, pauses, resumes, deletes, restarts or retries all instances that match or are named, or counts them (`dry_run`). What
/// does not fit into the time of a request is left for the next one, which goes on at `next_cursor`. Repeated with the same
/// `Idempotency-Key`, also after the server was killed, it has one effect.
#[utoipa::path(post, path = "/v1/instances/bulk", tag = "instances", params(ScopeParameters), request_body = Bulk, responses(
    (status = 200, body = BulkResult),
))]
pub async fn bulk(
    tenant: Tenant,
    repeat: RepeatSafe,
    trace: TraceContext,
    Body(request): Body<Bulk>,
) -> Result<Response, Refusal> {
    let limit = match request.limit {
        None => MAX_BULK_INSTANCES,
        Some(limit) if (1..=MAX_BULK_INSTANCES).contains(&limit) => limit,
        Some(_) => return Err(Refusal::field("limit", format!("must be 1 to {MAX_BULK_INSTANCES}"))),
    };
    let given = request.reason.clone();
    let reason = reason_or(request.reason, NO_REASON)?;
    let (target, selection) = target(&tenant, request.filter, request.ids, request.cursor, limit).await?;
    let change = match request.action {
        action if request.dry_run => BulkChange::Count(preview(action, request.force)),
        BulkAction::Cancel => BulkChange::Cancel { reason },
        BulkAction::Pause => BulkChange::Pause { reason },
        BulkAction::Resume => BulkChange::Resume,
        BulkAction::Delete => BulkChange::Delete { force: request.force },
        BulkAction::Restart => BulkChange::Restart { force: request.force, repeat, trace },
        BulkAction::Retry => BulkChange::Retry,
    };
    let mut done = match target {
        BulkTarget::Ids { ids, .. } if ids.is_empty() => Done::default(),
        target => tenant.bulk(target, change).await?,
    };
    if let Some(selection) = selection {
        done.next = selection.after(done.next);
    }
    Ok(audit::with_reason(Json(shown(done, request.dry_run)).into_response(), given))
}

fn preview(action: BulkAction, force: bool) -> BulkPreview {
    match action {
        BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume => BulkPreview::Send,
        BulkAction::Delete if force => BulkPreview::ForceDelete,
        BulkAction::Delete => BulkPreview::Delete,
        BulkAction::Restart if force => BulkPreview::ForceRestart,
        BulkAction::Restart => BulkPreview::Restart,
        BulkAction::Retry => BulkPreview::Retry,
    }
}

/// What is meant, and where it was found if rows had to be looked at.
async fn target(
    tenant: &Tenant,
    given: BulkFilter,
    ids: Vec<String>,
    cursor: Option<String>,
    limit: usize,
) -> Result<(BulkTarget, Option<Selection>), Refusal> {
    let cursor = cursor.as_deref().map(list::decode_cursor).transpose()?;
    let has_filter = given != BulkFilter::default();
    match (has_filter, ids.len()) {
        (true, 0) => {
            let (filter, wanted) = filter(given)?;
            let filter = InstanceFilter { cursor, limit, ..filter };
            if wanted.is_all() {
                return Ok((BulkTarget::Matching(filter), None));
            }
            let selection = select(tenant, filter, &wanted).await?;
            let ids = selection.ids();
            Ok((BulkTarget::Ids { limit: ids.len(), ids, after: None }, Some(selection)))
        }
        (true, _) => Err(Refusal::field("ids", "and filter are both given; give one of them")),
        (false, 0) => Err(Refusal::field(
            "filter",
            "is empty, and so are the ids; say which instances are meant, for all of them prefix \"\"",
        )),
        (false, 1..=MAX_BULK_INSTANCES) => {
            Ok((BulkTarget::Ids { ids, after: cursor.map(|cursor| cursor.instance_id), limit }, None))
        }
        (false, many) => {
            let detail = format!("are {many}, and one call takes at most {MAX_BULK_INSTANCES}");
            Err(Refusal::field("ids", detail))
        }
    }
}

fn shown(done: Done, is_dry_run: bool) -> BulkResult {
    let next_cursor = done.next.map(|cursor| list::encode_cursor(&cursor));
    let (changed, would_change) = match is_dry_run {
        true => (0, Some(done.done)),
        false => (done.done, None),
    };
    let left = BulkLeft {
        batch_calls: done.left.passed_over,
        ended: done.left.ended,
        running: done.left.running,
        children: done.left.children,
        not_waiting: done.left.not_waiting,
        refused: done.left.refused,
        gone: done.left.gone,
        unreadable: done.left.unreadable,
    };
    let left_sample = done.left_sample.into_iter();
    let left_sample =
        left_sample.map(|(id, obstacle)| LeftInstance { id, reason: in_words(obstacle).to_owned() });
    BulkResult {
        matched: done.matched,
        changed,
        would_change,
        sample: done.sample,
        left,
        left_sample: left_sample.collect(),
        next_cursor,
    }
}

fn in_words(obstacle: BulkObstacle) -> &'static str {
    match obstacle {
        BulkObstacle::PassedOver => "its batch or run decides about it",
        BulkObstacle::Ended => "it has ended",
        BulkObstacle::Running => "it or a child of it runs",
        BulkObstacle::Child => "it is a child, deleted with its root",
        BulkObstacle::NotWaiting => "none of its activities waits for its next attempt",
        BulkObstacle::Refused => "it cannot be started as it was",
        BulkObstacle::Gone => "it does not exist",
        BulkObstacle::Unreadable => "it cannot be read",
    }
}

/// What of a filter the indexes find, and what is looked for row by row.
fn filter(filter: BulkFilter) -> Result<(InstanceFilter, list::Wanted), Refusal> {
    let wanted = list::Wanted::of(&ListInstances {
        failure: filter.failure,
        ended_from: filter.ended_from,
        ended_before: filter.ended_before,
        longer_than_ms: filter.longer_than_ms,
        shorter_than_ms: filter.shorter_than_ms,
        ..ListInstances::default()
    });
    let found = InstanceFilter {
        prefix: filter.prefix,
        statuses: wanted.states(filter.status),
        orchestration: filter.orchestration,
        function: filter
            .function
            .as_deref()
            .map(|name| list::parse_function("filter.function", name))
            .transpose()?,
        labels: list::parse_labels("filter.label", &filter.label)?,
        parent: filter.parent,
        created_from_ms: filter.created_from.map(list::unix_ms),
        created_before_ms: filter.created_before.map(list::unix_ms),
        ..InstanceFilter::default()
    };
    Ok((found, wanted))
}
