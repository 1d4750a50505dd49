//! The words that cases are written in: an open store, short builders, and checks.
//!
//! What is not about time takes [`LOCK`], which no case outlives. What is about time takes `env.span()`.

use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, AckWorkItem, DueRecords, ErrorKind, ExecutionStatus, Expect,
    FetchOrchestrationItems, FetchWorkItems, InstanceInfo, LockLife, LockToken, LockedWorkItem,
    OrchestrationItem, OrchestratorMessage, ProviderError, Record, RecordBatch, RecordWrite,
    ScheduledActivityIdentifier, SessionClaims, SessionFetchConfig, StartGuard, Store, StoredEvent,
    TagFilter, TimerIdentifier, WatchUntil, WorkerMessage,
};

use super::harness::{ClockHandle, OpenStore, StoreHarness};
pub(crate) use super::turn::Turn;
use super::wait::Waiting;

/// A lock or wait that outlives every case.
pub(crate) const LOCK: Duration = Duration::from_secs(3_600);

/// A wait that ends at once.
pub(crate) const NO_WAIT: Duration = Duration::ZERO;

/// An open store with its clock. Cases call the store's methods directly on it.
#[derive(Clone)]
pub struct Env {
    store: Arc<dyn Store>,
    clock: ClockHandle,
    harness: Arc<dyn StoreHarness>,
}

impl Deref for Env {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

impl Env {
    /// An environment around a store that was just opened by this harness.
    pub fn new(open: OpenStore, harness: Arc<dyn StoreHarness>) -> Self {
        Env { store: open.store, clock: open.clock, harness }
    }

    /// An environment around another store.
    pub(crate) fn with_store(&self, store: Arc<dyn Store>) -> Self {
        Env { store, ..self.clone() }
    }

    /// The same store as the next process finds it. No other handle of the case may be in use.
    pub(crate) async fn reopen(self) -> Self {
        let Env { store, clock, harness } = self;
        let open = harness.reopen(OpenStore { store, clock }).await;
        Env::new(open, harness)
    }

    pub(crate) fn clock(&self) -> &ClockHandle {
        &self.clock
    }

    /// The store's time.
    pub(crate) async fn now(&self) -> u64 {
        self.now_ms().await.unwrap()
    }
}

/// The orchestrator queue.
impl Env {
    /// Enqueues a plain message.
    pub(crate) async fn send(&self, instance: &str, body: &'static str) {
        self.post(message(instance, body)).await;
    }

    /// Enqueues a message.
    pub(crate) async fn post(&self, message: OrchestratorMessage) {
        self.enqueue_for_orchestrator(message, None).await.unwrap();
    }

    /// Enqueues a plain message that is visible after a delay.
    pub(crate) async fn send_later(&self, instance: &str, body: &'static str, delay: Duration) {
        self.enqueue_for_orchestrator(message(instance, body), Some(delay)).await.unwrap();
    }

    /// Locks up to this many instances, now.
    pub(crate) async fn fetch_many(&self, max_items: usize) -> Vec<OrchestrationItem> {
        let request = FetchOrchestrationItems { max_items, ..FetchOrchestrationItems::one(LOCK) };
        self.fetch_orchestration_items(request).await.unwrap()
    }

    /// Locks one instance for [`LOCK`]. There must be one.
    pub(crate) async fn fetch(&self) -> OrchestrationItem {
        self.fetch_for(LOCK).await
    }

    /// Locks one instance for this long. There must be one.
    pub(crate) async fn fetch_for(&self, lock_timeout: Duration) -> OrchestrationItem {
        let item = self.fetch_orchestration_item(lock_timeout, NO_WAIT, None).await.unwrap();
        item.expect("an instance with visible messages that nobody has locked")
    }

    /// Fails if any instance can be fetched.
    pub(crate) async fn nothing_to_fetch(&self) {
        let fetched = self.fetch_many(1).await;
        assert!(fetched.is_empty(), "expected nothing, got {fetched:?}");
    }

    /// A turn for a fetched item, to be filled and acked.
    pub(crate) fn turn(&self, item: &OrchestrationItem) -> Turn {
        let ack = AckOrchestrationItem::empty(item.lock_token, item.execution_id);
        Turn { env: self.clone(), ack }
    }

    /// Sends a message to the instance, fetches it, and opens a turn. No other instance may have messages.
    pub(crate) async fn turn_of(&self, instance: &str) -> Turn {
        self.send(instance, "go").await;
        let item = self.fetch().await;
        assert_eq!(&*item.instance, instance);
        self.turn(&item)
    }

    /// Makes an instance exist: named, running, one event, nothing queued.
    pub(crate) async fn start(&self, instance: &str) {
        self.turn_of(instance).await.named("Flow").event(1).ack().await;
    }

    /// Makes a child exist.
    pub(crate) async fn start_child(&self, instance: &str, parent: &str) {
        self.turn_of(instance).await.named("Flow").parent(parent).event(1).ack().await;
    }

    /// Gives an instance a state.
    pub(crate) async fn put_status(&self, instance: &str, status: ExecutionStatus) {
        self.turn_of(instance).await.status(status).ack().await;
    }

    /// Makes an instance that has ended.
    pub(crate) async fn start_and_end(&self, instance: &str) {
        self.start(instance).await;
        self.put_status(instance, ExecutionStatus::Completed).await;
    }

    /// Makes an instance with this many executions, all but the last continued as new, one event each.
    pub(crate) async fn start_executions(&self, instance: &str, count: u64) {
        self.start(instance).await;
        for execution_id in 2..=count {
            self.put_status(instance, ExecutionStatus::ContinuedAsNew).await;
            self.turn_of(instance).await.execution(execution_id).event(1).ack().await;
        }
    }

    /// What is known of an instance that must exist.
    pub(crate) async fn info(&self, instance: &str) -> InstanceInfo {
        self.get_instance_info(instance).await.unwrap()
    }

    /// A fetch that waits. It must not have answered yet.
    pub(crate) async fn waiting_fetch(&self) -> Waiting<Vec<OrchestrationItem>> {
        self.fetch_waiting_for(LOCK).await
    }

    /// A fetch that waits for at most this long. It must not have answered yet.
    pub(crate) async fn fetch_waiting_for(&self, poll_timeout: Duration) -> Waiting<Vec<OrchestrationItem>> {
        self.wait_for(move |env| async move {
            let request = FetchOrchestrationItems { poll_timeout, ..FetchOrchestrationItems::one(LOCK) };
            env.fetch_orchestration_items(request).await.unwrap()
        })
        .await
    }

    /// A watch that waits. It must not have answered yet.
    pub(crate) async fn waiting_watch(&self, until: WatchUntil) -> Waiting<Option<InstanceInfo>> {
        self.wait_for(move |env| async move { env.watch_instance("i1", until, LOCK).await.unwrap() }).await
    }

    async fn wait_for<T, C>(&self, call: impl FnOnce(Env) -> C) -> Waiting<T>
    where
        T: Send + 'static,
        C: Future<Output = T> + Send + 'static,
    {
        let waiting = Waiting::start(self, call(self.clone())).await;
        waiting.still_waits();
        waiting
    }
}

/// The worker queue.
impl Env {
    /// Enqueues an activity.
    pub(crate) async fn queue(&self, message: WorkerMessage) {
        self.enqueue_for_worker(message).await.unwrap();
    }

    /// Locks activities as asked.
    pub(crate) async fn take(&self, ask: Ask) -> Vec<LockedWorkItem> {
        let request = FetchWorkItems {
            max_items: ask.max_items,
            lock_timeout: ask.lock_timeout,
            poll_timeout: ask.poll_timeout,
            session: ask.session.as_ref(),
            tag_filter: &ask.tags,
            life: ask.life,
        };
        self.fetch_work_items(request).await.unwrap()
    }

    /// Activity ids of what was locked as asked, for a case that does not look further.
    pub(crate) async fn take_ids(&self, ask: Ask) -> Vec<u64> {
        self.take(ask).await.iter().map(|item| item.message.activity.activity_id).collect()
    }

    /// Locks one activity without session, for [`LOCK`]. There must be one.
    pub(crate) async fn work(&self) -> LockedWorkItem {
        self.work_for(LOCK).await
    }

    /// Locks one activity without session for this long. There must be one.
    pub(crate) async fn work_for(&self, lock_timeout: Duration) -> LockedWorkItem {
        self.take(ask().lock(lock_timeout)).await.pop().expect("a visible activity that nobody has locked")
    }

    /// Fails if an activity without session can be fetched.
    pub(crate) async fn no_work(&self) {
        let fetched = self.take(ask()).await;
        assert!(fetched.is_empty(), "expected no work, got {fetched:?}");
    }

    /// Moves the end of a lock.
    pub(crate) async fn renew_work(
        &self,
        lock_token: LockToken,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.renew_work_item_lock(lock_token, extend_for, LockLife::Process).await
    }

    /// Ends an activity without a completion.
    pub(crate) async fn finish(&self, lock_token: LockToken) -> Result<(), ProviderError> {
        self.ack_work_item(AckWorkItem { lock_token, completion: None, records: Vec::new() }).await
    }

    /// Ends an activity with a completion for an instance.
    pub(crate) async fn complete(&self, lock_token: LockToken, instance: &str) -> Result<(), ProviderError> {
        let completion = Some(message(instance, "done"));
        self.ack_work_item(AckWorkItem { lock_token, completion, records: Vec::new() }).await
    }

    /// A worker fetch that waits. It must not have answered yet.
    pub(crate) async fn waiting_work(&self, ask: Ask) -> Waiting<Vec<LockedWorkItem>> {
        self.wait_for(move |env| async move { env.take(ask).await }).await
    }
}

/// The records.
impl Env {
    /// Commits record changes that must succeed; their versions.
    pub(crate) async fn write(&self, writes: impl IntoIterator<Item = RecordWrite>) -> Vec<u64> {
        self.try_write(writes).await.unwrap()
    }

    /// Commits record changes.
    pub(crate) async fn try_write(
        &self,
        writes: impl IntoIterator<Item = RecordWrite>,
    ) -> Result<Vec<u64>, ProviderError> {
        let writes = writes.into_iter().collect();
        self.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await
    }

    /// The record `k/id`.
    pub(crate) async fn record(&self, id: &str) -> Option<Record> {
        self.get_record("k", id).await.unwrap()
    }

    /// Ids of the records of kind `k` that are due by the store's clock.
    pub(crate) async fn due_ids(&self) -> Vec<String> {
        let request = DueRecords { kind: "k", limit: 100, ..DueRecords::default() };
        record_ids(&self.due_records(request).await.unwrap())
    }

    /// A wait for due records of kind `k`. It must not have answered yet.
    pub(crate) async fn waiting_due(&self, poll_timeout: Duration) -> Waiting<Vec<Record>> {
        self.waiting_due_under("", poll_timeout).await
    }

    /// The same for ids that start with a prefix.
    pub(crate) async fn waiting_due_under(
        &self,
        id_prefix: &'static str,
        poll_timeout: Duration,
    ) -> Waiting<Vec<Record>> {
        self.wait_for(move |env| async move {
            let request = DueRecords { kind: "k", id_prefix, now_ms: None, limit: 100, poll_timeout };
            env.due_records(request).await.unwrap()
        })
        .await
    }
}

/// What to ask of the worker queue.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    max_items: usize,
    lock_timeout: Duration,
    poll_timeout: Duration,
    session: Option<SessionFetchConfig>,
    tags: TagFilter,
    life: LockLife,
}

/// One item of any tag, without session, for [`LOCK`], without waiting.
pub(crate) fn ask() -> Ask {
    Ask {
        max_items: 1,
        lock_timeout: LOCK,
        poll_timeout: NO_WAIT,
        session: None,
        tags: TagFilter::Any,
        life: LockLife::Process,
    }
}

impl Ask {
    pub(crate) fn max(mut self, max_items: usize) -> Self {
        self.max_items = max_items;
        self
    }

    pub(crate) fn lock(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Under a lock that outlives the process.
    pub(crate) fn durable(mut self) -> Self {
        self.life = LockLife::Durable;
        self
    }

    pub(crate) fn waiting(self) -> Self {
        self.waiting_for(LOCK)
    }

    pub(crate) fn waiting_for(mut self, poll_timeout: Duration) -> Self {
        self.poll_timeout = poll_timeout;
        self
    }

    pub(crate) fn tags(mut self, tags: TagFilter) -> Self {
        self.tags = tags;
        self
    }

    /// Also session work, as this owner; sessions are claimed for [`LOCK`].
    pub(crate) fn owner(mut self, owner: &str) -> Self {
        let claims = SessionClaims::Allowed;
        self.session = Some(SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LOCK, claims });
        self
    }

    /// With [`Ask::owner`]: how long a claimed session is held.
    pub(crate) fn session_lock(mut self, lock_timeout: Duration) -> Self {
        self.session.as_mut().expect("owner() comes first").lock_timeout = lock_timeout;
        self
    }

    /// With [`Ask::owner`]: no new sessions.
    pub(crate) fn owned_only(mut self) -> Self {
        self.session.as_mut().expect("owner() comes first").claims = SessionClaims::OwnedOnly;
        self
    }
}

/// An event that says its id.
pub(crate) fn event(event_id: u64) -> StoredEvent {
    StoredEvent { event_id, data: format!("event-{event_id}").into() }
}

/// A plain message.
pub(crate) fn message(instance: &str, body: &'static str) -> OrchestratorMessage {
    OrchestratorMessage::new(instance, body)
}

/// A timer of execution 1.
pub(crate) fn timer(instance: &str, timer_id: u64, at_ms: u64) -> OrchestratorMessage {
    let timer = Some(TimerIdentifier { execution_id: 1, timer_id });
    OrchestratorMessage { timer, visible_at_ms: Some(at_ms), ..message(instance, "timer") }
}

/// A start that must be the first.
pub(crate) fn guarded_start(instance: &str) -> OrchestratorMessage {
    OrchestratorMessage { guard: StartGuard::IfAbsent, ..message(instance, "start") }
}

/// Names an activity of execution 1.
pub(crate) fn activity(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance: instance.to_owned(), execution_id: 1, activity_id }
}

/// An activity of execution 1 of `i1`.
pub(crate) fn job(activity_id: u64) -> WorkerMessage {
    job_of("i1", activity_id)
}

/// An activity of execution 1.
pub(crate) fn job_of(instance: &str, activity_id: u64) -> WorkerMessage {
    WorkerMessage {
        activity: activity(instance, activity_id),
        session_id: None,
        tag: None,
        visible_at_ms: None,
        body: format!("job-{activity_id}").into(),
    }
}

/// An activity of `i1` that is bound to a session.
pub(crate) fn session_job(session: &str, activity_id: u64) -> WorkerMessage {
    WorkerMessage { session_id: Some(session.to_owned()), ..job(activity_id) }
}

/// An activity of `i1` with a tag.
pub(crate) fn tagged_job(tag: &str, activity_id: u64) -> WorkerMessage {
    WorkerMessage { tag: Some(tag.to_owned()), ..job(activity_id) }
}

/// Puts the record `k/id` with its id as the body.
pub(crate) fn put(id: &str) -> RecordWrite {
    put_of("k", id)
}

/// Puts a record with its id as the body.
pub(crate) fn put_of(kind: &str, id: &str) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: id.to_owned().into(),
    }
}

/// Deletes the record `k/id`.
pub(crate) fn delete(id: &str) -> RecordWrite {
    RecordWrite::Delete { kind: "k".to_owned(), id: id.to_owned(), expect: Expect::Anything }
}

/// Steps of a record change in the making.
pub(crate) trait WriteSteps {
    fn expecting(self, expected: Expect) -> Self;
    fn due(self, at_ms: u64) -> Self;
    fn living(self, life: Duration) -> Self;
    fn with_body(self, document: impl Into<Bytes>) -> Self;
}

impl WriteSteps for RecordWrite {
    fn expecting(mut self, expected: Expect) -> Self {
        match &mut self {
            RecordWrite::Put { expect, .. } | RecordWrite::Delete { expect, .. } => *expect = expected,
        }
        self
    }

    fn due(mut self, at_ms: u64) -> Self {
        if let RecordWrite::Put { due_at_ms, .. } = &mut self {
            *due_at_ms = Some(at_ms);
        }
        self
    }

    fn living(mut self, life: Duration) -> Self {
        if let RecordWrite::Put { time_to_live, .. } = &mut self {
            *time_to_live = Some(life);
        }
        self
    }

    fn with_body(mut self, document: impl Into<Bytes>) -> Self {
        if let RecordWrite::Put { body, .. } = &mut self {
            *body = document.into();
        }
        self
    }
}

/// Ids of records, in order.
pub(crate) fn record_ids(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.id.clone()).collect()
}

/// Bodies of the messages of a batch, in order.
pub(crate) fn bodies(item: &OrchestrationItem) -> Vec<&str> {
    item.messages.iter().map(|message| std::str::from_utf8(&message.body).unwrap()).collect()
}

/// Instances of a batch, sorted.
pub(crate) fn instances(items: &[OrchestrationItem]) -> Vec<&str> {
    let mut ids: Vec<&str> = items.iter().map(|item| &*item.instance).collect();
    ids.sort_unstable();
    ids
}

/// Fails unless the store refused with this kind of error.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T, ProviderError>, kind: ErrorKind) {
    match result {
        Ok(value) => panic!("expected {kind:?}, but it worked and gave {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Fails unless the store refused because the lock is gone.
#[track_caller]
pub(crate) fn lock_lost<T: Debug>(result: Result<T, ProviderError>) {
    refused(result, ErrorKind::LockLost);
}

/// Fails unless the store refused because somebody was first.
#[track_caller]
pub(crate) fn conflict<T: Debug>(result: Result<T, ProviderError>) {
    refused(result, ErrorKind::Conflict);
}

/// Fails unless the store refused because the thing is not there.
#[track_caller]
pub(crate) fn not_found<T: Debug>(result: Result<T, ProviderError>) {
    refused(result, ErrorKind::NotFound);
}
