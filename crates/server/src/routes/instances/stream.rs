//! The events of one instance as they happen, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use tokio::sync::OwnedSemaphorePermit;

use super::find::find;
use super::view;
use crate::app::App;
use crate::extract::Path;
use crate::listen::until_stopped;
use crate::problem::{Code, Refusal};
use crate::scope::{Scope, ScopeParameters};

/// A comment is sent after so long without an event, so that nothing in between takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Between two looks when nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

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
    scope: Scope,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let instance = scope.stored(&id);
    let found = find(&app, &scope, &id).await?;
    let seen = match headers.get("last-event-id") {
        None => (found.execution_id, 0),
        Some(text) => text.to_str().ok().and_then(parse_id).ok_or_else(|| {
            Refusal::field("Last-Event-ID", "is not the id of an event of this stream, as in 1-17")
        })?,
    };
    let place = app.streams.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(
            Code::TooManyStreams,
            "too many streams are open on this server; close some, or ask again later",
        )
    })?;
    let follower =
        Follower { app, scope, instance, seen, revision: 0, ready: Vec::new(), ended: false, _place: place };
    let keep_alive = KeepAlive::new().interval(HEARTBEAT).text("");
    Ok(Sse::new(follower.stream()).keep_alive(keep_alive).into_response())
}

fn parse_id(text: &str) -> Option<(u64, u64)> {
    let (execution, event) = text.split_once('-')?;
    Some((execution.parse().ok()?, event.parse().ok()?))
}

struct Follower {
    app: App,
    scope: Scope,
    instance: String,
    /// Execution and event that were sent last.
    seen: (u64, u64),
    /// Up to which commit was looked.
    revision: u64,
    /// To be sent, last one first.
    ready: Vec<SseEvent>,
    ended: bool,
    _place: OwnedSemaphorePermit,
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
                let stopping = follower.app.stopping.clone();
                match until_stopped(&stopping, follower.look()).await {
                    Some(Ok(())) => {}
                    // The caller connects again and goes on after the last event.
                    Some(Err(_)) | None => return None,
                }
            }
        })
    }

    /// Waits for something new and reads it.
    async fn look(&mut self) -> Result<(), Refusal> {
        let refused = |error: segno::Error| Refusal::from_engine(&error, &self.scope);
        let found = match self.app.client.wait_for_revision(&self.instance, self.revision, LOOK_AGAIN).await {
            Ok(found) => found,
            Err(error) if error.code() == segno::Code::WaitTimedOut => return Ok(()),
            Err(error) => return Err(refused(error)),
        };
        self.revision = found.revision;
        let mut events = Vec::new();
        let (first, _) = self.seen;
        for execution in self.app.client.executions(&self.instance).await.map_err(refused)? {
            if execution < first {
                continue;
            }
            for event in
                self.app.client.history_of_execution(&self.instance, execution).await.map_err(refused)?
            {
                if (execution, event.event_id) <= self.seen {
                    continue;
                }
                self.seen = (execution, event.event_id);
                let shown = view::event(&event)?;
                let sse =
                    SseEvent::default().id(format!("{execution}-{}", event.event_id)).event(&shown.kind);
                events.push(
                    sse.json_data(&shown)
                        .map_err(|_| Refusal::new(Code::Internal, "an event cannot be sent"))?,
                );
            }
        }
        if found.has_ended() {
            let shown = view::instance(&self.scope, found)?;
            let sse = SseEvent::default().event("end");
            events.push(
                sse.json_data(&shown).map_err(|_| Refusal::new(Code::Internal, "an event cannot be sent"))?,
            );
            self.ended = true;
        }
        events.reverse();
        self.ready = events;
        Ok(())
    }
}
