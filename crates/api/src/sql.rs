//! Read-only SQL over live tables.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SqlQuery {
    /// One SELECT, or WITH … SELECT, in SQLite's dialect. Give either this or `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "SELECT status, count(*) FROM instances GROUP BY status", max_length = 65536)]
    pub query: Option<String>,
    /// Name of a shipped query; `GET /v1/sql` lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "slowest-functions")]
    pub shipped: Option<String>,
    /// Most rows of the answer; 1000 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100000)]
    pub max_rows: Option<usize>,
    /// Time that the query may take, with its wait for a place; 10 seconds without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 30)]
    pub timeout_seconds: Option<u64>,
    /// Form of the answer; without it the one that the header `Accept` names, else JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<SqlFormat>,
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SqlFormat {
    /// An object with columns, rows and what was fetched.
    Json,
    /// Lines of comma-separated values, the first with the names of the columns. The header `segno-truncated: true` says
    /// that there are more rows.
    Csv,
    /// A Parquet file, with the same header. Columns have whole numbers, numbers or texts.
    Parquet,
}

/// The answer of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlAnswer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows: texts, numbers and nulls, one for each column.
    pub rows: Vec<Vec<Json>>,
    /// Whether there are more rows than the limits allow.
    pub truncated: bool,
    /// What was fetched of each table.
    pub fetched: Vec<SqlFetched>,
    /// Time in which tables were read, in milliseconds.
    pub fetch_ms: u64,
    /// Time in which the query was evaluated over what was fetched, in milliseconds.
    pub evaluate_ms: u64,
}

/// What was fetched of a table for a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlFetched {
    /// The table.
    pub table: String,
    /// The names by which the query refers to it.
    pub aliases: Vec<String>,
    /// The columns that were read.
    pub columns: Vec<String>,
    /// Conditions that the table applied itself: other rows were not read.
    pub pushed: Vec<String>,
    /// Conditions that were applied to rows as they were read.
    pub filtered: Vec<String>,
    /// After so many rows reading stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How often the table was read.
    pub scans: u64,
    /// Rows that were read.
    pub read_rows: u64,
    /// Their bytes, about.
    pub read_bytes: u64,
    /// Rows that were kept for the evaluation.
    pub kept_rows: u64,
}

/// What queries may name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlCatalogue {
    /// The tables.
    pub tables: Vec<SqlTable>,
    /// Functions that queries may call.
    pub functions: Vec<String>,
    /// Shipped queries.
    pub shipped: Vec<SqlShipped>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlTable {
    /// Its name.
    pub name: String,
    /// What its rows are.
    pub description: String,
    /// Its columns.
    pub columns: Vec<SqlColumn>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlColumn {
    /// Its name.
    pub name: String,
    /// `text`, `integer`, `real`, `flag` (0 or 1), `time` (RFC 3339 with three decimals in UTC) or `json` (as text).
    #[serde(rename = "type")]
    pub kind: String,
    /// What it means.
    pub description: String,
    /// Conditions that the table applies without reading other rows: `=`, `prefix` or `range`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pushed: Vec<String>,
}

/// A shipped query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlShipped {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub description: String,
    /// The query.
    pub query: String,
}
