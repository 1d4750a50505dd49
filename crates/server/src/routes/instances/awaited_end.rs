//! `wait_ms` of a start: the end of the instance is waited for once the start is stored, with its
//! audit entry and its answer under the idempotency key. The wait is the connection's: it ends when
//! the caller goes away.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use segno_api::instance::Started;

use super::view;
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
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<AwaitedEnd>() {
        Some(awaited) => awaited.answer(&app, response).await,
        None => response,
    }
}

impl AwaitedEnd {
    /// The answer with the instance, if that ends in time. It was started, whatever becomes of the
    /// wait.
    async fn answer(self, app: &App, response: Response) -> Response {
        let Ok(Some(body)) = self.ended().await else { return response };
        let (parts, _) = response.into_parts();
        let response = Response::from_parts(parts, Body::from(body));
        match self.repeat.keyed() {
            Some(keyed) => keyed.keep_instead(app, response).await,
            None => response,
        }
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
