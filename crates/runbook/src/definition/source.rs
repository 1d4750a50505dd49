//! Where the members of a runbook's batches come from.

use std::collections::BTreeMap;

use segno_actions::functions::{SecretReference, SettingValue};
use serde_json::Value;

/// The source of members: a query that runs every `interval_sec`, or manual batches.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSource {
    /// What is queried.
    pub kind: SourceKind,
    /// Column with the member's key; keys are compared case-insensitively.
    pub primary_key: String,
    /// Which batch a row belongs to.
    pub batch_time: BatchTime,
    /// Columns that hold several values in one text.
    pub multi_valued_columns: Vec<MultiValued>,
    /// Seconds between two queries.
    pub interval_sec: u64,
    /// Percentage of a batch's members that one query may remove without approval.
    pub max_removed_percent: u8,
}

impl DataSource {
    /// The format of a column, if it holds several values.
    pub fn multi_valued(&self, column: &str) -> Option<MultiValuedFormat> {
        self.multi_valued_columns.iter().find(|multi| multi.name == column).map(|multi| multi.format)
    }
}

/// What is queried.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceKind {
    /// A query of PostgreSQL.
    Sql {
        /// Secret with the connection URL.
        connection: SecretReference,
        /// The query, run read-only.
        query: String,
    },
    /// Comma-separated values in a file or at an address.
    Csv {
        /// Absolute path, or an `https:` or `http:` URL.
        location: String,
    },
    /// An address that returns rows as JSON, possibly in pages.
    Http {
        /// The URL.
        url: String,
        /// Headers of the request; values may be secrets.
        headers: BTreeMap<String, SettingValue>,
        /// JSON pointer to the array of rows in the answer; `None` if the answer is the array.
        rows: Option<String>,
        /// JSON pointer to the URL of the next page in the answer; `None` if there is one page.
        next_page: Option<String>,
    },
    /// A function that returns an array of rows.
    Function {
        /// Name of the function.
        function: String,
        /// Its input.
        input: Value,
    },
    /// None: batches are created by hand from CSV files.
    Manual,
}

impl SourceKind {
    /// Whether the rows are the result of a call.
    pub fn is_called(&self) -> bool {
        matches!(self, SourceKind::Function { .. })
    }

    /// Name of the type, as in the runbook.
    pub fn name(&self) -> &'static str {
        match self {
            SourceKind::Sql { .. } => "sql",
            SourceKind::Csv { .. } => "csv",
            SourceKind::Http { .. } => "http",
            SourceKind::Function { .. } => "function",
            SourceKind::Manual => "manual",
        }
    }
}

/// Which batch a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchTime {
    /// The column has the start of the batch.
    Column(String),
    /// New rows form a batch that starts now, floored to five minutes.
    Immediate,
    /// The caller that creates a batch sets its start, or advances it phase by phase.
    Manual,
}

/// A column that holds several values in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultiValued {
    /// Name of the column.
    pub name: String,
    /// How the values are separated.
    pub format: MultiValuedFormat,
}

/// How several values are separated in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiValuedFormat {
    /// `a;b`
    SemicolonDelimited,
    /// `a,b`
    CommaDelimited,
    /// `["a","b"]`
    JsonArray,
}
