//! Why a DAG is refused.

use segno::store::ErrorKind;
use segno_actions::document::Problems;

/// The code of [`InvalidDag`], with a page in `docs/errors/`.
pub const INVALID_DAG: &str = "invalid-dag";

/// A text is not a DAG. All problems are listed, each with its line, column and path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{problems} [{INVALID_DAG}]")]
pub struct InvalidDag {
    /// Errors, of which there is at least one, and warnings.
    pub problems: Problems,
}

impl InvalidDag {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_DAG
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}
