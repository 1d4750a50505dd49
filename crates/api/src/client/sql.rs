//! Read-only SQL.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::sql::{SqlAnswer, SqlCatalogue, SqlFormat, SqlQuery};

/// Longest time until an answer begins: beyond the longest time that a query may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

impl Client {
    /// Runs a query.
    ///
    /// # Errors
    /// `sql-refused`, `sql-failed`, `sql-too-large`, `sql-timeout`.
    pub async fn sql(&self, query: &SqlQuery) -> Result<SqlAnswer, ClientError> {
        let call = self.request(Method::POST, &["v1", "sql"], Duration::ZERO).timeout(ANSWER_TIMEOUT);
        self.read(call.json(query)).await
    }

    /// Runs a query whose answer is a Parquet file: its bytes, and whether there are more rows.
    ///
    /// # Errors
    /// As [`Client::sql`].
    pub async fn sql_parquet(&self, query: &SqlQuery) -> Result<(Vec<u8>, bool), ClientError> {
        let query = SqlQuery { format: Some(SqlFormat::Parquet), ..query.clone() };
        let call = self.request(Method::POST, &["v1", "sql"], Duration::ZERO).timeout(ANSWER_TIMEOUT);
        let answer = self.open(call.json(&query)).await?;
        let is_truncated = answer.headers().get("segno-truncated").is_some_and(|value| value == "true");
        let bytes = answer.bytes().await.map_err(ClientError::Unreachable)?;
        Ok((bytes.to_vec(), is_truncated))
    }

    /// Tables with their columns, functions and shipped queries.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn sql_catalogue(&self) -> Result<SqlCatalogue, ClientError> {
        self.get(&["v1", "sql"]).await
    }
}
