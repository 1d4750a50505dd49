//! Changes of rows since a checkpoint: the newest value of each key. What was made and removed in between leaves no trace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bytes::Bytes;

use crate::keys::Key;

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

    /// All changes in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Change)> {
        self.changes.iter()
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
