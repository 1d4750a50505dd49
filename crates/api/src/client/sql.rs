//! Read-only SQL.

use super::{Client, ClientError};
use crate::sql::{SqlAnswer, SqlCatalogue, SqlQuery};

impl Client {
    /// Runs a query.
    ///
    /// # Errors
    /// `sql-refused`, `sql-failed`, `sql-too-large`, `sql-timeout`.
    pub async fn sql(&self, query: &SqlQuery) -> Result<SqlAnswer, ClientError> {
        self.post(&["v1", "sql"], query).await
    }

    /// Tables with their columns, functions and shipped queries.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn sql_catalogue(&self) -> Result<SqlCatalogue, ClientError> {
        self.get(&["v1", "sql"]).await
    }
}
