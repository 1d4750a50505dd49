//! What a store holds, item by item.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use semver::Version;

use crate::store::core::peek_lock::Standing;
use crate::store::{
    ExecutionStatus, InstanceInfo, OrchestratorMessage, Record, StartGuard, StoredEvent, WorkerMessage,
};

/// One piece of what a store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentItem {
    /// When it was taken, and which numbers are used up. The first item, once.
    Header(ContentHeader),
    /// An instance; its executions follow.
    Instance(Box<InstanceContent>),
    /// An execution of the instance before; its events follow. The last of an instance is the current one.
    Execution(Box<ExecutionContent>),
    /// An event of the execution before.
    Event(StoredEvent),
    /// A message of the orchestrator queue.
    Message(Box<MessageContent>),
    /// An activity of the worker queue.
    WorkItem(Box<WorkItemContent>),
    /// A record that has not expired.
    Record(Box<Record>),
}

/// The moment of an export, and the numbers that must not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentHeader {
    /// The moment, in Unix milliseconds of the store's clock. Visibility and expiry are those of that moment.
    pub taken_at_ms: u64,
    /// Highest id of a message that was ever enqueued for the orchestrator.
    pub last_message_id: u64,
    /// Highest id of an activity that was ever enqueued.
    pub last_work_item_id: u64,
    /// Highest version that a record ever had.
    pub last_record_version: u64,
}

/// An instance without its executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceContent {
    /// The instance.
    pub instance_id: String,
    /// Orchestration name; `None` while only early messages are there.
    pub orchestration_name: Option<Arc<str>>,
    /// Orchestration version.
    pub orchestration_version: Option<Arc<str>>,
    /// Parent instance.
    pub parent_instance_id: Option<String>,
    /// Highest execution id.
    pub current_execution_id: u64,
    /// When the instance was created, in Unix milliseconds.
    pub created_at_ms: u64,
    /// When anything was last committed for it.
    pub updated_at_ms: u64,
    /// Raised by one with every commit for the instance.
    pub revision: u64,
    /// Custom status.
    pub custom_status: Option<Bytes>,
    /// Raised by one with every change of the custom status.
    pub custom_status_version: u64,
    /// Labels for search.
    pub labels: BTreeMap<String, String>,
}

/// An execution without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionContent {
    /// The execution.
    pub execution_id: u64,
    /// Its state.
    pub status: ExecutionStatus,
    /// Its output.
    pub output: Option<Bytes>,
    /// Engine version that it is pinned to.
    pub pinned_version: Option<Version>,
    /// The runtime's own mark of it.
    pub incarnation: Option<u64>,
    /// When its first commit was made, in Unix milliseconds.
    pub started_at_ms: u64,
    /// When it ended.
    pub completed_at_ms: Option<u64>,
}

/// A message of the orchestrator queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageContent {
    /// Its place in the queue.
    pub id: u64,
    /// The message. Its `visible_at_ms` is set exactly when it was not visible at the moment of the header. Its guard is
    /// that of a start that waits, or none: other guards were met when it was enqueued.
    pub message: OrchestratorMessage,
    /// How often it has been fetched.
    pub attempts: u32,
    /// Set when everything of its instance, also what comes later, waits until its `visible_at_ms`, because a batch was
    /// abandoned with a delay; so it is set for everything that was fetched before and is not visible. See [`Provider::abandon_orchestration_item`](crate::store::Provider::abandon_orchestration_item).
    pub holds_instance: bool,
}

/// An activity of the worker queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItemContent {
    /// Its place in the queue.
    pub id: u64,
    /// The activity as it was enqueued.
    pub message: WorkerMessage,
    /// Set exactly when it was not visible at the moment of the header: from when it is.
    pub delayed_until_ms: Option<u64>,
    /// How often it has been fetched.
    pub attempts: u32,
}

impl MessageContent {
    /// A message as it stands, seen from the moment `taken_at_ms`.
    pub fn standing(standing: Standing, message: OrchestratorMessage, taken_at_ms: u64) -> Self {
        let Standing { id, visible_at_ms, attempts } = standing;
        let guard = match message.guard {
            StartGuard::IfAbsent => StartGuard::IfAbsent,
            StartGuard::None | StartGuard::IfPresent => StartGuard::None,
        };
        let visible_at_ms = Some(visible_at_ms).filter(|at_ms| *at_ms > taken_at_ms);
        let message = OrchestratorMessage { visible_at_ms, guard, ..message };
        MessageContent { id, message, attempts, holds_instance: false }
    }
}

impl WorkItemContent {
    /// An activity as it stands, seen from the moment `taken_at_ms`.
    pub fn standing(standing: Standing, message: WorkerMessage, taken_at_ms: u64) -> Self {
        let Standing { id, visible_at_ms, attempts } = standing;
        let delayed_until_ms = Some(visible_at_ms).filter(|at_ms| *at_ms > taken_at_ms);
        WorkItemContent { id, message, delayed_until_ms, attempts }
    }
}

impl InstanceContent {
    /// What callers see of an instance with this current execution.
    pub fn info(&self, current: &ExecutionContent) -> InstanceInfo {
        InstanceInfo {
            instance_id: self.instance_id.clone(),
            orchestration_name: self.orchestration_name.clone(),
            orchestration_version: self.orchestration_version.clone(),
            current_execution_id: current.execution_id,
            status: current.status,
            output: current.output.clone(),
            created_at_ms: self.created_at_ms,
            updated_at_ms: self.updated_at_ms,
            completed_at_ms: current.completed_at_ms,
            parent_instance_id: self.parent_instance_id.clone(),
            pinned_version: current.pinned_version.clone(),
            custom_status: self.custom_status.clone(),
            custom_status_version: self.custom_status_version,
            labels: self.labels.clone(),
            revision: self.revision,
        }
    }
}

impl From<&InstanceInfo> for InstanceContent {
    fn from(info: &InstanceInfo) -> Self {
        InstanceContent {
            instance_id: info.instance_id.clone(),
            orchestration_name: info.orchestration_name.clone(),
            orchestration_version: info.orchestration_version.clone(),
            parent_instance_id: info.parent_instance_id.clone(),
            current_execution_id: info.current_execution_id,
            created_at_ms: info.created_at_ms,
            updated_at_ms: info.updated_at_ms,
            revision: info.revision,
            custom_status: info.custom_status.clone(),
            custom_status_version: info.custom_status_version,
            labels: info.labels.clone(),
        }
    }
}

impl ContentItem {
    /// Rough size in memory, for bounding batches.
    pub fn size_bytes(&self) -> usize {
        const FIXED_BYTES: usize = 64;
        let bytes = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        FIXED_BYTES
            + match self {
                ContentItem::Header(_) => 0,
                ContentItem::Instance(instance) => {
                    let labels = instance.labels.iter().map(|(label, value)| label.len() + value.len());
                    instance.instance_id.len() + bytes(&instance.custom_status) + labels.sum::<usize>()
                }
                ContentItem::Execution(execution) => bytes(&execution.output),
                ContentItem::Event(event) => event.data.len(),
                ContentItem::Message(message) => message.message.body.len(),
                ContentItem::WorkItem(item) => item.message.body.len(),
                ContentItem::Record(record) => record.body.len(),
            }
    }
}
