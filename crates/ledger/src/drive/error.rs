//! Errors of a driver that cannot go on with a scope.

use segno::store::ProviderError;
use segno_actions::functions::FunctionError;

/// Why a scope could not be driven further. Nothing is lost: the lease expires, and the scope is looked after again.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store refused or did not answer.
    #[error(transparent)]
    Store(#[from] ProviderError),
    /// Calls could not be prepared or read.
    #[error(transparent)]
    Calls(#[from] FunctionError),
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
