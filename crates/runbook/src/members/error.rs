//! Why rows of members are refused.

use segno::store::ErrorKind;

use crate::problem::Problems;

/// The code of [`InvalidMembers`], with a page in `docs/errors/`.
pub const INVALID_MEMBERS: &str = "invalid-members";

/// Rows cannot be used as members. All problems are listed, each with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problems} [{INVALID_MEMBERS}]")]
pub struct InvalidMembers {
    /// What is wrong.
    pub problems: Problems,
}

impl InvalidMembers {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_MEMBERS
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}
