//! Which rows belong to which batch.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::definition::DataSource;
use crate::members::{BatchStart, Row};
use crate::names::MEMBER_KEY;
use crate::problem::{Position, Problem, Problems};

/// Rows by the start of their batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grouped {
    /// The batches, earliest first, with their rows in the order of the source.
    pub batches: BTreeMap<Timestamp, Vec<Row>>,
    /// Rows that belong to no batch because their batch time is none. The others are not held up by them.
    pub skipped: Problems,
}

/// Groups rows by the start of their batch. Rows of a manual source belong to none and are left out.
pub fn group_by_start(rows: Vec<Row>, source: &DataSource, now: Timestamp) -> Grouped {
    let mut grouped = Grouped::default();
    for row in rows {
        match BatchStart::of_row(&row, source, now) {
            Ok(BatchStart::At(start)) => grouped.batches.entry(start).or_default().push(row),
            Ok(BatchStart::ByHand) => {}
            Err(problem) => {
                let path = format!("{MEMBER_KEY} {:?}", row.key);
                grouped.skipped.push(Problem::warning(Position::of_line(row.line), path, problem));
            }
        }
    }
    grouped
}
