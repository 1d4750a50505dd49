//! What a query returns.

use super::table::{ColumnInfo, Constraint, Test};
use super::value::Value;

/// The answer of a query.
#[derive(Debug)]
pub struct Answer {
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the limits allow.
    pub is_truncated: bool,
    /// What was fetched for it.
    pub fetched: Vec<Fetched>,
    /// Time in which tables were read, in milliseconds.
    pub fetch_ms: u64,
    /// Time in which SQLite evaluated the query, in milliseconds.
    pub evaluate_ms: u64,
}

/// What was fetched of a table.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The table.
    pub table: &'static str,
    /// The names by which the query refers to it.
    pub aliases: Vec<String>,
    /// The columns.
    pub columns: Vec<&'static str>,
    /// Conditions that the table itself applied, and how often it was read with them: `id = 'x'`.
    pub pushed: Vec<String>,
    /// Conditions that were applied to its rows before they were kept.
    pub filtered: Vec<String>,
    /// Whether reading stopped at a limit of the query.
    pub limit: Option<u64>,
    /// How many scans were made.
    pub scans: u64,
    /// Rows that the table delivered.
    pub read_rows: u64,
    /// Their bytes, about.
    pub read_bytes: u64,
    /// Rows that were kept.
    pub kept_rows: u64,
}

/// A condition as people read it.
pub(super) fn shown(column: &ColumnInfo, test: &Test) -> String {
    let name = column.name;
    let edge = |value: &i64| match column.kind {
        super::table::ColumnKind::Time => format!("'{}'", super::instant::text(*value)),
        _ => value.to_string(),
    };
    match test {
        Test::Equals(Value::Text(text)) => format!("{name} = '{}'", text.replace('\'', "''")),
        Test::Equals(Value::Integer(number)) => format!("{name} = {number}"),
        Test::Equals(value) => format!("{name} = {value:?}"),
        Test::Prefix(prefix) => format!("{name} begins with '{}'", prefix.replace('\'', "''")),
        Test::Within { from: Some(from), before: Some(before) } => {
            format!("{name} >= {} and {name} < {}", edge(from), edge(before))
        }
        Test::Within { from: Some(from), before: None } => format!("{name} >= {}", edge(from)),
        Test::Within { from: None, before: Some(before) } => format!("{name} < {}", edge(before)),
        Test::Within { from: None, before: None } => format!("{name} is not null"),
    }
}

/// A constraint as people read it.
pub(super) fn shown_constraint(table: &super::table::TableInfo, constraint: &Constraint) -> String {
    table.column(constraint.column).map_or_else(String::new, |column| shown(column, &constraint.test))
}
