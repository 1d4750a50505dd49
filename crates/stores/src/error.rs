//! What can go wrong with a whole store, in terms of what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

use segno::store::{ErrorKind, ProviderError};
use segno_embedded::OpenError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A store URL that names no store.
    #[error("{0}")]
    Url(String),
    /// There is nothing at that place.
    #[error("{0}")]
    NotFound(String),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store refused.
    #[error("{}", .0.message())]
    Store(#[from] ProviderError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there already.
    #[error("{} is there already; remove it, choose another name, or pass --overwrite", .0.display())]
    Exists(PathBuf),
    /// The file is no backup.
    #[error("{} is not a Segno backup", .0.display())]
    NotABackup(PathBuf),
    /// The file is a backup of a format that this build does not know.
    #[error("{} has backup format {found}, this build reads up to {}; use a newer build", path.display(), crate::FORMAT_VERSION)]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
    },
    /// The file is cut or damaged.
    #[error("{} is damaged: {what}; use another backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// The ledger of a store could not be read or written.
    #[error("ledger: {problem}")]
    Ledger {
        /// What the caller can do.
        kind: ErrorKind,
        /// What is wrong, and where.
        problem: String,
    },
    /// What was written is not what was read.
    #[error(
        "what was read back from {target} is not what was written to it; nothing counts as stored, check the disk"
    )]
    Mismatch {
        /// The store or file.
        target: String,
    },
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Url(_) | Error::NotABackup(_) | Error::UnknownFormat { .. } => ErrorKind::Invalid,
            Error::NotFound(_) => ErrorKind::NotFound,
            Error::Open(error) => error.kind(),
            Error::Store(error) => error.kind(),
            Error::Ledger { kind, .. } => *kind,
            Error::File { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorKind::NotFound,
            Error::File { .. } => ErrorKind::Unavailable,
            Error::Exists(_) => ErrorKind::Conflict,
            Error::Damaged { .. } | Error::Mismatch { .. } => ErrorKind::Corrupt,
        }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }
}
