//! An id for every request: in the answer's `x-request-id`, in problems, in the log and in the audit log.

use std::future::Future;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;
use crate::trace;

/// The header that carries the id.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over from a caller, in bytes.
const MAX_BYTES: usize = 128;

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request that is being answered.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Makes a future part of the current request, also in another task.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = current();
    async move {
        match current {
            Some(id) => CURRENT.scope(id, work).await,
            None => work.await,
        }
    }
}

/// Takes the caller's id if it is sound, else makes one; the span of the request has it too.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let given = request.headers().get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
    let sound = given
        .filter(|id| !id.is_empty() && id.len() <= MAX_BYTES && id.bytes().all(|b| b.is_ascii_graphic()));
    let id = sound.map_or_else(|| app.ids.new_uuid().to_string(), str::to_owned);
    let value = HeaderValue::from_str(&id).ok();
    let span = trace::span(&request, &id);
    let mut response = CURRENT.scope(id, next.run(request)).instrument(span.clone()).await;
    trace::answered(&span, &response);
    if let Some(value) = value {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}
