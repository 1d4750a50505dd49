//! The worker dispatcher: one fetcher, many activities.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::leases::LOCK_LOST;
use super::unregistered::Verdict;
use super::{Shared, Stage, backoff};
use crate::activity::{ActivityContext, CancellationToken, Heartbeat, PROGRESS_KIND};
use crate::clock::{self, Clock, duration_ms};
use crate::dead_letter::DeadLetter;
use crate::failure::{self, Category, Failure};
use crate::payload::Payload;
use crate::registry::ActivityHandler;
use crate::store::{
    AckWorkItem, ErrorKind, Expect, FetchWorkItems, LockToken, LockedWorkItem, RecordBatch, RecordWrite,
};
use crate::telemetry;
use crate::work_item::{ANY_ATTEMPT, ActivityExecute, WorkItem};

/// Most activities locked by one fetch.
const MAX_FETCHED_ACTIVITIES: usize = 64;
/// Shortest time between two stored heartbeats of one attempt.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long the progress of an activity is kept for its next attempt.
const PROGRESS_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) async fn run(shared: Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(shared.options.worker_concurrency));
    let mut activities = JoinSet::new();
    let mut failed_fetches = 0;
    loop {
        while activities.try_join_next().is_some() {}
        let Some(mut permits) = free_slots(&shared, &slots, MAX_FETCHED_ACTIVITIES).await else { break };
        let (session, most) = shared.sessions.fetch_config(permits.num_permits());
        let request = FetchWorkItems {
            max_items: most,
            lock_timeout: shared.options.worker_lock_timeout,
            poll_timeout: shared.sessions.longest_wait(session.as_ref()),
            session: session.as_ref(),
            tag_filter: &shared.options.tag_filter,
        };
        let fetched = tokio::select! {
            biased;
            fetched = shared.store.fetch_work_items(request) => fetched,
            // A session was given up, so another one may be claimed: ask again.
            () = shared.sessions.freed() => continue,
            () = shared.reached(Stage::Draining) => break,
        };
        match fetched {
            Ok(items) => {
                failed_fetches = 0;
                for item in items {
                    // A store that returns more than it was asked for only strains the node.
                    let permit = permits.split(1);
                    let shared = shared.clone();
                    shared.sessions.touch(item.message.session_id.as_deref());
                    activities.spawn(async move {
                        process(&shared, item).await;
                        drop(permit);
                    });
                }
            }
            Err(error) => {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                tracing::warn!(%error, "could not fetch activities; trying again");
                clock::sleep(&*shared.clock, backoff::store_retry(failed_fetches)).await;
                failed_fetches += 1;
            }
        }
    }
    while activities.join_next().await.is_some() {}
}

/// Waits for a free slot and takes all that are free, up to a limit; `None` when the node drains.
pub(super) async fn free_slots(
    shared: &Shared,
    slots: &Arc<Semaphore>,
    most: usize,
) -> Option<OwnedSemaphorePermit> {
    let mut permits = tokio::select! {
        biased;
        () = shared.reached(Stage::Draining) => return None,
        permit = slots.clone().acquire_owned() => permit.ok()?,
    };
    let more = slots.available_permits().min(most - 1) as u32;
    if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
        permits.merge(more);
    }
    Some(permits)
}

/// How an attempt ended.
enum Ended {
    Result(Result<Payload, Failure>),
    /// Nobody wants the result, or somebody else has the lock.
    Stopped(String),
    /// The node shuts down; the attempt is given back.
    Released,
}

async fn process(shared: &Shared, locked: LockedWorkItem) {
    let LockedWorkItem { message, lock_token, attempt_count, .. } = locked;
    let item = match WorkItem::decode(&message.body) {
        Ok(WorkItem::ActivityExecute(item)) => *item,
        Ok(_) => {
            return Box::pin(park(shared, &message, lock_token, "it is not an activity".to_owned())).await;
        }
        Err(reason) => return Box::pin(park(shared, &message, lock_token, reason)).await,
    };
    if attempt_count > shared.options.max_attempts {
        metrics::counter!(telemetry::POISONED, "what" => "activity").increment(1);
        let message = format!(
            "activity {:?} was given up after {} deliveries without an answer",
            item.name,
            attempt_count - 1
        );
        let failure = Failure::new(Category::Poison, message).code("too-many-deliveries");
        return Box::pin(finish(shared, &item, lock_token, Err(failure), Vec::new())).await;
    }
    let Some(handler) = shared.registry.activity(&item.name) else {
        return Box::pin(not_registered(shared, &item, lock_token)).await;
    };
    attempt(shared, item, lock_token, attempt_count, handler).await;
}

/// Runs one attempt and commits its end.
async fn attempt(
    shared: &Shared,
    item: ActivityExecute,
    token: LockToken,
    delivery: u32,
    handler: ActivityHandler,
) {
    let (stop, cancellation) = CancellationToken::new();
    let _held = shared.leases.hold_activity(token, item.identifier(), stop);
    let item = Arc::new(item);
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
    let input = item.input.clone();
    let name = item.name.clone();
    let work = async move {
        // The handler itself may panic before it gives a future, so it is called inside.
        let work = std::panic::AssertUnwindSafe(async move { handler(ctx, input).await }).catch_unwind();
        match work.await {
            Ok(result) => result,
            Err(panic) => Err(failure::from_panic(&format!("activity {name:?}"), &*panic)),
        }
    };
    let watch = Watch { shared, item: &item, cancellation, heartbeat: &heartbeat };
    let mut progress = StoredProgress { shared, key: &item.idempotency_key, version: None, at_ms: 0 };
    let span = tracing::debug_span!(
        "segno.activity",
        instance = item.instance,
        activity = item.name,
        attempt = item.attempt,
        traceparent = item.traceparent.as_deref(),
    );
    let ended = watch.run(work.instrument(span), &mut progress).await;
    let seconds = shared.clock.monotonic_ns().saturating_sub(started_ns) as f64 / 1e9;
    metrics::histogram!(telemetry::ACTIVITY_SECONDS).record(seconds);
    shared.sessions.touch(item.options.session.as_deref());
    match ended {
        Ended::Result(result) => {
            let records = progress.end(result.is_ok(), heartbeat.latest().progress);
            finish(shared, &item, token, result, records).await;
        }
        Ended::Stopped(reason) => {
            let outcome = if reason == LOCK_LOST { "lock_lost" } else { "cancelled" };
            metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => outcome).increment(1);
            tracing::debug!(
                instance = item.instance,
                activity = item.name,
                reason,
                "the activity was stopped"
            );
        }
        Ended::Released => Box::pin(abandon(shared, token, None, true)).await,
    }
}

/// Watches one attempt: its end, its timeouts, its heartbeats, its cancellation, the end of the node.
struct Watch<'a> {
    shared: &'a Shared,
    item: &'a ActivityExecute,
    cancellation: CancellationToken,
    heartbeat: &'a Heartbeat,
}

impl Watch<'_> {
    async fn run(
        mut self,
        work: impl Future<Output = Result<Payload, Failure>>,
        progress: &mut StoredProgress<'_>,
    ) -> Ended {
        tokio::pin!(work);
        let clock = &*self.shared.clock;
        let options = &self.item.options;
        let mut timeout = options.timeout_ms.map(|ms| sleep_ms(clock, ms));
        let mut silence = options.heartbeat_timeout_ms.map(|ms| sleep_ms(clock, ms));
        let mut beats = 0;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return Ended::Result(result),
                reason = self.cancellation.cancelled() => {
                    // The activity hears of it as well; it may end by itself within the grace time.
                    let grace = self.shared.options.cancellation_grace;
                    let _ = clock::timeout(clock, grace, work).await;
                    return Ended::Stopped(reason);
                }
                () = wait(&mut timeout) => {
                    let ms = options.timeout_ms.unwrap_or_default();
                    let message = format!("activity {:?} took longer than {ms} ms", self.item.name);
                    return Ended::Result(Err(Failure::timeout("attempt-timeout", message)));
                }
                () = wait(&mut silence) => {
                    let ms = options.heartbeat_timeout_ms.unwrap_or_default();
                    if self.heartbeat.latest().count > beats {
                        beats = self.heartbeat.latest().count;
                        silence = Some(sleep_ms(clock, ms));
                    } else {
                        let message = format!("activity {:?} gave no heartbeat for {ms} ms", self.item.name);
                        return Ended::Result(Err(Failure::timeout("heartbeat-timeout", message)));
                    }
                }
                () = self.heartbeat.beaten.notified() => {
                    let beat = self.heartbeat.latest();
                    beats = beat.count;
                    silence = options.heartbeat_timeout_ms.map(|ms| sleep_ms(clock, ms));
                    Box::pin(progress.store(beat.progress)).await;
                }
                () = self.shared.reached(Stage::Releasing) => return Ended::Released,
            }
        }
    }
}

/// A wait of so many milliseconds; one that is longer than time itself never ends.
fn sleep_ms(clock: &dyn Clock, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    clock.sleep_until_ms(clock.now_ms().saturating_add(ms))
}

async fn wait(sleep: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// The progress of an attempt, as stored for the next one.
struct StoredProgress<'a> {
    shared: &'a Shared,
    key: &'a str,
    version: Option<u64>,
    at_ms: u64,
}

impl StoredProgress<'_> {
    /// Stores the latest progress now and then. A worker that lost its lock writes over nothing: versions are checked.
    async fn store(&mut self, progress: Option<Payload>) {
        let Some(progress) = progress else { return };
        let now_ms = self.shared.clock.now_ms();
        if self.version.is_some() && now_ms < self.at_ms + duration_ms(PROGRESS_INTERVAL) {
            return;
        }
        let store = &self.shared.store;
        if self.version.is_none() {
            match store.get_record(PROGRESS_KIND, self.key).await {
                Ok(record) => self.version = Some(record.map_or(0, |record| record.version)),
                Err(error) => return tracing::debug!(%error, "progress could not be stored"),
            }
        }
        let expect = match self.version {
            Some(version) if version > 0 => Expect::Version(version),
            _ => Expect::Absent,
        };
        let write = RecordWrite::Put {
            kind: PROGRESS_KIND.to_owned(),
            id: self.key.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: Some(PROGRESS_RETENTION),
            body: progress.as_str().as_bytes().to_vec().into(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        match store.commit_records(batch).await {
            Ok(versions) => {
                self.version = versions.first().copied();
                self.at_ms = now_ms;
            }
            Err(error) => tracing::debug!(%error, "progress could not be stored"),
        }
    }

    /// What the end of the attempt writes with its answer: a success leaves nothing behind, a failure its latest
    /// progress. The commit holds the lock of the activity, so nothing newer can be there.
    fn end(&self, succeeded: bool, latest: Option<Payload>) -> Vec<RecordWrite> {
        let (kind, id, expect) = (PROGRESS_KIND.to_owned(), self.key.to_owned(), Expect::Anything);
        match latest {
            Some(progress) if !succeeded => vec![RecordWrite::Put {
                kind,
                id,
                expect,
                due_at_ms: None,
                time_to_live: Some(PROGRESS_RETENTION),
                body: progress.as_str().as_bytes().to_vec().into(),
            }],
            latest if succeeded && (latest.is_some() || self.version.is_some()) => {
                vec![RecordWrite::Delete { kind, id, expect }]
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
    let outcome = if result.is_ok() { "completed" } else { "failed" };
    let completion = match result {
        Ok(result) => WorkItem::ActivityCompleted { execution_id: item.execution_id, id: item.id, result },
        Err(details) => WorkItem::ActivityFailed {
            execution_id: item.execution_id,
            id: item.id,
            attempt: item.attempt,
            details: details.bounded(),
        },
    };
    let completion = Some(completion.for_orchestrator(item.instance.clone()));
    ack(shared, AckWorkItem { lock_token: token, completion, records }, outcome).await;
}

async fn ack(shared: &Shared, ack: AckWorkItem, outcome: &'static str) {
    let mut tries = 0;
    loop {
        match shared.store.ack_work_item(ack.clone()).await {
            Ok(()) => {
                metrics::counter!(telemetry::ACTIVITY_ATTEMPTS, "outcome" => outcome).increment(1);
                return;
            }
            Err(error) if error.is_retryable() => {
                metrics::counter!(telemetry::STORE_ERRORS, "operation" => error.operation()).increment(1);
                if tries == 0 {
                    tracing::warn!(%error, "the end of an activity could not be committed; trying again");
                }
                if shared.pause_unless_releasing(tries).await.is_none() {
                    return;
                }
                tries += 1;
            }
            Err(error) if error.kind() == ErrorKind::LockLost => {
                metrics::counter!(telemetry::LOCKS_LOST, "what" => "activity").increment(1);
                tracing::debug!(%error, "the activity was cancelled or taken over");
                return;
            }
            Err(error) => {
                tracing::error!(%error, "the end of an activity was refused; it will be delivered again");
                return Box::pin(abandon(shared, ack.lock_token, Some(Duration::from_secs(1)), false)).await;
            }
        }
    }
}

async fn abandon(shared: &Shared, token: LockToken, delay: Option<Duration>, ignore_attempt: bool) {
    let mut tries = 0;
    loop {
        match shared.store.abandon_work_item(token, delay, ignore_attempt).await {
            Err(error) if error.is_retryable() && shared.pause_unless_releasing(tries).await.is_some() => {
                tries += 1
            }
            // A lost lock is as good as an abandoned one.
            Ok(()) | Err(_) => return,
        }
    }
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

/// An activity that cannot be read: parked where it can be seen, and its orchestration hears of it.
async fn park(shared: &Shared, message: &crate::store::WorkerMessage, token: LockToken, reason: String) {
    tracing::error!(instance = message.activity.instance, reason, "an activity cannot be read; it is parked");
    metrics::counter!(telemetry::DEAD_LETTERS, "queue" => "worker").increment(1);
    let text = format!("the queued activity cannot be read: {reason}");
    let letter = DeadLetter::of_worker(&*shared.ids, message, reason, shared.clock.now_ms());
    let completion = WorkItem::ActivityFailed {
        execution_id: message.activity.execution_id,
        id: message.activity.activity_id,
        attempt: ANY_ATTEMPT,
        details: Failure::new(Category::Poison, text).code("unreadable"),
    };
    let completion = Some(completion.for_orchestrator(message.activity.instance.clone()));
    ack(shared, AckWorkItem { lock_token: token, completion, records: vec![letter.to_write()] }, "failed")
        .await;
}
