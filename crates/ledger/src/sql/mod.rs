//! Read-only SQL over live tables: predicate pushdown into the rooms' own indexes, evaluation in a temporary SQLite
//! database in memory (ADR 0033).
//!
//! The workspace forbids unsafe code, so SQLite cannot read the tables itself. A query is parsed, each table that it
//! names is fetched with the columns and rows that the query can need, and SQLite evaluates the query over what was
//! fetched.
//!
//! | file | what |
//! |---|---|
//! | `table` | what a room registers: columns, constraints that it can apply, a scan |
//! | `text` | from a text to one parsed query, under budgets |
//! | `check` | which syntax is allowed |
//! | `functions` | which functions are allowed; replacements for those of quadratic cost |
//! | `like` | LIKE and GLOB, which end with the query |
//! | `scope` | which table a column name means |
//! | `constant` | constant expressions, and times in comparisons, as literals |
//! | `conjunct` | from a condition to a constraint on one column |
//! | `plan` | which columns and rows of each table are fetched |
//! | `binding` | values of one table that constrain another one in a join |
//! | `instant` | times as text |
//! | `near` | "did you mean" for columns |
//! | `database` | the sandbox: a SQLite database that can only be read |
//! | `admission` | how many queries run at once, and whose |
//! | `worker` | one query on a thread of its own |
//! | `engine` | the same from outside: fetches pages for the thread |
//! | `parquet` | answers as Parquet files |
//! | `answer` | columns, rows and the report of what was fetched |
//! | `value`, `error`, `limits` | cells, errors, every limit |
//!
//! **Invariant.** Pushdown never changes a result: what is fetched is a superset of what the query can see, and SQLite
//! evaluates every condition again.

mod admission;
mod answer;
mod binding;
mod check;
mod conjunct;
mod constant;
mod database;
mod engine;
mod error;
mod functions;
mod instant;
mod like;
pub mod limits;
mod near;
mod parquet;
mod plan;
mod scope;
mod table;
mod text;
mod value;
mod worker;

pub use answer::{Answer, Fetched};
pub use engine::{Engine, Query};
pub use error::SqlError;
pub use functions::names as function_names;
pub use parquet::{MEDIA_TYPE as PARQUET, to_parquet};
pub use table::{
    ColumnInfo, ColumnKind, Constraint, Pushdown, Row, Rows, Scan, Table, TableInfo, Tables, Test,
};
pub use value::Value;

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod pushdown_tests;
#[cfg(test)]
mod testing;
