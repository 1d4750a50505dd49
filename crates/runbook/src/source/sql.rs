//! The interface to databases. The node supplies the implementation.

use std::time::Duration;

use async_trait::async_trait;
use segno_actions::functions::Secret;

use super::error::SourceError;

/// How much a query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlLimits {
    /// Longest time in all.
    pub timeout: Duration,
    /// Most rows.
    pub max_rows: usize,
    /// Most bytes of all values.
    pub max_bytes: usize,
}

/// What a query returned, every value as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SqlRows {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// The rows; each has a value for every column, `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Runs queries on databases.
#[async_trait]
pub trait SqlReader: Send + Sync + 'static {
    /// Runs one query, read-only.
    ///
    /// # Errors
    /// When the database cannot be reached or refuses, and when a limit is reached.
    async fn rows(&self, url: &Secret, query: &str, limits: SqlLimits) -> Result<SqlRows, SourceError>;
}
