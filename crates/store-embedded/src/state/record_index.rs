//! Due times of records, in memory and in order, and the ends of their lives: popping many due records never leaves
//! tombstones to step over. Records with neither are not here.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::store::core::due_index::{DueIndex, FOREVER_MS};

use crate::error::RowError;
use crate::rows::keys;
use crate::rows::layers::Rows;
use crate::rows::queue_row::RecordRow;
use crate::state::expiries::Expiries;

/// What is due and what expires, by time.
#[derive(Debug, Default)]
pub(crate) struct RecordIndex {
    /// By kind.
    due: BTreeMap<Arc<str>, DueIndex>,
    expiries: Expiries,
}

impl RecordIndex {
    /// The index of a store that was just opened, without due times.
    pub(crate) fn of(rows: &Rows) -> Result<Self, RowError> {
        Ok(RecordIndex { due: BTreeMap::new(), expiries: Expiries::of(rows)? })
    }

    /// Adds a due time.
    pub(crate) fn add_due(&mut self, kind: &str, due_at_ms: u64, id: &str, ends_at_ms: u64) {
        let due = match self.due.get_mut(kind) {
            Some(due) => due,
            None => self.due.entry(Arc::from(kind)).or_default(),
        };
        due.insert(due_at_ms, &Arc::from(id), ends_at_ms);
    }

    /// Follows a change of a record, which is in the tables already.
    pub(crate) fn change(&mut self, name: (&str, &str), old: Option<&RecordRow>, new: Option<&RecordRow>) {
        let (kind, id) = name;
        if let Some(old) = old {
            if let (Some(due_at_ms), Some(due)) = (old.due_at_ms, self.due.get_mut(kind)) {
                due.remove(due_at_ms, &Arc::from(id));
                if due.is_unused() {
                    self.due.remove(kind);
                }
            }
            if let Some(expires_at_ms) = old.expires_at_ms {
                self.expiries.remove(&keys::expiry(expires_at_ms, kind, id));
            }
        }
        if let Some(new) = new {
            if let Some(due_at_ms) = new.due_at_ms {
                self.add_due(kind, due_at_ms, id, new.expires_at_ms.unwrap_or(FOREVER_MS));
            }
            if let Some(expires_at_ms) = new.expires_at_ms {
                self.expiries.add(keys::expiry(expires_at_ms, kind, id));
            }
        }
    }

    /// Keeps what a query for this prefix needs, also while the kind has no records: a fetch may wait for the first.
    pub(crate) fn prepare(&mut self, kind: &str, id_prefix: &str) {
        match self.due.get_mut(kind) {
            Some(due) => due.prepare(id_prefix),
            None if id_prefix.is_empty() => {}
            None => self.due.entry(Arc::from(kind)).or_default().prepare(id_prefix),
        }
    }

    /// Due times and ids of living records of a kind under an id prefix, earliest first.
    pub(crate) fn by_due_time<'a>(
        &'a self,
        kind: &str,
        id_prefix: &'a str,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, &'a Arc<str>)> {
        self.due.get(kind).into_iter().flat_map(move |due| due.by_due_time(id_prefix, now_ms))
    }

    /// The earliest due time of a living record of a kind under an id prefix.
    pub(crate) fn next_due_ms(&self, kind: &str, id_prefix: &str, now_ms: u64) -> Option<u64> {
        self.due.get(kind)?.next_due_ms(id_prefix, now_ms)
    }

    /// Drops the end of a life whose record cannot be read or has another end.
    pub(crate) fn forget_expiry(&mut self, expires_at_ms: u64, kind: &str, id: &str) {
        self.expiries.remove(&keys::expiry(expires_at_ms, kind, id));
    }

    /// Drops a due time whose record cannot be read or has another due time: it would be found
    /// again and again.
    pub(crate) fn forget_due(&mut self, kind: &str, due_at_ms: u64, id: &str) {
        if let Some(due) = self.due.get_mut(kind) {
            due.remove(due_at_ms, &Arc::from(id));
        }
    }

    /// End of life, kind and id of a record whose life has ended.
    pub(crate) fn first_expired(
        &mut self,
        rows: &Rows,
        now_ms: u64,
    ) -> Result<Option<(u64, String, String)>, RowError> {
        self.expiries.read_on(rows)?;
        let first = self.expiries.first().and_then(|key| keys::expiring_record(key));
        let expired = first.filter(|(expires_at_ms, ..)| *expires_at_ms <= now_ms);
        Ok(expired.map(|(at_ms, kind, id)| (at_ms, kind.to_owned(), id.to_owned())))
    }
}
