//! The events of one instance as they happen, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::response::sse::Event as SseEvent;
use futures_util::stream::{self, Stream};
use segno::client::Instance;
use segno::store::HistoryQuery;
use tokio_util::sync::CancellationToken;

use super::super::sse;
use super::view;
use crate::access::Caller;
use crate::app::{App, Tenant};
use crate::extract::Path;
use crate::listen::until_stopped;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Between two looks when nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Events that are read at once. Each may be as large as a payload, and every open stream holds as many.
const PAGE_EVENTS: usize = 16;

/// The events of an instance, from the first one or from the one after `Last-Event-ID`, until it has ended.
///
/// The id of an event is `<execution>-<event>`, its name the kind, its data a history event. When the instance has ended,
/// an event `end` follows with the instance as data, and the stream is over.
#[utoipa::path(get, path = "/v1/instances/{id}/events", tag = "instances", params(
    ("id" = String, Path, description = "Id of the instance"), ScopeParameters,
    ("last-event-id" = Option<String>, Header, description = "Id of the last event that was seen"),
), responses(
    (status = 200, content_type = "text/event-stream", body = String),
))]
pub async fn events(
    State(app): State<App>,
    tenant: Tenant,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let found = tenant.instance_in_store(&id).await?;
    let seen = sse::last_event(&headers, parse_id)?.unwrap_or((found.execution_id, 0));
    let permitted = sse::place(&tenant, caller)?;
    let follower = Follower {
        stopping: app.stopping.clone(),
        tenant,
        id,
        seen,
        latest: found,
        looked: false,
        ready: Vec::new(),
        ended: false,
    };
    Ok(sse::answer(permitted, follower.stream()))
}

fn parse_id(text: &str) -> Option<(u64, u64)> {
    let (execution, event) = text.split_once('-')?;
    Some((execution.parse().ok()?, event.parse().ok()?))
}

struct Follower {
    stopping: CancellationToken,
    tenant: Tenant,
    id: String,
    /// Execution and event that were sent last.
    seen: (u64, u64),
    /// The instance as it was when it was last looked at.
    latest: Instance,
    /// Whether everything up to there was sent.
    looked: bool,
    /// To be sent, last one first.
    ready: Vec<SseEvent>,
    ended: bool,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            loop {
                if let Some(event) = follower.ready.pop() {
                    return Some((Ok(event), follower));
                }
                if follower.ended {
                    return None;
                }
                let stopping = follower.stopping.clone();
                match until_stopped(&stopping, follower.look()).await {
                    Some(Ok(())) => {}
                    // The caller connects again and goes on after the last event.
                    Some(Err(_)) | None => return None,
                }
            }
        })
    }

    /// Reads a page of what is new, and waits for it first if everything was sent.
    async fn look(&mut self) -> Result<(), Refusal> {
        if self.looked {
            match self.tenant.changed(&self.id, self.latest.revision, LOOK_AGAIN).await? {
                Some(found) => self.latest = found,
                // A caller that waits for something that was deleted should know.
                None => return self.tenant.instance(&self.id).await.map(drop),
            }
            self.looked = false;
        }
        let (execution, after) = self.seen;
        let query = HistoryQuery {
            instance_id: self.id.clone(),
            execution_id: execution,
            after_event_id: after,
            limit: PAGE_EVENTS,
        };
        let (mut ready, is_last_page) = match self.tenant.whole_events(query).await {
            Ok((events, next)) => {
                self.seen.1 = events.last().map_or(after, |event| event.event_id);
                let shown = events.iter().map(|event| shown(execution, event));
                (shown.collect::<Result<Vec<_>, _>>()?, next.is_none())
            }
            // Not begun yet, or pruned.
            Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => (Vec::new(), true),
            Err(refusal) => return Err(refusal),
        };
        if is_last_page && execution < self.latest.execution_id {
            self.seen = (self.execution_after(execution).await?, 0);
        } else if is_last_page {
            self.looked = true;
            if self.latest.has_ended() {
                let instance = view::instance(&self.tenant, self.latest.clone())?;
                ready.push(sse::with_data(SseEvent::default().event("end"), &instance)?);
                self.ended = true;
            }
        }
        ready.reverse();
        self.ready = ready;
        Ok(())
    }

    /// The next execution that is stored. They have gaps where some were pruned.
    async fn execution_after(&self, execution: u64) -> Result<u64, Refusal> {
        if execution + 1 == self.latest.execution_id {
            return Ok(self.latest.execution_id);
        }
        let stored = self.tenant.executions(&self.id).await?;
        Ok(stored.into_iter().find(|next| *next > execution).unwrap_or(self.latest.execution_id))
    }
}

fn shown(execution: u64, event: &segno::event::Event) -> Result<SseEvent, Refusal> {
    let shown = view::event(event)?;
    let sse = SseEvent::default().id(format!("{execution}-{}", event.event_id)).event(&shown.kind);
    sse::with_data(sse, &shown)
}
