//! Columns and cells: what a table looks like to a file format, without its rows' types.

use std::sync::Arc;

use crate::ids::Ulid;

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

/// A value of a row that has a column of its own.
pub trait Value: Sized {
    /// Its column's physical type.
    const KIND: Kind;
    /// Whether it may be absent.
    const NULLABLE: bool = false;

    /// Its cell.
    fn to_cell(&self) -> Cell;
    /// The value of a cell; the problem if it does not fit.
    fn from_cell(cell: Cell) -> Result<Self, String>;
}

impl Value for Arc<str> {
    const KIND: Kind = Kind::Text;

    fn to_cell(&self) -> Cell {
        Cell::Text(Arc::clone(self))
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Text(text) => Ok(text),
            other => Err(unfit("a text", &other)),
        }
    }
}

impl Value for i64 {
    const KIND: Kind = Kind::Integer;

    fn to_cell(&self) -> Cell {
        Cell::Integer(*self)
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Integer(integer) => Ok(integer),
            other => Err(unfit("an integer", &other)),
        }
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Count;

    fn to_cell(&self) -> Cell {
        Cell::Count(*self)
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Count(count) => Ok(count),
            other => Err(unfit("a count", &other)),
        }
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn to_cell(&self) -> Cell {
        Cell::Flag(*self)
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Flag(flag) => Ok(flag),
            other => Err(unfit("true or false", &other)),
        }
    }
}

impl Value for Ulid {
    const KIND: Kind = Kind::Text;

    fn to_cell(&self) -> Cell {
        Cell::Text(self.to_string().into())
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Text(text) => text.parse().map_err(|error: crate::ids::InvalidUlid| error.to_string()),
            other => Err(unfit("a ULID", &other)),
        }
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;

    fn to_cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Null, T::to_cell)
    }

    fn from_cell(cell: Cell) -> Result<Self, String> {
        match cell {
            Cell::Null => Ok(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

/// What was expected and what is there.
fn unfit(expected: &str, cell: &Cell) -> String {
    let found = match cell {
        Cell::Null => "nothing",
        Cell::Text(_) => "a text",
        Cell::Integer(_) => "an integer",
        Cell::Count(_) => "a count",
        Cell::Flag(_) => "true or false",
    };
    format!("{expected} is expected, and {found} is stored")
}
