//! Changes of tables as cells: what a delta has, and what collects above the base until the next
//! merge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::snapshot::{Key, Spec, Tables};
use crate::tables::{Cell, Changes, Row, Rows, TableChanges, VisitChanges, VisitRows};

/// Changes of one table: rows in their new version, and nothing for rows that are gone.
pub(super) type TableEntries = BTreeMap<Key, Option<Vec<Cell>>>;

/// Changes of all tables.
#[derive(Debug, Default, Clone)]
pub(super) struct Entries {
    tables: BTreeMap<&'static str, TableEntries>,
}

impl Entries {
    /// What a fold changed.
    pub(super) fn of_changes(changes: &Changes) -> Self {
        let mut entries = Entries::default();
        let done: Result<(), std::convert::Infallible> = changes.visit(&mut entries);
        match done {
            Ok(()) => entries,
        }
    }

    /// Rows of all tables.
    pub(super) fn of_rows(rows: &mut Rows) -> Self {
        let mut entries = Entries::default();
        let done: Result<(), std::convert::Infallible> = rows.visit(&mut entries);
        match done {
            Ok(()) => entries,
        }
    }

    /// The tables that have changes.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&'static str, &TableEntries)> {
        self.tables
            .iter()
            .filter(|(_, entries)| !entries.is_empty())
            .map(|(table, entries)| (*table, entries))
    }

    /// The changes of one table.
    pub(super) fn table_mut(&mut self, table: &'static str) -> &mut TableEntries {
        self.tables.entry(table).or_default()
    }

    /// Puts newer changes on top.
    pub(super) fn extend(&mut self, newer: &Entries) {
        for (table, entries) in &newer.tables {
            let own = self.tables.entry(table).or_default();
            own.extend(entries.iter().map(|(key, cells)| (key.clone(), cells.clone())));
        }
    }

    /// Puts the rows in only where nothing newer is.
    pub(super) fn fill(&mut self, rows: Entries) {
        for (table, entries) in rows.tables {
            let own = self.tables.entry(table).or_default();
            for (key, cells) in entries {
                own.entry(key).or_insert(cells);
            }
        }
    }

    /// Marks rows as gone.
    pub(super) fn bury(&mut self, rows: &Entries) {
        for (table, entries) in &rows.tables {
            let own = self.tables.entry(table).or_default();
            own.extend(entries.keys().map(|key| (key.clone(), None)));
        }
    }

    /// How many rows and tombstones.
    pub(super) fn count(&self) -> u64 {
        self.tables.values().map(|entries| entries.len() as u64).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.values().all(BTreeMap::is_empty)
    }

    pub(super) fn clear(&mut self) {
        self.tables.clear();
    }

    /// Forgets what happened to these rows.
    pub(super) fn remove(&mut self, rows: &Entries) {
        for (table, entries) in &rows.tables {
            if let Some(own) = self.tables.get_mut(table) {
                own.retain(|key, _| !entries.contains_key(key));
            }
        }
    }

    /// The runs that have a change in a table that is keyed by the run.
    pub(super) fn runs(&self) -> BTreeSet<Arc<str>> {
        let keyed = self.tables().filter(|(table, _)| Tables::find(table).is_some_and(Spec::is_keyed_by_run));
        keyed.flat_map(|(_, entries)| entries.keys().filter_map(|key| key.get(2).cloned())).collect()
    }
}

impl VisitChanges for Entries {
    type Error = std::convert::Infallible;

    fn changes<R: Row>(&mut self, changes: &TableChanges<R>) -> Result<(), Self::Error> {
        if !changes.is_empty() {
            let entries = self.tables.entry(R::TABLE).or_default();
            entries.extend(changes.upserted.iter().map(|row| (key_of(row), Some(row.to_cells()))));
            entries.extend(changes.deleted.iter().map(|key| (key.as_ref().to_vec(), None)));
        }
        Ok(())
    }
}

impl VisitRows for Entries {
    type Error = std::convert::Infallible;

    fn rows<R: Row>(&mut self, rows: &mut Vec<R>) -> Result<(), Self::Error> {
        if !rows.is_empty() {
            let entries = self.tables.entry(R::TABLE).or_default();
            entries.extend(rows.iter().map(|row| (key_of(row), Some(row.to_cells()))));
        }
        Ok(())
    }
}

fn key_of<R: Row>(row: &R) -> Key {
    row.key().as_ref().to_vec()
}
