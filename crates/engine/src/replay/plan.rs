//! What a turn decided: everything that its commit will write.

use crate::event::Output;
use crate::payload::Payload;
use crate::store::{
    ExecutionStatus, OrchestratorMessage, ScheduledActivityIdentifier, StoredEvent, TimerIdentifier,
    WorkerMessage,
};
use crate::work_item::WorkItem;

/// The outcome of a turn, or of the part of it that has not been committed yet.
#[derive(Debug, Default)]
pub(crate) struct TurnPlan {
    pub(crate) events: Vec<StoredEvent>,
    /// Whether the start of the execution is among them.
    pub(crate) starts: bool,
    pub(crate) worker_items: Vec<WorkerMessage>,
    pub(crate) orchestrator_items: Vec<OrchestratorMessage>,
    pub(crate) cancelled_activities: Vec<ScheduledActivityIdentifier>,
    pub(crate) cancelled_timers: Vec<TimerIdentifier>,
    /// `Some` when the state of the execution changed.
    pub(crate) status: Option<(ExecutionStatus, Option<Output>)>,
    /// `Some` when the custom status changed.
    pub(crate) custom_status: Option<Option<Payload>>,
    pub(crate) labels_changed: bool,
    /// Messages that could not be taken, with the reason.
    pub(crate) refused: Vec<(WorkItem, String)>,
}

impl TurnPlan {
    /// Whether a commit of this plan would change nothing but the queue.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.orchestrator_items.is_empty() && self.refused.is_empty()
    }
}
