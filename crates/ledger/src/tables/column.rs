//! Columns and cells: what a table looks like to a file format, without its rows' types.

use std::sync::Arc;

/// The physical type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Signed, 64 bits; times are milliseconds since 1970.
    Integer,
    /// Unsigned, 32 bits.
    Count,
    /// True or false.
    Flag,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the file.
    pub name: &'static str,
    /// Its physical type.
    pub kind: Kind,
    /// Whether cells may be [`Cell::Null`].
    pub nullable: bool,
}

/// One value of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// Of [`Kind::Text`].
    Text(Arc<str>),
    /// Of [`Kind::Integer`].
    Integer(i64),
    /// Of [`Kind::Count`].
    Count(u32),
    /// Of [`Kind::Flag`].
    Flag(bool),
}

/// A cell that does not fit its column: the file is not one of ours, or it is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct UnexpectedCell {
    /// The name of the column.
    pub column: &'static str,
    /// What is wrong with it.
    pub problem: String,
}
