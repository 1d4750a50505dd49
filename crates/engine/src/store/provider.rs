//! The first facet of a store: two queues with peek-lock, histories, and the atomic turn commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use semver::Version;

use super::admin::InstanceInfo;
use super::error::ProviderError;
use super::execution_status::ExecutionStatus;
use super::filter::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};
use super::message::{
    LockToken, OrchestratorMessage, QueuedMessage, ScheduledActivityIdentifier, StoredEvent, TimerIdentifier,
    WorkerMessage,
};
use super::next_execution::NextExecution;
use super::records::RecordWrite;
use super::watch_until::WatchUntil;

/// The position of an execution, to query whether the runtime has it in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionPosition<'a> {
    /// The instance.
    pub instance: &'a str,
    /// Its current execution.
    pub execution_id: u64,
    /// The incarnation that the runtime gave it; `None` if it never did.
    pub incarnation: Option<u64>,
    /// Id of its last event.
    pub last_event_id: u64,
}

/// The histories that the runtime has in memory, so that a store need not load them. Called for
/// executions that have events. A store may call it under its lock, so it must be quick and must not
/// call the store.
pub trait ResidentExecutions: Send + Sync {
    /// Whether the runtime has this execution in memory, up to and including its last event.
    fn holds(&self, position: &ExecutionPosition<'_>) -> bool;
}

/// What to fetch from the orchestrator queue.
#[derive(Clone, Copy)]
pub struct FetchOrchestrationItems<'a> {
    /// At most this many instances.
    pub max_items: usize,
    /// How long each instance lock lasts.
    pub lock_timeout: Duration,
    /// How long to wait for work inside the store. Woken by the commit that makes work visible.
    pub poll_timeout: Duration,
    /// Only executions that the runtime can replay; `None` takes all.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// Histories that need not be loaded.
    pub resident: Option<&'a Arc<dyn ResidentExecutions>>,
}

impl FetchOrchestrationItems<'_> {
    /// One item, no waiting, no filter.
    pub fn one(lock_timeout: Duration) -> Self {
        FetchOrchestrationItems {
            max_items: 1,
            lock_timeout,
            poll_timeout: Duration::ZERO,
            filter: None,
            resident: None,
        }
    }
}

/// The history part of a fetched item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedHistory {
    /// All events of the current execution, ascending.
    Events(Vec<StoredEvent>),
    /// Left out because the runtime has them in memory.
    Resident,
    /// The store could not read it (checksum, torn page). The lock is held and the runtime decides.
    Unreadable(String),
}

/// A locked batch of work for one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationItem {
    /// The locked instance.
    pub instance: Arc<str>,
    /// Name of its orchestration; `None` before the first named turn.
    pub orchestration_name: Option<Arc<str>>,
    /// Version of its orchestration, if set.
    pub version: Option<Arc<str>>,
    /// Current execution; 1 for a new instance.
    pub execution_id: u64,
    /// State of the current execution; `None` for a new instance.
    pub status: Option<ExecutionStatus>,
    /// Id of the last event of the current execution; 0 when there is none.
    pub last_event_id: u64,
    /// History of the current execution.
    pub history: FetchedHistory,
    /// Every message that was visible at the moment of the fetch, oldest first.
    pub messages: Vec<QueuedMessage>,
    /// To be given to ack, abandon or renew.
    pub lock_token: LockToken,
    /// How often the most often fetched message of the batch has been fetched, this time included.
    pub attempt_count: u32,
    /// The store's clock at the fetch, in Unix milliseconds; turns take their time from it.
    pub fetched_at_ms: u64,
}

/// A change of the custom status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomStatusChange {
    /// Replace it.
    Set(Bytes),
    /// Remove it.
    Clear,
}

/// What the runtime wants stored about an execution. `None` keeps what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionMetadata {
    /// New state; a terminal one and `ContinuedAsNew` also set the completion time.
    pub status: Option<ExecutionStatus>,
    /// Result, failure or next input, as the runtime encodes it; opaque.
    pub output: Option<Bytes>,
    /// Orchestration name; makes the instance exist for guarded starts and listings by name.
    pub orchestration_name: Option<Arc<str>>,
    /// Orchestration version.
    pub orchestration_version: Option<Arc<str>>,
    /// Parent instance, for trees and cascading deletion.
    pub parent_instance_id: Option<String>,
    /// Engine version that the execution is pinned to; stored unconditionally when given.
    pub pinned_version: Option<Version>,
    /// A number that the runtime draws for each new execution and gets back in [`ExecutionPosition`]: it distinguishes an
    /// execution from one of the same number and length in an instance that was deleted and made again.
    pub incarnation: Option<u64>,
    /// New custom status; every ack that carries one raises its version by one.
    pub custom_status: Option<CustomStatusChange>,
    /// The full new set of labels.
    pub labels: Option<BTreeMap<String, String>>,
}

/// What happens to the instance lock after an ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterAck {
    /// The lock is released and the instance can be fetched again.
    #[default]
    Release,
    /// The same token keeps the lock for its remaining time; the holder commits more of the turn.
    KeepLock,
}

/// What the token of a turn is a lock on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnLock {
    /// Its instance, which was fetched.
    #[default]
    Instance,
    /// A running activity of its instance. The turn *joins* the activity: the end of the activity causes it, so the
    /// commit removes the activity, and no message of that end is ever queued. Only for stores with
    /// [`Provider::joins_turns`].
    ///
    /// The commit fails with `LockLost`, and changes nothing, unless
    /// * the activity is locked by the token, and its attempt count is 1,
    /// * the instance is at rest: it is not locked, no message for it is visible, and it was not abandoned with a delay that
    ///   still lasts,
    /// * the turn continues the current execution of the instance: that has the number and the incarnation of the turn, and the
    ///   turn has events, the first of which is the next one,
    /// * it is a whole turn: there is no lock that [`AfterAck::KeepLock`] could keep.
    ///
    /// A store may refuse in other cases too; the end of the activity is committed separately then.
    Activity {
        /// The incarnation of the execution that the turn continues; see [`ExecutionMetadata::incarnation`].
        incarnation: u64,
    },
}

/// One turn, to be committed all or nothing.
///
/// A turn without events and metadata only consumes messages: it creates no instance and no execution. A new execution
/// starts without pin, output and completion time; name, labels, parent and custom status belong to the instance and stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckOrchestrationItem {
    /// Token of the fetched item; the commit fails with `LockLost` unless it is still valid.
    pub lock_token: LockToken,
    /// What the token is a lock on.
    pub lock: TurnLock,
    /// Execution that the events belong to; created if it is new, and then the current one.
    pub execution_id: u64,
    /// New events, ascending. An event id that is not above all that the execution has fails the whole commit with
    /// `Conflict`: histories grow at their end only, so a part of one can be read without the rest.
    pub history_delta: Vec<StoredEvent>,
    /// Activities to enqueue.
    pub worker_items: Vec<WorkerMessage>,
    /// Messages to enqueue, for this or other instances. Those that their guard forbids are left out.
    pub orchestrator_items: Vec<OrchestratorMessage>,
    /// What to store about the execution.
    pub metadata: ExecutionMetadata,
    /// Activities to remove from the worker queue, locked or not. Unknown ones are ignored.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// Timers of this instance to remove from the orchestrator queue. Unknown ones are ignored.
    pub cancelled_timers: Vec<TimerIdentifier>,
    /// Records to write in the same commit.
    pub records: Vec<RecordWrite>,
    /// Whether the commit releases the lock.
    pub after: AfterAck,
}

impl AckOrchestrationItem {
    /// Whether a turn that joins an activity continues an execution at this position; see [`TurnLock::Activity`].
    pub fn goes_on_from(&self, current: &ExecutionPosition<'_>) -> bool {
        let TurnLock::Activity { incarnation } = self.lock else { return false };
        self.after == AfterAck::Release
            && self.execution_id == current.execution_id
            && Some(incarnation) == current.incarnation
            && self.history_delta.first().is_some_and(|event| event.event_id == current.last_event_id + 1)
    }

    /// An ack that only consumes the fetched messages.
    pub fn empty(lock_token: LockToken, execution_id: u64) -> Self {
        AckOrchestrationItem {
            lock_token,
            lock: TurnLock::Instance,
            execution_id,
            history_delta: Vec::new(),
            worker_items: Vec::new(),
            orchestrator_items: Vec::new(),
            metadata: ExecutionMetadata::default(),
            cancelled_activities: Vec::new(),
            cancelled_timers: Vec::new(),
            records: Vec::new(),
            after: AfterAck::Release,
        }
    }
}

/// Whether the lock on an activity outlives the process that took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockLife {
    /// The lock may end with the process: for activities that the process itself runs, because no
    /// holder is left then. A store that many processes share keeps it all the same.
    #[default]
    Process,
    /// The lock outlives the process: for holders in other processes. Token, end and attempt count
    /// are durable before the fetch is answered, and so is every renewal to a later end; the next
    /// process that opens the store finds the lock in that state. A lock is never part of an export.
    ///
    /// It is the lock of one activity. Whether the session of that activity stays with its owner is
    /// up to the store.
    Durable,
}

/// What to fetch from the worker queue.
#[derive(Debug, Clone, Copy)]
pub struct FetchWorkItems<'a> {
    /// At most this many items.
    pub max_items: usize,
    /// How long each lock lasts.
    pub lock_timeout: Duration,
    /// How long to wait for work inside the store.
    pub poll_timeout: Duration,
    /// Session routing; `None` takes only work without a session.
    pub session: Option<&'a SessionFetchConfig>,
    /// Which tags to take.
    pub tag_filter: &'a TagFilter,
    /// What the locks outlive.
    pub life: LockLife,
}

/// A locked activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedWorkItem {
    /// The message that was enqueued.
    pub message: WorkerMessage,
    /// To be given to ack, abandon or renew.
    pub lock_token: LockToken,
    /// Number of deliveries, this one included.
    pub attempt_count: u32,
    /// The store's clock at the fetch, in Unix milliseconds; the lock ends `lock_timeout` later.
    pub fetched_at_ms: u64,
}

/// The end of an activity, to be committed all or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckWorkItem {
    /// Token of the fetched item; the commit fails with `LockLost` unless it is still valid.
    pub lock_token: LockToken,
    /// Message for the orchestrator; `None` if no instance waits for it.
    pub completion: Option<OrchestratorMessage>,
    /// Records to write in the same commit.
    pub records: Vec<RecordWrite>,
}

/// Durable queues and histories: what a runtime needs of a store.
///
/// A store keeps bytes. It never decodes an event or a body, never creates an event, an execution id or an
/// event id, and never decides anything about an orchestration. The guide page
/// `docs/guide/writing-a-store.md` walks through an implementation; the conformance suite of `segno-testkit` is
/// the executable form of this contract.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Name of the implementation, for logs.
    fn name(&self) -> &str;

    /// Version of the implementation, for logs.
    fn version(&self) -> &str;

    /// The store's clock in Unix milliseconds: the only clock that decides visibility and expiry.
    async fn now_ms(&self) -> Result<u64, ProviderError>;

    /// Locks up to `max_items` instances that have visible messages and returns everything needed for their turns.
    ///
    /// For each instance: take the instance lock first, then every visible message of the instance, in the order in which
    /// they were enqueued, and increment the attempt count of each. A locked instance is skipped. Without a result, the
    /// call waits for up to `poll_timeout` and is woken by the commit that makes a message visible, by the due time of
    /// the next delayed message, or by the expiry of a lock.
    async fn fetch_orchestration_items(
        &self,
        request: FetchOrchestrationItems<'_>,
    ) -> Result<Vec<OrchestrationItem>, ProviderError>;

    /// Commits a turn: checks the lock, removes the fetched messages, appends events, stores metadata, enqueues, removes
    /// cancelled work and releases the lock, all or nothing. Removal follows enqueueing, so work that one commit enqueues
    /// and cancels is removed. A guarded start that the commit consumes does not conflict with one that it
    /// enqueues. Messages that arrived after the fetch stay in the queue.
    ///
    /// # Errors
    /// `LockLost` if the token is not valid any more, `Conflict` when an event id is not above all of its
    /// execution or a record expectation fails. Nothing is changed by a failed commit. After `Unavailable` the outcome is unknown:
    /// a repeat then returns `LockLost` (or `Conflict` under [`AfterAck::KeepLock`]) if the first one had succeeded. The
    /// turn is shared so that a caller that may repeat it need not copy it.
    async fn ack_orchestration_item(&self, turn: Arc<AckOrchestrationItem>) -> Result<(), ProviderError>;

    /// Whether turns may join the activity whose end causes them; see [`TurnLock::Activity`].
    fn joins_turns(&self) -> bool;

    /// Abandons the batch: releases the lock and makes the messages visible, after `delay` if given, in their order.
    /// The delay applies to the whole instance: messages that arrived under the lock or arrive later are delayed as
    /// well, so that none overtakes the abandoned ones.
    /// With `ignore_attempt` the fetch does not count as an attempt (the count never goes below zero).
    ///
    /// # Errors
    /// `LockLost` if the token is not valid.
    async fn abandon_orchestration_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Extends a valid instance lock to `extend_for` from now.
    ///
    /// # Errors
    /// `LockLost` if the token is not valid.
    async fn renew_orchestration_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    /// The history of the current execution; empty for an unknown instance.
    async fn read(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError>;

    /// The history of one execution; empty when unknown.
    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError>;

    /// Appends events outside a turn, for imports and tests. Creates the instance and execution if needed.
    ///
    /// # Errors
    /// `Conflict` when an event id is not above all of its execution; nothing is changed then.
    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<StoredEvent>,
    ) -> Result<(), ProviderError>;

    /// Puts a message into the orchestrator queue, visible after `delay` if given (else at its `visible_at_ms`).
    /// The instance itself is created by its first turn, not here.
    ///
    /// # Errors
    /// `Conflict` or `NotFound` when the guard of the message forbids it; see [`StartGuard`](super::StartGuard).
    async fn enqueue_for_orchestrator(
        &self,
        message: OrchestratorMessage,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError>;

    /// Begins the next execution of an instance, all or nothing: a restart, or a replacement of a running execution.
    ///
    /// In one commit the current execution ends, if it has not and the call contains the end; the next one is created without
    /// events, [pending](ExecutionStatus::Pending), and becomes the current one, with the name, version and labels of the
    /// call and without a custom status; activities and timers of the instance leave their queues; its lock and the
    /// delay of an abandoned batch are void, so that a turn in flight commits nothing; and the start is enqueued behind the
    /// queued messages, which stay.
    /// An instance of which only a guarded start is queued counts as execution 1, and gets a row by this. Earlier executions stay.
    /// A call whose incarnation is that of the current execution was done before: it changes nothing and succeeds.
    ///
    /// # Errors
    /// `NotFound` when the instance has not started and no guarded start for it waits; `Conflict` when another execution than
    /// `after_execution_id` is the current one, or when it has not ended and the call refuses that. Nothing is changed then.
    async fn begin_next_execution(&self, next: NextExecution) -> Result<(), ProviderError>;

    /// Puts an activity into the worker queue.
    async fn enqueue_for_worker(&self, message: WorkerMessage) -> Result<(), ProviderError>;

    /// Locks up to `max_items` visible activities that pass the filters, oldest first, and raises their attempt
    /// counts. Session-bound work is returned only with a session config: items of sessions that `owner_id` holds,
    /// and of free sessions, which the fetch claims in the same step. Waits like the orchestrator fetch.
    async fn fetch_work_items(
        &self,
        request: FetchWorkItems<'_>,
    ) -> Result<Vec<LockedWorkItem>, ProviderError>;

    /// Removes a finished activity and enqueues its completion, all or nothing.
    ///
    /// # Errors
    /// `LockLost` when the item was removed (cancelled) or the lock expired or was taken over.
    async fn ack_work_item(&self, ack: AckWorkItem) -> Result<(), ProviderError>;

    /// Moves the end of the lock of a running activity to `extend_for` from now, which may be
    /// earlier than it was, and keeps its session alive. [`LockLife::Durable`] makes the lock
    /// outlive the process from now on; [`LockLife::Process`] leaves that as it is.
    ///
    /// # Errors
    /// `LockLost` when the item was removed (this is how a worker detects cancellation) or the lock is lost.
    async fn renew_work_item_lock(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
        life: LockLife,
    ) -> Result<(), ProviderError>;

    /// Abandons an activity; see [`Provider::abandon_orchestration_item`].
    ///
    /// # Errors
    /// `LockLost` if the token is not valid.
    async fn abandon_work_item(
        &self,
        lock_token: LockToken,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Those of the given tokens that lock no activity any more. Changes nothing; workers call it periodically, so that
    /// they detect a cancellation by another node before their next renewal.
    async fn lost_work_items(&self, lock_tokens: &[LockToken]) -> Result<Vec<LockToken>, ProviderError>;

    /// Extends the locks of all sessions that the owners hold and that are not idle (last fetch, ack or renewal of one
    /// of their items within `idle_timeout`). Returns their number.
    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Removes sessions whose lock has expired and that no queued item refers to, of any node. Returns their number.
    /// How long they have been idle does not matter: a session that is in use is renewed, so its lock does not expire.
    async fn cleanup_orphaned_sessions(&self) -> Result<usize, ProviderError>;

    /// Custom status and its version if the version is higher than `last_seen_version`.
    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<Bytes>, u64)>, ProviderError>;

    /// Waits until the instance is in the requested state, also when it does not exist yet. `None` after `timeout`.
    /// Woken by commits; never reads a history.
    async fn watch_instance(
        &self,
        instance: &str,
        until: WatchUntil,
        timeout: Duration,
    ) -> Result<Option<InstanceInfo>, ProviderError>;

    /// Puts a start into the orchestrator queue and waits until its instance has ended: the same as
    /// [`Provider::enqueue_for_orchestrator`] and then [`Provider::watch_instance`], for a store that does both in one step. Another
    /// one calls [`start_then_watch`]. The call does not return after the start unless that fails.
    ///
    /// # Errors
    /// Those of the two. After `Unavailable` the instance may have been started.
    async fn start_and_watch(&self, start: OrchestratorMessage) -> Result<InstanceInfo, ProviderError>;

    /// One item, as [`Provider::fetch_orchestration_items`].
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<OrchestrationItem>, ProviderError> {
        let request =
            FetchOrchestrationItems { max_items: 1, lock_timeout, poll_timeout, filter, resident: None };
        Ok(self.fetch_orchestration_items(request).await?.pop())
    }

    /// One item for the process itself, as [`Provider::fetch_work_items`].
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<LockedWorkItem>, ProviderError> {
        let life = LockLife::Process;
        let request = FetchWorkItems { max_items: 1, lock_timeout, poll_timeout, session, tag_filter, life };
        Ok(self.fetch_work_items(request).await?.pop())
    }
}

/// [`Provider::start_and_watch`] in two steps.
///
/// # Errors
/// Those of the two. After `Unavailable` the instance may have been started.
pub async fn start_then_watch(
    store: &(impl Provider + ?Sized),
    start: OrchestratorMessage,
) -> Result<InstanceInfo, ProviderError> {
    let instance = start.instance.clone();
    store.enqueue_for_orchestrator(start, None).await?;
    loop {
        if let Some(info) = store.watch_instance(&instance, WatchUntil::Terminal, Duration::MAX).await? {
            return Ok(info);
        }
    }
}
