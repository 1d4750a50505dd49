//! What the server measures of HTTP requests. Labels are bounded whatever is sent: routes are templates of the router,
//! methods those of the API, and statuses classes.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use segno::clock::Clock;

use crate::app::App;
use crate::telemetry::{HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS};

/// The route of requests to paths that are none.
const UNMATCHED: &str = "unmatched";
/// The method of requests that no route takes with the method they have.
const OTHER: &str = "other";

/// Measures a request until its answer begins.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut measured = Measured::begin(&request, app.clock.clone());
    let response = next.run(request).await;
    measured.status = Some(response.status());
    response
}

/// A request that is being answered. A caller that goes away drops it.
struct Measured {
    method: &'static str,
    route: String,
    clock: Arc<dyn Clock>,
    began_ns: u64,
    status: Option<StatusCode>,
}

impl Measured {
    fn begin(request: &Request, clock: Arc<dyn Clock>) -> Self {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        metrics::gauge!(HTTP_IN_FLIGHT).increment(1.0);
        Measured {
            method: method(request.method()),
            route: path.unwrap_or(UNMATCHED).to_owned(),
            began_ns: clock.monotonic_ns(),
            clock,
            status: None,
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        metrics::gauge!(HTTP_IN_FLIGHT).decrement(1.0);
        let taken = self.status != Some(StatusCode::METHOD_NOT_ALLOWED) && self.route != UNMATCHED;
        let method = if taken { self.method } else { OTHER };
        let route = std::mem::take(&mut self.route);
        let status = self.status.map_or("aborted", class);
        metrics::counter!(HTTP_REQUESTS, "method" => method, "route" => route.clone(), "status" => status)
            .increment(1);
        if self.status.is_some() {
            let took_ns = self.clock.monotonic_ns().saturating_sub(self.began_ns);
            metrics::histogram!(HTTP_SECONDS, "method" => method, "route" => route)
                .record(took_ns as f64 / 1e9);
        }
    }
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => OTHER,
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
