//! A manifest with all its parts, in memory: the pieces of every table and partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Base, Delta, FileRef, Month, Part, Piece};

/// Where rows of a table lie: among the active ones, or in a day partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Rows that may still change.
    Active,
    /// Rows of finished runs that were triggered on this day, and events of this day: `YYYY-MM-DD`,
    /// UTC.
    Day(String),
}

/// One table at one place: what is merged with each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// The name of the table.
    pub table: String,
    /// Where.
    pub place: Place,
}

/// All pieces of a state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The merged active rows.
    pub base: Base,
    /// Deltas, oldest first.
    pub deltas: Vec<Delta>,
    /// Day partitions by month (`YYYY-MM`). Catalogs of successive manifests share the months that did not change.
    pub months: BTreeMap<String, Arc<Month>>,
    /// Whether the base differs from its stored part.
    pub base_changed: bool,
    /// Months that differ from their stored parts.
    pub months_changed: BTreeSet<String>,
    /// The stored parts of the months.
    pub month_parts: BTreeMap<String, Part>,
}

impl Catalog {
    /// The merged pieces of a group, oldest first, without deltas.
    pub fn pieces(&self, group: &Group) -> &[Piece] {
        let found = match &group.place {
            Place::Active => self.base.tables.get(&group.table),
            Place::Day(day) => {
                self.months.get(month_of(day)).and_then(|month| month.days.get(day)?.get(&group.table))
            }
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// The merged pieces of a group, to be changed.
    pub fn pieces_mut(&mut self, group: &Group) -> &mut Vec<Piece> {
        match &group.place {
            Place::Active => {
                self.base_changed = true;
                self.base.tables.entry(group.table.clone()).or_default()
            }
            Place::Day(day) => {
                let month = month_of(day);
                self.months_changed.insert(month.to_owned());
                let days = &mut Arc::make_mut(self.months.entry(month.to_owned()).or_default()).days;
                days.entry(day.clone()).or_default().entry(group.table.clone()).or_default()
            }
        }
    }

    /// All pieces of a group, oldest first, deltas included.
    pub fn all_pieces(&self, group: &Group) -> Vec<Piece> {
        let mut pieces = self.pieces(group).to_vec();
        if group.place == Place::Active {
            for delta in &self.deltas {
                let rows = delta.tables.get(&group.table).cloned();
                let deletions = delta.deletions.get(&group.table).cloned();
                if rows.is_some() || deletions.is_some() {
                    pieces.push(Piece { sequence: delta.sequence(), level: 0, rows, deletions });
                }
            }
        }
        pieces
    }

    /// All groups that have merged pieces.
    pub fn groups(&self) -> impl Iterator<Item = (Group, &Vec<Piece>)> {
        let active = self
            .base
            .tables
            .iter()
            .map(|(table, pieces)| (Group { table: table.clone(), place: Place::Active }, pieces));
        let days = self.months.values().flat_map(|month| &month.days).flat_map(|(day, tables)| {
            let place = Place::Day(day.clone());
            tables
                .iter()
                .map(move |(table, pieces)| (Group { table: table.clone(), place: place.clone() }, pieces))
        });
        active.chain(days)
    }

    /// The days that have partitions, oldest first.
    pub fn days(&self) -> impl Iterator<Item = &String> {
        self.months.values().flat_map(|month| month.days.keys())
    }

    /// All files, with the table that they are of.
    pub fn files(&self) -> impl Iterator<Item = (&str, &FileRef)> {
        let active = self.base.tables.iter().flat_map(|(table, pieces)| of(table, pieces));
        let days = self.months.values().flat_map(|month| month.days.values());
        let days = days.flat_map(|tables| tables.iter()).flat_map(|(table, pieces)| of(table, pieces));
        let deltas = self.deltas.iter().flat_map(|delta| delta.tables.iter().chain(&delta.deletions));
        active.chain(days).chain(deltas.map(|(table, file)| (table.as_str(), file)))
    }
}

fn of<'a>(table: &'a str, pieces: &'a [Piece]) -> impl Iterator<Item = (&'a str, &'a FileRef)> {
    pieces.iter().flat_map(Piece::files).map(move |file| (table, file))
}

impl Delta {
    /// The number of the manifest that first named it.
    pub fn sequence(&self) -> u64 {
        self.delta_id.parse().unwrap_or(0)
    }
}

/// The month of a day.
pub fn month_of(day: &str) -> &str {
    day.get(..7).unwrap_or(day)
}
