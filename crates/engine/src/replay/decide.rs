//! From a message to the event that it becomes. Pure: nothing is changed here.

use crate::event::{Channel, EventKind};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::work_item::{ANY_ATTEMPT, WorkItem};

use super::intake::Intake;
use super::operations::{AttemptVerdict, OpenActivity, Operation, Operations};
use super::shared::Shared;

/// What a message becomes.
pub(super) enum Decision {
    /// Nothing: the message is stale or a duplicate.
    Ignore,
    Record(EventKind),
    /// An event, and a pause for this reason.
    RecordAndPause(EventKind, String),
    /// The message goes back as a dead letter, for this reason.
    Refuse(WorkItem, String),
}

impl Decision {
    fn record_if(applies: bool, kind: EventKind) -> Self {
        if applies { Decision::Record(kind) } else { Decision::Ignore }
    }
}

/// The state of an execution that decisions depend on.
pub(super) struct Decider<'a> {
    pub(super) shared: &'a Shared,
    pub(super) operations: &'a Operations,
    pub(super) intake: &'a Intake,
    pub(super) now_ms: u64,
}

impl Decider<'_> {
    /// Decides about a message to an execution that has not ended.
    pub(super) fn decide(&self, item: WorkItem) -> Decision {
        match item {
            WorkItem::ActivityCompleted { execution_id, id, result } => {
                let is_open = self.open_activity(execution_id, id).is_some();
                Decision::record_if(is_open, EventKind::ActivityCompleted { source: id, result })
            }
            WorkItem::ActivityFailed { execution_id, id, attempt, details } => {
                self.failed_attempt(execution_id, id, attempt, details)
            }
            WorkItem::TimerFired { execution_id, id, fire_at_ms } => {
                self.due_timer(execution_id, id, fire_at_ms)
            }
            WorkItem::ExternalRaised { name, data, id } => self.message(Channel::Signal, name, data, id),
            WorkItem::QueueMessage { name, data, id } => self.message(Channel::Mailbox, name, data, id),
            WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result } => {
                let is_open = self.has_open_child(parent_execution_id, parent_id);
                let kind = EventKind::SubOrchestrationCompleted { source: parent_id, result };
                Decision::record_if(is_open, kind)
            }
            WorkItem::SubOrchFailed { parent_execution_id, parent_id, details } => {
                let is_open = self.has_open_child(parent_execution_id, parent_id);
                let kind = EventKind::SubOrchestrationFailed { source: parent_id, failure: details };
                Decision::record_if(is_open, kind)
            }
            WorkItem::CancelInstance { reason } => self.cancellation(reason),
            WorkItem::CancelChild { reason, parent } => {
                let is_ours = self.shared.started.parent.as_ref() == Some(&parent);
                if is_ours { self.cancellation(reason) } else { Decision::Ignore }
            }
            WorkItem::PauseInstance { reason } => {
                let is_running = !self.operations.is_paused();
                Decision::record_if(is_running, EventKind::OrchestrationPaused { reason })
            }
            WorkItem::ResumeInstance => {
                Decision::record_if(self.operations.is_paused(), EventKind::OrchestrationResumed)
            }
            // The turn handles starts; items of the worker queue never come here.
            WorkItem::StartOrchestration(_) | WorkItem::ContinueAsNew(_) | WorkItem::ActivityExecute(_) => {
                Decision::Ignore
            }
            // It only causes the turn that runs the steps.
            WorkItem::StepsLeft { .. } => Decision::Ignore,
        }
    }

    fn is_current(&self, execution_id: u64) -> bool {
        execution_id == self.shared.id.execution_id
    }

    fn open_activity(&self, execution_id: u64, id: u64) -> Option<&OpenActivity> {
        self.operations.activity(id).filter(|_| self.is_current(execution_id))
    }

    fn has_open_child(&self, execution_id: u64, id: u64) -> bool {
        self.is_current(execution_id) && self.operations.has_child(id)
    }

    fn cancellation(&self, reason: String) -> Decision {
        let is_first = self.shared.journal().cancelled.is_none();
        Decision::record_if(is_first, EventKind::OrchestrationCancelRequested { reason })
    }

    fn failed_attempt(&self, execution_id: u64, source: u64, attempt: u32, failure: Failure) -> Decision {
        let Some(activity) = self.open_activity(execution_id, source) else { return Decision::Ignore };
        if ![activity.attempt, ANY_ATTEMPT].contains(&attempt) || activity.is_exhausted() {
            return Decision::Ignore;
        }
        let attempt = activity.attempt;
        let seed = self.shared.started.seed ^ source;
        match activity.judge(&failure, self.now_ms, seed) {
            AttemptVerdict::RetryAt(at_ms) => {
                let retry_at_ms = Some(at_ms);
                Decision::Record(EventKind::ActivityAttemptFailed { source, attempt, failure, retry_at_ms })
            }
            AttemptVerdict::Fail => Decision::Record(EventKind::ActivityFailed { source, attempt, failure }),
            AttemptVerdict::Pause => {
                let reason = format!(
                    "activity {:?} (event {source}) failed in attempt {attempt}: {failure}; resume to try again",
                    activity.name
                );
                let kind = EventKind::ActivityAttemptFailed { source, attempt, failure, retry_at_ms: None };
                match self.operations.is_paused() {
                    true => Decision::Record(kind),
                    false => Decision::RecordAndPause(kind, reason),
                }
            }
        }
    }

    /// A timer is due, or the deadline of an activity.
    fn due_timer(&self, execution_id: u64, source: u64, fire_at_ms: u64) -> Decision {
        if !self.is_current(execution_id) {
            return Decision::Ignore;
        }
        match self.operations.get(source) {
            Some(Operation::Timer) => Decision::Record(EventKind::TimerFired { source }),
            Some(Operation::Activity(activity)) if activity.options.deadline_at_ms == Some(fire_at_ms) => {
                let attempt = activity.attempt;
                let message = format!(
                    "activity {:?} did not end before its deadline (in attempt {attempt})",
                    activity.name
                );
                let failure = Failure::timeout("deadline", message).non_retryable();
                Decision::Record(EventKind::ActivityFailed { source, attempt, failure })
            }
            _ => Decision::Ignore,
        }
    }

    fn message(&self, channel: Channel, name: String, data: Payload, id: Option<String>) -> Decision {
        if self.intake.is_duplicate(id.as_deref()) {
            return Decision::Ignore;
        }
        let refusal = {
            let journal = self.shared.journal();
            // A message that the code waits for does not stay unread, however many others do.
            let is_awaited = !self.operations.is_paused() && journal.awaits(channel, &name);
            if is_awaited { None } else { self.intake.refusal(journal.unread, &data) }
        };
        match refusal {
            Some(reason) => Decision::Refuse(WorkItem::message(channel, name, data, id), reason),
            None => Decision::Record(EventKind::MessageReceived { channel, name, data, id }),
        }
    }
}
