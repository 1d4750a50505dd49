//! The kinds of rows that are archived: columns, keys, and the order of rows in a file.

use std::cmp::Ordering;

use super::actions::ActionRow;
use super::audit::AuditRow;
use super::batches::{BatchRow, MemberRow, PhaseRow, StepRow};
use super::events::EventRow;
use super::instances::InstanceRow;
use super::occurrences::OccurrenceRow;
use super::row::ArchivedRow;
use crate::columnar::Layout;
use crate::manifest::sha256;
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
    /// What its ids are ids of.
    pub group: Group,
}

/// What ids are ids of. Rows of a group are kept equally long, and erased together by their id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Instances.
    Instances,
    /// Actions.
    Actions,
    /// Recurring actions.
    Recurring,
    /// Entries of the audit log.
    Audit,
    /// Batches of runbooks.
    Batches,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 5] =
        [Group::Instances, Group::Actions, Group::Recurring, Group::Audit, Group::Batches];

    /// Its name, as in paths of the API and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Group::Instances => "instances",
            Group::Actions => "actions",
            Group::Recurring => "recurring",
            Group::Audit => "audit",
            Group::Batches => "batches",
        }
    }

    /// The digest under which an id of the group is erased. Ids have no control characters, so groups do not meet.
    pub(super) fn digest(self, id: &str) -> String {
        match self {
            Group::Instances => sha256(id.as_bytes()),
            group => sha256(format!("{}\0{id}", group.name()).as_bytes()),
        }
    }
}

/// Instances.
pub static INSTANCES: Kind = Kind {
    name: "instances",
    columns: InstanceRow::COLUMNS,
    key: &["id", "incarnation"],
    group: Group::Instances,
};

/// Events of instances.
pub static EVENTS: Kind = Kind {
    name: "events",
    columns: EventRow::COLUMNS,
    key: &["id", "incarnation", "execution", "event_id"],
    group: Group::Instances,
};

/// Actions.
pub static ACTIONS: Kind =
    Kind { name: "actions", columns: ActionRow::COLUMNS, key: &["id", "incarnation"], group: Group::Actions };

/// What became of occurrences of recurring actions.
pub static RECURRING_HISTORY: Kind = Kind {
    name: "recurring_history",
    columns: OccurrenceRow::COLUMNS,
    key: &["id", "incarnation"],
    group: Group::Recurring,
};

/// Entries of the audit log.
pub static AUDIT: Kind =
    Kind { name: "audit", columns: AuditRow::COLUMNS, key: &["id", "incarnation"], group: Group::Audit };

/// Batches of runbooks.
pub static BATCHES: Kind =
    Kind { name: "batches", columns: BatchRow::COLUMNS, key: &["id", "incarnation"], group: Group::Batches };

/// Phases of batches.
pub static PHASES: Kind = Kind {
    name: "phases",
    columns: PhaseRow::COLUMNS,
    key: &["id", "incarnation", "phase"],
    group: Group::Batches,
};

/// Members of batches.
pub static MEMBERS: Kind = Kind {
    name: "members",
    columns: MemberRow::COLUMNS,
    key: &["id", "incarnation", "member"],
    group: Group::Batches,
};

/// Steps of members of batches, and init steps.
pub static STEPS: Kind = Kind {
    name: "steps",
    columns: StepRow::COLUMNS,
    key: &["id", "incarnation", "kind", "step"],
    group: Group::Batches,
};

/// All kinds, in the order in which a batch is written: what a row refers to is there before it.
pub static KINDS: [&Kind; 9] =
    [&EVENTS, &INSTANCES, &ACTIONS, &RECURRING_HISTORY, &AUDIT, &STEPS, &MEMBERS, &PHASES, &BATCHES];

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
