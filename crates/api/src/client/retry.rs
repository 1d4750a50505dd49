//! Repeating calls, with exponential backoff and jitter, while the server restarts or cannot be reached.
//!
//! A call is repeated only if that cannot do it twice: reads, POSTs with an `Idempotency-Key` (the client makes one up for each),
//! answers of workers (their lease counts once), and whatever was never sent because there was no connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, Request, RequestBuilder, Response};
use tokio::time::Instant;

use super::{Client, ClientError, error};

/// Pause before the first repetition; each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a call is repeated at least while the server works on an earlier try of it: longer than a server takes.
const WHILE_IN_FLIGHT: Duration = Duration::from_secs(60);

/// Name of the header that makes a POST safe to repeat.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Code of a refusal because an earlier try of the same call is being worked on.
const IN_FLIGHT: &str = "idempotency-in-flight";

/// Characters that a URL drops from its path.
pub(super) const DROPPED: [char; 3] = ['\t', '\n', '\r'];

/// Marks a request whose path has lost an id or name that is `.` or `..`, or a part of one: a URL drops such segments and
/// the characters in [`DROPPED`], so the call would lead to another resource. A fragment is never sent.
pub(super) const LOST_SEGMENT: &str = "lost-segment";

impl Client {
    /// Sends a call until it is answered or the time for that is over, and reads the whole answer.
    pub(super) async fn call(&self, call: RequestBuilder) -> Result<(u16, Vec<u8>), ClientError> {
        self.repeat(call, error::whole).await
    }

    /// Sends a call until it is answered or the time for that is over; the answer is not read yet.
    pub(super) async fn open(&self, call: RequestBuilder) -> Result<Response, ClientError> {
        self.repeat(call, error::checked).await
    }

    async fn repeat<T, F>(
        &self,
        call: RequestBuilder,
        read: impl Fn(Result<Response, reqwest::Error>) -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let mut request = call.build().map_err(ClientError::Unreachable)?;
        if request.url().fragment() == Some(LOST_SEGMENT) {
            let text =
                "no id or name is '.' or '..' or has a tab or line feed: the path of a URL cannot have them"
                    .to_owned();
            return Err(ClientError::Address(text));
        }
        if self.retry_for.is_zero() {
            return read(self.http.execute(request).await).await;
        }
        make_repeatable(&mut request);
        let mut tries = Tries::new(self.retry_for, self.on_retry.clone());
        loop {
            let Some(next) = request.try_clone() else { return read(self.http.execute(request).await).await };
            match read(self.http.execute(next).await).await {
                Err(error) if may_repeat(&request, &error) => tries.pause(error).await?,
                answered => return answered,
            }
        }
    }
}

/// Gives a POST a key of its own, unless it has one or is safe without.
fn make_repeatable(request: &mut Request) {
    let needs_key = *request.method() == Method::POST && !is_of_a_worker(request) && !is_query(request);
    let key = (needs_key && !request.headers().contains_key(IDEMPOTENCY_KEY)).then(random_key);
    if let Some(key) = key.flatten() {
        request.headers_mut().insert(IDEMPOTENCY_KEY, key);
    }
}

/// Whether a lease makes the call count once.
fn is_of_a_worker(request: &Request) -> bool {
    request.url().path().contains("/v1/work/")
}

/// Whether it changes nothing.
fn is_query(request: &Request) -> bool {
    request.url().path().ends_with("/v1/sql")
}

fn random_key() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&format!("{:032x}", u128::from_be_bytes(bytes))).ok()
}

/// Whether a try that failed so may be followed by another.
fn may_repeat(request: &Request, failed: &ClientError) -> bool {
    let has_one_effect = matches!(*request.method(), Method::GET | Method::HEAD)
        || request.headers().contains_key(IDEMPOTENCY_KEY)
        || is_of_a_worker(request)
        || is_query(request);
    match failed {
        // It will not become another one meanwhile.
        failed if failed.is_certificate() => false,
        // Without a connection nothing was sent.
        ClientError::Unreachable(error) => error.is_connect() || (has_one_effect && !error.is_builder()),
        failed => has_one_effect && failed.is_temporary(),
    }
}

/// A function that gets the failure of the second try of a call, once per call.
#[derive(Clone)]
pub(super) struct OnRetry(Arc<dyn Fn(&ClientError) + Send + Sync>);

impl OnRetry {
    pub(super) fn new(notify: impl Fn(&ClientError) + Send + Sync + 'static) -> Self {
        OnRetry(Arc::new(notify))
    }
}

impl fmt::Debug for OnRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRetry")
    }
}

/// Tries of one call.
struct Tries {
    retry_for: Duration,
    on_retry: Option<OnRetry>,
    failed_since: Option<Instant>,
    pause: Duration,
}

impl Tries {
    fn new(retry_for: Duration, on_retry: Option<OnRetry>) -> Self {
        Tries { retry_for, on_retry, failed_since: None, pause: FIRST_PAUSE }
    }

    /// For how long a call is repeated after a failure.
    fn patience(&self, failed: &ClientError) -> Duration {
        match failed.code() {
            Some(IN_FLIGHT) => self.retry_for.max(WHILE_IN_FLIGHT),
            _ => self.retry_for,
        }
    }

    /// Waits before the next try; gives the failure back when the time is over.
    async fn pause(&mut self, failed: ClientError) -> Result<(), ClientError> {
        let now = Instant::now();
        let since = *self.failed_since.get_or_insert(now);
        let gives_up_at = since.checked_add(self.patience(&failed));
        let pause = jittered(self.pause);
        if gives_up_at.is_some_and(|at| now + pause > at) {
            return Err(failed);
        }
        if since != now
            && let Some(OnRetry(notify)) = self.on_retry.take()
        {
            notify(&failed);
        }
        sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// Half of a pause, and up to as much again: clients that lost the same server do not come back in step.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    pause / 2 + pause * u32::from(byte[0]) / 512
}

#[expect(clippy::disallowed_methods, reason = "a client of the server has no clock but the machine's")]
async fn sleep(pause: Duration) {
    tokio::time::sleep(pause).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, path: &str) -> Request {
        Request::new(method, format!("http://127.0.0.1:1{path}").parse().unwrap())
    }

    #[test]
    fn posts_get_a_key_of_their_own_and_keep_the_one_they_have() {
        let mut start = request(Method::POST, "/v1/instances");
        make_repeatable(&mut start);
        let key = start.headers()[IDEMPOTENCY_KEY].clone();
        assert_eq!(key.len(), 32);
        make_repeatable(&mut start);
        assert_eq!(start.headers()[IDEMPOTENCY_KEY], key);
        for (method, path) in [(Method::POST, "/v1/work/complete"), (Method::GET, "/v1/instances")] {
            let mut other = request(method, path);
            make_repeatable(&mut other);
            assert!(!other.headers().contains_key(IDEMPOTENCY_KEY), "{path}");
        }
    }

    #[tokio::test]
    async fn an_id_that_a_url_drops_is_refused_before_anything_is_sent() {
        // Nothing listens there: a call that is sent fails with `Unreachable`.
        let client = Client::new("http://127.0.0.1:1").unwrap().retry_for(Duration::ZERO);
        for id in [".", "..", "a\nb", "\ta"] {
            let refused = client.instance(id, Duration::ZERO).await.unwrap_err();
            assert!(matches!(refused, ClientError::Address(_)), "{id}: {refused}");
            let refused = client.delete_dag(id).await.unwrap_err();
            assert!(matches!(refused, ClientError::Address(_)), "{id}: {refused}");
        }
        let sent = client.instance("...", Duration::ZERO).await.unwrap_err();
        assert!(sent.is_connect(), "{sent}");
    }

    #[test]
    fn a_call_that_is_being_worked_on_is_awaited_for_longer_than_a_server_takes() {
        let patience = |code: &str| {
            let problem = serde_json::json!({
                "type": "", "title": "", "status": 409, "code": code, "detail": "",
            });
            let failed = ClientError::Problem(serde_json::from_value(problem).unwrap());
            Tries::new(Duration::from_secs(5), None).patience(&failed).as_secs()
        };
        assert_eq!((patience(IN_FLIGHT), patience("conflict")), (60, 5));
    }

    #[test]
    fn only_what_cannot_be_done_twice_is_repeated() {
        let busy = || ClientError::Unreadable { status: 503, reason: String::new() };
        let wrong = || ClientError::Unreadable { status: 400, reason: String::new() };
        let mut start = request(Method::POST, "/v1/instances");
        assert!(!may_repeat(&start, &busy()));
        make_repeatable(&mut start);
        assert!(may_repeat(&start, &busy()) && !may_repeat(&start, &wrong()));
        assert!(may_repeat(&request(Method::GET, "/v1/instances"), &busy()));
        assert!(may_repeat(&request(Method::POST, "/v1/work/complete"), &busy()));
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!may_repeat(&request(method, "/v1/functions/f"), &busy()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_repeated_on_tells_why_once() {
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let notify = OnRetry::new(move |failed| notes.lock().unwrap().push(failed.to_string()));
        let failed = |number: u16| ClientError::Unreadable { status: 503, reason: number.to_string() };
        let mut tries = Tries::new(Duration::from_secs(60), Some(notify));
        for number in 0..5 {
            tries.pause(failed(number)).await.unwrap();
            let told = told.lock().unwrap().clone();
            let expected = if number == 0 { vec![] } else { vec![failed(1).to_string()] };
            assert_eq!(told, expected, "after failure {number}");
        }
    }
}
