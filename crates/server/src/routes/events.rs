//! What happens to all instances of a tenant, as server-sent events.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as SseEvent;
use futures_util::stream::{self, Stream};
use segno::runtime::ChangeKind;
use segno::store::ExecutionStatus;
use segno_api::change::{self as wire, Change, FollowChanges};
use tokio_util::sync::CancellationToken;

use super::instances::{list, view};
use super::sse;
use crate::access::{Caller, timestamp};
use crate::app::{App, Tenant, TenantChange, TenantListener};
use crate::events::{Known, Position};
use crate::extract::Query;
use crate::listen::until_stopped;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// What happens to instances, as it happens: from now on, or from the event after `Last-Event-ID` if the server still has
/// it.
///
/// The first event is `listening`: what is committed after it will be shown. The others are `change`, with a change as
/// data. After an event `lagged` some are missing; list the instances to see how they stand. Nodes keep the last
/// 10,000 changes, for a minute after the last listener has gone. Changes on other nodes of a cluster arrive within a second,
/// those of the first two seconds of the first listener may be missing.
#[utoipa::path(get, path = "/v1/events", tag = "instances", params(ScopeParameters, FollowChanges,
    ("last-event-id" = Option<String>, Header, description = "Id of the last event that was seen"),
), responses(
    (status = 200, content_type = "text/event-stream", body = Change),
))]
pub async fn events(
    State(app): State<App>,
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Query(request): Query<FollowChanges>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let after = sse::last_event(&headers, |text| text.parse::<Position>().ok())?;
    let filter = Filter {
        prefix: request.prefix.unwrap_or_default(),
        statuses: request.status.into_iter().map(view::engine_status).collect(),
        orchestration: request.orchestration,
        function: request.function,
        labels: list::parse_labels("label", &request.label)?,
    };
    let permitted = sse::place(&tenant, caller)?;
    let listener = tenant.changes(after);
    let listening = SseEvent::default().id(listener.place().to_string()).event("listening").data("{}");
    let stopping = app.stopping.clone();
    let follower = Follower { tenant, stopping, filter, listener, ready: [listening].into() };
    Ok(sse::answer(permitted, follower.stream()))
}

/// Which changes.
struct Filter {
    prefix: String,
    statuses: BTreeSet<ExecutionStatus>,
    orchestration: Option<String>,
    function: Option<String>,
    labels: BTreeSet<(String, String)>,
}

impl Filter {
    fn lets_through(&self, tenant: &Tenant, id: &str, change: &Known) -> bool {
        let function = || tenant.function_of(&change.labels);
        id.starts_with(&self.prefix)
            && (self.statuses.is_empty() || self.statuses.contains(&change.status))
            && self.orchestration.as_ref().is_none_or(|name| change.orchestration.as_ref() == Some(name))
            && self.function.as_ref().is_none_or(|name| function() == Some(name.as_str()))
            && self.labels.iter().all(|(key, value)| change.labels.get(key) == Some(value))
    }
}

struct Follower {
    tenant: Tenant,
    stopping: CancellationToken,
    filter: Filter,
    listener: TenantListener,
    ready: VecDeque<SseEvent>,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            loop {
                if let Some(event) = follower.ready.pop_front() {
                    return Some((Ok(event), follower));
                }
                let stopping = follower.stopping.clone();
                let heard = until_stopped(&stopping, follower.listener.hear()).await?;
                // The caller connects again and goes on after the last event.
                follower.ready = follower.shown(heard).ok()?;
            }
        })
    }

    fn shown(&self, heard: Result<Vec<TenantChange>, Position>) -> Result<VecDeque<SseEvent>, Refusal> {
        match heard {
            Err(place) => {
                let lagged = SseEvent::default().id(place.to_string()).event("lagged");
                let lagged =
                    lagged.data(r#"{"detail":"changes are missing here; list the instances again"}"#);
                Ok([lagged].into())
            }
            Ok(changes) => {
                let wanted = changes
                    .into_iter()
                    .filter(|change| self.filter.lets_through(&self.tenant, &change.id, &change.known));
                wanted.map(|change| event(&self.tenant, change)).collect()
            }
        }
    }
}

fn event(tenant: &Tenant, TenantChange { place, id, known }: TenantChange) -> Result<SseEvent, Refusal> {
    let view::MadeOf { function, kind: made_by, labels } = view::made_of(tenant, &known.labels);
    let change = Change {
        id,
        change: kind(known.kind),
        at: timestamp(known.at_ms),
        execution: known.execution,
        status: view::status(known.status),
        orchestration: known.orchestration.clone(),
        function,
        kind: made_by,
        labels,
    };
    sse::with_data(SseEvent::default().id(place.to_string()).event("change"), &change)
}

fn kind(kind: ChangeKind) -> wire::ChangeKind {
    match kind {
        ChangeKind::Started => wire::ChangeKind::Started,
        ChangeKind::StatusChanged => wire::ChangeKind::StatusChanged,
        ChangeKind::Paused => wire::ChangeKind::Paused,
        ChangeKind::Resumed => wire::ChangeKind::Resumed,
        ChangeKind::ContinuedAsNew => wire::ChangeKind::ContinuedAsNew,
        ChangeKind::Completed => wire::ChangeKind::Completed,
        ChangeKind::Failed => wire::ChangeKind::Failed,
        ChangeKind::Cancelled => wire::ChangeKind::Cancelled,
    }
}
