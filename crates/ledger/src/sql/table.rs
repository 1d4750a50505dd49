//! What a room registers: the columns of a table, the constraints that it can apply, and a scan.

use std::sync::Arc;

use futures_util::stream::BoxStream;

use super::value::Value;

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// 0 or 1.
    Flag,
    /// Times. Tables deliver Unix milliseconds; queries see RFC 3339 with three decimals in UTC.
    Time,
    /// JSON as text.
    Json,
}

impl ColumnKind {
    /// The type of the column in SQLite, which decides how it compares.
    pub(super) fn declared(self) -> &'static str {
        match self {
            ColumnKind::Text | ColumnKind::Time | ColumnKind::Json => "TEXT",
            ColumnKind::Integer | ColumnKind::Flag => "INTEGER",
            ColumnKind::Real => "REAL",
        }
    }

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Text => "text",
            ColumnKind::Integer => "integer",
            ColumnKind::Real => "real",
            ColumnKind::Flag => "flag",
            ColumnKind::Time => "time",
            ColumnKind::Json => "json",
        }
    }
}

/// Which constraints on a column its table can apply without reading all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushdown {
    /// None.
    No,
    /// [`Test::Equals`].
    Equal,
    /// [`Test::Equals`] and [`Test::Prefix`].
    Prefix,
    /// [`Test::Within`].
    Range,
}

impl Pushdown {
    /// Whether it has the test.
    pub fn takes(self, test: &Test) -> bool {
        match test {
            Test::Equals(_) => matches!(self, Pushdown::Equal | Pushdown::Prefix),
            Test::Prefix(_) => self == Pushdown::Prefix,
            Test::Within { .. } => self == Pushdown::Range,
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// What it has.
    pub kind: ColumnKind,
    /// What its table can apply.
    pub pushdown: Pushdown,
    /// What it means.
    pub doc: &'static str,
}

/// A table.
#[derive(Debug)]
pub struct TableInfo {
    /// Its name, in lowercase letters.
    pub name: &'static str,
    /// What its rows are.
    pub doc: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnInfo],
    /// The columns that tell its rows apart.
    pub key: &'static [&'static str],
    /// The column of times by which its scan delivers rows, newest first, if it does.
    pub newest_first: Option<&'static str>,
}

impl TableInfo {
    /// The column of this name, in any letter case.
    pub fn column(&self, name: &str) -> Option<&'static ColumnInfo> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// A condition on one column that every row in question meets.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The column.
    pub column: &'static str,
    /// What is true of it.
    pub test: Test,
}

/// What is true of a cell. A cell without value meets no test.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// It is this value.
    Equals(Value),
    /// It is a text that begins so.
    Prefix(String),
    /// It is a number, or a time in Unix milliseconds, of this range.
    Within {
        /// The least one.
        from: Option<i64>,
        /// The first one beyond.
        before: Option<i64>,
    },
}

impl Test {
    /// Whether a cell of a table meets it.
    pub fn accepts(&self, cell: &Value) -> bool {
        match (self, cell) {
            (Test::Equals(value), cell) => value == cell && *cell != Value::Null,
            (Test::Prefix(prefix), Value::Text(text)) => text.starts_with(prefix),
            (Test::Within { from, before }, Value::Integer(number)) => {
                from.is_none_or(|from| *number >= from) && before.is_none_or(|before| *number < before)
            }
            _ => false,
        }
    }
}

/// What is read of a table.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The columns to deliver, in this order.
    pub columns: Vec<&'static str>,
    /// Conditions that the table declared it can apply; at most one of each kind for a column. It is free to deliver
    /// rows that do not meet them.
    pub constraints: Vec<Constraint>,
    /// After this many rows that meet all constraints no more are needed.
    pub limit: Option<u64>,
}

impl Scan {
    /// The value that a column is to equal.
    pub fn equals(&self, column: &str) -> Option<&Value> {
        self.tests(column).find_map(|test| match test {
            Test::Equals(value) => Some(value),
            _ => None,
        })
    }

    /// The text that a column is to equal.
    pub fn equals_text(&self, column: &str) -> Option<&str> {
        match self.equals(column)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text that a column is to begin with.
    pub fn prefix(&self, column: &str) -> Option<&str> {
        self.tests(column).find_map(|test| match test {
            Test::Prefix(prefix) => Some(prefix.as_str()),
            _ => None,
        })
    }

    /// The range that a column is to be in: the least value and the first one beyond.
    pub fn range(&self, column: &str) -> (Option<i64>, Option<i64>) {
        let range = self.tests(column).find_map(|test| match test {
            Test::Within { from, before } => Some((*from, *before)),
            _ => None,
        });
        range.unwrap_or_default()
    }

    /// Whether a column is to be delivered.
    pub fn wants(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    fn tests<'a, 'c>(&'a self, column: &'c str) -> impl Iterator<Item = &'a Test> + use<'a, 'c> {
        let of_column = move |constraint: &&Constraint| constraint.column == column;
        self.constraints.iter().filter(of_column).map(|constraint| &constraint.test)
    }
}

/// The cells of [`Scan::columns`].
pub type Row = Vec<Value>;

/// Rows of a table, some at a time. It is dropped as soon as no more rows are needed.
pub type Rows = BoxStream<'static, Result<Vec<Row>, Box<dyn std::error::Error + Send + Sync>>>;

/// A table of a room, as one tenant sees it.
pub trait Table: Send + Sync {
    /// What it has.
    fn info(&self) -> &'static TableInfo;

    /// Reads it: at least the rows that meet all constraints.
    fn scan(&self, scan: Scan) -> Rows;
}

/// The tables that a query may name. Cheap to clone.
#[derive(Clone)]
pub struct Tables(Arc<[Arc<dyn Table>]>);

impl Tables {
    /// These tables.
    pub fn new(tables: impl IntoIterator<Item = Arc<dyn Table>>) -> Self {
        Tables(tables.into_iter().collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Table>> {
        self.0.iter()
    }

    /// The table of this name, in any letter case.
    pub(super) fn find(&self, name: &str) -> Option<&'static TableInfo> {
        self.iter().map(|table| table.info()).find(|info| info.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn get(&self, info: &'static TableInfo) -> Option<&Arc<dyn Table>> {
        self.iter().find(|table| table.info().name == info.name)
    }
}
