//! Read-only SQL.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::sql::{SqlAnswer, SqlCatalogue, SqlQuery};

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

    /// Tables with their columns, functions and shipped queries.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn sql_catalogue(&self) -> Result<SqlCatalogue, ClientError> {
        self.get(&["v1", "sql"]).await
    }
}
