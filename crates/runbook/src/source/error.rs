//! Why a query of a data source has no rows.

use segno::Failure;
use segno::store::ErrorKind;

use crate::members::{INVALID_MEMBERS, InvalidMembers};

/// The code of a query that failed, with a page in `docs/errors/`.
pub const SOURCE_FAILED: &str = "source-failed";

/// Why a query of a data source has no rows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The source did not answer, or refused.
    #[error("the {kind} source failed: {message} [{SOURCE_FAILED}]")]
    Failed {
        /// Type of the source, as in the runbook.
        kind: &'static str,
        /// What it said.
        message: String,
        /// Whether the same query may succeed later.
        is_retryable: bool,
    },
    /// It answered with rows that cannot be members.
    #[error(transparent)]
    Members(#[from] InvalidMembers),
}

impl SourceError {
    pub(super) fn failure(kind: &'static str, failure: &Failure) -> Self {
        SourceError::Failed { kind, message: failure.message.clone(), is_retryable: failure.retryable }
    }

    pub(crate) fn wrong(kind: &'static str, message: impl Into<String>) -> Self {
        SourceError::Failed { kind, message: message.into(), is_retryable: false }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            SourceError::Failed { .. } => SOURCE_FAILED,
            SourceError::Members(_) => INVALID_MEMBERS,
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SourceError::Failed { is_retryable: true, .. } => ErrorKind::Unavailable,
            SourceError::Failed { .. } | SourceError::Members(_) => ErrorKind::Invalid,
        }
    }
}
