//! Early messages: what comes to an instance before its start is recorded and waits for it.

use std::collections::BTreeSet;

use super::batch::Batch;
use super::codeless::{Appender, CodelessCommit, CodelessTurn};
use super::turn::Turn;
use crate::event::{Channel, Event, EventKind, Output};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::replay::Unread;
use crate::store::{AckOrchestrationItem, ExecutionStatus, OrchestrationItem};
use crate::work_item::{StartOrchestration, WorkItem};

/// Records the messages of an instance that has not started. A cancellation ends it if its start is
/// known and lies ahead.
pub(super) fn keep(codeless: &CodelessTurn<'_>, batch: Batch) -> CodelessCommit {
    let CodelessTurn { turn, item, history } = *codeless;
    let mut ack = turn.empty_ack(item.execution_id);
    let mut log = EarlyLog::new(codeless.appender(item.execution_id), history);
    let cancelled = log.receive(&batch.others);
    ack.orchestrator_items = batch.answer_starts(&item.instance, None);
    if let Some(reason) = cancelled.filter(|_| is_delayed(item)) {
        log.events.append(EventKind::OrchestrationCancelRequested { reason: reason.clone() });
        let failure = Failure::cancelled(reason);
        log.events.append(EventKind::OrchestrationFailed { failure: failure.clone() });
        ack.metadata.status = Some(ExecutionStatus::Cancelled);
        ack.metadata.output = Some(Output::Failed(failure).encode());
    } else if !log.events.events().is_empty() {
        log.write_status(&mut ack);
    }
    ack.records = batch.records;
    log.write(turn, &mut ack);
    CodelessCommit { ack, span: None }
}

/// Whether a start begins the current execution, which has not begun. Another start may come to an
/// instance whose own one lies ahead.
pub(super) fn begins(item: &OrchestrationItem, start: &StartOrchestration) -> bool {
    match start.execution_id {
        Some(execution_id) => execution_id == item.execution_id,
        None => item.execution_id == 1 && (start.start_at_ms.is_some() || !is_delayed(item)),
    }
}

/// Whether the start of the instance is known and lies ahead, as opposed to one that only got early
/// messages.
pub(super) fn is_delayed(item: &OrchestrationItem) -> bool {
    item.orchestration_name.is_some()
        && matches!(item.status, Some(ExecutionStatus::Pending | ExecutionStatus::Paused))
}

/// Records early messages without running code.
pub(super) struct EarlyLog {
    events: Appender,
    seen_ids: BTreeSet<String>,
    unread: Unread,
    /// Messages beyond the limits, with the reasons.
    refused: Vec<(WorkItem, String)>,
    /// The reason of a pause, while there is one.
    paused: Option<String>,
}

impl EarlyLog {
    /// Continues a history that has only early messages.
    pub(super) fn new(events: Appender, history: &[Event]) -> Self {
        let (mut unread, mut seen_ids, mut paused) = (Unread::default(), BTreeSet::new(), None);
        for event in history {
            match &event.kind {
                EventKind::MessageReceived { data, id, .. } => {
                    unread.add(data);
                    seen_ids.extend(id.clone());
                }
                EventKind::OrchestrationPaused { reason } => paused = Some(reason.clone()),
                EventKind::OrchestrationResumed => paused = None,
                _ => {}
            }
        }
        EarlyLog { events, seen_ids, unread, refused: Vec::new(), paused }
    }

    /// Records signals and mailbox messages (each id once), pauses and resumes. Returns the reason
    /// of a cancellation if there is one.
    pub(super) fn receive(&mut self, messages: &[WorkItem]) -> Option<String> {
        let mut cancelled = None;
        for message in messages {
            match message {
                WorkItem::ExternalRaised { name, data, id } => {
                    self.receive_message(message, (Channel::Signal, name), data, id.as_deref());
                }
                WorkItem::QueueMessage { name, data, id } => {
                    self.receive_message(message, (Channel::Mailbox, name), data, id.as_deref());
                }
                WorkItem::CancelInstance { reason } => cancelled = Some(reason.clone()),
                WorkItem::PauseInstance { reason } if self.paused.is_none() => {
                    self.paused = Some(reason.clone());
                    self.events.append(EventKind::OrchestrationPaused { reason: reason.clone() });
                }
                WorkItem::ResumeInstance if self.paused.is_some() => {
                    self.paused = None;
                    self.events.append(EventKind::OrchestrationResumed);
                }
                _ => {}
            }
        }
        cancelled
    }

    fn receive_message(
        &mut self,
        message: &WorkItem,
        (channel, name): (Channel, &str),
        data: &Payload,
        id: Option<&str>,
    ) {
        if id.is_some_and(|id| !self.seen_ids.insert(id.to_owned())) {
            return;
        }
        if let Some(reason) = self.unread.refusal(data) {
            self.refused.push((message.clone(), reason));
            return;
        }
        self.unread.add(data);
        let (name, data, id) = (name.to_owned(), data.clone(), id.map(str::to_owned));
        self.events.append(EventKind::MessageReceived { channel, name, data, id });
    }

    /// The status of an instance before its start: pending, or paused so that the start will be
    /// held.
    pub(super) fn write_status(&self, ack: &mut AckOrchestrationItem) {
        ack.metadata.status = Some(match &self.paused {
            Some(reason) => {
                ack.metadata.output = Some(Output::Paused(reason.clone()).encode());
                ExecutionStatus::Paused
            }
            None => ExecutionStatus::Pending,
        });
    }

    /// Writes the events, and parks the refused messages as dead letters.
    pub(super) fn write(self, turn: &Turn<'_>, ack: &mut AckOrchestrationItem) {
        ack.history_delta = self.events.into_events();
        let refused = self.refused.into_iter();
        ack.records.extend(refused.flat_map(|(message, reason)| turn.park(&message, reason)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_PAYLOAD_BYTES, MAX_UNREAD_BYTES};

    #[test]
    fn the_bytes_of_messages_before_the_start_are_bounded() {
        let large = Payload::from_json(format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2))).unwrap();
        let message = WorkItem::message(Channel::Mailbox, "jobs".to_owned(), large, None);
        let mut log = EarlyLog::new(Appender::default(), &[]);
        let fit = MAX_UNREAD_BYTES / MAX_PAYLOAD_BYTES;
        log.receive(&vec![message; fit + 2]);
        assert_eq!((log.events.events().len(), log.refused.len()), (fit, 2));
        assert!(log.refused[0].1.contains("64 MiB"), "{}", log.refused[0].1);
    }
}
