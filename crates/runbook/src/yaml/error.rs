//! Why a runbook is refused.

use segno::store::ErrorKind;

use crate::definition::DataSource;
use crate::problem::Problems;

/// The code of [`InvalidRunbook`], with a page in `docs/errors/`.
pub const INVALID_RUNBOOK: &str = "invalid-runbook";

/// A text is not a runbook. All problems are listed, each with its line, column and path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{problems} [{INVALID_RUNBOOK}]")]
pub struct InvalidRunbook {
    /// Errors, of which there is at least one, and warnings.
    pub problems: Problems,
    /// The data source, if the errors are elsewhere: rows can be checked all the same.
    pub data_source: Option<Box<DataSource>>,
}

impl InvalidRunbook {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_RUNBOOK
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}
