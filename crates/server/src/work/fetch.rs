//! Fetching for callers that may go away.
//!
//! A worker that hangs up in the middle of a long poll drops the future that answers it. A fetch that were dropped with it
//! could leave work locked for a worker that will never hear of it, so it runs in a task of its own, and whatever it gets
//! for a caller that has gone is given back at once, which counts neither as an attempt nor as a delivery.
//!
//! What is left: an answer that is lost on its way, after the server has written it. Its leases end like those of a worker
//! that has died.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, duration_ms};
use segno::limits::MAX_LEASE;
use segno::work::{FetchWork, LeasedActivity, WorkQueue};
use segno_actions::functions::Functions;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::listen::until_stopped;

/// How long a fetch goes on before it looks whether its caller is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Leased work that no worker was told of yet. Dropped, it is released.
pub struct Untold {
    queue: WorkQueue,
    functions: Functions,
    items: Vec<LeasedActivity>,
}

impl Untold {
    /// The work.
    pub fn items(&self) -> &[LeasedActivity] {
        &self.items
    }

    /// All but the first of it.
    pub fn split_off(&mut self, at: usize) -> Untold {
        let items = self.items.split_off(at.min(self.items.len()));
        Untold { queue: self.queue.clone(), functions: self.functions.clone(), items }
    }

    /// The worker is told of it: it is not released any more.
    pub fn keep(mut self) {
        self.items.clear();
    }

    /// Releases it, to be handed out after a delay. It goes on if its caller is dropped.
    pub async fn release(mut self, delay: Option<Duration>) {
        let calls = (self.queue.clone(), self.functions.clone());
        let released = tokio::spawn(release(calls, std::mem::take(&mut self.items), delay));
        // A panic is logged by its hook, and the leases end.
        let _ = released.await;
    }
}

async fn release(
    (queue, functions): (WorkQueue, Functions),
    items: Vec<LeasedActivity>,
    delay: Option<Duration>,
) {
    let delay = delay.map(|delay| delay.min(MAX_LEASE));
    segno::join_all(items.iter().map(|leased| {
        let (queue, functions) = (&queue, &functions);
        async move {
            // No worker has seen it, so it is not begun.
            if let Err(error) = functions.forget_beginning(&leased.lease).await {
                tracing::debug!(%error, "a call that no worker has seen counts as begun");
            }
            if let Err(error) = queue.release(&leased.lease, delay).await {
                tracing::debug!(%error, "work that was fetched for nobody comes back when its lease ends");
            }
        }
    }))
    .await;
}

impl Drop for Untold {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        let (false, Ok(runtime)) = (items.is_empty(), Handle::try_current()) else { return };
        runtime.spawn(release((self.queue.clone(), self.functions.clone()), items, None));
    }
}

/// Fetches work, or waits for it; nothing when it is time to stop. What was fetched is released if it is dropped before the worker
/// is told of it.
///
/// # Errors
/// Those of [`WorkQueue::fetch`].
pub async fn fetch(
    (queue, functions): (&WorkQueue, &Functions),
    clock: &Arc<dyn Clock>,
    stopping: &CancellationToken,
    request: FetchWork,
) -> Result<Untold, segno::Error> {
    let (answer, answered) = oneshot::channel();
    let functions = functions.clone();
    let nothing = Untold { queue: queue.clone(), functions: functions.clone(), items: Vec::new() };
    let (queue, clock, stopping) = (queue.clone(), clock.clone(), stopping.clone());
    // It ends with the time of the request, or with the server, whose store it must not hold on to.
    tokio::spawn(async move {
        let fetching = fetch_while_wanted(&queue, &*clock, request, &answer);
        let fetched = until_stopped(&stopping, fetching).await.unwrap_or(Ok(Vec::new()));
        let _ = answer.send(fetched.map(|items| Untold { queue, functions, items }));
    });
    match answered.await {
        Ok(fetched) => fetched,
        // The runtime is being shut down.
        Err(_) => Ok(nothing),
    }
}

async fn fetch_while_wanted<T>(
    queue: &WorkQueue,
    clock: &dyn Clock,
    request: FetchWork,
    caller: &oneshot::Sender<T>,
) -> Result<Vec<LeasedActivity>, segno::Error> {
    let until_ms = clock.now_ms().saturating_add(duration_ms(request.wait));
    loop {
        let left = Duration::from_millis(until_ms.saturating_sub(clock.now_ms()));
        let items = queue.fetch(FetchWork { wait: left.min(LOOK_EVERY), ..request.clone() }).await?;
        if !items.is_empty() || clock.now_ms() >= until_ms || caller.is_closed() {
            return Ok(items);
        }
    }
}
