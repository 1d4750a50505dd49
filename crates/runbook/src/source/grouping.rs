//! Which batch a row of a query belongs to.

use jiff::Timestamp;

use segno_actions::document::shown;

use crate::definition::{BatchTime, DataSource};
use crate::members::{Row, parse_batch_time};
use crate::problem::{Position, Problem, Problems};

/// The start of the batch that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStart {
    /// Its column has this time.
    At(Timestamp),
    /// `immediate`: the batch that it is in, else the one that starts now.
    Now,
    /// Its column has no time.
    Unreadable,
}

/// A row and its batch.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedRow {
    /// The row.
    pub row: Row,
    /// Start of its batch.
    pub start: RowStart,
}

/// All rows of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlacedRows {
    /// The rows, in the order of the source.
    pub rows: Vec<PlacedRow>,
    /// Rows whose batch time is none. The others are not held up by them.
    pub unreadable: Problems,
}

/// The start of the batch that a row belongs to. A batch time that is none is noted.
pub fn start_of(row: &Row, source: &DataSource, unreadable: &mut Problems) -> RowStart {
    let BatchTime::Column(column) = &source.batch_time else { return RowStart::Now };
    let text = row.columns.get(column).and_then(|value| value.as_str()).unwrap_or_default();
    parse_batch_time(text).map(RowStart::At).unwrap_or_else(|problem| {
        let path = format!("member {:?}, {column}", shown(&row.key));
        unreadable.push(Problem::warning(Position::of_line(row.line), path, problem));
        RowStart::Unreadable
    })
}

/// Finds the batch of each row. A manual source has no rows.
pub fn place_rows(rows: Vec<Row>, source: &DataSource) -> PlacedRows {
    let mut placed = PlacedRows::default();
    for row in rows {
        let start = start_of(&row, source, &mut placed.unreadable);
        placed.rows.push(PlacedRow { row, start });
    }
    placed
}
