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
use segno::work::{FetchWork, LeasedActivity, WorkQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::listen::until_stopped;

/// How long a fetch goes on before it looks whether its caller is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Leased work that nobody has been told of yet. Dropped, it is given back.
struct Untold {
    queue: WorkQueue,
    items: Vec<LeasedActivity>,
}

impl Untold {
    /// The work, now somebody's.
    fn take(mut self) -> Vec<LeasedActivity> {
        std::mem::take(&mut self.items)
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        let (queue, Ok(runtime)) = (self.queue.clone(), Handle::try_current()) else { return };
        if items.is_empty() {
            return;
        }
        runtime.spawn(async move {
            for leased in items {
                if let Err(error) = queue.release(&leased.lease, None).await {
                    tracing::debug!(%error, "work that was fetched for nobody comes back when its lease ends");
                }
            }
        });
    }
}

/// Fetches work, or waits for it; nothing when it is time to stop. Dropping the future gives back what was fetched.
///
/// # Errors
/// Those of [`WorkQueue::fetch`].
pub async fn fetch(
    queue: &WorkQueue,
    clock: &Arc<dyn Clock>,
    stopping: &CancellationToken,
    request: FetchWork,
) -> Result<Vec<LeasedActivity>, segno::Error> {
    let (answer, answered) = oneshot::channel();
    let (queue, clock, stopping) = (queue.clone(), clock.clone(), stopping.clone());
    // It ends with the time of the request, or with the server, whose store it must not hold on to.
    tokio::spawn(async move {
        let fetching = fetch_while_wanted(&queue, &*clock, request, &answer);
        let fetched = until_stopped(&stopping, fetching).await.unwrap_or(Ok(Vec::new()));
        let _ = answer.send(fetched.map(|items| Untold { queue, items }));
    });
    match answered.await {
        Ok(fetched) => fetched.map(Untold::take),
        // The runtime is being shut down.
        Err(_) => Ok(Vec::new()),
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
