//! Queries of runbooks on PostgreSQL.

use async_trait::async_trait;
use segno::store::ErrorKind;
use segno_actions::functions::Secret;
use segno_postgres::QueryLimits;
use segno_runbook::source::{SourceError, SqlLimits, SqlReader, SqlRows};

/// Runs queries on the PostgreSQL database of a URL.
pub struct PostgresReader;

#[async_trait]
impl SqlReader for PostgresReader {
    async fn rows(&self, url: &Secret, query: &str, limits: SqlLimits) -> Result<SqlRows, SourceError> {
        let SqlLimits { timeout, max_rows, max_bytes } = limits;
        let limits = QueryLimits { timeout, max_rows, max_bytes };
        let found = segno_postgres::query(url.expose().trim(), query, limits).await;
        let found = found.map_err(|error| SourceError::Failed {
            kind: "sql",
            message: error.to_string(),
            is_retryable: error.kind() == ErrorKind::Unavailable,
        })?;
        Ok(SqlRows { columns: found.columns, rows: found.rows })
    }
}
