//! What is stored under an idempotency key: the request that it belongs to, and its answer or who works on it.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

use super::{CLAIM, KEEP, KIND, MAX_ANSWER_BYTES};
use crate::incarnation::Incarnation;
use crate::problem::{Code, Refusal};

/// Says that an answer is that of an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Headers of an answer that are kept.
const KEPT_HEADERS: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];

/// As an extension of an answer: what is kept of it in place of its body, because the body has a secret.
#[derive(Debug, Clone)]
pub struct KeptInstead(pub Bytes);

#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    /// SHA-256 of the request, in base64.
    request: String,
    answer: Option<Answer>,
    /// The process that works on it; claims without one are void after their time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<String>,
}

/// An answer as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    /// In base64.
    body: String,
}

/// What is known of a key.
pub enum Known {
    /// Nothing that counts; what a write of its record has to expect.
    Nothing(Expect),
    /// The request was answered.
    Answered(Answer),
}

/// Answers that are kept for repeated requests.
pub struct Idempotency {
    store: Arc<dyn Store>,
    incarnation: Arc<Incarnation>,
}

impl Idempotency {
    /// Kept in a store, claimed by an incarnation.
    pub fn new(store: Arc<dyn Store>, incarnation: Arc<Incarnation>) -> Self {
        Idempotency { store, incarnation }
    }

    /// What is known of a key for this request.
    ///
    /// # Errors
    /// `idempotency-mismatch` when it belongs to another request, `idempotency-in-flight` when a process that is alive works on it.
    pub async fn look(&self, id: &str, request: &str) -> Result<Known, Refusal> {
        let Some(record) = self.store.get_record(KIND, id).await? else {
            return Ok(Known::Nothing(Expect::Absent));
        };
        let stored: StoredAnswer = serde_json::from_slice(&record.body).map_err(|error| {
            tracing::error!(%error, "a stored answer cannot be read");
            unreadable()
        })?;
        if stored.request != request {
            let detail = "the idempotency key was used for another request; use a new key for each";
            return Err(Refusal::new(Code::IdempotencyMismatch, detail));
        }
        if let Some(answer) = stored.answer {
            return Ok(Known::Answered(answer));
        }
        let is_void = match &stored.incarnation {
            Some(incarnation) => !self.incarnation.is_alive(incarnation).await?,
            None => false,
        };
        if is_void {
            return Ok(Known::Nothing(Expect::Version(record.version)));
        }
        let detail = "a request with this idempotency key is being worked on; ask again";
        Err(Refusal::new(Code::IdempotencyInFlight, detail))
    }

    /// Claims a key for work of several commits; the version of the claim, or the answer of a request that was faster.
    ///
    /// # Errors
    /// Those of [`Idempotency::look`].
    pub async fn claim(&self, id: &str, request: &str) -> Result<Result<u64, Answer>, Refusal> {
        loop {
            let expect = match self.look(id, request).await? {
                Known::Answered(answer) => return Ok(Err(answer)),
                Known::Nothing(expect) => expect,
            };
            let incarnation = Some(self.incarnation.id().to_owned());
            let claim = StoredAnswer { request: request.to_owned(), answer: None, incarnation };
            match self.commit(put(id, expect, &claim, CLAIM)).await {
                Ok(version) => return Ok(Ok(version)),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Keeps an answer.
    pub async fn keep(&self, id: &str, expect: Expect, request: &str, answer: Answer) {
        if let Err(error) = self.commit(answer_write(id, expect, request, answer)).await {
            tracing::warn!(%error, "an answer could not be kept for its idempotency key");
        }
    }

    /// Gives a claim up.
    pub async fn release(&self, id: &str, version: u64) {
        let expect = Expect::Version(version);
        let write = RecordWrite::Delete { kind: KIND.to_owned(), id: id.to_owned(), expect };
        if let Err(error) = self.commit(write).await {
            tracing::debug!(%error, "a claim on an idempotency key stays until its time is over");
        }
    }

    async fn commit(&self, write: RecordWrite) -> Result<u64, segno::store::ProviderError> {
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        Ok(self.store.commit_records(batch).await?.first().copied().unwrap_or_default())
    }
}

/// The write that keeps an answer.
pub fn answer_write(id: &str, expect: Expect, request: &str, answer: Answer) -> RecordWrite {
    let stored = StoredAnswer { request: request.to_owned(), answer: Some(answer), incarnation: None };
    put(id, expect, &stored, KEEP)
}

fn put(id: &str, expect: Expect, stored: &StoredAnswer, life: std::time::Duration) -> RecordWrite {
    RecordWrite::Put {
        kind: KIND.to_owned(),
        id: id.to_owned(),
        expect,
        due_at_ms: None,
        time_to_live: Some(life),
        body: serde_json::to_vec(stored).unwrap_or_default().into(),
    }
}

impl Answer {
    /// What is kept of a response, and the response. Nothing is kept of failures of the server, so that the request can be tried
    /// again, nor of what is too large.
    ///
    /// # Errors
    /// When the response breaks off.
    pub async fn of(response: Response) -> Result<(Option<Self>, Response), Refusal> {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes);
        let body = body.map_err(|_| Refusal::new(Code::Internal, "the answer could not be made"))?;
        let may_be_kept = !parts.status.is_server_error()
            && parts.status != StatusCode::TOO_MANY_REQUESTS
            && body.len() <= MAX_ANSWER_BYTES;
        let answer = may_be_kept.then(|| {
            let headers = KEPT_HEADERS.iter().filter_map(|name| {
                let value = parts.headers.get(name)?.to_str().ok()?;
                Some((name.as_str().to_owned(), value.to_owned()))
            });
            let kept = parts.extensions.get::<KeptInstead>().map_or(&body, |KeptInstead(instead)| instead);
            let (status, body) = (parts.status.as_u16(), STANDARD.encode(kept));
            Answer { status, headers: headers.collect(), body }
        });
        Ok((answer, Response::from_parts(parts, Body::from(body))))
    }

    /// The answer, sent again.
    ///
    /// # Errors
    /// When what was kept cannot be read.
    pub fn replay(self) -> Result<Response, Refusal> {
        let body = STANDARD.decode(&self.body).map_err(|_| unreadable())?;
        let status = StatusCode::from_u16(self.status).map_err(|_| unreadable())?;
        let mut response = (status, body).into_response();
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        Ok(response)
    }
}

fn unreadable() -> Refusal {
    Refusal::new(Code::Internal, "the answer that was kept for this idempotency key cannot be read")
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_testkit::clock::VirtualClock;

    use super::*;
    use crate::incarnation::Place;

    #[tokio::test]
    async fn a_claim_holds_as_long_as_the_process_that_made_it() {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let node = async |id: &str, name: &str| {
            let place = Place::Named(name.to_owned());
            let begun = Incarnation::begin(store.clone(), clock.clone(), id.to_owned(), place).await;
            Idempotency::new(store.clone(), Arc::new(begun.unwrap()))
        };
        let (one, two) = (node("1", "a").await, node("2", "b").await);
        let version = one.claim("k", "request").await.unwrap().ok().unwrap();
        for other in [&one, &two] {
            let refused = other.claim("k", "request").await.err().unwrap();
            assert_eq!(refused.status(), StatusCode::CONFLICT);
        }
        let mismatch = two.claim("k", "other request").await.err().unwrap();
        assert_eq!(mismatch.status(), StatusCode::UNPROCESSABLE_ENTITY);
        // The process of the first node was killed and begins anew.
        let again = node("3", "a").await;
        let taken = two.claim("k", "request").await.unwrap().ok().unwrap();
        assert!(taken > version);
        assert!(again.claim("k", "request").await.is_err(), "now the other node works on it");
        clock.advance(CLAIM);
        assert!(again.claim("k", "request").await.unwrap().is_ok());
    }
}
