//! Changes of rows since a checkpoint: the newest value of each key. What was made and removed in between is forgotten.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter;
use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use crate::rows::base::Row;
use crate::rows::keys::{self, Key, Table};
use crate::rows::queue_row;

/// The change of a key in an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The row is new: nothing older has it.
    New(Bytes),
    /// The row is replaced, or may be new.
    Put(Bytes),
    /// The row is gone.
    Deleted,
}

impl Change {
    /// The row, if there is one.
    pub(crate) fn value(&self) -> Option<&Bytes> {
        match self {
            Change::New(value) | Change::Put(value) => Some(value),
            Change::Deleted => None,
        }
    }

    fn value_len(&self) -> usize {
        self.value().map_or(0, Bytes::len)
    }
}

/// A key and what became of its row.
type Changed<'a> = (Cow<'a, Key>, &'a Change);

/// Rough cost of an entry beyond its bytes: its place in a map whose nodes are seldom full.
const ENTRY_BYTES: usize = 128;

/// More than the number of any table.
const UNKNOWN_TABLE: usize = Table::ByExpiry as usize + 1;

/// The number of a key's table.
fn table_of(key: &[u8]) -> usize {
    key.first().map_or(0, |table| usize::from(*table).min(UNKNOWN_TABLE))
}

/// The newest change of each key.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// By table, because less is to be compared in a smaller map. The last one has all tables that there are not.
    tables: [Changes<Key>; UNKNOWN_TABLE + 1],
    /// The queues, by id, one map for each of [`keys::QUEUES`]. Their rows come and go with every message.
    queues: [Changes<u64>; keys::QUEUES.len()],
    bytes: usize,
}

/// Changes of some tables.
#[derive(Debug)]
struct Changes<K>(BTreeMap<K, Change>);

impl<K> Default for Changes<K> {
    fn default() -> Self {
        Changes(BTreeMap::new())
    }
}

/// What a change does to the size: entries more or less, and bytes of values that are not there any more.
struct Effect {
    entries: isize,
    freed: usize,
}

impl<K: Ord> Changes<K> {
    fn set(&mut self, key: K, value: Bytes, unless_known: fn(Bytes) -> Change) -> Effect {
        match self.0.entry(key) {
            Entry::Vacant(unknown) => {
                unknown.insert(unless_known(value));
                Effect { entries: 1, freed: 0 }
            }
            Entry::Occupied(mut known) => {
                let change = known.get_mut();
                let freed = change.value_len();
                *change = match change {
                    // What was new to this layer stays new to the older ones.
                    Change::New(_) => Change::New(value),
                    // What this layer removed may still be in an older one.
                    Change::Put(_) | Change::Deleted => Change::Put(value),
                };
                Effect { entries: 0, freed }
            }
        }
    }

    fn delete(&mut self, key: K) -> Effect {
        match self.0.entry(key) {
            Entry::Vacant(unknown) => {
                unknown.insert(Change::Deleted);
                Effect { entries: 1, freed: 0 }
            }
            Entry::Occupied(known) if matches!(known.get(), Change::New(_)) => {
                Effect { entries: -1, freed: known.remove().value_len() }
            }
            Entry::Occupied(mut known) => {
                Effect { entries: 0, freed: known.insert(Change::Deleted).value_len() }
            }
        }
    }
}

impl Overlay {
    /// The change of a key; `None` if an older layer has its value.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Change> {
        match keys::queue_slot(key) {
            None => self.tables[table_of(key)].0.get(key),
            Some((slot, id)) => self.queues[slot].0.get(&id),
        }
    }

    /// A row that is nowhere at this moment.
    pub(crate) fn insert_new(&mut self, key: Key, value: Bytes) {
        self.set(key, value, Change::New);
    }

    /// A row that an older layer may have.
    pub(crate) fn put(&mut self, key: Key, value: Bytes) {
        self.set(key, value, Change::Put);
    }

    /// Removes a row.
    pub(crate) fn delete(&mut self, key: Key) {
        let key_len = key.len();
        let effect = match keys::queue_slot(&key) {
            None => self.tables[table_of(&key)].delete(key),
            Some((slot, id)) => self.queues[slot].delete(id),
        };
        self.count(key_len, &effect);
    }

    fn set(&mut self, key: Key, value: Bytes, unless_known: fn(Bytes) -> Change) {
        let key_len = key.len();
        self.bytes += value.len();
        let effect = match keys::queue_slot(&key) {
            None => self.tables[table_of(&key)].set(key, value, unless_known),
            Some((slot, id)) => self.queues[slot].set(id, value, unless_known),
        };
        self.count(key_len, &effect);
    }

    fn count(&mut self, key_len: usize, effect: &Effect) {
        let entries = effect.entries * (key_len + ENTRY_BYTES).cast_signed();
        self.bytes = self.bytes.saturating_add_signed(entries) - effect.freed;
    }

    /// All changes in key order, from a key on.
    pub(crate) fn from<'a>(&'a self, start: Bound<&[u8]>) -> impl Iterator<Item = Changed<'a>> + use<'a> {
        let first = match start {
            Bound::Included(key) | Bound::Excluded(key) => table_of(key),
            Bound::Unbounded => 0,
        };
        let start = start.map(Key::from_slice);
        (first..=UNKNOWN_TABLE).flat_map(move |table| {
            let start = if table == first { start.clone() } else { Bound::Unbounded };
            self.table_from(table, start)
        })
    }

    /// The changes of a table in key order, from a key on.
    fn table_from(&self, table: usize, start: Bound<Key>) -> Box<dyn Iterator<Item = Changed<'_>> + '_> {
        let queue = keys::QUEUES.iter().position(|queue| *queue as usize == table);
        let Some(slot) = queue else {
            let start = start.as_ref().map(Key::as_slice);
            let rows = self.tables[table].0.range::<[u8], _>((start, Bound::Unbounded));
            return Box::new(rows.map(|(key, change)| (Cow::Borrowed(key), change)));
        };
        // A start that is no key of a queue is before or behind all of them.
        let id = |key: &Key| keys::queue_slot(key).map(|(_, id)| id);
        let first = match &start {
            Bound::Included(key) => id(key).map_or(Bound::Unbounded, Bound::Included),
            Bound::Excluded(key) => id(key).map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Unbounded => Bound::Unbounded,
        };
        let rows = self.queues[slot].0.range((first, Bound::Unbounded));
        let rows = rows.map(move |(id, change)| (keys::queued(keys::QUEUES[slot], *id), change));
        let rows = rows.filter(move |(key, _)| (start.as_ref(), Bound::Unbounded).contains(key));
        Box::new(rows.map(|(key, change)| (Cow::Owned(key), change)))
    }

    /// The last key that starts with `prefix` and does not lie behind `end`.
    pub(crate) fn last(&self, prefix: &[u8], end: Bound<&[u8]>) -> Option<&Key> {
        debug_assert!(!keys::QUEUES.iter().any(|queue| prefix.first() == Some(&(*queue as u8))));
        let rows = &self.tables[table_of(prefix)].0;
        let (last, _) = rows.range::<[u8], _>((Bound::Included(prefix), end)).next_back()?;
        last.starts_with(prefix).then_some(last)
    }

    /// All changes in key order, as a checkpoint stores them; those without a row are removed. New rows of events that
    /// follow each other in one execution become one row, because what a checkpoint costs is its number of rows.
    pub(crate) fn to_store(&self) -> impl Iterator<Item = Row<'_>> {
        let mut changes = self.from(Bound::Unbounded).peekable();
        iter::from_fn(move || {
            let (key, change) = changes.next()?;
            let mut row = change.value().map(|value| Cow::Borrowed(value.as_ref()));
            if let (Some(row), Some(execution)) = (&mut row, keys::execution_prefix(&key)) {
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
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows changed.
    pub(crate) fn len(&self) -> usize {
        let tables = self.tables.iter().map(|table| table.0.len());
        tables.chain(self.queues.iter().map(|queue| queue.0.len())).sum()
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        overlay.to_store().map(|(key, row)| (key.into_owned(), row.map(read))).collect()
    }

    #[test]
    fn rows_come_in_the_order_of_keys_from_any_key_on() {
        let mut overlay = Overlay::default();
        let mut all = vec![
            keys::meta(1),
            keys::events("a", 1, 1),
            keys::queued(Table::OrchestratorQueue, 7),
            keys::queued(Table::OrchestratorQueue, 300),
            keys::queued(Table::WorkerQueue, 1),
            keys::queued(Table::WorkerStanding, u64::MAX),
            keys::record("kind", "id"),
            keys::ended_ones(keys::Generation::Child),
        ];
        all.iter().rev().for_each(|key| overlay.put(key.clone(), Bytes::new()));
        let from = |start: Bound<&[u8]>| -> Vec<Key> {
            overlay.from(start).map(|(key, _)| key.into_owned()).collect()
        };
        assert_eq!(from(Bound::Unbounded), all);
        for at in 0..all.len() {
            assert_eq!(from(Bound::Included(&all[at])), all[at..]);
            assert_eq!(from(Bound::Excluded(&all[at])), all[at + 1..]);
            assert_eq!(
                from(Bound::Included(&all[at][..1])),
                all[all.iter().position(|key| key[0] == all[at][0]).unwrap_or(0)..]
            );
        }
        all.iter().for_each(|key| assert_eq!(overlay.get(key), Some(&Change::Put(Bytes::new()))));
        assert_eq!(overlay.len(), all.len());
        all.drain(..).for_each(|key| overlay.delete(key));
        assert!(overlay.from(Bound::Unbounded).all(|(_, change)| *change == Change::Deleted));
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
