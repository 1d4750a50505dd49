//! The messages of a locked instance, read: its start apart from the rest, and what was meant for an earlier execution left out.

use super::turn::Turn;
use super::unstarted;
use crate::event::ParentLink;
use crate::store::{OrchestrationItem, OrchestratorMessage, RecordWrite, TurnLock};
use crate::work_item::{ContinueAsNew, HAD_ENDED, StartOrchestration, WorkItem};

/// The messages of a batch, read, with the starts apart.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) start: Option<Box<StartOrchestration>>,
    pub(super) continuation: Option<Box<ContinueAsNew>>,
    /// Starts beyond the first.
    pub(super) repeated_starts: Vec<StartOrchestration>,
    pub(super) others: Vec<WorkItem>,
    /// Written in the same commit: messages that cannot be read are parked.
    pub(super) records: Vec<RecordWrite>,
    /// Sent in the same commit: what an execution that was cut off owes to others.
    pub(super) owed: Vec<OrchestratorMessage>,
    /// What the first commit holds by its token.
    pub(super) lock: TurnLock,
}

impl Batch {
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

    /// The answers to the starts that are left in the batch, which come to an instance that exists, and what is owed to others.
    pub(super) fn answer_starts(
        &self,
        instance: &str,
        own_parent: Option<&ParentLink>,
    ) -> Vec<OrchestratorMessage> {
        let starts = self.start.as_deref().into_iter().chain(&self.repeated_starts);
        let answers =
            starts.filter_map(|start| unstarted::answer_repeated_start(instance, own_parent, start));
        answers.chain(self.owed.iter().cloned()).collect()
    }

    /// The reason of a cancellation in the batch.
    pub(super) fn cancellation(&self) -> Option<&str> {
        self.others.iter().find_map(|message| match message {
            WorkItem::CancelInstance { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Adds a start. One that begins the current execution comes behind everything that was sent to the one before.
    fn add_start(&mut self, item: &OrchestrationItem, start: Box<StartOrchestration>) -> Vec<WorkItem> {
        let mut left_behind = Vec::new();
        if start.follows_another {
            left_behind = std::mem::take(&mut self.others);
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
        left_behind
    }
}

impl Turn<'_> {
    /// Reads the messages of the batch; what cannot be read is parked and does not hold up the rest.
    pub(super) fn read(&self, item: &OrchestrationItem) -> Batch {
        let mut batch = Batch::default();
        for message in &item.messages {
            match WorkItem::decode(&message.body) {
                Ok(WorkItem::StartOrchestration(start)) => {
                    let left_behind = batch.add_start(item, start);
                    self.park_late(item, &left_behind, &mut batch.records);
                }
                Ok(WorkItem::ContinueAsNew(next)) => batch.continuation = Some(next),
                Ok(other) => {
                    if batch.others.capacity() == 0 {
                        // As many as there may be: left to itself, a list begins with room for four.
                        batch.others.reserve_exact(item.messages.len());
                    }
                    batch.others.push(other);
                }
                Err(reason) => {
                    tracing::error!(
                        instance = &*item.instance,
                        reason,
                        "a message cannot be read; it is parked"
                    );
                    let (instance, deliveries) = (&item.instance, item.attempt_count);
                    let letter =
                        self.shared.letters().message(instance, deliveries, reason, item.fetched_at_ms);
                    batch.records.extend(letter.writes(Some(message.body.clone())));
                }
            }
        }
        batch
    }

    /// Parks those of some messages whose senders were told that they are kept, because their execution has ended.
    pub(super) fn park_late(
        &self,
        item: &OrchestrationItem,
        messages: &[WorkItem],
        records: &mut Vec<RecordWrite>,
    ) {
        let sent = messages.iter().filter(|message| message.is_from_a_sender());
        records.extend(sent.flat_map(|message| self.letter(&item.instance, message, HAD_ENDED)));
    }
}
