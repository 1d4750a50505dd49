//! The messages of a locked instance, decoded: its starts apart from the rest, and without those
//! for an earlier execution.

use super::turn::Turn;
use crate::event::ParentLink;
use crate::failure::Failure;
use crate::store::{OrchestrationItem, OrchestratorMessage, RecordWrite, TurnLock};
use crate::work_item::{ContinueAsNew, HAD_ENDED, StartOrchestration, WorkItem};

/// The decoded messages of a turn, with the starts apart.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) start: Option<Box<StartOrchestration>>,
    pub(super) continuation: Option<Box<ContinueAsNew>>,
    /// Starts beyond the first.
    pub(super) repeated_starts: Vec<StartOrchestration>,
    pub(super) others: Vec<WorkItem>,
    /// Written in the same commit: messages that cannot be decoded are parked as dead letters.
    pub(super) records: Vec<RecordWrite>,
    /// Sent in the same commit: what an execution that was cut off owes to others.
    pub(super) owed: Vec<OrchestratorMessage>,
    /// What the token of the first commit is a lock on.
    pub(super) lock: TurnLock,
}

impl Batch {
    /// Decodes the messages of a turn. One that cannot be decoded is parked and does not hold up
    /// the rest.
    pub(super) fn decode(item: &OrchestrationItem, turn: &Turn<'_>) -> Self {
        let mut batch = Batch::default();
        for message in &item.messages {
            match WorkItem::decode(&message.body) {
                Ok(WorkItem::StartOrchestration(start)) => batch.add_start(item, turn, start),
                Ok(WorkItem::ContinueAsNew(next)) => batch.continuation = Some(next),
                Ok(other) => {
                    if batch.others.capacity() == 0 {
                        // As many as there may be: left to itself, a list begins with room for
                        // four.
                        batch.others.reserve_exact(item.messages.len());
                    }
                    batch.others.push(other);
                }
                Err(reason) => {
                    let (instance, deliveries) = (&*item.instance, item.attempt_count);
                    tracing::error!(
                        instance,
                        reason,
                        "a message cannot be decoded; it is parked as a dead letter"
                    );
                    let letters = turn.shared().letters();
                    let letter = letters.message(instance, deliveries, reason, item.fetched_at_ms);
                    batch.records.extend(letter.writes(Some(message.body.clone())));
                }
            }
        }
        batch
    }

    /// Adds a start. One that begins the current execution comes after everything that was sent to
    /// the previous one.
    fn add_start(&mut self, item: &OrchestrationItem, turn: &Turn<'_>, start: Box<StartOrchestration>) {
        if start.follows_another {
            let late = std::mem::take(&mut self.others);
            self.park_late(turn, &late);
            self.continuation = None;
        }
        let begins = start.execution_id == Some(item.execution_id);
        if begins && let Some(earlier) = self.start.replace(start.clone()) {
            self.repeated_starts.push(*earlier);
        } else if !begins && self.start.is_some() {
            self.repeated_starts.push(*start);
        } else {
            self.start = Some(start);
        }
    }

    /// Parks messages as dead letters if their senders got an acknowledgement: their
    /// execution has ended.
    pub(super) fn park_late(&mut self, turn: &Turn<'_>, messages: &[WorkItem]) {
        let sent = messages.iter().filter(|message| message.is_from_a_sender());
        self.records.extend(sent.flat_map(|message| turn.park(message, HAD_ENDED)));
    }

    /// Takes the first start that fits.
    pub(super) fn take_start(
        &mut self,
        fits: impl Fn(&StartOrchestration) -> bool,
    ) -> Option<Box<StartOrchestration>> {
        let first = self.start.take_if(|start| fits(start));
        first.or_else(|| {
            let at = self.repeated_starts.iter().position(fits)?;
            Some(Box::new(self.repeated_starts.remove(at)))
        })
    }

    /// The answers to the starts that are left in the batch, which come to an existing instance,
    /// and what is owed to others.
    pub(super) fn answer_starts(
        &self,
        instance: &str,
        own_parent: Option<&ParentLink>,
    ) -> Vec<OrchestratorMessage> {
        let starts = self.start.as_deref().into_iter().chain(&self.repeated_starts);
        let answers = starts.filter_map(|start| answer_repeated_start(instance, own_parent, start));
        answers.chain(self.owed.iter().cloned()).collect()
    }

    /// The reason of a cancellation in the batch.
    pub(super) fn cancellation(&self) -> Option<&str> {
        self.others.iter().find_map(|message| match message {
            WorkItem::CancelInstance { reason } => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// The answer to a start that comes to an existing instance: none if the start created the instance
/// or comes from a client, a failure if it comes from another parent, which would otherwise wait
/// for ever.
fn answer_repeated_start(
    instance: &str,
    own_parent: Option<&ParentLink>,
    start: &StartOrchestration,
) -> Option<OrchestratorMessage> {
    let parent = start.parent.as_ref().filter(|parent| Some(*parent) != own_parent)?;
    let details = Failure::application(format!("an instance with the id {instance:?} exists already"))
        .non_retryable()
        .code("instance-exists");
    let reply = WorkItem::SubOrchFailed {
        parent_execution_id: parent.execution_id,
        parent_id: parent.event_id,
        details,
    };
    Some(reply.for_orchestrator(parent.instance.clone()))
}
