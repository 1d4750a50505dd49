//! Requests that change something end whether or not their caller waits for the answer: their work
//! becomes a task of its own (a detached task) when the caller goes away.
//!
//! A connection that closes drops the future that answers it. A change that were dropped with it
//! could be done without its audit entry, or leave its idempotency key claimed with no request
//! behind the claim.
//!
//! | request | when its caller goes away |
//! |---|---|
//! | whose body has not arrived | is dropped; nothing was begun. The body is read by the connection: in a task of its own, a body that breaks off could look like one that has ended |
//! | that changes something | ends, with its audit entry and its kept answer |
//! | that waits after its change (`wait_ms`) | the change ends before the wait begins; the wait is dropped, also when the caller loses its key |
//! | in [`OF_CALLER`] | is dropped: what it gets is for that caller only |

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::access::Need;
use crate::app::App;
use crate::problem::{Code, Refusal};
use crate::{extract, operation, refused, request_id};

/// Routes that are POSTs for their bodies and leave nothing behind: a caller that has gone gets no
/// work leased, and needs no preview. An exchange detaches its answers itself.
const OF_CALLER: [&str; 6] =
    [FETCH, EXCHANGE, RECEIVE, "/v1/recurring/preview", "/v1/runbooks/{name}/preview", "/v1/sql"];

/// The route by which workers get work.
const FETCH: &str = "/v1/work/fetch";

/// The route by which workers answer calls and get the next ones.
const EXCHANGE: &str = "/v1/work/exchange";

/// The route by which receivers get messages.
const RECEIVE: &str = "/v1/bus/{topic}/{subscription}/receive";

/// Whether a request may wait for something that its caller wants, and can be cut off at any time:
/// it changes nothing. An exchange ends its own wait, because its answers are changes.
pub fn may_wait(method: &Method, route: &str) -> bool {
    method.is_safe() || (OF_CALLER.contains(&route) && route != EXCHANGE)
}

/// The detached tasks of a server.
pub struct Detached {
    tasks: TaskTracker,
    /// One for each request that runs. Callers that open connections, send and leave wait here as
    /// they would wait for a connection.
    places: Arc<Semaphore>,
    aborted: CancellationToken,
}

impl Detached {
    /// At most so many requests at once.
    pub fn new(max_requests: usize) -> Self {
        let places = Arc::new(Semaphore::new(max_requests.clamp(1, Semaphore::MAX_PERMITS)));
        Detached { tasks: TaskTracker::new(), places, aborted: CancellationToken::new() }
    }

    /// Runs a part of the current request to its end. The request's operation, id and span go with
    /// it.
    ///
    /// # Errors
    /// `internal` when it panics; `unavailable` or `outcome-unknown` when the server stops before
    /// its end.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let stopped = || Refusal::unavailable("the server is being stopped", operation::effect());
        let place = self.places.clone().acquire_owned().await.map_err(|_| stopped())?;
        let (work, aborted) = (operation::carried(request_id::carried(work)), self.aborted.clone());
        let work = async move {
            let done = tokio::select! {
                biased;
                () = aborted.cancelled() => None,
                done = AssertUnwindSafe(work).catch_unwind() => Some(done),
            };
            drop(place);
            done
        };
        match Attached(Some(Box::pin(self.tasks.track_future(work.in_current_span())))).await {
            Some(Ok(done)) => Ok(done),
            Some(Err(_)) => Err(panicked()),
            None => Err(stopped()),
        }
    }

    /// Runs a future to its end, or until the server is aborted. `None` when it was.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        let aborted = self.aborted.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = aborted.cancelled() => None,
                done = work => Some(done),
            }
        })
    }

    /// Resolves when all tasks have ended.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Ends all tasks where they are, as a crash would.
    pub fn abort(&self) {
        self.aborted.cancel();
    }
}

/// Work that its caller polls, and that goes on in a task of its own when the caller is dropped: as
/// long as the caller is there, no task has to be spawned and joined.
struct Attached<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Future for Attached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Attached<T> {
    fn drop(&mut self) {
        // Without a runtime the process ends.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

/// Detaches requests that change something, once their bodies have arrived.
pub async fn layer(State((app, need)): State<(App, Need)>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if request.method().is_safe() || OF_CALLER.contains(&route) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let answer = match extract::read(Request::from_parts(parts.clone(), body), &app).await {
        Ok(body) => app.detached.run(next.run(Request::from_parts(parts, Body::from(body)))).await,
        Err(refusal) => {
            // What workers do is not in the log.
            if need != Need::Work {
                refused::note(&app, &mut parts, None, &refusal).await;
            }
            Err(refusal)
        }
    };
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// The innermost layer: runs the handler until it ends, fails, or its operation is closed. All
/// layers around it therefore see an answer: the audit log has its entry, and a claim on an
/// idempotency key is released.
pub async fn handle(request: Request, next: Next) -> Response {
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    tokio::select! {
        biased;
        answer = handler => answer.unwrap_or_else(|_| panicked().into_response()),
        () = operation::closed() => operation::timed_out(operation::effect()).into_response(),
    }
}

fn panicked() -> Refusal {
    let doubt = match operation::effect() {
        operation::Effect::Unknown => "; the operation may have been done, in whole or in part",
        operation::Effect::ReadOnly | operation::Effect::NothingChanged => "",
    };
    let reason = "a bug ended this request; the server's log has the reason, under the id of this request";
    Refusal::new(Code::Internal, format!("{reason}{doubt}"))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_ends_without_its_caller_and_is_waited_for_by_the_drain() {
        let detached = Detached::new(1);
        let ((go, gone), (done, is_done)) = (oneshot::channel::<()>(), oneshot::channel());
        let mut call = Box::pin(detached.run(async move {
            gone.await.unwrap();
            done.send(()).unwrap();
        }));
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        drop(call);
        let mut next = Box::pin(detached.run(async { 7 }));
        assert!(futures_util::poll!(next.as_mut()).is_pending(), "the place is taken until the work ends");
        assert!(detached.drained().now_or_never().is_none());
        go.send(()).unwrap();
        is_done.await.unwrap();
        assert_eq!(next.await.ok(), Some(7));
        detached.drained().await;
    }

    #[tokio::test]
    async fn work_that_panics_or_is_aborted_is_refused() {
        let detached = Detached::new(1);
        let refused = detached.run(async { panic!("a bug") }).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(refused.code(), "internal");
        let mut call = Box::pin(detached.run(std::future::pending::<()>()));
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        detached.abort();
        assert_eq!(call.await.unwrap_err().code(), "unavailable");
    }
}
