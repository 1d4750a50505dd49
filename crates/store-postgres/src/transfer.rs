//! The fourth facet: giving out and taking in everything, each over a connection of its own.

use async_trait::async_trait;
use segno::store::{ContentHeader, ErrorKind, Export, Import, ProviderError, Transfer};

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::failed;
use crate::export::{Content, OwnExport};
use crate::import::OwnImport;
use crate::number::unsigned;
use crate::{export, import};

impl PostgresStore {
    /// A connection in a transaction that may take its time.
    async fn transaction(&self, operation: &'static str, begin: &str) -> Result<Connection, ProviderError> {
        if self.core().waiting().is_closed {
            return Err(crate::core::closed(operation));
        }
        let connected = self.core().reader.connect_another().await;
        let connection =
            connected.map_err(|error| ProviderError::new(error.kind(), operation, error.to_string()))?;
        let sql = format!(
            "{begin}; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
        );
        connection.client().batch_execute(&sql).await.map_err(|error| failed(operation, &error))?;
        Ok(connection)
    }
}

#[async_trait]
impl Transfer for PostgresStore {
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let connection = self.transaction(export::OPERATION, begin).await?;
        let schema = self.core().schema();
        // The first statement takes the snapshot; the numbers are at least as high as what it sees.
        let last = |sequence: &str| {
            format!("(SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM {schema}.{sequence} s)")
        };
        let sql = format!(
            "SELECT {schema}.now_ms(), {}, {}, {}",
            last("message_id"),
            last("activity_id"),
            last("record_version")
        );
        let row = connection.client().query_typed_one(&sql, &[]).await;
        let row = row.map_err(|error| failed(export::OPERATION, &error))?;
        let number = |place: usize| row.try_get::<_, i64>(place).map(unsigned);
        let numbers = (|| Ok::<_, tokio_postgres::Error>((number(0)?, number(1)?, number(2)?, number(3)?)))();
        let (taken_at_ms, last_message_id, last_work_item_id, last_record_version) = numbers
            .map_err(|error| ProviderError::new(ErrorKind::Corrupt, export::OPERATION, error.to_string()))?;
        let header = ContentHeader { taken_at_ms, last_message_id, last_work_item_id, last_record_version };
        let content = Content::open(&connection, schema, header).await?;
        Ok(Box::new(OwnExport { connection, content }))
    }

    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError> {
        let connection = self.transaction(import::OPERATION, "BEGIN").await?;
        Ok(Box::new(OwnImport::begin(self, connection).await?))
    }
}
