//! Turns that run no code: events are appended to the history of the instance, and the rest of the
//! commit is written without an execution.

use super::batch::Batch;
use super::observer::ExecutionSpan;
use super::turn::Turn;
use crate::event::{Event, EventKind, ParentLink};
use crate::store::{AckOrchestrationItem, OrchestrationItem, StoredEvent};

/// A turn of an instance whose code does not run.
#[derive(Clone, Copy)]
pub(super) struct CodelessTurn<'a> {
    pub(super) turn: &'a Turn<'a>,
    pub(super) item: &'a OrchestrationItem,
    /// The history of the current execution, as much of it as matters and can be read.
    pub(super) history: &'a [Event],
}

/// The commit of such a turn.
pub(super) struct CodelessCommit {
    pub(super) ack: AckOrchestrationItem,
    /// Of an execution that ends.
    pub(super) span: Option<ExecutionSpan>,
}

impl<'a> CodelessTurn<'a> {
    pub(super) fn new(turn: &'a Turn<'a>, item: &'a OrchestrationItem, history: &'a [Event]) -> Self {
        CodelessTurn { turn, item, history }
    }

    /// Appends events to an execution: the current one, or the next, which has none.
    pub(super) fn appender(&self, execution_id: u64) -> Appender {
        let is_current = execution_id == self.item.execution_id;
        let now_ms = self.turn.now_ms();
        Appender {
            events: Vec::new(),
            last_event_id: if is_current { self.item.last_event_id } else { 0 },
            at_ms: self.history.last().map_or(now_ms, |event| now_ms.max(event.at_ms)),
        }
    }

    /// Consumes messages that have no effect. Starts are answered.
    pub(super) fn consume(&self, batch: Batch, own_parent: Option<&ParentLink>) -> CodelessCommit {
        let mut ack = self.turn.empty_ack(self.item.execution_id);
        ack.orchestrator_items = batch.answer_starts(&self.item.instance, own_parent);
        ack.records = batch.records;
        CodelessCommit { ack, span: None }
    }
}

/// Numbers new events and encodes them.
#[derive(Default)]
pub(super) struct Appender {
    events: Vec<StoredEvent>,
    last_event_id: u64,
    at_ms: u64,
}

impl Appender {
    pub(super) fn append(&mut self, kind: EventKind) {
        self.last_event_id += 1;
        self.events.push(Event { event_id: self.last_event_id, at_ms: self.at_ms, kind }.to_stored());
    }

    pub(super) fn events(&self) -> &[StoredEvent] {
        &self.events
    }

    pub(super) fn into_events(self) -> Vec<StoredEvent> {
        self.events
    }
}

/// The parent that a history names, if its start can be read.
pub(super) fn parent_of(history: &[Event]) -> Option<ParentLink> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted(started) => started.parent.clone(),
        _ => None,
    })
}
