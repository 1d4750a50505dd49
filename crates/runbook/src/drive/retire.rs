//! Batches that have expired go to an archive before they are deleted.

use async_trait::async_trait;
use segno_actions::functions::Scope;

use crate::rows::BatchRow;

/// Where batches go before they are deleted.
#[async_trait]
pub trait BatchArchive: Send + Sync + 'static {
    /// Stores a batch with all its rows, durably when it returns. The same batch comes again when a
    /// node ends before it is deleted, and with a greater revision when it was changed meanwhile.
    ///
    /// # Errors
    /// When a row may not be durable. The batch is not deleted then.
    async fn store(&self, batch: ExpiredBatch<'_>) -> Result<(), BatchArchiveError>;
}

/// A batch whose time is over. Its other rows are in the store.
#[derive(Debug, Clone, Copy)]
pub struct ExpiredBatch<'a> {
    /// Whose it is.
    pub scope: &'a Scope,
    /// Its own row.
    pub row: &'a BatchRow,
    /// Grows when the batch is changed.
    pub revision: u64,
}

/// Why a batch is not archived.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BatchArchiveError {
    /// A row of it cannot be read, so it stays in the store.
    #[error("a row of it cannot be read: {0}")]
    Unreadable(String),
    /// The archive, or the store, does not work now.
    #[error("{0}")]
    Unavailable(String),
}
