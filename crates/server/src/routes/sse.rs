//! Server-sent events: what all streams have in common.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::Stream;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::problem::{Code, Refusal};

/// A comment is sent after so long without an event, so that nothing in between takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A place for a stream, held as long as it lasts.
///
/// # Errors
/// When there are too many.
pub fn place(app: &App) -> Result<OwnedSemaphorePermit, Refusal> {
    app.streams.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(
            Code::TooManyStreams,
            "too many streams are open on this server; close some, or ask again later",
        )
    })
}

/// The last event that a caller has seen, if it says so.
///
/// # Errors
/// When it is not the id of an event.
pub fn last_event<T>(
    headers: &HeaderMap,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seen = value.to_str().ok().and_then(parse);
    seen.map(Some).ok_or_else(|| {
        Refusal::field("Last-Event-ID", "is not the id of an event of this stream, as in 1-17")
    })
}

/// The data of an event.
///
/// # Errors
/// When it cannot be sent.
pub fn with_data(event: Event, data: &impl Serialize) -> Result<Event, Refusal> {
    event.json_data(data).map_err(|_| Refusal::new(Code::Internal, "an event cannot be sent"))
}

/// The answer that a stream is.
pub fn answer(stream: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("")).into_response()
}
