//! What happens to all instances of a tenant, as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as SseEvent;
use futures_util::stream::{self, Stream};
use segno::runtime::ChangeKind;
use segno::store::ExecutionStatus;
use segno_api::change::{self as wire, Change, FollowChanges};
use tokio::sync::OwnedSemaphorePermit;

use super::instances::{list, view};
use super::sse;
use crate::access::timestamp;
use crate::app::App;
use crate::events::{Heard, Known, Listener, Position};
use crate::extract::Query;
use crate::listen::until_stopped;
use crate::problem::Refusal;
use crate::scope::{Scope, ScopeParameters};

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
    scope: Scope,
    Query(request): Query<FollowChanges>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let after = sse::last_event(&headers, |text| text.parse::<Position>().ok())?;
    let filter = Filter {
        prefix: scope.stored(request.prefix.as_deref().unwrap_or_default()),
        status: request.status.map(view::engine_status),
        orchestration: request.orchestration,
        label: request.label.as_deref().map(|label| list::parse_label("label", label)).transpose()?,
    };
    let place = sse::place(&app)?;
    let listener = app.hub.listen(after);
    let listening = SseEvent::default().id(listener.place().to_string()).event("listening").data("{}");
    let follower = Follower { app, scope, filter, listener, ready: [listening].into(), _place: place };
    Ok(sse::answer(follower.stream()))
}

/// Which changes. The prefix has the tenant in it.
struct Filter {
    prefix: String,
    status: Option<ExecutionStatus>,
    orchestration: Option<String>,
    label: Option<(String, String)>,
}

impl Filter {
    fn lets_through(&self, change: &Known) -> bool {
        change.instance.starts_with(&self.prefix)
            && self.status.is_none_or(|status| change.status == status)
            && self.orchestration.as_ref().is_none_or(|name| change.orchestration.as_ref() == Some(name))
            && self.label.as_ref().is_none_or(|(key, value)| change.labels.get(key) == Some(value))
    }
}

struct Follower {
    app: App,
    scope: Scope,
    filter: Filter,
    listener: Listener,
    ready: VecDeque<SseEvent>,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            loop {
                if let Some(event) = follower.ready.pop_front() {
                    return Some((Ok(event), follower));
                }
                let stopping = follower.app.stopping.clone();
                let heard = until_stopped(&stopping, follower.listener.hear()).await?;
                // The caller connects again and goes on after the last event.
                follower.ready = follower.shown(heard).ok()?;
            }
        })
    }

    fn shown(&self, heard: Heard) -> Result<VecDeque<SseEvent>, Refusal> {
        match heard {
            Heard::Lagged(place) => {
                let lagged = SseEvent::default().id(place.to_string()).event("lagged");
                let lagged =
                    lagged.data(r#"{"detail":"changes are missing here; list the instances again"}"#);
                Ok([lagged].into())
            }
            Heard::Changes(changes) => {
                let ours = changes.iter().filter(|(_, change)| self.filter.lets_through(change));
                let shown = ours.filter_map(|(place, change)| {
                    let id = self.scope.shown(&change.instance)?;
                    Some(event(place, change, id))
                });
                shown.collect()
            }
        }
    }
}

fn event(place: &Position, known: &Known, id: &str) -> Result<SseEvent, Refusal> {
    let change = Change {
        id: id.to_owned(),
        change: kind(known.kind),
        at: timestamp(known.at_ms),
        execution: known.execution,
        status: view::status(known.status),
        orchestration: known.orchestration.clone(),
        labels: known.labels.clone(),
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
