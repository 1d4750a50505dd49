//! Errors of a driver that cannot go on with a scope.

use segno::store::{ErrorKind, ProviderError};
use segno_actions::functions::FunctionError;

use super::failure::LedgerError;
use crate::objects::StorageError;

/// Why a scope could not be driven further. Nothing is lost: the lease expires, and the scope is looked after again.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store refused or did not answer.
    #[error(transparent)]
    Store(#[from] ProviderError),
    /// Calls could not be prepared or read.
    #[error(transparent)]
    Calls(#[from] FunctionError),
    /// The object store refused or did not answer.
    #[error(transparent)]
    Storage(StorageError),
    /// What a decision needs cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Another node holds the scope now.
    #[error("the lease of the scope was lost to another node")]
    LeaseLost,
    /// A stored record cannot be read.
    #[error("record {id} of {kind} cannot be read: {problem}")]
    Unreadable {
        /// Kind of the record.
        kind: &'static str,
        /// Id of the record.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl From<StorageError> for DriveError {
    fn from(error: StorageError) -> Self {
        // A compactor of a higher epoch has taken over.
        if error.kind() == ErrorKind::LockLost { DriveError::LeaseLost } else { DriveError::Storage(error) }
    }
}
