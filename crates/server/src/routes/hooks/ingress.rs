//! What senders post to. It needs no key: the route's verification guards it.
//!
//! Nothing is kept of what is refused but a few events, and nothing at all of what goes to a route that is not there:
//! anybody may post, and must not be able to fill the disk.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Uri};
use lru::LruCache;
use segno_actions::hooks::{Accepted, Headers, HookName, Incoming, Refused, Route};
use segno_api::hook::Received;

use crate::app::{App, FoundRoute, Ingress};
use crate::bucket::Bucket;
use crate::extract::{self, Path};
use crate::problem::{Code, Refusal};
use crate::scope::{DEFAULT, SCOPE_PARAMETERS};
use crate::telemetry::{HOOKS_ACCEPTED, HOOKS_BODY_BYTES, HOOKS_RECEIVED, HOOKS_REFUSED};

/// Most routes whose rate is remembered.
const MAX_BUCKETS: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

/// How many requests each route may still take.
pub struct HookRates {
    per_second: Option<u32>,
    buckets: Mutex<LruCache<(segno_actions::functions::Scope, HookName), Bucket>>,
}

impl HookRates {
    /// So many requests per second of each route.
    pub fn new(per_second: Option<u32>) -> Self {
        HookRates { per_second, buckets: Mutex::new(LruCache::new(MAX_BUCKETS)) }
    }

    /// Whether a route may take another request now; takes it.
    pub fn take(&self, route: &Route, now_ms: u64) -> bool {
        if self.per_second.is_none() {
            return true;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (route.scope.clone(), route.name.clone());
        buckets.get_or_insert_mut(key, || Bucket::full(self.per_second, now_ms)).take(self.per_second, now_ms)
    }
}

/// A request that is not taken: why, in a word for the metrics, and the answer.
struct Rejected {
    reason: &'static str,
    refusal: Box<Refusal>,
}

impl Rejected {
    fn new(reason: &'static str, refusal: Refusal) -> Self {
        Rejected { reason, refusal: Box::new(refusal) }
    }
}

/// Takes what a sender posts, whatever it is. Once this has answered, it is on the disk. Which tenant's route it is, the
/// parameter `tenant` says; all other parameters are the route's to use.
#[utoipa::path(post, path = "/v1/hooks/{namespace}/{route}", tag = "hooks", security(()), params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"),
    ("tenant" = Option<String>, Query, description = "Tenant of the route; `default` without it"),
), request_body(content = String, description = "Anything, up to the route's limit", content_type = "*/*"), responses(
    (status = 202, body = Received, description = "It is on the disk"),
))]
pub async fn receive(
    State(app): State<App>,
    ingress: Ingress,
    Path((namespace, route)): Path<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<Received>), Refusal> {
    metrics::counter!(HOOKS_RECEIVED).increment(1);
    match take(&app, ingress, (&namespace, &route), request).await {
        Ok(accepted) => {
            let outcome = accepted.outcome.name();
            metrics::counter!(HOOKS_ACCEPTED, "outcome" => outcome).increment(1);
            let received = Received { id: accepted.id.to_string(), outcome: outcome.to_owned() };
            Ok((StatusCode::ACCEPTED, Json(received)))
        }
        Err(rejected) => {
            metrics::counter!(HOOKS_REFUSED, "reason" => rejected.reason).increment(1);
            tracing::debug!(namespace, route, reason = rejected.reason, "hook.refused");
            Err(*rejected.refusal)
        }
    }
}

async fn take(
    app: &App,
    ingress: Ingress,
    (namespace, route): (&str, &str),
    request: Request,
) -> Result<Accepted, Rejected> {
    let (tenant, params) = parameters(request.uri())?;
    let found = ingress.find(namespace, tenant.as_deref().unwrap_or(DEFAULT), route).await;
    let found = found.map_err(|refusal| Rejected::new("error", refusal))?;
    let found = found.ok_or_else(|| Rejected::new("no_route", no_route(route)))?;
    if !app.hook_rates.take(&found.route, app.clock.now_ms()) {
        let refusal = Refusal::new(Code::RateLimited, "the hook gets more requests than it may; slow down");
        return Err(Rejected::new("rate_limited", refusal));
    }
    let refuse =
        |refused: Refused, found: &FoundRoute| Rejected::new(refused.reason(), refusal_of(&refused, found));
    let (announced, content_type) = announced(request.headers());
    let admitted = ingress.admit(&found, announced, content_type.as_deref());
    admitted.map_err(|refused| refuse(refused, &found))?;
    let headers: Headers =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let body = extract::read(request, app).await.map_err(|refusal| Rejected::new("unreadable", refusal))?;
    let bytes = body.len();
    // Once it has arrived, it is stored and logged, whether or not its sender waits.
    let received = app.detached.run(async move {
        let received = ingress.receive(&found, Incoming { headers, params, body }).await;
        received.map_err(|refused| refuse(refused, &found))
    });
    let accepted = received.await.map_err(|refusal| Rejected::new("error", refusal))??;
    metrics::histogram!(HOOKS_BODY_BYTES).record(bytes as f64);
    Ok(accepted)
}

/// The tenant that the query names, and all else in it.
fn parameters(uri: &Uri) -> Result<(Option<String>, BTreeMap<String, String>), Rejected> {
    let (mut tenant, mut params) = (None, BTreeMap::new());
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if name == "tenant" {
            if tenant.replace(value.into_owned()).is_some() {
                return Err(Rejected::new("invalid", Refusal::field("tenant", "is given twice")));
            }
        } else if !SCOPE_PARAMETERS.contains(&&*name) {
            params.insert(name.into_owned(), value.into_owned());
        }
    }
    Ok((tenant, params))
}

/// What the headers say about the body.
fn announced(headers: &HeaderMap) -> (Option<u64>, Option<String>) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    (text(CONTENT_LENGTH).and_then(|text| text.parse().ok()), text(CONTENT_TYPE).map(str::to_owned))
}

fn no_route(name: &str) -> Refusal {
    Refusal::told(StatusCode::NOT_FOUND, "unknown-hook", format!("there is no hook {name:?}"))
}

fn refusal_of(refused: &Refused, found: &FoundRoute) -> Refusal {
    match refused {
        // Whoever sends to it need not know more than that nobody takes it.
        Refused::Disabled => no_route(found.route.name.as_str()),
        Refused::TooLarge { .. } => Refusal::new(Code::BodyTooLarge, refused.to_string()),
        Refused::WrongType { .. } => Refusal::new(Code::UnsupportedMediaType, refused.to_string()),
        Refused::Unverified(_) => Refusal::new(Code::HookRefused, refused.to_string()),
        Refused::SecretUnavailable => Refusal::new(Code::Unavailable, refused.to_string()),
        Refused::Error(error) => found.refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenant_is_a_parameter_and_the_rest_is_the_routes() {
        let read = |query: &str| parameters(&format!("/x?{query}").parse().unwrap());
        let (tenant, params) = read("a=1&tenant=eu&namespace=x&b=%20&a=2").ok().unwrap();
        assert_eq!(tenant.as_deref(), Some("eu"));
        assert_eq!(params, [("a".to_owned(), "2".to_owned()), ("b".to_owned(), " ".to_owned())].into());
        assert!(read("tenant=a&tenant=b").is_err());
    }
}
