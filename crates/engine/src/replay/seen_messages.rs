//! Deduplication of messages by the ids that their senders gave them.

use std::collections::{HashSet, VecDeque};

use crate::limits::MAX_REMEMBERED_MESSAGE_IDS;

/// Ids of accepted messages, bounded; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(super) struct SeenMessageIds {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl SeenMessageIds {
    pub(super) fn from(ids: &[String]) -> Self {
        let mut seen = SeenMessageIds::default();
        for id in ids {
            seen.remember(Some(id));
        }
        seen
    }

    pub(super) fn remember(&mut self, id: Option<&str>) {
        let Some(id) = id else { return };
        if self.ids.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
            if self.order.len() > MAX_REMEMBERED_MESSAGE_IDS
                && let Some(oldest) = self.order.pop_front()
            {
                self.ids.remove(&oldest);
            }
        }
    }

    pub(super) fn contains(&self, id: Option<&str>) -> bool {
        id.is_some_and(|id| self.ids.contains(id))
    }

    pub(super) fn to_vec(&self) -> Vec<String> {
        self.order.iter().cloned().collect()
    }
}
