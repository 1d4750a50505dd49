//! `Idempotency-Key`: a request that is sent again gets the answer of the first time.
//!
//! The claim on a key is stored before the work begins, and the answer with it after. Work that was cut off by a crash is
//! done again under the same key, and routes take their ids from it ([`RepeatSafe`]), so that it has one effect.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use segno::clock;
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::access::Caller;
use crate::app::App;
use crate::extract;
use crate::problem::{Code, Refusal};

/// The header.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Says that an answer is that of an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Kind of the records.
const KIND: &str = "segno.idempotency";

/// How long an answer is kept.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a claim without an answer holds: longer than any request may take.
const CLAIM: Duration = Duration::from_secs(120);

/// An answer waits so long for being kept, or for its claim to be released.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Longest key in bytes.
const MAX_KEY_BYTES: usize = 255;

/// Largest answer that is kept, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Headers of an answer that are kept.
const KEPT_HEADERS: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];

/// What a route makes ids from, so that the same request twice makes the same thing once.
#[derive(Debug, Clone)]
pub struct RepeatSafe(Option<Arc<str>>);

impl RepeatSafe {
    /// An id that is the same whenever this request is repeated; `None` when the caller gave no key.
    pub fn id(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The same as a UUID.
    pub fn uuid(&self) -> Option<uuid::Uuid> {
        let hash = Sha256::digest(self.id()?.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Some(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RepeatSafe {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<RepeatSafe>().cloned().unwrap_or(RepeatSafe(None)))
    }
}

/// As an extension of an answer: what is kept of it in place of its body, because the body has a secret.
#[derive(Debug, Clone)]
pub struct KeptInstead(pub Bytes);

#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    /// SHA-256 of the request, in base64.
    request: String,
    answer: Option<Answer>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    /// In base64.
    body: String,
}

/// Answers that are kept for repeated requests.
pub struct Idempotency {
    store: Arc<dyn Store>,
}

enum Claim {
    /// The work is ours; the version of the claim.
    Ours(u64),
    /// The work was done.
    Done(Answer),
}

impl Idempotency {
    /// Kept in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Idempotency { store }
    }

    async fn claim(&self, id: &str, request: &str) -> Result<Claim, Refusal> {
        loop {
            let Some(record) = self.store.get_record(KIND, id).await? else {
                let body = StoredAnswer { request: request.to_owned(), answer: None };
                match self.put(id, Expect::Absent, CLAIM, &body).await {
                    Ok(version) => return Ok(Claim::Ours(version)),
                    Err(error) if error.kind() == ErrorKind::Conflict => continue,
                    Err(error) => return Err(error.into()),
                }
            };
            let stored: StoredAnswer = serde_json::from_slice(&record.body).map_err(|error| {
                tracing::error!(%error, "a stored answer cannot be read");
                Refusal::new(
                    Code::Internal,
                    "the answer that was kept for this idempotency key cannot be read",
                )
            })?;
            if stored.request != request {
                let detail = "the idempotency key was used for another request; use a new key for each";
                return Err(Refusal::new(Code::IdempotencyMismatch, detail));
            }
            return match stored.answer {
                Some(answer) => Ok(Claim::Done(answer)),
                None => Err(Refusal::new(
                    Code::IdempotencyInFlight,
                    "a request with this idempotency key is being worked on; ask again",
                )),
            };
        }
    }

    async fn put(
        &self,
        id: &str,
        expect: Expect,
        life: Duration,
        body: &StoredAnswer,
    ) -> Result<u64, segno::store::ProviderError> {
        let write = RecordWrite::Put {
            kind: KIND.to_owned(),
            id: id.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: Some(life),
            body: serde_json::to_vec(body).unwrap_or_default().into(),
        };
        let versions =
            self.store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await?;
        Ok(versions.first().copied().unwrap_or_default())
    }

    async fn release(&self, id: &str, version: u64) {
        let write = RecordWrite::Delete {
            kind: KIND.to_owned(),
            id: id.to_owned(),
            expect: Expect::Version(version),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        if let Err(error) = self.store.commit_records(batch).await {
            tracing::debug!(%error, "a claim on an idempotency key stays until its time is over");
        }
    }
}

/// Answers a repeated POST with the first answer.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let keyed = *request.method() == Method::POST && request.headers().contains_key(IDEMPOTENCY_KEY);
    if !keyed {
        return next.run(request).await;
    }
    match answer(&app, request, next).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(app: &App, request: Request, next: Next) -> Result<Response, Refusal> {
    let key = key_of(&request)?;
    let (parts, body) = request.into_parts();
    let body = extract::read(Request::from_parts(parts.clone(), body), app).await?;
    let caller = parts.extensions.get::<Caller>().and_then(|caller| caller.key_id().map(str::to_owned));
    let id = digest(&[caller.unwrap_or_default().as_bytes(), key.as_bytes()]);
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let fingerprint = digest(&[parts.method.as_str().as_bytes(), target.as_bytes(), &body]);
    let version = match app.idempotency.claim(&id, &fingerprint).await? {
        Claim::Done(answer) => return replay(answer),
        Claim::Ours(version) => version,
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(RepeatSafe(Some(id.as_str().into())));
    let response = next.run(request).await;
    keep(app, &id, version, fingerprint, response).await
}

/// Keeps an answer for the next time. A failure of the server is not kept: the request can be tried again.
async fn keep(
    app: &App,
    id: &str,
    version: u64,
    request: String,
    response: Response,
) -> Result<Response, Refusal> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let body = body.map_err(|_| Refusal::new(Code::Internal, "the answer could not be made"))?;
    let may_be_kept = !parts.status.is_server_error()
        && parts.status != StatusCode::TOO_MANY_REQUESTS
        && body.len() <= MAX_ANSWER_BYTES;
    if may_be_kept {
        let headers = KEPT_HEADERS.iter().filter_map(|name| {
            let value = parts.headers.get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let kept = parts.extensions.get::<KeptInstead>().map_or(&body, |KeptInstead(instead)| instead);
        let answer =
            Answer { status: parts.status.as_u16(), headers: headers.collect(), body: STANDARD.encode(kept) };
        let stored = StoredAnswer { request, answer: Some(answer) };
        let kept = app.idempotency.put(id, Expect::Version(version), KEEP, &stored);
        match clock::timeout(&*app.clock, MAX_WAIT, kept).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%error, "an answer could not be kept for its idempotency key"),
            None => tracing::warn!("an answer could not be kept for its idempotency key within {MAX_WAIT:?}"),
        }
    } else {
        // A store that is away must not delay the operation's own error; the claim then ends by its
        // time.
        let _ = clock::timeout(&*app.clock, MAX_WAIT, app.idempotency.release(id, version)).await;
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn replay(answer: Answer) -> Result<Response, Refusal> {
    let broken =
        || Refusal::new(Code::Internal, "the answer that was kept for this idempotency key cannot be read");
    let body = STANDARD.decode(&answer.body).map_err(|_| broken())?;
    let status = StatusCode::from_u16(answer.status).map_err(|_| broken())?;
    let mut response = (status, body).into_response();
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn key_of(request: &Request) -> Result<String, Refusal> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY).iter();
    let key = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_sound = !key.is_empty() && key.len() <= MAX_KEY_BYTES && values.next().is_none();
    if is_sound {
        Ok(key.to_owned())
    } else {
        Err(Refusal::field(
            "Idempotency-Key",
            format!("must be one header of 1 to {MAX_KEY_BYTES} printable characters"),
        ))
    }
}

/// A digest of parts, each with its length before it, so that no two lists of parts look alike.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
