//! What orchestration code holds: everything it may do, each as a future that survives the process.

mod activity_call;
mod child_call;
mod combine;
mod continue_as_new;
mod messages;
mod operation;
mod run_call;
mod sleep;
mod timeout;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::epilogue::Epilogue;
use crate::event::EventKind;
use crate::failure::{Failure, from_engine_error};
use crate::handles::{Activity, Mailbox, Orchestration, Signal};
use crate::names;
use crate::payload::Payload;
use crate::replay::{Mode, Shared};
use crate::store::ProviderError;

pub use activity_call::ActivityCall;
pub use child_call::{ChildCall, DetachedStart};
pub use combine::{Either, Race, RaceAll, race, race_all};
pub use continue_as_new::ContinueAsNew;
pub use messages::{MailboxReader, Receive, WaitForSignal};
pub use operation::Cancelled;
pub use run_call::RunCall;
pub use sleep::Sleep;
pub use timeout::Timeout;

/// The durable side of an orchestration.
///
/// Cheap to clone. Every future that it makes is durable: its outcome is recorded, and a replay gets the recorded
/// one. Dropping such a future before it ends cancels what it stands for. Await nothing else in an orchestration: other
/// effects belong into activities or [`Context::run`].
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    shielded: bool,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Context { shared, shielded: false }
    }

    /// Calls an activity on a worker.
    pub fn activity<I: Serialize, O: DeserializeOwned>(
        &self,
        activity: Activity<I, O>,
        input: I,
    ) -> ActivityCall<O> {
        ActivityCall::new(self, activity.name(), self.shared.encode(&input))
    }

    /// Runs a short piece of work here and now and records its result; a replay gets the recorded result. It takes no
    /// trip through the worker queue. Everything recorded before it is committed before it runs, so a step that ended
    /// is never run again; one that was cut off by a crash is.
    pub fn run<T, F, Fut>(&self, name: impl Into<String>, step: F) -> RunCall<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        RunCall::new(self.clone(), name.into(), step)
    }

    /// Waits for a duration, rounded up to whole milliseconds. Never ends early.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::after(self, duration)
    }

    /// Waits until a time in Unix milliseconds. Never ends early.
    pub fn sleep_until(&self, at_ms: u64) -> Sleep {
        Sleep::until(self, at_ms)
    }

    /// Limits how long a future may take: `Some` with its value if it ends in time, `None` if it does
    /// not. Then it is dropped, which cancels what it waits for. If it is ready at the same time as the
    /// limit, it wins.
    ///
    /// A failure of the future is returned as it is. A cancellation of the orchestration is such a
    /// failure and never a time-out: it ends the operations of the future, and the limit stays in force
    /// for what the future does to clean up.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use segno::{Context, Failure, Signal};
    /// # const APPROVED: Signal<bool> = Signal::new("approved");
    /// async fn approval(ctx: Context, _: ()) -> Result<bool, Failure> {
    ///     let three_days = Duration::from_secs(3 * 24 * 3600);
    ///     match ctx.timeout(three_days, ctx.signal(APPROVED)).await? {
    ///         Some(approved) => Ok(approved),
    ///         None => Ok(false),
    ///     }
    /// }
    /// ```
    pub fn timeout<T, F>(&self, limit: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        Timeout::new(self, limit, future)
    }

    /// Waits for a signal. The n-th wait for a name gets the n-th signal of that name; one that came early waits.
    pub fn signal<T: DeserializeOwned>(&self, signal: Signal<T>) -> WaitForSignal<T> {
        WaitForSignal::new(self, signal.name())
    }

    /// Reads a mailbox: messages come in order, wait until they are read, and survive continue-as-new.
    pub fn mailbox<T: DeserializeOwned>(&self, mailbox: Mailbox<T>) -> MailboxReader<T> {
        MailboxReader::new(self.clone(), mailbox)
    }

    /// Runs another orchestration as a child and waits for its result. A cancellation reaches the child.
    pub fn child<I: Serialize, O: DeserializeOwned>(
        &self,
        orchestration: Orchestration<I, O>,
        input: I,
    ) -> ChildCall<O> {
        let version = orchestration.version().map(str::to_owned);
        ChildCall::new(self, orchestration.name(), version, self.shared.encode(&input))
    }

    /// Starts another orchestration that goes its own way. Awaiting gives its instance id, at once.
    pub fn start_detached<I: Serialize, O>(
        &self,
        orchestration: Orchestration<I, O>,
        input: I,
    ) -> DetachedStart {
        let version = orchestration.version().map(str::to_owned);
        DetachedStart::new(self.clone(), orchestration.name(), version, self.shared.encode(&input))
    }

    /// Ends this execution and begins the next one of the same instance with a fresh history. Unread messages,
    /// the custom status and labels come along. Return what awaiting this gives: it never does.
    pub fn continue_as_new<I: Serialize, T>(&self, input: I) -> ContinueAsNew<T> {
        ContinueAsNew::new(self.clone(), self.shared.encode(&input))
    }

    /// Makes changes of records part of the commit that ends this instance: both are there, or neither. The last call
    /// counts.
    ///
    /// `make` gets the outcome of the instance. It is called in the turn that ends it, and again when that turn cannot be committed because
    /// a record is not as expected or something else happened to the instance, so it must read what it relies on each time. Its error keeps the instance from ending: it
    /// is called again every second until it gives none. A panic, or changes that the store finds invalid, are a turn that cannot be
    /// committed, of which there may be so many. It is not called for an execution that continues as new, nor when the engine ends
    /// an instance whose code it cannot run.
    pub fn at_end<F, Fut>(&self, make: F)
    where
        F: Fn(Result<Payload, Failure>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Epilogue, ProviderError>> + Send + 'static,
    {
        self.shared.set_epilogue(Arc::new(move |outcome| Box::pin(make(outcome))));
    }

    /// Time of the last recorded event, in Unix milliseconds: the same on every replay.
    pub fn now_ms(&self) -> u64 {
        self.shared.journal().now_ms
    }

    /// A random id, the same on every replay.
    pub fn uuid(&self) -> Uuid {
        self.shared.journal().random.next_uuid()
    }

    /// A random number, the same on every replay.
    pub fn random(&self) -> u64 {
        self.shared.journal().random.next_u64()
    }

    /// Publishes a status that clients can read and wait for.
    ///
    /// # Errors
    /// A configuration failure when the value is too large or has no JSON form.
    pub fn set_status<T: Serialize>(&self, status: &T) -> Result<(), Failure> {
        let status = self.shared.encode(status).map_err(|error| from_engine_error(&error))?;
        self.change_status(Some(status));
        Ok(())
    }

    /// Removes the custom status.
    pub fn clear_status(&self) {
        self.change_status(None);
    }

    fn change_status(&self, status: Option<Payload>) {
        let mut journal = self.shared.journal();
        journal.custom_status = status.clone();
        journal.command(EventKind::CustomStatusUpdated { status });
    }

    /// The custom status as last set, also by an execution before continue-as-new.
    ///
    /// # Errors
    /// A configuration failure when it does not fit the type.
    pub fn status<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let status = self.shared.journal().custom_status.clone();
        status.map(|status| status.decode()).transpose().map_err(|error| from_engine_error(&error))
    }

    /// Sets a label that instances can be found by.
    ///
    /// # Errors
    /// A configuration failure when the labels break their limits, or the label is one of Segno
    /// ([`RESERVED_LABEL_PREFIX`](crate::RESERVED_LABEL_PREFIX)).
    pub fn set_label(&self, key: impl Into<String>, value: impl Into<String>) -> Result<(), Failure> {
        let (key, value) = (key.into(), value.into());
        names::check_unreserved_label(&key).map_err(|error| from_engine_error(&error))?;
        let mut journal = self.shared.journal();
        let mut labels = journal.labels.clone();
        labels.insert(key.clone(), value.clone());
        names::check_labels(&labels).map_err(|error| from_engine_error(&error))?;
        journal.labels = labels;
        journal.command(EventKind::LabelUpdated { key, value: Some(value) });
        Ok(())
    }

    /// Removes a label. Those of Segno stay.
    pub fn remove_label(&self, key: &str) {
        if names::is_reserved_label(key) {
            return;
        }
        let mut journal = self.shared.journal();
        journal.labels.remove(key);
        journal.command(EventKind::LabelUpdated { key: key.to_owned(), value: None });
    }

    /// Whether this execution runs with a change of its code: `true` for executions that reach this line for the first
    /// time with the change in place, `false` for those that went past it before. The answer is recorded.
    pub fn patched(&self, id: &str) -> bool {
        self.shared.journal().patched(id)
    }

    /// A context whose operations continue after a cancellation, for cleanup.
    #[must_use]
    pub fn shielded(&self) -> Self {
        Context { shared: self.shared.clone(), shielded: true }
    }

    /// Whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.shared.journal().cancelled.is_some()
    }

    /// Waits until cancellation is requested, and returns the reason.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new(self)
    }

    /// Whether the code runs over recorded history.
    pub fn is_replaying(&self) -> bool {
        self.shared.journal().mode == Mode::Replaying
    }

    /// Id of this instance.
    pub fn instance_id(&self) -> &str {
        &self.shared.id.instance
    }

    /// Number of this execution, from 1.
    pub fn execution_id(&self) -> u64 {
        self.shared.id.execution_id
    }

    /// Name of this orchestration.
    pub fn orchestration_name(&self) -> &str {
        &self.shared.started.name
    }

    /// Version of this orchestration that the execution is pinned to.
    pub fn orchestration_version(&self) -> &str {
        &self.shared.started.version
    }

    /// The instance that this one is a child of.
    pub fn parent_instance_id(&self) -> Option<&str> {
        self.shared.started.parent.as_ref().map(|parent| parent.instance.as_str())
    }

    /// W3C traceparent of the caller that started this instance.
    pub fn traceparent(&self) -> Option<&str> {
        self.shared.started.traceparent.as_deref()
    }

    /// Logs at debug level, once: silent on replay.
    pub fn debug(&self, message: impl Display) {
        if !self.is_replaying() {
            tracing::debug!(instance = self.instance_id(), execution = self.execution_id(), "{message}");
        }
    }

    /// Logs at info level, once: silent on replay.
    pub fn info(&self, message: impl Display) {
        if !self.is_replaying() {
            tracing::info!(instance = self.instance_id(), execution = self.execution_id(), "{message}");
        }
    }

    /// Logs at warn level, once: silent on replay.
    pub fn warn(&self, message: impl Display) {
        if !self.is_replaying() {
            tracing::warn!(instance = self.instance_id(), execution = self.execution_id(), "{message}");
        }
    }

    /// Logs at error level, once: silent on replay.
    pub fn error(&self, message: impl Display) {
        if !self.is_replaying() {
            tracing::error!(instance = self.instance_id(), execution = self.execution_id(), "{message}");
        }
    }
}
