//! Server-sent events: what all streams have in common.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use serde::Serialize;

use crate::access::Caller;
use crate::app::Tenant;
use crate::open_requests::OpenPlace;
use crate::problem::{Code, Refusal};

/// A comment is sent after so long without an event, so that nothing in between takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A stream that a caller may have: its place, and whose it is.
pub struct Permitted {
    tenant: Tenant,
    caller: Caller,
    place: OpenPlace,
}

/// A place for a stream.
///
/// # Errors
/// When there are too many.
pub fn place(tenant: &Tenant, caller: Caller) -> Result<Permitted, Refusal> {
    let place = tenant.stream_place()?;
    Ok(Permitted { tenant: tenant.clone(), caller, place })
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

/// The answer that a stream is. When the caller loses its right to it, an event `revoked` is the
/// last one.
pub fn answer(
    permitted: Permitted,
    stream: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let Permitted { tenant, caller, place } = permitted;
    let lost = async move { tenant.until_lost(&caller).await };
    // One check for the whole stream, so that a busy stream does not begin it anew with every event.
    let state = Some((Box::pin(lost), Box::pin(stream), place));
    let stream = stream::unfold(state, |state| async move {
        let (mut lost, mut events, place) = state?;
        tokio::select! {
            biased;
            refusal = &mut lost => Some((Ok(revoked(&refusal)), None)),
            event = events.next() => Some((event?, Some((lost, events, place)))),
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("")).into_response()
}

/// The last event of a stream whose caller may not have it any more.
fn revoked(refusal: &Refusal) -> Event {
    let event = Event::default().event("revoked");
    let data = serde_json::json!({ "code": refusal.code(), "detail": refusal.detail() });
    event.json_data(&data).unwrap_or_default()
}
