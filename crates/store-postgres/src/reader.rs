//! Statements outside the exchange: reads, and the rare changes of the second facet. One connection, pipelined.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use segno::store::ProviderError;
use tokio::sync::Mutex;
use tokio_postgres::Row;

use crate::columns::Parameter;
use crate::connection::{Connection, Connector};
use crate::core::{Core, Counts};
use crate::error::{OpenError, Trouble, failed};

/// How often a statement is tried while connections break.
const MAX_TRIES: usize = 3;

/// Where statements run that are not part of an exchange.
pub(crate) struct Reader {
    connector: Arc<Connector>,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Reader {
    pub(crate) fn new(connector: Arc<Connector>, connection: Connection) -> Self {
        Reader { connector, connection: Mutex::new(Some(Arc::new(connection))) }
    }

    /// A connection for a transaction of its own.
    pub(crate) async fn connect_another(&self) -> Result<Connection, OpenError> {
        self.connector.connect(None).await
    }

    async fn connection(&self, counts: &Counts) -> Result<Arc<Connection>, OpenError> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.client().is_closed()) {
            return Ok(Arc::clone(connection));
        }
        if current.is_some() {
            counts.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        let connection = Arc::new(self.connector.connect(None).await?);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

impl Core {
    /// Rows of a statement that may be repeated: it reads, or does the same when done twice.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.rows_once(operation, sql, parameters).await {
                Err((Trouble::Away | Trouble::Collision, _)) if tries < MAX_TRIES => {}
                Err((_, error)) => return Err(error),
                Ok(rows) => return Ok(rows),
            }
        }
    }

    /// Rows of a statement whose connection must not break, or its outcome is unknown. Collisions are tried again.
    pub(crate) async fn rows_of_change(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.rows_once(operation, sql, parameters).await {
                Err((Trouble::Collision, _)) if tries < MAX_TRIES => {}
                Err((_, error)) => return Err(error),
                Ok(rows) => return Ok(rows),
            }
        }
    }

    async fn rows_once(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, (Trouble, ProviderError)> {
        if self.waiting().is_closed {
            return Err((Trouble::Defect, crate::core::closed(operation)));
        }
        let connection = self.reader.connection(&self.counts).await.map_err(|error| {
            let kind = error.kind();
            (Trouble::Overload, ProviderError::new(kind, operation, error.to_string()))
        })?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        let rows = connection.client().query_typed(sql, parameters).await;
        rows.map_err(|error| (Trouble::of(&error), failed(operation, &error)))
    }
}
