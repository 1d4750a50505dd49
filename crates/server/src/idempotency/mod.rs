//! `Idempotency-Key`: a request that is sent again gets the answer of the first time.
//!
//! | operation | how |
//! |---|---|
//! | of one commit: starts, calls | its commit also has the answer under the key and the audit entry ([`Keyed`]): all of it is there, or nothing. Without a key it has the audit entry |
//! | of several commits | the key is claimed before, and the answer stored with it after. A claim is void once the process that made it is gone ([`Incarnation`](crate::incarnation::Incarnation)); then the work is done again, and routes take their ids from the key ([`RepeatSafe`]), so that it has one effect |
//!
//! A key belongs to a namespace and tenant, not to the API key that sent it, so that a retry after
//! a key was replaced is a retry. An answer is replayed to a caller that passed the same checks of
//! role and grants, for the same method, path, query and body, and once the store has confirmed
//! that it is durable.

mod kept;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Collected};
use segno::clock;
use segno::store::{Expect, RecordWrite};
use segno_api::Problem;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::audit::{Audited, Draft};
use crate::extract;
use crate::problem::Refusal;
use crate::scope::Scope;

use kept::{Answer, Claim, Known, answer_write};
pub use kept::{Idempotency, KeptInstead};

/// The header.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Kind of the records.
const KIND: &str = "segno.idempotency";

/// How long an answer is kept.
pub const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a claim without an answer holds at most: longer than any request may take.
const CLAIM: Duration = Duration::from_secs(120);

/// An answer waits so long for being kept, or for its claim to be released; that goes on without
/// it.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Between two tries to keep an answer or to release a claim.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A claim whose commit failed is looked for so long: the store may have taken it, or may still.
const LATE: Duration = Duration::from_secs(30);

/// Longest key in bytes.
const MAX_KEY_BYTES: usize = 255;

/// Largest answer that is kept, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Routes whose operation keeps its answer in its own commit, so that the key need not be claimed before.
const ONE_COMMIT: [&str; 2] = ["/v1/instances", "/v1/invocations"];

/// What a route makes ids from, so that the same request twice makes the same thing once; and its
/// audit entry, which an operation of one commit writes itself.
#[derive(Clone)]
pub struct RepeatSafe {
    keyed: Option<Arc<Keyed>>,
    audit: Option<Draft>,
}

/// A request with an idempotency key.
pub struct Keyed {
    id: String,
    request: String,
    /// What a write of the key's record had to expect when the request came.
    expect: Expect,
    /// The claim on the key, if there is one.
    claim: OnceLock<Claim>,
    /// The version of the key's record with the answer, once that is kept.
    kept: OnceLock<u64>,
}

/// As an extension of an answer: it was kept in the commit of its operation, or is that of an
/// earlier request.
#[derive(Debug, Clone, Copy)]
struct KeptInCommit;

/// A request that has not been answered yet. Dropped, it releases its claim: a panic has ended the
/// request, or, on a route that is not detached, its caller has gone.
struct Unanswered {
    app: App,
    keyed: Option<Arc<Keyed>>,
}

impl Unanswered {
    /// The request has an answer, which ends its claim.
    fn answered(mut self) {
        self.keyed = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let claim = self.keyed.as_ref().and_then(|keyed| Some((keyed, keyed.claim.get()?)));
        if let (Some((keyed, claim)), Ok(_runtime)) = (claim, Handle::try_current()) {
            drop(self.app.idempotency.release(&keyed.id, *claim));
        }
    }
}

impl RepeatSafe {
    /// An id that is the same whenever this request is repeated; `None` when the caller gave no key.
    pub fn id(&self) -> Option<&str> {
        self.keyed().map(|keyed| keyed.id.as_str())
    }

    /// The same as a UUID.
    pub fn uuid(&self) -> Option<uuid::Uuid> {
        let hash = Sha256::digest(self.id()?.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Some(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// A UUID for a part of this request, the same whenever it is repeated.
    pub fn uuid_for(&self, part: &str) -> Option<uuid::Uuid> {
        let id = self.id()?;
        let digest = Sha256::digest(format!("{}:{id}{part}", id.len()).as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Some(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The key, for an operation of one commit.
    pub fn keyed(&self) -> Option<&Keyed> {
        self.keyed.as_deref()
    }

    /// The same with the reason that the caller gave, for the audit entry that the operation writes itself.
    pub fn because(mut self, reason: Option<&str>) -> Self {
        let Some(reason) = reason else { return self };
        self.audit = self.audit.map(|draft| draft.because(reason));
        self
    }

    /// The write of the audit entry, for the commit of an operation that is answered with this
    /// status if it is done; `None` when the route is not in the log.
    pub fn audit_write(&self, app: &App, status: StatusCode) -> Option<RecordWrite> {
        self.audit.as_ref().map(|draft| app.audit.write_of(draft, status))
    }
}

impl Keyed {
    /// The writes that keep an answer and its audit entry, for the commit of the operation itself. The key's comes first.
    ///
    /// # Errors
    /// When the answer cannot be kept.
    pub async fn writes(
        &self,
        app: &App,
        repeat: &RepeatSafe,
        answer: Response,
    ) -> Result<Vec<RecordWrite>, Refusal> {
        let audit = repeat.audit_write(app, answer.status());
        let (answer, _) = Answer::of(answer).await?;
        let key = answer.map(|answer| answer_write(&self.id, self.expect(), &self.request, answer));
        Ok(key.into_iter().chain(audit).collect())
    }

    /// The answer of the same request, if that was faster.
    ///
    /// # Errors
    /// `idempotency-mismatch`, `idempotency-in-flight`.
    pub async fn faster(&self, app: &App) -> Result<Option<Response>, Refusal> {
        if self.claim.get().is_some() {
            return Ok(None);
        }
        match app.idempotency.look(&self.id, &self.request).await? {
            Known::Answered(answer) => replayed(answer).map(Some),
            Known::Nothing(_) => Ok(None),
        }
    }

    /// Claims the key for work of several commits, if that is not done yet; the answer of the same request, if that was faster.
    ///
    /// # Errors
    /// `idempotency-mismatch`, `idempotency-in-flight`.
    pub async fn claim(&self, app: &App) -> Result<Option<Response>, Refusal> {
        if self.claim.get().is_some() {
            return Ok(None);
        }
        match app.idempotency.claim(&self.id, &self.request).await? {
            Ok(claim) => {
                let _first = self.claim.set(claim);
                Ok(None)
            }
            Err(answer) => replayed(answer).map(Some),
        }
    }

    /// Marks an answer whose operation was committed with [`Keyed::writes`], under this version of
    /// the key's record.
    pub fn committed(&self, mut response: Response, version: u64) -> Response {
        let _first = self.kept.set(version);
        response.extensions_mut().insert(KeptInCommit);
        response.extensions_mut().insert(Audited);
        response
    }

    /// Keeps an answer in place of the one that was kept before the wait for it.
    pub async fn keep_instead(&self, app: &App, response: Response) -> Response {
        let Some(version) = self.kept.get() else { return response };
        let status = response.status();
        match Answer::of(response).await {
            Ok((Some(answer), response)) => {
                let write = answer_write(&self.id, Expect::Version(*version), &self.request, answer);
                in_time(app, app.idempotency.keep(write)).await;
                response
            }
            Ok((None, response)) => response,
            // A body that was made in memory does not break off.
            Err(_) => status.into_response(),
        }
    }

    fn expect(&self) -> Expect {
        self.claim.get().map_or(self.expect, |claim| Expect::Version(claim.version))
    }
}

fn replayed(answer: Answer) -> Result<Response, Refusal> {
    let mut response = answer.replay()?;
    response.extensions_mut().insert(KeptInCommit);
    Ok(response)
}

impl<S: Send + Sync> FromRequestParts<S> for RepeatSafe {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let keyed = parts.extensions.get::<Arc<Keyed>>().cloned();
        Ok(RepeatSafe { keyed, audit: parts.extensions.get::<Draft>().cloned() })
    }
}

/// The route of queries. They change nothing, and their answers may be large: none is kept.
const QUERY: &str = "/v1/sql";

/// Answers a repeated POST with the first answer.
pub async fn layer(State(app): State<App>, request: Request, next: Next) -> Response {
    let keyed = *request.method() == Method::POST && request.headers().contains_key(IDEMPOTENCY_KEY);
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if !keyed || route == QUERY {
        return next.run(request).await;
    }
    match answer(&app, request, next).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(app: &App, request: Request, next: Next) -> Result<Response, Refusal> {
    let key = key_of(&request)?;
    let (mut parts, body) = request.into_parts();
    let scope = Scope::of_request(&mut parts).await?;
    let body = extract::read(Request::from_parts(parts.clone(), body), app).await?;
    let id = digest(&[scope.prefix().as_bytes(), key.as_bytes()]);
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let fingerprint = digest(&[parts.method.as_str().as_bytes(), target.as_bytes(), &body]);
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let expect = match app.idempotency.look(&id, &fingerprint).await? {
        Known::Answered(answer) => return answer.replay(),
        Known::Nothing(expect) => expect,
    };
    let needs_claim = !ONE_COMMIT.contains(&route);
    // A claim that is void was made for an earlier try, whose process is gone.
    let was_cut_off = matches!(expect, Expect::Version(_));
    let (claim, kept) = (OnceLock::new(), OnceLock::new());
    let keyed = Arc::new(Keyed { id, request: fingerprint, expect, claim, kept });
    let unanswered = Unanswered { app: app.clone(), keyed: Some(keyed.clone()) };
    if needs_claim && let Some(answer) = keyed.claim(app).await? {
        return Ok(answer);
    }
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(keyed.clone());
    let response = next.run(request).await;
    if response.extensions().get::<KeptInCommit>().is_some() {
        unanswered.answered();
        return Ok(response);
    }
    let response = if was_cut_off { in_doubt(response).await } else { response };
    let (answer, response) = Answer::of(response).await?;
    unanswered.answered();
    keep(app, &keyed, answer).await;
    Ok(response)
}

/// Refusals because of a state that the request itself may have brought about.
const MAY_BE_OWN: [StatusCode; 3] = [StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::GONE];

/// A refusal of a request whose earlier try was cut off tells so: that try may have done what is refused now, as a cancel that
/// meets an instance which it has cancelled.
async fn in_doubt(response: Response) -> Response {
    if !MAY_BE_OWN.contains(&response.status()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    // A body that was made in memory does not break off.
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let told = serde_json::from_slice::<Problem>(&body).ok().and_then(|mut problem| {
        problem.detail.push_str(
            "; an earlier try of this request was cut off by the end of its server, and may have done it",
        );
        serde_json::to_vec(&problem).ok()
    });
    Response::from_parts(parts, told.map_or(Body::from(body), Body::from))
}

/// Keeps an answer for the next time. Without one, the claim is released.
async fn keep(app: &App, keyed: &Keyed, answer: Option<Answer>) {
    match (answer, keyed.claim.get()) {
        (Some(answer), _) => {
            let write = answer_write(&keyed.id, keyed.expect(), &keyed.request, answer);
            if let Some(version) = in_time(app, app.idempotency.keep(write)).await {
                let _first = keyed.kept.set(version);
            }
        }
        (None, Some(claim)) => {
            in_time(app, app.idempotency.release(&keyed.id, *claim)).await;
        }
        (None, None) => {}
    }
}

/// What a write of the key's record gave. A store that is away must not delay the operation's own
/// answer; the write goes on without it.
async fn in_time<T>(app: &App, written: JoinHandle<Option<Option<T>>>) -> Option<T> {
    let written = clock::timeout(&*app.clock, MAX_WAIT, written).await;
    if written.is_none() {
        tracing::warn!(
            "an idempotency key could not be brought up to date within {MAX_WAIT:?}; trying again"
        );
    }
    written?.ok()??
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
