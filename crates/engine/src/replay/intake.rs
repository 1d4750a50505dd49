//! The intake of messages: deduplication, admission control, and what the code cannot be shown yet.

use std::collections::VecDeque;

use crate::event::{CarriedMessage, Channel, Event, EventKind};
use crate::payload::Payload;
use crate::work_item::WorkItem;

use super::seen_messages::SeenMessageIds;
use super::unread::Unread;

/// What an execution has accepted and its code has not seen.
#[derive(Default)]
pub(super) struct Intake {
    seen: SeenMessageIds,
    /// Events that a pause defers.
    deferred: VecDeque<Event>,
    /// Messages among the deferred events.
    deferred_unread: Unread,
    /// Messages that came after the end by continue-as-new; the next execution gets them.
    for_next: Vec<CarriedMessage>,
    for_next_unread: Unread,
}

impl Intake {
    pub(super) fn new(seen_message_ids: &[String]) -> Self {
        Intake { seen: SeenMessageIds::from(seen_message_ids), ..Intake::default() }
    }

    /// Folds one event: remembers the ids of messages.
    pub(super) fn apply(&mut self, event: &Event) {
        if let EventKind::MessageReceived { id, .. } = &event.kind {
            self.seen.remember(id.as_deref());
        }
    }

    /// Whether a message with this id was accepted before.
    pub(super) fn is_duplicate(&self, id: Option<&str>) -> bool {
        self.seen.contains(id)
    }

    /// Why one more message is refused, if it is. Counts all messages that wait: unread in the
    /// journal, deferred by a pause, or for the next execution.
    pub(super) fn refusal(&self, unread: Unread, data: &Payload) -> Option<String> {
        unread.plus(self.deferred_unread).plus(self.for_next_unread).refusal(data)
    }

    /// Keeps an event until the instance is resumed.
    pub(super) fn defer(&mut self, event: Event) {
        if let EventKind::MessageReceived { data, .. } = &event.kind {
            self.deferred_unread.add(data);
        }
        self.deferred.push_back(event);
    }

    /// Takes the deferred events, oldest first.
    pub(super) fn take_deferred(&mut self) -> VecDeque<Event> {
        self.deferred_unread = Unread::default();
        std::mem::take(&mut self.deferred)
    }

    /// Keeps a message for the next execution, unless it is a duplicate. Returns one that is
    /// refused, with the reason.
    pub(super) fn keep_for_next(
        &mut self,
        unread: Unread,
        (channel, name): (Channel, String),
        data: Payload,
        id: Option<String>,
    ) -> Option<(WorkItem, String)> {
        if self.is_duplicate(id.as_deref()) {
            return None;
        }
        if let Some(reason) = self.refusal(unread, &data) {
            return Some((WorkItem::message(channel, name, data, id), reason));
        }
        self.seen.remember(id.as_deref());
        self.for_next_unread.add(&data);
        self.for_next.push(CarriedMessage { channel, name, data });
        None
    }

    pub(super) fn take_for_next(&mut self) -> Vec<CarriedMessage> {
        self.for_next_unread = Unread::default();
        std::mem::take(&mut self.for_next)
    }

    /// The ids that the next execution remembers.
    pub(super) fn seen_ids(&self) -> Vec<String> {
        self.seen.to_vec()
    }
}
