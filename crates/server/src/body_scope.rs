//! Namespace and tenant in the body of a request, as callers of recurring actions may send them.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use segno_actions::objects::Objects;
use serde::Deserialize;

use crate::access::Caller;
use crate::app::App;
use crate::extract;
use crate::problem::Refusal;
use crate::refused;
use crate::scope::Scope;

/// What of a body this is about; the rest is for the route to read.
#[derive(Default, Deserialize)]
struct Named {
    namespace: Option<String>,
    tenant: Option<String>,
}

/// Takes namespace and tenant from the body when they are there. The query may say the same, and nothing else.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        return next.run(request).await;
    }
    match scoped(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The owner of the work to find out the tenant, which is not known yet: the key of the caller, so that no tenant's queue is
/// filled by callers that are not its own.
fn caller(parts: &Parts) -> Scope {
    let key = parts.extensions.get::<Caller>().and_then(Caller::key_id);
    key.and_then(|key| Scope::new("api-keys", key).ok()).unwrap_or_default()
}

async fn scoped(app: &App, request: Request) -> Result<Request, Refusal> {
    let (mut parts, body) = request.into_parts();
    let read = extract::read(Request::from_parts(parts.clone(), body), app).await;
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(refusal) => {
            refused::note(app, &mut parts, None, &refusal).await;
            return Err(refusal);
        }
    };
    // A body that cannot be read is refused by the route, with the reason.
    let read = |bytes: Bytes| {
        let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
        Named::deserialize(Objects(&mut deserializer)).unwrap_or_default()
    };
    let named = extract::off_thread(&caller(&parts), bytes.clone(), read).await?;
    if named.namespace.is_some() || named.tenant.is_some() {
        match Scope::named(&parts, named.namespace.clone(), named.tenant.clone()) {
            Ok(scope) => drop(parts.extensions.insert(scope)),
            Err(refusal) => {
                let meant = Scope::meant(&parts, named.namespace, named.tenant).ok();
                refused::note(app, &mut parts, meant, &refusal).await;
                return Err(refusal);
            }
        }
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
