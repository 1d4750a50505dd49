//! Due times and ends of lives of records, in memory and in order: popping many due records never leaves tombstones to
//! step over. Records with neither are not here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::queue_row::RecordRow;

/// The end of a life that does not end.
const FOREVER_MS: u64 = u64::MAX;

/// Due time and id of records, with the end of each one's life.
type ByDueTime = BTreeMap<(u64, Arc<str>), u64>;

/// What is due and what expires, by time.
#[derive(Debug, Default)]
pub struct RecordIndex {
    /// By kind.
    due: BTreeMap<Arc<str>, ByDueTime>,
    expiries: BTreeSet<(u64, Arc<str>, Arc<str>)>,
}

impl RecordIndex {
    /// Adds a due time.
    pub fn add_due(&mut self, kind: &str, due_at_ms: u64, id: &str, ends_at_ms: u64) {
        let due = match self.due.get_mut(kind) {
            Some(due) => due,
            None => self.due.entry(Arc::from(kind)).or_default(),
        };
        due.insert((due_at_ms, Arc::from(id)), ends_at_ms);
    }

    /// Adds the end of a life.
    pub fn add_expiry(&mut self, expires_at_ms: u64, kind: &str, id: &str) {
        self.expiries.insert((expires_at_ms, Arc::from(kind), Arc::from(id)));
    }

    /// Follows a change of a record.
    pub fn change(&mut self, name: (&str, &str), old: Option<&RecordRow>, new: Option<&RecordRow>) {
        let (kind, id) = name;
        if let Some(old) = old {
            if let (Some(due_at_ms), Some(due)) = (old.due_at_ms, self.due.get_mut(kind)) {
                due.remove(&(due_at_ms, Arc::from(id)));
                if due.is_empty() {
                    self.due.remove(kind);
                }
            }
            if let Some(expires_at_ms) = old.expires_at_ms {
                self.expiries.remove(&(expires_at_ms, Arc::from(kind), Arc::from(id)));
            }
        }
        if let Some(new) = new {
            if let Some(due_at_ms) = new.due_at_ms {
                self.add_due(kind, due_at_ms, id, new.expires_at_ms.unwrap_or(FOREVER_MS));
            }
            if let Some(expires_at_ms) = new.expires_at_ms {
                self.add_expiry(expires_at_ms, kind, id);
            }
        }
    }

    /// Due times and ids of living records of a kind, earliest first.
    pub fn by_due_time(&self, kind: &str, now_ms: u64) -> impl Iterator<Item = (u64, &Arc<str>)> {
        let due = self.due.get(kind).into_iter().flatten();
        due.filter(move |(_, ends_at_ms)| **ends_at_ms > now_ms).map(|((due_at_ms, id), _)| (*due_at_ms, id))
    }

    /// The earliest due time of a living record of a kind.
    pub fn next_due_ms(&self, kind: &str, now_ms: u64) -> Option<u64> {
        self.by_due_time(kind, now_ms).next().map(|(due_at_ms, _)| due_at_ms)
    }

    /// A record whose life has ended.
    pub fn first_expired(&self, now_ms: u64) -> Option<(Arc<str>, Arc<str>)> {
        let (expires_at_ms, kind, id) = self.expiries.first()?;
        (*expires_at_ms <= now_ms).then(|| (Arc::clone(kind), Arc::clone(id)))
    }
}
