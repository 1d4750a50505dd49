//! Traces: a span for every request, and the W3C trace context that instances are started with.
//!
//! Spans are those of `tracing`. Whoever exports them makes the field `traceparent` the parent of a span, and says here
//! which context the current span has.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use segno::client::{RestartCall, StartCall};
use tracing::Span;
use tracing::field::Empty;

use crate::app::App;

pub use segno_actions::telemetry::CurrentTrace;

/// The span of a request, with fields that are named as OpenTelemetry names them.
pub fn span(request: &Request, request_id: &str) -> Span {
    let route = || request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    tracing::debug_span!(
        "segno.request",
        otel.kind = "server",
        otel.name = format!("{} {}", request.method(), route().unwrap_or_default()).trim_end(),
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        http.route = route(),
        http.response.status_code = Empty,
        request_id,
        traceparent = sent(request.headers()),
    )
}

/// Adds to the span of a request how it was answered.
pub fn answered(span: &Span, response: &Response) {
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// The trace context for an instance that a request starts: that of the request's span, else the caller's.
#[derive(Clone)]
pub struct TraceContext(Option<String>);

impl TraceContext {
    /// Hands it to the instance.
    pub fn hand_to<O>(self, call: StartCall<O>) -> StartCall<O> {
        match self.0 {
            Some(traceparent) => call.traceparent(traceparent),
            None => call,
        }
    }

    /// The same for one that is started again.
    pub fn hand_to_restart(self, call: RestartCall) -> RestartCall {
        match self.0 {
            Some(traceparent) => call.traceparent(traceparent),
            None => call,
        }
    }
}

impl FromRequestParts<App> for TraceContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let current = app.current_trace.and_then(|current| current());
        Ok(TraceContext(current.or_else(|| sent(&parts.headers).map(str::to_owned))))
    }
}

/// The trace context of the caller, if it is one; others are passed over, as W3C has it.
fn sent(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (lengths == [2, 32, 16, 2] && is_hex).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_context_is_handed_on() {
        let sound = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (text, handed_on) in
            [(sound, true), ("", false), ("00-1-2-01", false), (&sound.replace('f', "g"), false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().unwrap());
            assert_eq!(sent(&headers).is_some(), handed_on, "{text}");
        }
    }
}
