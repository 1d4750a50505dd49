//! User queries on a database that is not the store's: one statement, read-only, with limits on
//! time, rows and bytes. Every value is returned as text.
//!
//! The query becomes a cursor in a read-only transaction. The extended protocol prepares a single
//! statement only, so a query cannot commit the transaction and begin another. Rows are fetched by
//! the simple protocol, which sends every type as text.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use segno::clock::{SystemClock, timeout};
use segno::store::ErrorKind;
use tokio::runtime::Handle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::connection::{Canceller, Connector};
use crate::error::{OpenError, describe};
use crate::options::PostgresOptions;

/// Rows that are fetched at a time.
const ROWS_PER_FETCH: usize = 1_000;

/// Longest time for the request that cancels a query.
const CANCEL_WITHIN: Duration = Duration::from_secs(5);

/// How much a query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Longest time in all, the connection included.
    pub timeout: Duration,
    /// Most rows.
    pub max_rows: usize,
    /// Most bytes of all values.
    pub max_bytes: usize,
}

/// What a query returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryRows {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// The rows; each has a value for every column, `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Why a query has no rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No connection could be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The connection was lost while the query ran.
    #[error("the connection to the database was lost: {0}")]
    Lost(String),
    /// The database refused the query.
    #[error("the database refused the query: {0}")]
    Refused(String),
    /// It took too long.
    #[error("the query took longer than the limit of {0:?}")]
    TooSlow(Duration),
    /// It returned too many rows.
    #[error("the query returned more rows than the limit of {0}")]
    TooManyRows(usize),
    /// It returned too many bytes.
    #[error("the query returned more bytes than the limit of {0}")]
    TooLarge(usize),
}

impl QueryError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            QueryError::Open(error) => error.kind(),
            QueryError::Lost(_) | QueryError::TooSlow(_) => ErrorKind::Unavailable,
            QueryError::Refused(_) | QueryError::TooManyRows(_) | QueryError::TooLarge(_) => {
                ErrorKind::Invalid
            }
        }
    }
}

impl From<tokio_postgres::Error> for QueryError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = describe(&error);
        if error.as_db_error().is_some() { QueryError::Refused(text) } else { QueryError::Lost(text) }
    }
}

/// Runs a query on the database of a URL. A standby will do.
///
/// # Errors
/// When the database cannot be reached or refuses, and when a limit is reached; nothing is returned in part.
pub async fn query(url: &str, query: &str, limits: QueryLimits) -> Result<QueryRows, QueryError> {
    let mut options = PostgresOptions::from_url(url)?.statement_timeout(limits.timeout);
    for server in &mut options.servers {
        server.target_session_attrs(TargetSessionAttrs::Any);
    }
    let work = async {
        let connector = Connector::for_statements(&options)?;
        let connection = connector.connect(None).await?;
        let mut under_way = UnderWay { cancel: Some(connector.canceller(&connection)) };
        let rows = read(connection.client(), query, limits).await;
        under_way.cancel = None;
        rows
    };
    timeout(&SystemClock, limits.timeout, work).await.unwrap_or(Err(QueryError::TooSlow(limits.timeout)))
}

/// A query that is cancelled if it is dropped before its end. A database does not look whether its
/// client is still there while a query runs.
struct UnderWay {
    cancel: Option<Canceller>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let (Some(cancel), Ok(runtime)) = (self.cancel.take(), Handle::try_current()) {
            runtime.spawn(async move {
                // What cannot be cancelled ends by its own statement_timeout.
                timeout(&SystemClock, CANCEL_WITHIN, cancel.cancel()).await;
            });
        }
    }
}

async fn read(client: &Client, query: &str, limits: QueryLimits) -> Result<QueryRows, QueryError> {
    let timeout_ms = limits.timeout.as_millis();
    client.batch_execute(&format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {timeout_ms}")).await?;
    let query = query.trim_end().trim_end_matches(';');
    // A comment at the end of the query ends with the line.
    let cursor = client.prepare(&format!("DECLARE source NO SCROLL CURSOR FOR {query}\n")).await?;
    client.execute(&cursor, &[]).await?;
    let mut found = RowBuffer { rows: QueryRows::default(), bytes: 0, limits };
    loop {
        let before = found.rows.rows.len();
        let fetched = client.simple_query_raw(&format!("FETCH {ROWS_PER_FETCH} FROM source")).await?;
        let mut fetched = pin!(fetched);
        while let Some(message) = fetched.try_next().await? {
            found.take(message)?;
        }
        if found.rows.rows.len() < before + ROWS_PER_FETCH {
            return Ok(found.rows);
        }
    }
}

/// Rows received so far, checked against the limits.
struct RowBuffer {
    rows: QueryRows,
    bytes: usize,
    limits: QueryLimits,
}

impl RowBuffer {
    fn take(&mut self, message: SimpleQueryMessage) -> Result<(), QueryError> {
        match message {
            SimpleQueryMessage::RowDescription(columns) if self.rows.columns.is_empty() => {
                self.rows.columns = columns.iter().map(|column| column.name().to_owned()).collect();
            }
            SimpleQueryMessage::Row(row) => {
                let values: Vec<Option<String>> =
                    (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect();
                self.bytes += values.iter().flatten().map(String::len).sum::<usize>();
                self.rows.rows.push(values);
                if self.rows.rows.len() > self.limits.max_rows {
                    return Err(QueryError::TooManyRows(self.limits.max_rows));
                }
                if self.bytes > self.limits.max_bytes {
                    return Err(QueryError::TooLarge(self.limits.max_bytes));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
