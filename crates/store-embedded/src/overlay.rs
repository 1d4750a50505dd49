//! Changes of rows since a checkpoint: the newest value of each key. What was made and removed in between leaves no trace.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter;
use std::ops::Bound;

use bytes::Bytes;

use crate::keys::{self, Key};
use crate::queue_row;

/// What an overlay says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The row is new: nothing older has it.
    New(Bytes),
    /// The row is replaced, or may be new.
    Put(Bytes),
    /// The row is gone.
    Deleted,
}

impl Change {
    /// The row, if there is one.
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Change::New(value) | Change::Put(value) => Some(value),
            Change::Deleted => None,
        }
    }

    fn value_len(&self) -> usize {
        self.value().map_or(0, Bytes::len)
    }
}

/// Rough cost of an entry beyond its bytes: its place in a map whose nodes are seldom full.
const ENTRY_BYTES: usize = 128;

/// The newest change of each key.
#[derive(Debug, Default)]
pub struct Overlay {
    changes: BTreeMap<Key, Change>,
    bytes: usize,
}

impl Overlay {
    /// What is known of a key; `None` when an older layer must say.
    pub fn get(&self, key: &[u8]) -> Option<&Change> {
        self.changes.get(key)
    }

    /// A row that is nowhere at this moment.
    pub fn insert_new(&mut self, key: Key, value: Bytes) {
        self.set(key, value, Change::New);
    }

    /// A row that an older layer may have.
    pub fn put(&mut self, key: Key, value: Bytes) {
        self.set(key, value, Change::Put);
    }

    /// Removes a row.
    pub fn delete(&mut self, key: Key) {
        let key_len = key.len();
        match self.changes.entry(key) {
            Entry::Vacant(unknown) => {
                unknown.insert(Change::Deleted);
                self.bytes += key_len + ENTRY_BYTES;
            }
            Entry::Occupied(mut known) => {
                self.bytes -= known.get().value_len();
                if matches!(known.get(), Change::New(_)) {
                    known.remove();
                    self.bytes -= key_len + ENTRY_BYTES;
                } else {
                    known.insert(Change::Deleted);
                }
            }
        }
    }

    fn set(&mut self, key: Key, value: Bytes, unless_known: fn(Bytes) -> Change) {
        let key_len = key.len();
        self.bytes += value.len();
        match self.changes.entry(key) {
            Entry::Vacant(unknown) => {
                unknown.insert(unless_known(value));
                self.bytes += key_len + ENTRY_BYTES;
            }
            Entry::Occupied(mut known) => {
                let change = known.get_mut();
                self.bytes -= change.value_len();
                *change = match change {
                    // What was new to this layer stays new to the older ones.
                    Change::New(_) => Change::New(value),
                    // What this layer removed may still be in an older one.
                    Change::Put(_) | Change::Deleted => Change::Put(value),
                };
            }
        }
    }

    /// All changes in key order, from a key on.
    pub fn from<'a>(&'a self, start: Bound<&[u8]>) -> impl Iterator<Item = (&'a Key, &'a Change)> + use<'a> {
        self.changes.range::<[u8], _>((start, Bound::Unbounded))
    }

    /// The last key that starts with `prefix` and does not lie behind `end`.
    pub fn last(&self, prefix: &[u8], end: Bound<&[u8]>) -> Option<&Key> {
        let (last, _) = self.changes.range::<[u8], _>((Bound::Included(prefix), end)).next_back()?;
        last.starts_with(prefix).then_some(last)
    }

    /// All changes in key order, as a checkpoint stores them; those without a row are removed. New rows of events that
    /// follow each other in one execution become one row, because what a checkpoint costs is its number of rows.
    pub fn to_store(&self) -> impl Iterator<Item = (&Key, Option<Cow<'_, [u8]>>)> {
        let mut changes = self.changes.iter().peekable();
        iter::from_fn(move || {
            let (key, change) = changes.next()?;
            let mut row = change.value().map(|value| Cow::Borrowed(value.as_ref()));
            if let (Some(row), Some(execution)) = (&mut row, keys::execution_prefix(key)) {
                // Only what nothing older has may go without a row of its own.
                while let Some((next_key, Change::New(more))) = changes.peek()
                    && next_key.starts_with(execution)
                    && queue_row::join_events(row, more)
                {
                    changes.next();
                }
            }
            Some((key, row))
        })
    }

    /// Rough size in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows changed.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Table;
    use segno::store::StoredEvent;

    fn key() -> Key {
        Key::from_slice(&[1])
    }

    #[test]
    fn what_is_made_and_removed_leaves_no_trace() {
        let mut overlay = Overlay::default();
        overlay.insert_new(key(), Bytes::from_static(b"a"));
        overlay.put(key(), Bytes::from_static(b"longer"));
        overlay.delete(key());
        assert!(overlay.is_empty());
        assert_eq!(overlay.bytes(), 0);
    }

    fn events(instance: &str, first: u64, bytes: usize) -> (Key, Bytes) {
        let event = StoredEvent { event_id: first, data: Bytes::from(vec![0; bytes]) };
        (keys::events(instance, 1, first), queue_row::encode_events(&[event]))
    }

    fn stored(overlay: &Overlay) -> Vec<(Key, Option<Vec<u64>>)> {
        let read = |row: Cow<'_, [u8]>| {
            let mut events = Vec::new();
            queue_row::decode_events(&Bytes::copy_from_slice(&row), &mut events).expect("a row of events");
            events.iter().map(|event| event.event_id).collect()
        };
        overlay.to_store().map(|(key, row)| (key.clone(), row.map(read))).collect()
    }

    #[test]
    fn new_events_of_an_execution_are_stored_as_one_row() {
        let mut overlay = Overlay::default();
        for (instance, first) in [("a", 1), ("a", 3), ("a", 4), ("b", 1), ("b", 2)] {
            let (key, value) = events(instance, first, 10);
            overlay.insert_new(key, value);
        }
        overlay.delete(keys::execution(Table::Executions, "a", 1));
        let expected = [
            (keys::execution(Table::Executions, "a", 1), None),
            (keys::events("a", 1, 1), Some(vec![1, 3, 4])),
            (keys::events("b", 1, 1), Some(vec![1, 2])),
        ];
        assert_eq!(stored(&overlay), expected);
    }

    #[test]
    fn what_an_older_layer_may_have_keeps_its_row_and_rows_stay_short() {
        let mut overlay = Overlay::default();
        let long = queue_row::LONG_EVENTS_BYTES;
        for (first, bytes) in [(1, 10), (2, 10), (3, 10), (4, long), (5, 10)] {
            let (key, value) = events("a", first, bytes);
            if first == 2 {
                overlay.put(key, value);
            } else {
                overlay.insert_new(key, value);
            }
        }
        let rows: Vec<_> = stored(&overlay).into_iter().filter_map(|(_, row)| row).collect();
        assert_eq!(rows, [vec![1], vec![2, 3, 4], vec![5]]);
    }

    #[test]
    fn what_an_older_layer_may_have_is_remembered_as_deleted() {
        let mut overlay = Overlay::default();
        overlay.put(key(), Bytes::from_static(b"a"));
        for _ in 0..2 {
            overlay.delete(key());
            assert_eq!(overlay.get(&[1]), Some(&Change::Deleted));
            overlay.insert_new(key(), Bytes::from_static(b"again"));
        }
    }
}
