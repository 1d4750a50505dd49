//! `wait_ms` of a start: the end of the instance is waited for once the start is stored, with its
//! audit entry and its answer under the idempotency key. The wait is the connection's: it ends when
//! the caller goes away, or loses its key.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use segno_api::instance::Started;

use super::view;
use crate::access::{Caller, Need};
use crate::app::{App, Tenant};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;

/// As an extension of an answer: what is waited for before it is sent.
#[derive(Clone)]
pub struct AwaitedEnd {
    /// Whose instance it is.
    pub tenant: Tenant,
    /// The key that the answer is kept under.
    pub repeat: RepeatSafe,
    /// The answer without the end.
    pub started: Started,
    /// How long the caller wants to wait.
    pub wait: Duration,
}

/// Waits for the end that an answer is to have.
pub async fn layer(State((app, need)): State<(App, Need)>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned().unwrap_or_else(Caller::anonymous);
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<AwaitedEnd>() {
        Some(awaited) => awaited.answer(&app, (&caller, need), response).await,
        None => response,
    }
}

impl AwaitedEnd {
    /// The answer with the instance, if that ends in time. It was started, whatever becomes of the
    /// wait.
    async fn answer(self, app: &App, (caller, need): (&Caller, Need), response: Response) -> Response {
        let ended = match app.while_allowed(caller, need, self.ended()).await {
            Ok(ended) => ended,
            Err(refusal) if refusal.status().is_server_error() => return response,
            Err(refusal) => return self.cut_off(refusal, &response),
        };
        let Ok(Some(body)) = ended else { return response };
        let (parts, _) = response.into_parts();
        let response = Response::from_parts(parts, Body::from(body));
        match self.repeat.keyed() {
            Some(keyed) => keyed.keep_instead(app, response).await,
            None => response,
        }
    }

    /// The answer to a caller that has lost its key. It has the address of the instance, as the
    /// answer without the end.
    fn cut_off(&self, refusal: Refusal, started: &Response) -> Response {
        let done = if self.started.created { "was started" } else { "exists" };
        let done = format!("the instance {:?} {done}; while its end was awaited", self.started.id);
        let mut response = refusal.after(&done).into_response();
        if let Some(location) = started.headers().get(header::LOCATION) {
            response.headers_mut().insert(header::LOCATION, location.clone());
        }
        response
    }

    /// The body with the instance that has ended; `None` when it has not, or too many requests
    /// wait.
    async fn ended(&self) -> Result<Option<Vec<u8>>, Refusal> {
        // Without a place, the caller can still request the end.
        let Ok(_place) = self.tenant.wait_place() else { return Ok(None) };
        let Some(ended) = self.tenant.ended(&self.started.id, self.wait).await? else { return Ok(None) };
        let instance = Some(Box::new(view::instance(&self.tenant, ended)?));
        Ok(serde_json::to_vec(&Started { instance, ..self.started.clone() }).ok())
    }
}
