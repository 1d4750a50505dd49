//! A turn in the making: every part that a commit can have, as a step.

use std::sync::Arc;

use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, AfterAck, CustomStatusChange, ExecutionMetadata, ExecutionStatus,
    OrchestratorMessage, ProviderError, RecordWrite, ScheduledActivityIdentifier, StoredEvent,
    TimerIdentifier, WorkerMessage,
};

use super::fixture::{Env, event};

/// A turn in the making.
pub(crate) struct Turn {
    pub(super) env: Env,
    pub(crate) ack: AckOrchestrationItem,
}

impl Turn {
    pub(crate) fn execution(mut self, execution_id: u64) -> Self {
        self.ack.execution_id = execution_id;
        self
    }

    pub(crate) fn event(mut self, event_id: u64) -> Self {
        self.ack.history_delta.push(event(event_id));
        self
    }

    pub(crate) fn event_data(mut self, event_id: u64, data: impl Into<Bytes>) -> Self {
        self.ack.history_delta.push(StoredEvent { event_id, data: data.into() });
        self
    }

    pub(crate) fn work(mut self, message: WorkerMessage) -> Self {
        self.ack.worker_items.push(message);
        self
    }

    pub(crate) fn post(mut self, message: OrchestratorMessage) -> Self {
        self.ack.orchestrator_items.push(message);
        self
    }

    pub(crate) fn named(self, name: &str) -> Self {
        let name = name.to_owned();
        self.metadata(|metadata| metadata.orchestration_name = Some(name.into()))
    }

    pub(crate) fn parent(self, parent: &str) -> Self {
        let parent = parent.to_owned();
        self.metadata(|metadata| metadata.parent_instance_id = Some(parent))
    }

    pub(crate) fn status(self, status: ExecutionStatus) -> Self {
        self.metadata(|metadata| metadata.status = Some(status))
    }

    pub(crate) fn output(self, output: impl Into<Bytes>) -> Self {
        self.metadata(|metadata| metadata.output = Some(output.into()))
    }

    pub(crate) fn label(self, key: &str, value: &str) -> Self {
        self.metadata(|metadata| {
            metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        })
    }

    pub(crate) fn pinned(self, version: &str) -> Self {
        self.metadata(|metadata| metadata.pinned_version = Some(version.parse().unwrap()))
    }

    pub(crate) fn custom_status(self, status: &'static str) -> Self {
        self.metadata(|metadata| metadata.custom_status = Some(CustomStatusChange::Set(status.into())))
    }

    pub(crate) fn clear_custom_status(self) -> Self {
        self.metadata(|metadata| metadata.custom_status = Some(CustomStatusChange::Clear))
    }

    pub(crate) fn metadata(mut self, change: impl FnOnce(&mut ExecutionMetadata)) -> Self {
        change(&mut self.ack.metadata);
        self
    }

    pub(crate) fn cancel_activity(mut self, activity: ScheduledActivityIdentifier) -> Self {
        self.ack.cancelled_activities.push(activity);
        self
    }

    /// Takes back a timer of execution 1.
    pub(crate) fn cancel_timer(mut self, timer_id: u64) -> Self {
        self.ack.cancelled_timers.push(TimerIdentifier { execution_id: 1, timer_id });
        self
    }

    pub(crate) fn record(mut self, write: RecordWrite) -> Self {
        self.ack.records.push(write);
        self
    }

    pub(crate) fn keep_lock(mut self) -> Self {
        self.ack.after = AfterAck::KeepLock;
        self
    }

    /// Commits; it must succeed.
    pub(crate) async fn ack(self) {
        self.try_ack().await.unwrap();
    }

    /// Commits.
    pub(crate) async fn try_ack(self) -> Result<(), ProviderError> {
        self.env.ack_orchestration_item(Arc::new(self.ack)).await
    }
}
