//! Change tracking (dirty flags and tombstones) of a table whose rows do not belong to a run.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::hash::Hash;

use hashbrown::HashMap;

use crate::tables::{Row, TableChanges};

/// Whether files have a row, and whether they have it as it is now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// A file has some version of it, so its removal needs a tombstone.
    pub(super) published: bool,
    /// It changed since changes were last taken.
    pub(super) changed: bool,
}

impl Mark {
    /// The mark of a row that came from a file.
    pub(super) const LOADED: Mark = Mark { published: true, changed: false };
    /// The mark of a new row.
    pub(super) const NEW: Mark = Mark { published: false, changed: true };

    /// Notes a change; true if it is the first since changes were taken.
    pub(super) fn change(&mut self) -> bool {
        !std::mem::replace(&mut self.changed, true)
    }

    /// The change was taken.
    pub(super) fn take(&mut self) {
        *self = Mark::LOADED;
    }
}

#[derive(Clone, Debug)]
struct Slot<R> {
    row: R,
    mark: Mark,
}

/// Rows by a name that is unique within the scope.
#[derive(Clone, Debug)]
pub(super) struct Table<K, R: Row> {
    slots: HashMap<K, Slot<R>>,
    changed: Vec<K>,
    deleted: BTreeSet<R::Key>,
}

impl<K, R: Row> Default for Table<K, R> {
    fn default() -> Self {
        Table { slots: HashMap::new(), changed: Vec::new(), deleted: BTreeSet::new() }
    }
}

impl<K: Hash + Eq + Clone, R: Row> Table<K, R> {
    /// A row that came from a file.
    pub(super) fn load(&mut self, name: K, row: R) {
        self.slots.insert(name, Slot { row, mark: Mark::LOADED });
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<&R>
    where
        K: Borrow<Q>,
    {
        self.slots.get(name).map(|slot| &slot.row)
    }

    /// A row that is about to change.
    pub(super) fn get_mut(&mut self, name: &K) -> Option<&mut R> {
        let slot = self.slots.get_mut(name)?;
        if slot.mark.change() {
            self.changed.push(name.clone());
        }
        Some(&mut slot.row)
    }

    /// A row in its new version.
    pub(super) fn put(&mut self, name: K, row: R) {
        match self.slots.get_mut(&name) {
            Some(slot) => {
                slot.row = row;
                if slot.mark.change() {
                    self.changed.push(name);
                }
            }
            None => {
                self.changed.push(name.clone());
                self.slots.insert(name, Slot { row, mark: Mark::NEW });
            }
        }
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, name: &Q) -> Option<R>
    where
        K: Borrow<Q>,
    {
        let slot = self.slots.remove(name)?;
        if slot.mark.published {
            self.deleted.insert(slot.row.key());
        }
        Some(slot.row)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &R> {
        self.slots.values().map(|slot| &slot.row)
    }

    /// What changed since the last call, sorted by key.
    pub(super) fn take_changes(&mut self) -> TableChanges<R> {
        let mut upserted = Vec::new();
        for name in self.changed.drain(..) {
            // A name is listed twice if its row was removed and put again.
            if let Some(slot) = self.slots.get_mut(&name).filter(|slot| slot.mark.changed) {
                slot.mark.take();
                upserted.push(slot.row.clone());
            }
        }
        sorted_changes(upserted, std::mem::take(&mut self.deleted))
    }
}

/// Changes sorted by key, without tombstones of rows that exist again.
pub(super) fn sorted_changes<R: Row>(mut upserted: Vec<R>, mut deleted: BTreeSet<R::Key>) -> TableChanges<R> {
    upserted.sort_by_cached_key(Row::key);
    if !deleted.is_empty() {
        for row in &upserted {
            deleted.remove(&row.key());
        }
    }
    TableChanges { upserted, deleted: deleted.into_iter().collect() }
}
