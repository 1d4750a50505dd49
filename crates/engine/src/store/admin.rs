//! The second facet of a store: listing, reading, counting, deleting and pruning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use semver::Version;

use super::error::{ErrorKind, ProviderError};
use super::execution_status::ExecutionStatus;
use super::message::{LockToken, StoredEvent};

/// What a store knows of an instance without reading its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The instance.
    pub instance_id: String,
    /// Orchestration name; `None` while only early messages are there.
    pub orchestration_name: Option<Arc<str>>,
    /// Orchestration version.
    pub orchestration_version: Option<Arc<str>>,
    /// Highest execution id.
    pub current_execution_id: u64,
    /// State of the current execution.
    pub status: ExecutionStatus,
    /// Output of the current execution, as the runtime encoded it.
    pub output: Option<Bytes>,
    /// When the instance was created, in Unix milliseconds of the store's clock.
    pub created_at_ms: u64,
    /// When anything was last committed for it.
    pub updated_at_ms: u64,
    /// When the current execution ended.
    pub completed_at_ms: Option<u64>,
    /// Parent instance.
    pub parent_instance_id: Option<String>,
    /// Engine version that the current execution is pinned to.
    pub pinned_version: Option<Version>,
    /// Custom status, as the runtime encoded it.
    pub custom_status: Option<Bytes>,
    /// Raised by one with every change of the custom status; 0 when never set.
    pub custom_status_version: u64,
    /// Labels for search.
    pub labels: BTreeMap<String, String>,
    /// Raised by one with every commit for the instance.
    pub revision: u64,
}

/// What a store knows of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionInfo {
    /// The execution.
    pub execution_id: u64,
    /// Its state.
    pub status: ExecutionStatus,
    /// Its output, as the runtime encoded it.
    pub output: Option<Bytes>,
    /// When its first commit was made.
    pub started_at_ms: u64,
    /// When it ended.
    pub completed_at_ms: Option<u64>,
    /// How many events it has.
    pub event_count: u64,
}

/// Counts over the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemMetrics {
    /// All instances.
    pub total_instances: u64,
    /// All executions.
    pub total_executions: u64,
    /// Instances whose current execution is pending.
    pub pending_instances: u64,
    /// Instances whose current execution is running (or between two executions).
    pub running_instances: u64,
    /// Instances that are paused.
    pub paused_instances: u64,
    /// Instances that completed.
    pub completed_instances: u64,
    /// Instances that failed.
    pub failed_instances: u64,
    /// Instances that were cancelled.
    pub cancelled_instances: u64,
    /// All events.
    pub total_events: u64,
}

/// Queue lengths at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepths {
    /// Visible orchestrator messages that are not locked.
    pub orchestrator_queue: u64,
    /// Visible activities that are not locked.
    pub worker_queue: u64,
    /// Orchestrator messages whose time has not come.
    pub orchestrator_delayed: u64,
    /// Activities whose time has not come.
    pub worker_delayed: u64,
    /// Locked orchestrator messages and activities.
    pub locked: u64,
}

impl QueueDepths {
    /// Orchestrator messages and activities whose time has not come.
    pub fn delayed(&self) -> u64 {
        self.orchestrator_delayed + self.worker_delayed
    }
}

/// An activity of an instance in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedActivity {
    /// The execution that wants it.
    pub execution_id: u64,
    /// The activity.
    pub activity_id: u64,
    /// How it stands.
    pub work: QueuedWork,
}

/// An activity in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedWork {
    /// Where it is.
    pub place: QueuePlace,
    /// Number of counted deliveries, this one included.
    pub attempt_count: u32,
    /// Its routing tag.
    pub tag: Option<String>,
    /// Its session.
    pub session_id: Option<String>,
}

/// Where an activity in the worker queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePlace {
    /// A worker may take it.
    Ready,
    /// No worker gets it before its time.
    Delayed {
        /// That time, in Unix milliseconds.
        visible_at_ms: u64,
    },
    /// A worker has it.
    Locked {
        /// The lock, as the fetch returned it.
        lock_token: LockToken,
        /// When the lock ends unless it is renewed, in Unix milliseconds.
        until_ms: u64,
    },
}

/// A root and all its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceTree {
    /// The root.
    pub root_id: String,
    /// The root first, then every descendant.
    pub all_ids: Vec<String>,
}

/// What a deletion removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeleteInstanceResult {
    /// Instances removed.
    pub instances_deleted: u64,
    /// Executions removed.
    pub executions_deleted: u64,
    /// Events removed.
    pub events_deleted: u64,
    /// Queued messages removed, of both queues.
    pub queue_messages_deleted: u64,
}

/// Which instances a bulk call considers. All criteria must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Only these.
    pub instance_ids: Option<Vec<String>>,
    /// Only those that ended before this time, in Unix milliseconds.
    pub completed_before_ms: Option<u64>,
    /// At most this many, oldest completion first.
    pub limit: Option<u32>,
}

/// Which trees of ended instances to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedQuery {
    /// Only those whose root ended before this time, in Unix milliseconds.
    pub completed_before_ms: Option<u64>,
    /// Continue after this root.
    pub after: Option<EndedCursor>,
    /// At most so many roots are considered.
    pub limit: usize,
}

/// A place in a listing of ended roots: the last root of the page before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCursor {
    /// When that root ended, in Unix milliseconds.
    pub completed_at_ms: u64,
    /// Its id.
    pub instance_id: String,
}

/// A page of trees that have ended, the root that ended first coming first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedPage {
    /// Trees, each with its root first. A tree with an instance that has not ended, or that cannot be read, is left out.
    pub trees: Vec<Vec<InstanceVersion>>,
    /// Where the next page starts; `None` when this is the last.
    pub next: Option<EndedCursor>,
}

/// An instance as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceVersion {
    /// The instance.
    pub instance_id: String,
    /// When it was created: another time means another instance of the same id.
    pub created_at_ms: u64,
    /// Its revision.
    pub revision: u64,
}

/// Which executions to prune. All criteria must hold; the current execution and running ones always stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Keep this many newest executions, the current one included. `None`, 0 and 1 all keep just that one.
    pub keep_last: Option<u32>,
    /// Only executions that ended before this time, in Unix milliseconds.
    pub completed_before_ms: Option<u64>,
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneResult {
    /// Instances examined.
    pub instances_processed: u64,
    /// Executions removed.
    pub executions_deleted: u64,
    /// Events removed.
    pub events_deleted: u64,
}

/// Which instances to list, newest first. All criteria must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceQuery {
    /// Only ids that start with this.
    pub id_prefix: Option<String>,
    /// Only these states: any of them; all states when there are none.
    pub statuses: BTreeSet<ExecutionStatus>,
    /// Only this orchestration.
    pub orchestration_name: Option<String>,
    /// Only with all of these labels and values.
    pub labels: BTreeSet<(String, String)>,
    /// Only children of this instance.
    pub parent_instance_id: Option<String>,
    /// Only created at or after this time, in Unix milliseconds.
    pub created_from_ms: Option<u64>,
    /// Only created before this time, in Unix milliseconds.
    pub created_before_ms: Option<u64>,
    /// Continue after this place.
    pub cursor: Option<InstanceCursor>,
    /// At most this many.
    pub limit: usize,
}

/// A place in a listing that runs from new to old: the last row of the page before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceCursor {
    /// Creation time of that row.
    pub created_at_ms: u64,
    /// Id of that row.
    pub instance_id: String,
}

/// A page of a listing. What is damaged hides nothing else: rows that cannot be read are named, and
/// count like the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstancePage {
    /// Rows, newest first; of equal age, ascending by id.
    pub instances: Vec<InstanceInfo>,
    /// Rows that cannot be read, in the same order. Whether they meet all criteria is not known.
    pub unreadable: Vec<UnreadableInstance>,
    /// Why rows are missing whose ids cannot be read either; how many is not known.
    pub damaged: Option<String>,
    /// Where the next page starts; `None` when this is the last, also when it is exactly full.
    pub next: Option<InstanceCursor>,
}

/// An instance whose row cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableInstance {
    /// The instance.
    pub instance_id: String,
    /// When it was created, in Unix milliseconds.
    pub created_at_ms: u64,
    /// Why it cannot be read, without stored data and without a path or address of the machine.
    pub reason: String,
}

/// Which part of the history of an execution to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// The instance.
    pub instance_id: String,
    /// The execution.
    pub execution_id: u64,
    /// Only events after this one; 0 begins with the first.
    pub after_event_id: u64,
    /// At most this many.
    pub limit: usize,
}

/// A part of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryPage {
    /// Events, ascending.
    pub events: Vec<StoredEvent>,
    /// After which event the next page starts; `None` when this is the last, also when it is exactly full.
    pub next: Option<u64>,
}

/// A part of a history that may be damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadableHistoryPage {
    /// Events that can be read, ascending, and where the next page starts.
    pub page: HistoryPage,
    /// Events that cannot.
    pub unreadable: Vec<UnreadableEvents>,
}

/// Events of a history that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEvents {
    /// The last event before them that can be read; 0 when there is none.
    pub after_event_id: u64,
    /// The first event behind them that can be read; `None` when there is none.
    pub before_event_id: Option<u64>,
    /// Why they cannot be read, without stored data and without a path or address of the machine.
    pub reason: String,
}

impl InstanceInfo {
    /// Which state of the instance this is.
    pub fn version(&self) -> InstanceVersion {
        InstanceVersion {
            instance_id: self.instance_id.clone(),
            created_at_ms: self.created_at_ms,
            revision: self.revision,
        }
    }
}

impl HistoryPage {
    /// The page of events that were read, of which there is one beyond the limit if there are more.
    pub fn cut(mut events: Vec<StoredEvent>, limit: usize) -> Self {
        let is_more = events.len() > limit;
        events.truncate(limit);
        let next = events.last().filter(|_| is_more).map(|event| event.event_id);
        HistoryPage { events, next }
    }
}

/// Listing, reading, counting, deleting and pruning.
#[async_trait]
pub trait ProviderAdmin: Send + Sync + 'static {
    /// A page of instances, newest first. Served by indexes: rows that do not match the most selective criterion
    /// are not read.
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError>;

    /// All instance ids, newest first. Meant for small stores and tests; use [`ProviderAdmin::query_instances`].
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// All instance ids in a state, newest first. Meant for small stores and tests.
    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError>;

    /// Execution ids of an instance, ascending; empty when unknown.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// History of one execution.
    ///
    /// # Errors
    /// `NotFound` when instance or execution are unknown, `Corrupt` when it cannot be read.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError>;

    /// History of the current execution.
    ///
    /// # Errors
    /// `NotFound` when the instance is unknown.
    async fn read_history(&self, instance: &str) -> Result<Vec<StoredEvent>, ProviderError> {
        let execution_id = self.latest_execution_id(instance).await?;
        self.read_history_with_execution_id(instance, execution_id).await
    }

    /// A page of the history of one execution. What it costs depends on the page, not on how long the history is.
    ///
    /// # Errors
    /// `NotFound` when instance or execution are unknown, `Corrupt` when it cannot be read.
    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError>;

    /// The same past damage, for showing it: unreadable events are reported, and do not hide
    /// the others. A store that cannot read past damage answers as
    /// [`ProviderAdmin::read_history_page`] does.
    ///
    /// # Errors
    /// `NotFound` when instance or execution are unknown, `Corrupt` when nothing is readable of
    /// them.
    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError>;

    /// Highest execution id.
    ///
    /// # Errors
    /// `NotFound` when the instance is unknown.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// What is known of an instance.
    ///
    /// # Errors
    /// `NotFound` when the instance is unknown.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// Since when a guarded start of the instance waits for its turn, in Unix milliseconds: the time from which it is visible, or
    /// now if that lies ahead. The instance has no row of its own yet, and a caller that got an acknowledgement of the start must not
    /// get the answer that there is no such instance. `None` without a queued start.
    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError>;

    /// How the activities of an instance stand in the worker queue, by execution and activity; none when the instance is
    /// unknown. Several that were queued for the same activity are in the order in which they came. A lock whose time is over
    /// counts no more. Found by an index: what it costs does not depend on the length of the queue.
    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError>;

    /// Bytes that the data of the store takes where it is stored; `None` for a store that keeps nothing on a disk, or cannot
    /// tell. May be some minutes old.
    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError>;

    /// Makes the delayed activities of an instance [ready](QueuePlace::Ready) now, at the request of an operator, and wakes
    /// the fetches that wait for them. Locked activities, attempt counts and timers stay as they are. Returns how many
    /// were delayed; none for an unknown instance. Doing it twice is doing it once.
    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError>;

    /// What is known of an execution.
    ///
    /// # Errors
    /// `NotFound` when instance or execution are unknown.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Counts over the whole store, kept up to date by commits.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// Queue lengths.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// Damage that the store has met since it was opened, and serves around; `None` if it has met none, which does not mean that
    /// there is none. The text has no stored data, and no path or address of the machine.
    async fn known_damage(&self) -> Result<Option<String>, ProviderError>;

    /// Direct children, oldest first; empty when there are none or the instance is unknown.
    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError>;

    /// Parent of an instance.
    ///
    /// # Errors
    /// `NotFound` when the instance is unknown.
    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError>;

    /// Removes instances with everything that belongs to them: events, executions, queued messages of both
    /// queues, locks and metadata, all or nothing. A turn or activity in flight cannot bring any of it back, and a
    /// new instance of the same id receives nothing old. Ids without a row are fine; what is queued for them goes too.
    ///
    /// # Errors
    /// `Conflict` without `force` when one of them has not ended; `Conflict` always when one of them has a child
    /// that is not in the list. Nothing is removed then.
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes ended root instances that match, each with its descendants. Instances that run, are children, or have
    /// a descendant that runs are passed over.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// The trees that [`ProviderAdmin::delete_instance_bulk`] would remove, a page at a time. Served by an index.
    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError>;

    /// Removes trees of ended instances that are still as they were listed, each as a whole. A tree is passed over when one of
    /// its instances is gone, has not ended, has another creation time or revision, or has a child that is not in the tree.
    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of an instance, all or nothing. Never the current one, never one that runs.
    ///
    /// # Errors
    /// `NotFound` when the instance is unknown.
    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// Prunes every instance that matches; `completed_before_ms` of the filter applies to ended instances only.
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// The instance and all its descendants.
    async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ProviderError> {
        let mut all_ids = vec![instance.to_owned()];
        let mut next = 0;
        while next < all_ids.len() {
            let children = self.list_children(&all_ids[next]).await?;
            all_ids.extend(children);
            next += 1;
        }
        Ok(InstanceTree { root_id: instance.to_owned(), all_ids })
    }

    /// Removes a root instance with all its descendants.
    ///
    /// # Errors
    /// `NotFound` when unknown, `Invalid` for a child (delete its root), `Conflict` when it runs and `force` is not set.
    async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        if let Some(parent) = self.get_parent_id(instance).await? {
            return Err(ProviderError::new(
                ErrorKind::Invalid,
                "delete_instance",
                format!("{instance} is a child of {parent}; delete the root of its tree instead"),
            ));
        }
        let tree = self.get_instance_tree(instance).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }
}
