//! The kinds of rows that are archived: columns, keys, and the order of rows in a file.

use std::cmp::Ordering;

use super::events::EventRow;
use super::instances::InstanceRow;
use super::row::ArchivedRow;
use crate::columnar::Layout;
use crate::tables::{Cell, Column};

/// A kind of rows.
#[derive(Debug)]
pub struct Kind {
    /// Its name, as in paths.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// The columns that tell its rows apart, their revision aside.
    pub key: &'static [&'static str],
}

/// Instances.
pub static INSTANCES: Kind =
    Kind { name: "instances", columns: InstanceRow::COLUMNS, key: &["id", "incarnation"] };

/// Events of instances.
pub static EVENTS: Kind =
    Kind { name: "events", columns: EventRow::COLUMNS, key: &["id", "incarnation", "execution", "event_id"] };

/// All kinds, in the order in which a batch is written: what a row refers to is there before it.
pub static KINDS: [&Kind; 2] = [&EVENTS, &INSTANCES];

/// The place of `id` in every kind.
pub(super) const ID: usize = 2;
/// The place of `incarnation` in every kind.
pub(super) const INCARNATION: usize = 3;
/// The place of `revision` in every kind.
pub(super) const REVISION: usize = 4;
/// The place of `ended_at` in every kind.
pub(super) const ENDED_AT: usize = 5;

impl Kind {
    /// What its files look like.
    pub fn layout(&self) -> Layout {
        Layout::new(self.name, self.columns.to_vec(), self.key)
    }

    /// The order of rows in a file: by key, of equal ones the row that counts first.
    pub(super) fn sort(&self, rows: &mut [Vec<Cell>]) {
        let key = self.key_places();
        let revision = |row: &[Cell]| integer(row, REVISION);
        rows.sort_by(|one, other| {
            compare(&key, one, other).then_with(|| revision(other).cmp(&revision(one)))
        });
    }

    /// Leaves one row of each key in sorted rows: the one that counts.
    pub(super) fn deduplicate(&self, rows: &mut Vec<Vec<Cell>>) {
        let key = self.key_places();
        rows.dedup_by(|later, first| compare(&key, later, first) == Ordering::Equal);
    }

    fn key_places(&self) -> Vec<usize> {
        let place = |name: &&str| self.columns.iter().position(|column| column.name == *name);
        self.key.iter().filter_map(place).collect()
    }
}

fn compare(places: &[usize], one: &[Cell], other: &[Cell]) -> Ordering {
    let cells = |at: &usize| (one.get(*at), other.get(*at));
    let orders = places.iter().map(cells).map(|(one, other)| match (one, other) {
        (Some(Cell::Text(one)), Some(Cell::Text(other))) => one.cmp(other),
        (Some(Cell::Integer(one)), Some(Cell::Integer(other))) => one.cmp(other),
        _ => Ordering::Equal,
    });
    orders.fold(Ordering::Equal, Ordering::then)
}

/// The number of a cell; cells without one count as 0.
pub(super) fn integer(row: &[Cell], at: usize) -> i64 {
    match row.get(at) {
        Some(Cell::Integer(number)) => *number,
        _ => 0,
    }
}

/// The text of a cell; cells without one count as empty.
pub(super) fn text(row: &[Cell], at: usize) -> &str {
    match row.get(at) {
        Some(Cell::Text(text)) => text,
        _ => "",
    }
}
