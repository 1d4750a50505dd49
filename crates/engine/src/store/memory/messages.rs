//! Messages of one instance that are visible or fetched.

use bytes::Bytes;
use smallvec::SmallVec;

use crate::store::TimerIdentifier;

/// A message in the orchestrator queue.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) visible_at_ms: u64,
    pub(super) timer: Option<TimerIdentifier>,
    pub(super) attempts: u32,
    pub(super) body: Bytes,
}

/// Messages with their ids: the oldest first, the others in any order. Most instances have one message.
#[derive(Debug, Default)]
pub(super) struct Messages(SmallVec<[(u64, Message); 1]>);

impl Messages {
    pub(super) fn first_id(&self) -> Option<u64> {
        self.0.first().map(|(message_id, _)| *message_id)
    }

    pub(super) fn add(&mut self, message_id: u64, message: Message) {
        let is_first = self.first_id().is_some_and(|first_id| message_id < first_id);
        self.0.push((message_id, message));
        if is_first {
            let last = self.0.len() - 1;
            self.0.swap(0, last);
        }
    }

    /// Takes a message out; the cost is that of looking at all.
    pub(super) fn remove(&mut self, message_id: u64) -> Option<Message> {
        let place = self.0.iter().position(|(id, _)| *id == message_id)?;
        let (_, removed) = self.0.swap_remove(place);
        if place == 0 {
            self.sort();
        }
        Some(removed)
    }

    /// Puts all in the order of their ids.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|(message_id, _)| *message_id);
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Message)> {
        self.0.iter().map(|(message_id, message)| (*message_id, message))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Message)> {
        self.0.iter_mut().map(|(message_id, message)| (*message_id, message))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(message_id, _)| *message_id)
    }
}

impl IntoIterator for Messages {
    type Item = (u64, Message);
    type IntoIter = smallvec::IntoIter<[(u64, Message); 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message { visible_at_ms: 0, timer: None, attempts: 0, body: Bytes::new() }
    }

    #[test]
    fn the_oldest_is_first_whatever_comes_and_goes() {
        let mut messages = Messages::default();
        for message_id in [5, 9, 3, 7, 1] {
            messages.add(message_id, message());
            assert_eq!(messages.first_id(), messages.ids().min());
        }
        for message_id in [1, 9, 3, 4] {
            assert_eq!(messages.remove(message_id).is_some(), message_id != 4);
            assert_eq!(messages.first_id(), messages.ids().min());
        }
        messages.add(2, message());
        messages.sort();
        assert!(messages.ids().eq([2, 5, 7]));
    }
}
