//! Messages of one instance that are visible or fetched.

use std::collections::{VecDeque, vec_deque};

use bytes::Bytes;

use crate::store::TimerIdentifier;

/// A message in the orchestrator queue.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) visible_at_ms: u64,
    pub(super) timer: Option<TimerIdentifier>,
    pub(super) attempts: u32,
    pub(super) body: Bytes,
}

/// Messages with their ids. Most instances have one, and most messages arrive in the order of their
/// ids; others are sorted when the order matters.
#[derive(Debug, Default)]
pub(super) struct Messages {
    messages: VecDeque<(u64, Message)>,
    is_unordered: bool,
    /// The lowest id, if there is one.
    first_id: u64,
}

impl Messages {
    /// The id of the oldest one.
    pub(super) fn first_id(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.first_id)
    }

    pub(super) fn add(&mut self, message_id: u64, message: Message) {
        match self.messages.back() {
            None => {
                self.messages.reserve_exact(1);
                self.first_id = message_id;
            }
            Some((last_id, _)) => {
                self.is_unordered |= message_id < *last_id;
                self.first_id = self.first_id.min(message_id);
            }
        }
        self.messages.push_back((message_id, message));
    }

    pub(super) fn remove(&mut self, message_id: u64) -> Option<Message> {
        self.sort();
        let place = self.messages.binary_search_by_key(&message_id, |(id, _)| *id).ok()?;
        let (_, removed) = self.messages.remove(place)?;
        self.first_id = self.messages.front().map_or(0, |(id, _)| *id);
        Some(removed)
    }

    /// Sorts the messages by id.
    pub(super) fn sort(&mut self) {
        if std::mem::take(&mut self.is_unordered) {
            self.messages.make_contiguous().sort_unstable_by_key(|(id, _)| *id);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Message)> {
        self.messages.iter().map(|(message_id, message)| (*message_id, message))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Message)> {
        self.messages.iter_mut().map(|(message_id, message)| (*message_id, message))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.messages.iter().map(|(message_id, _)| *message_id)
    }
}

impl IntoIterator for Messages {
    type Item = (u64, Message);
    type IntoIter = vec_deque::IntoIter<(u64, Message)>;

    fn into_iter(self) -> Self::IntoIter {
        self.messages.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message { visible_at_ms: 0, timer: None, attempts: 0, body: Bytes::new() }
    }

    #[test]
    fn the_oldest_is_known_after_every_addition_and_removal() {
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
        for message_id in [2, 5, 7] {
            assert!(messages.remove(message_id).is_some());
        }
        assert_eq!(messages.first_id(), None);
        messages.add(1, message());
        assert_eq!(messages.first_id(), Some(1));
    }
}
