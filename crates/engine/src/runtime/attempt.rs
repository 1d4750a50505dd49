//! One attempt of an activity, from its lock to the commit of its end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tracing::Instrument;

use super::join::Joined;
use super::leases::LOCK_LOST;
use super::unregistered::Verdict;
use super::{Shared, Stage, join};
use crate::activity::{ActivityContext, CancellationToken, Heartbeat};
use crate::clock::{self, duration_ms};
use crate::failure::{self, Failure};
use crate::payload::Payload;
use crate::registry::ActivityHandler;
use crate::store::{
    AckWorkItem, ErrorKind, Expect, LockToken, LockedWorkItem, ProviderError, RecordWrite,
    ScheduledActivityIdentifier,
};
use crate::telemetry;
use crate::work::delivery::{self, Delivery, Refusal};
use crate::work::{ending, progress};
use crate::work_item::ActivityExecute;

/// Shortest time between two stored heartbeats of one attempt.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How an attempt ended.
enum AttemptEnd {
    Result(Result<Payload, Failure>),
    /// The result is not needed any more, or another worker has the lock.
    Stopped(String),
    /// The node shuts down; the attempt is abandoned for another node.
    Released,
}

/// The result of the code of an activity, or its panic.
type CodeResult = std::thread::Result<Result<Payload, Failure>>;

impl AttemptEnd {
    fn of_code(name: &str, result: CodeResult) -> Self {
        AttemptEnd::Result(match result {
            Ok(result) => result,
            Err(panic) => Err(failure::from_panic(&format!("activity {name:?}"), &*panic)),
        })
    }
}

/// Runs a locked activity to its end. In every case the lock is released, abandoned, or left to
/// expire.
pub(super) async fn process(shared: &Shared, locked: Box<LockedWorkItem>) {
    let item = match delivery::judge(&locked, shared.options.max_attempts, shared.letters()) {
        Delivery::Work(item) => item,
        Delivery::Refused(refusal) => return Box::pin(refuse(shared, refusal)).await,
    };
    let lock = ActivityLock::of(*locked);
    let Some(handler) = shared.registry.activity(&item.name) else {
        return Box::pin(not_registered(shared, &item, lock.token)).await;
    };
    run(shared, item, lock, handler).await;
}

/// The lock on an activity.
struct ActivityLock {
    token: LockToken,
    activity: ScheduledActivityIdentifier,
    /// Number of deliveries, this one included.
    delivery: u32,
}

impl ActivityLock {
    /// The rest of an item whose message has been decoded.
    fn of(locked: LockedWorkItem) -> Self {
        let LockedWorkItem { lock_token, attempt_count, message, .. } = locked;
        ActivityLock { token: lock_token, activity: message.activity, delivery: attempt_count }
    }
}

/// Runs one attempt and commits its end.
async fn run(
    shared: &Shared,
    item: Arc<ActivityExecute>,
    ActivityLock { token, activity, delivery }: ActivityLock,
    handler: ActivityHandler,
) {
    let (stop, cancellation) = CancellationToken::new();
    let _lease = shared.leases.hold_activity(token, activity, stop);
    let heartbeat = Arc::new(Heartbeat::default());
    let ctx = ActivityContext {
        item: item.clone(),
        delivery,
        worker_id: shared.node_id.clone(),
        cancellation: cancellation.clone(),
        heartbeat: heartbeat.clone(),
        store: shared.store.clone(),
        client: shared.client.clone(),
    };
    let started_ns = shared.clock.monotonic_ns();
    let mut progress = StoredProgress { shared, key: &item.idempotency_key, version: None, at_ms: 0 };
    let ended = {
        let input = item.input.clone();
        // The handler itself may panic before it returns a future, so it is called inside.
        let work = std::panic::AssertUnwindSafe(async move { handler(ctx, input).await }).catch_unwind();
        let span = tracing::debug_span!(
            "segno.activity",
            instance = item.instance,
            activity = item.name,
            attempt = item.attempt,
            traceparent = item.traceparent.as_deref(),
        );
        let mut work = pin!(work.instrument(span));
        let (timeout, silence) =
            (sleep_ms(shared, item.options.timeout_ms), sleep_ms(shared, item.options.heartbeat_timeout_ms));
        let watch = Watch { shared, item: &item, cancellation, heartbeat: &heartbeat, timeout, silence };
        // An activity that ends at once needs no watch. One that waits is polled once more when the
        // watch begins: without that, a wake-up would be lost when the task has used up its share
        // of the processor.
        match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            Poll::Ready(result) => AttemptEnd::of_code(&item.name, result),
            Poll::Pending => Box::pin(watch.run(work, &mut progress)).await,
        }
    };
    let seconds = shared.clock.monotonic_ns().saturating_sub(started_ns) as f64 / 1e9;
    metrics::histogram!(telemetry::ACTIVITY_SECONDS).record(seconds);
    shared.sessions.touch(item.options.session.as_deref());
    match ended {
        AttemptEnd::Result(result) => {
            let records = progress.end(result.is_ok(), heartbeat.latest().progress);
            let waiting = (item.instance.as_str(), item.id, item.idempotency_key.as_str());
            if let Some(execution) = join::waiting_execution(shared, waiting, delivery).await {
                let end = ending::completion((item.execution_id, item.id), item.attempt, result.clone());
                let joined = Box::pin(join::run(shared, execution, token, end, records.clone())).await;
                if matches!(joined, Joined::Committed) {
                    return ending::count(result.is_ok());
                }
            }
            finish(shared, &item, token, result, records).await;
        }
        AttemptEnd::Stopped(reason) => {
            let outcome = if reason == LOCK_LOST { "lock_lost" } else { "cancelled" };
            metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => outcome).increment(1);
            tracing::debug!(
                instance = item.instance,
                activity = item.name,
                reason,
                "the activity was stopped"
            );
        }
        AttemptEnd::Released => Box::pin(abandon(shared, token, None, true)).await,
    }
}

/// Watches one attempt: its end, its timeouts, its heartbeats, its cancellation, the end of the
/// node.
struct Watch<'a> {
    shared: &'a Shared,
    item: &'a ActivityExecute,
    cancellation: CancellationToken,
    heartbeat: &'a Heartbeat,
    timeout: Sleep,
    /// Ends when there was no heartbeat for too long.
    silence: Sleep,
}

/// A wait for a time, or for ever.
type Sleep = Option<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Watch<'_> {
    async fn run(
        mut self,
        work: impl Future<Output = CodeResult>,
        progress: &mut StoredProgress<'_>,
    ) -> AttemptEnd {
        tokio::pin!(work);
        let clock = &*self.shared.clock;
        let options = &self.item.options;
        let mut beats = 0;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return AttemptEnd::of_code(&self.item.name, result),
                reason = self.cancellation.cancelled() => {
                    // The activity has the same token, and may end by itself within the grace time.
                    let grace = self.shared.options.cancellation_grace;
                    let _ = clock::timeout(clock, grace, work).await;
                    return AttemptEnd::Stopped(reason);
                }
                () = wait(&mut self.timeout) => {
                    let ms = options.timeout_ms.unwrap_or_default();
                    return AttemptEnd::Result(Err(ending::attempt_timeout(&self.item.name, ms)));
                }
                () = wait(&mut self.silence) => {
                    let ms = options.heartbeat_timeout_ms.unwrap_or_default();
                    if self.heartbeat.latest().count > beats {
                        beats = self.heartbeat.latest().count;
                        self.silence = sleep_ms(self.shared, options.heartbeat_timeout_ms);
                    } else {
                        let message = format!("activity {:?} gave no heartbeat for {ms} ms", self.item.name);
                        return AttemptEnd::Result(Err(Failure::timeout("heartbeat-timeout", message)));
                    }
                }
                () = self.heartbeat.beaten.notified() => {
                    let beat = self.heartbeat.latest();
                    beats = beat.count;
                    self.silence = sleep_ms(self.shared, options.heartbeat_timeout_ms);
                    Box::pin(progress.store(beat.progress)).await;
                }
                () = self.shared.reached(Stage::Releasing) => return AttemptEnd::Released,
            }
        }
    }
}

/// A wait of so many milliseconds, if any; one beyond the range of times never ends.
fn sleep_ms(shared: &Shared, ms: Option<u64>) -> Sleep {
    let clock = &*shared.clock;
    ms.map(|ms| clock.sleep_until_ms(clock.now_ms().saturating_add(ms)))
}

async fn wait(sleep: &mut Sleep) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// The progress of an attempt, as stored for the next one.
struct StoredProgress<'a> {
    shared: &'a Shared,
    key: &'a str,
    /// What the next write expects; unknown before the first one.
    version: Option<Expect>,
    at_ms: u64,
}

impl StoredProgress<'_> {
    /// Stores the latest progress, at most once per [`PROGRESS_INTERVAL`]. A worker that lost its
    /// lock overwrites nothing: versions are checked.
    async fn store(&mut self, progress: Option<Payload>) {
        let Some(progress) = progress else { return };
        let now_ms = self.shared.clock.now_ms();
        if self.version.is_some() && now_ms < self.at_ms + duration_ms(PROGRESS_INTERVAL) {
            return;
        }
        match self.write(&progress).await {
            Ok(()) => self.at_ms = now_ms,
            Err(error) => tracing::debug!(%error, "progress could not be stored"),
        }
    }

    async fn write(&mut self, progress: &Payload) -> Result<(), ProviderError> {
        let store = &*self.shared.store;
        let expect = match self.version {
            Some(expect) => expect,
            None => *self.version.insert(progress::version(store, self.key).await?),
        };
        self.version = Some(progress::store(store, self.key, expect, progress).await?);
        Ok(())
    }

    /// What the commit of the end writes: a success deletes the progress, a failure stores the
    /// latest. The commit verifies the lock of the activity, so no newer progress can exist.
    fn end(&self, succeeded: bool, latest: Option<Payload>) -> Vec<RecordWrite> {
        match latest {
            Some(progress) if !succeeded => vec![progress::put(self.key, Expect::Anything, &progress)],
            latest if succeeded && (latest.is_some() || self.version.is_some()) => {
                vec![progress::delete(self.key)]
            }
            _ => Vec::new(),
        }
    }
}

/// Commits the end of an attempt, for as long as its lock holds.
async fn finish(
    shared: &Shared,
    item: &ActivityExecute,
    token: LockToken,
    result: Result<Payload, Failure>,
    records: Vec<RecordWrite>,
) {
    let succeeded = result.is_ok();
    let end = || item.held_by(token).ended(result.clone(), records.clone());
    if ack(shared, token, end).await {
        ending::count(succeeded);
    }
}

/// Ends an activity that cannot be delivered.
async fn refuse(shared: &Shared, refusal: Refusal) {
    if ack(shared, refusal.ack.lock_token, || refusal.ack.clone()).await {
        refusal.count();
    }
}

/// Commits the end of an activity, which is made anew for every try. Returns whether it was
/// committed.
async fn ack(shared: &Shared, token: LockToken, end: impl Fn() -> AckWorkItem) -> bool {
    let commit = |_| shared.store.ack_work_item(end());
    match shared.insist("the end of an activity could not be committed", commit).await {
        Ok(()) => return true,
        // The node shuts down.
        Err(error) if error.is_retryable() => {}
        Err(error) if error.kind() == ErrorKind::LockLost => {
            metrics::counter!(telemetry::LOCKS_LOST, "what" => "activity").increment(1);
            tracing::debug!(%error, "the activity was cancelled or taken over");
        }
        Err(error) => {
            tracing::error!(%error, "the end of an activity was refused; it will be delivered again");
            Box::pin(abandon(shared, token, Some(Duration::from_secs(1)), false)).await;
        }
    }
    false
}

async fn abandon(shared: &Shared, token: LockToken, delay: Option<Duration>, ignore_attempt: bool) {
    let abandon = |_| shared.store.abandon_work_item(token, delay, ignore_attempt);
    // A lost lock is as good as an abandoned one.
    let _abandoned = shared.insist("an activity could not be abandoned", abandon).await;
}

async fn not_registered(shared: &Shared, item: &ActivityExecute, token: LockToken) {
    let now_ms = shared.clock.now_ms();
    let key = format!("{} {}", item.attempt, item.idempotency_key);
    match shared.unregistered.judge(&key, now_ms) {
        Verdict::Wait(delay) => {
            tracing::warn!(activity = item.name, ?delay, "the activity is not registered on this node");
            abandon(shared, token, Some(delay), true).await;
        }
        Verdict::Fail => {
            let message = format!("activity {:?} is not registered on any node that looked at it", item.name);
            let failure = Failure::configuration("unregistered", message);
            finish(shared, item, token, Err(failure), Vec::new()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::future_bytes;

    #[test]
    fn an_activity_takes_little_memory() {
        let bytes = future_bytes::<&'static Shared, Box<LockedWorkItem>, _>(process);
        assert!(bytes <= 1_536, "{bytes} bytes");
    }
}
