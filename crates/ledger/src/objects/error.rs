//! How calls to an object store fail, by what the caller can do about it.

use segno::store::ErrorKind;

use crate::columnar::Damaged;

/// A call to an object store failed, or what it returned cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct StorageError {
    kind: ErrorKind,
    path: String,
    problem: String,
}

impl StorageError {
    /// An error about an object.
    pub fn new(kind: ErrorKind, path: impl ToString, problem: impl ToString) -> Self {
        StorageError { kind, path: path.to_string(), problem: problem.to_string() }
    }

    /// What is stored cannot be read.
    pub fn corrupt(path: impl ToString, problem: impl ToString) -> Self {
        StorageError::new(ErrorKind::Corrupt, path, problem)
    }

    /// The error of a file of a table.
    pub fn damaged(path: impl ToString, damaged: &Damaged) -> Self {
        StorageError::corrupt(path, damaged)
    }

    /// What the caller can do. `LockLost`: another compactor has taken over; stop. `Unavailable`:
    /// try again. `Corrupt`: the object has to be repaired from a backup, or the tables rebuilt
    /// from the log.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
