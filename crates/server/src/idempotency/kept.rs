//! What is stored under an idempotency key: the request that it belongs to, and its answer or who works on it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use segno::clock::{self, Clock};
use segno::store::{ErrorKind, Expect, ProviderError, RecordBatch, RecordWrite, Store, WriteOutcome};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::{CLAIM, KEEP, KIND, LATE, MAX_ANSWER_BYTES, RETRY_PAUSE};
use crate::detached::Detached;
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
    /// Which claim of that process it is; older claims have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<u64>,
}

/// A claim on a key.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The version of its record.
    pub version: u64,
    number: u64,
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
    clock: Arc<dyn Clock>,
    incarnation: Arc<Incarnation>,
    /// Runs what outlives its request.
    detached: Arc<Detached>,
    /// Claims so far: tells those of this process apart.
    claims: AtomicU64,
}

impl Idempotency {
    /// Kept in a store, claimed by an incarnation.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        incarnation: Arc<Incarnation>,
        detached: Arc<Detached>,
    ) -> Self {
        Idempotency { store, clock, incarnation, detached, claims: AtomicU64::new(0) }
    }

    /// What is known of a key for this request. An answer is durable: it is sent to the caller, who
    /// may rely on it.
    ///
    /// # Errors
    /// `idempotency-mismatch` when it belongs to another request, `idempotency-in-flight` when a
    /// process that is alive works on it, `outcome-unknown` when it was answered and the store has
    /// not confirmed yet that this is on disk.
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
            self.confirm().await?;
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

    /// Waits until everything that was read before is durable. A store that cannot write shows what
    /// waits for the disk in memory too, and a crash would lose that; a commit that changes nothing
    /// returns once it is on disk.
    ///
    /// # Errors
    /// `outcome-unknown` when it is not, for now.
    async fn confirm(&self) -> Result<(), Refusal> {
        let Err(error) = self.store.commit_records(RecordBatch::default()).await else { return Ok(()) };
        tracing::warn!(%error, "a kept answer is not replayed, because it may not be on disk yet");
        let condition = error.condition().map(|condition| format!(": {condition}")).unwrap_or_default();
        let detail = format!(
            "an earlier request with this idempotency key was carried out, but the store has not confirmed yet that its \
             outcome is on disk{condition}; repeat it with the same Idempotency-Key"
        );
        Err(Refusal::new(Code::OutcomeUnknown, detail))
    }

    /// Claims a key for work of several commits; the claim, or the answer of a request that was
    /// faster.
    ///
    /// # Errors
    /// Those of [`Idempotency::look`].
    pub async fn claim(&self, id: &str, request: &str) -> Result<Result<Claim, Answer>, Refusal> {
        loop {
            let expect = match self.look(id, request).await? {
                Known::Answered(answer) => return Ok(Err(answer)),
                Known::Nothing(expect) => expect,
            };
            let number = self.claims.fetch_add(1, Ordering::Relaxed);
            let incarnation = Some(self.incarnation.id().to_owned());
            let claim =
                StoredAnswer { request: request.to_owned(), answer: None, incarnation, claim: Some(number) };
            match commit(&*self.store, put(id, expect, &claim, CLAIM)).await {
                Ok(version) => return Ok(Ok(Claim { version, number })),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => {
                    // The request is refused, so a claim that may have been stored is not wanted.
                    if error.outcome() != WriteOutcome::NothingChanged {
                        drop(self.withdraw(id, number, LATE));
                    }
                    return Err(error.into());
                }
            }
        }
    }

    /// Keeps an answer, in as many tries as it takes while its claim holds; the version of its
    /// record.
    pub fn keep(&self, write: RecordWrite) -> JoinHandle<Option<Option<u64>>> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        self.detached.spawn(async move {
            let kept = repeated(&*clock, CLAIM, || commit(&*store, write.clone())).await;
            kept.inspect_err(
                |error| tracing::warn!(%error, "an answer could not be kept for its idempotency key"),
            )
            .ok()
        })
    }

    /// Gives a claim up, in as many tries as it takes while it holds.
    pub fn release(&self, id: &str, claim: Claim) -> JoinHandle<Option<Option<()>>> {
        self.withdraw(id, claim.number, Duration::ZERO)
    }

    /// Deletes a claim of this process that is stored, or is stored within the time of `late`.
    fn withdraw(&self, id: &str, number: u64, late: Duration) -> JoinHandle<Option<Option<()>>> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let held = HeldClaim { id: id.to_owned(), incarnation: self.incarnation.id().to_owned(), number };
        self.detached.spawn(async move {
            let late_ms = clock.now_ms().saturating_add(clock::duration_ms(late));
            let attempt = || held.delete(&*store, if clock.now_ms() < late_ms { Absent::Awaited } else { Absent::Gone });
            let released = repeated(&*clock, CLAIM, attempt).await;
            released
                .inspect_err(
                    |error| tracing::debug!(%error, "a claim on an idempotency key stays until its time is over"),
                )
                .ok()
        })
    }
}

/// What it means that a claim is not stored.
#[derive(Clone, Copy)]
enum Absent {
    /// It may still be stored.
    Awaited,
    /// It is gone.
    Gone,
}

/// A claim that is to be deleted.
struct HeldClaim {
    id: String,
    incarnation: String,
    number: u64,
}

impl HeldClaim {
    /// Deletes the claim if it is stored. An error when it is not, and is still waited for.
    async fn delete(&self, store: &dyn Store, absent: Absent) -> Result<(), ProviderError> {
        let Some(record) = store.get_record(KIND, &self.id).await? else {
            return match absent {
                Absent::Awaited => {
                    Err(ProviderError::unavailable("get_record", "the claim is not stored yet"))
                }
                Absent::Gone => Ok(()),
            };
        };
        let is_it = serde_json::from_slice::<StoredAnswer>(&record.body).is_ok_and(|stored| {
            stored.answer.is_none()
                && stored.incarnation.as_ref() == Some(&self.incarnation)
                && stored.claim == Some(self.number)
        });
        if !is_it {
            return Ok(());
        }
        let (id, expect) = (self.id.clone(), Expect::Version(record.version));
        let delete = RecordWrite::Delete { kind: KIND.to_owned(), id, expect };
        match commit(store, delete).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            done => done.map(drop),
        }
    }
}

/// Repeats what a store could not do, for so long at most. A conflict is an answer: another request
/// has the key.
async fn repeated<T, F>(
    clock: &dyn Clock,
    longest: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, ProviderError>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    let until_ms = clock.now_ms().saturating_add(clock::duration_ms(longest));
    loop {
        match attempt().await {
            Err(error) if error.is_retryable() && clock.now_ms() < until_ms => {
                clock::sleep(clock, RETRY_PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn commit(store: &dyn Store, write: RecordWrite) -> Result<u64, ProviderError> {
    let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
    Ok(store.commit_records(batch).await?.first().copied().unwrap_or_default())
}

/// The write that keeps an answer.
pub fn answer_write(id: &str, expect: Expect, request: &str, answer: Answer) -> RecordWrite {
    let (request, answer) = (request.to_owned(), Some(answer));
    let stored = StoredAnswer { request, answer, incarnation: None, claim: None };
    put(id, expect, &stored, KEEP)
}

fn put(id: &str, expect: Expect, stored: &StoredAnswer, life: Duration) -> RecordWrite {
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
    use segno_testkit::faults::{FaultStore, no_faults};

    use super::*;
    use crate::incarnation::Place;

    #[tokio::test]
    async fn a_claim_holds_as_long_as_the_process_that_made_it() {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let node = async |id: &str, name: &str| {
            let place = Place::Named(name.to_owned());
            let begun = Incarnation::begin(store.clone(), clock.clone(), id.to_owned(), place).await;
            let detached = Arc::new(Detached::new(1));
            Idempotency::new(store.clone(), clock.clone(), Arc::new(begun.unwrap()), detached)
        };
        let (one, two) = (node("1", "a").await, node("2", "b").await);
        let claim = one.claim("k", "request").await.unwrap().ok().unwrap();
        for other in [&one, &two] {
            let refused = other.claim("k", "request").await.err().unwrap();
            assert_eq!(refused.status(), StatusCode::CONFLICT);
        }
        let mismatch = two.claim("k", "other request").await.err().unwrap();
        assert_eq!(mismatch.status(), StatusCode::UNPROCESSABLE_ENTITY);
        // The process of the first node was killed and begins anew.
        let again = node("3", "a").await;
        let taken = two.claim("k", "request").await.unwrap().ok().unwrap();
        assert!(taken.version > claim.version);
        assert_eq!(one.release("k", claim).await.unwrap(), Some(Some(())), "it is not that claim any more");
        assert!(again.claim("k", "request").await.is_err(), "now the other node works on it");
        clock.advance(CLAIM);
        let claim = again.claim("k", "request").await.unwrap().ok().unwrap();
        assert_eq!(again.release("k", claim).await.unwrap(), Some(Some(())));
        assert!(two.claim("k", "request").await.unwrap().is_ok(), "it was released");
    }

    #[tokio::test]
    async fn an_answer_is_replayed_once_the_store_confirms_that_it_is_durable() {
        let clock = VirtualClock::new();
        let store = FaultStore::new(MemoryStore::with_clock(clock.clone()), clock.clone(), no_faults());
        let begun = Incarnation::begin(store.clone(), clock.clone(), "1".to_owned(), Place::TheOnlyOne).await;
        let (incarnation, detached) = (Arc::new(begun.unwrap()), Arc::new(Detached::new(1)));
        let kept = Idempotency::new(store.clone(), clock.clone(), incarnation, detached);
        let (answer, _) = Answer::of((StatusCode::CREATED, "made").into_response()).await.unwrap();
        let write = answer_write("k", Expect::Absent, "request", answer.unwrap());
        kept.keep(write).await.unwrap();
        let replays = async || matches!(kept.look("k", "request").await, Ok(Known::Answered(_)));
        assert!(replays().await);
        store.fill_up();
        let refused = kept.look("k", "request").await.err().unwrap();
        assert_eq!((refused.status().as_u16(), refused.code()), (503, Code::OutcomeUnknown.as_str()));
        assert!(refused.detail().contains("not confirmed yet"), "{refused}");
        let refused = kept.claim("k", "request").await.err().unwrap();
        assert_eq!(refused.code(), Code::OutcomeUnknown.as_str(), "nor does a claim tell it");
        store.make_room();
        assert!(replays().await);
    }
}
