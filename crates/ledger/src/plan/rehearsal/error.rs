//! Why stubs are refused.

use segno::store::ErrorKind;
use segno_actions::document::Problems;

/// The code of [`InvalidStubs`], with a page in `docs/errors/`.
pub const INVALID_STUBS: &str = "invalid-stubs";

/// A text has no stubs. All problems are listed, each with its line, column and path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{problems} [{INVALID_STUBS}]")]
pub struct InvalidStubs {
    /// Errors, of which there is at least one, and warnings.
    pub problems: Problems,
}

impl InvalidStubs {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_STUBS
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}
