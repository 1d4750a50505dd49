//! Why a partition key, a range or a definition is refused.

use segno::store::ErrorKind;

/// The code of [`PartitionError`], with a page in `docs/errors/`.
pub const INVALID_PARTITION: &str = "invalid-partition";

/// A key, range or definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} [{INVALID_PARTITION}]")]
pub struct PartitionError {
    problem: String,
}

impl PartitionError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        PartitionError { problem: problem.into() }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_PARTITION
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// What is wrong, with the value and what to write instead.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}
