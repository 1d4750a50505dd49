//! The context of activity code: its call, its cancellation, and its heartbeats.

use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::client::Client;
use crate::error::Error;
use crate::failure::{Failure, from_engine_error};
use crate::payload::Payload;
use crate::store::Store;
use crate::work::progress;
use crate::work_item::ActivityExecute;

/// Tells an activity to stop. Cheap to clone; hand it to whatever the activity calls.
#[derive(Debug, Clone)]
pub struct CancellationToken(Arc<Cancellation>);

#[derive(Debug, Default)]
struct Cancellation {
    reason: OnceLock<&'static str>,
    said: Notify,
}

/// Stops an activity. Dropped, it reports that the attempt has ended.
#[derive(Debug)]
pub(crate) struct Stop(Arc<Cancellation>);

/// The cancellation reason for tasks that outlive an attempt.
const ENDED: &str = "the attempt has ended";

impl CancellationToken {
    pub(crate) fn new() -> (Stop, Self) {
        let cancellation = Arc::<Cancellation>::default();
        (Stop(Arc::clone(&cancellation)), CancellationToken(cancellation))
    }

    /// Whether the activity should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.reason.get().is_some()
    }

    /// Waits until the activity should stop, and returns the reason. Tasks that outlive the attempt are cancelled at its end.
    pub async fn cancelled(&self) -> String {
        let mut said = pin!(self.0.said.notified());
        // It subscribes before it checks, so that no change is missed in between.
        said.as_mut().enable();
        if !self.is_cancelled() {
            said.await;
        }
        (*self.0.reason.get().unwrap_or(&ENDED)).to_owned()
    }
}

impl Stop {
    /// Tells the activity to stop. The first reason stays.
    pub(crate) fn stop(&self, reason: &'static str) {
        if self.0.reason.set(reason).is_ok() {
            self.0.said.notify_waiters();
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.stop(ENDED);
    }
}

/// The heartbeat of one attempt, shared between the activity and the worker that watches it.
#[derive(Default)]
pub(crate) struct Heartbeat {
    latest: Mutex<Beat>,
    pub(crate) beaten: Notify,
}

#[derive(Default, Clone)]
pub(crate) struct Beat {
    pub(crate) count: u64,
    pub(crate) progress: Option<Payload>,
}

impl Heartbeat {
    pub(crate) fn latest(&self) -> Beat {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn beat(&self, progress: Option<Payload>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.count += 1;
        if progress.is_some() {
            latest.progress = progress;
        }
        drop(latest);
        self.beaten.notify_one();
    }
}

/// The side of an activity that faces the engine. Cheap to clone.
#[derive(Clone)]
pub struct ActivityContext {
    pub(crate) item: Arc<ActivityExecute>,
    pub(crate) delivery: u32,
    pub(crate) worker_id: Arc<str>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) heartbeat: Arc<Heartbeat>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
}

impl ActivityContext {
    /// Instance that called the activity.
    pub fn instance_id(&self) -> &str {
        &self.item.instance
    }

    /// Execution of that instance.
    pub fn execution_id(&self) -> u64 {
        self.item.execution_id
    }

    /// Name of this activity.
    pub fn activity_name(&self) -> &str {
        &self.item.name
    }

    /// Name of the orchestration that called it.
    pub fn orchestration_name(&self) -> &str {
        &self.item.orchestration
    }

    /// Version of that orchestration.
    pub fn orchestration_version(&self) -> &str {
        &self.item.version
    }

    /// Number of this attempt by the retry policy, from 1.
    pub fn attempt(&self) -> u32 {
        self.item.attempt
    }

    /// How often this attempt has been handed to a worker, this time included. More than 1 means that a worker died on it
    /// or lost it.
    pub fn delivery(&self) -> u32 {
        self.delivery
    }

    /// The same for every attempt and delivery of this call, and different for every other call: hand it to whatever
    /// must not happen twice.
    pub fn idempotency_key(&self) -> &str {
        &self.item.idempotency_key
    }

    /// Session of the call.
    pub fn session(&self) -> Option<&str> {
        self.item.options.session.as_deref()
    }

    /// Tag of the call.
    pub fn tag(&self) -> Option<&str> {
        self.item.options.tag.as_deref()
    }

    /// When the call must have ended, over all attempts, in Unix milliseconds.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.item.options.deadline_at_ms
    }

    /// The node that runs this attempt.
    pub fn worker_id(&self) -> &str {
        &self.worker_id
    }

    /// W3C traceparent of the caller that started the instance.
    pub fn traceparent(&self) -> Option<&str> {
        self.item.traceparent.as_deref()
    }

    /// A client on the same store.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the activity should stop: its result is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until the activity should stop, and gives the reason.
    pub async fn cancelled(&self) -> String {
        self.cancellation.cancelled().await
    }

    /// A token to pass on.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// Shows that the attempt is alive and how far it is. The latest progress is stored now and then, and a later attempt
    /// can read it.
    ///
    /// # Errors
    /// A configuration failure when the progress is too large or has no JSON form.
    pub fn heartbeat<T: Serialize>(&self, progress: &T) -> Result<(), Failure> {
        let progress = Payload::encode(progress).map_err(|error| from_engine_error(&error))?;
        self.heartbeat.beat(Some(progress));
        Ok(())
    }

    /// The progress that an earlier attempt stored, if any.
    ///
    /// # Errors
    /// When the store cannot be read or the progress does not fit the type.
    pub async fn last_progress<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let progress = progress::read(&*self.store, &self.item.idempotency_key).await?;
        progress.map(|progress| progress.decode()).transpose()
    }
}
