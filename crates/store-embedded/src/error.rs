//! Why a store could not be opened, and what can go wrong below an operation.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use segno::store::{ErrorKind, ProviderError};

use crate::disk::directory::without_path;
use crate::operate::fill_marker::FilledBy;
use crate::rows::codec::Undecodable;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory open.
    #[error("{0}")]
    InUse(String),
    /// The files contradict themselves. Nothing was changed; restore a backup, or save what can be read with
    /// [`salvage`](crate::salvage).
    #[error(
        "the store is damaged: {0}; nothing was changed: restore a backup, or save what can be read with `segno store salvage`"
    )]
    Corrupt(String),
    /// The files are of a format that this build does not know.
    #[error("the store has format version {found}, this build reads {known}; use a newer build")]
    UnknownFormat {
        /// Version in the file.
        found: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// A command that was filling the directory was interrupted, so what it holds is not whole.
    #[error(
        "the store is not whole: {} was interrupted; run the same command again, or remove the directory [store-unfinished]",
        by.map_or("filling it".to_owned(), |by| format!("{by} into it"))
    )]
    Unfinished {
        /// What was interrupted, if that is known.
        by: Option<FilledBy>,
    },
    /// What is to be made would be in a directory that has something in it already.
    #[error("the directory for the store is not empty: it has {file}; name a new directory or an empty one")]
    NotEmpty {
        /// One of the files that it has.
        file: String,
    },
    /// The disk refused the copy that a compaction makes.
    #[error("the store could not be compacted: {0}; nothing was changed")]
    NotCompacted(String),
    /// The disk refused.
    #[error("the store could not be opened: {}", advised(.0))]
    Io(#[from] io::Error),
}

/// What the disk refused, and what to do about it.
pub(crate) fn advised(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{error}; make room on the disk, then try again")
        }
        io::ErrorKind::FileTooLarge => {
            format!("{error}; raise the limit of file sizes (`ulimit -f`, or LimitFSIZE= of the service)")
        }
        _ => error.to_string(),
    }
}

impl OpenError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            OpenError::InUse(_) | OpenError::NotEmpty { .. } => ErrorKind::Conflict,
            OpenError::Corrupt(_) => ErrorKind::Corrupt,
            OpenError::UnknownFormat { .. } | OpenError::Unfinished { .. } => ErrorKind::Invalid,
            OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound => ErrorKind::NotFound,
            OpenError::Io(_) | OpenError::NotCompacted(_) => ErrorKind::Unavailable,
        }
    }
}

impl OpenError {
    /// The same error with the directory that it is about. What the disk refuses names its file already.
    pub(crate) fn in_directory(self, path: &Path) -> Self {
        match self {
            OpenError::Corrupt(what) => OpenError::Corrupt(format!("{}: {what}", path.display())),
            OpenError::NotEmpty { file } => {
                OpenError::NotEmpty { file: path.join(file).display().to_string() }
            }
            OpenError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                OpenError::denied(path, &error)
            }
            other => other,
        }
    }

    /// The error of a directory whose files this user may not use.
    pub fn denied(path: &Path, error: &io::Error) -> Self {
        let place = path.display();
        let advice = match std::fs::metadata(path) {
            Ok(metadata) => {
                let owner = metadata.uid();
                format!(
                    "{place} belongs to the user with the id {owner}; run the command as that user, or give the files to yours"
                )
            }
            Err(_) => format!("run the command as the user that owns {place}"),
        };
        OpenError::Io(io::Error::new(io::ErrorKind::PermissionDenied, format!("{error}; {advice}")))
    }

    /// The error of a store operation that met this one.
    pub(crate) fn at(&self, operation: &'static str) -> ProviderError {
        ProviderError::new(self.kind(), operation, self.to_string())
    }

    /// Why a directory's lock was not to be had.
    pub(crate) fn of_lock(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse(error.to_string()),
            _ => OpenError::Io(error),
        }
    }
}

impl From<RowError> for OpenError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::Corrupt(what) => OpenError::Corrupt(what),
            RowError::Unreadable(what) | RowError::NotDurable(what) => OpenError::Io(io::Error::other(what)),
        }
    }
}

/// Whether a read failed because of what is in the file, so that the next one fails too.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// What can go wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowError {
    /// It does not decode or fails its checksum.
    #[error("{0}")]
    Corrupt(String),
    /// The disk refused to give it.
    #[error("{0}")]
    Unreadable(String),
    /// Its last change is not on disk, and the store refuses writes; see [`Quarantine`](crate::state::quarantine::Quarantine).
    #[error("{0}")]
    NotDurable(String),
}

impl RowError {
    /// The error of a store operation that met this one.
    pub(crate) fn at(self, operation: &'static str) -> ProviderError {
        match self {
            RowError::Corrupt(what) => {
                let text = format!(
                    "stored data is damaged: {what}; run `segno store check`, then restore a backup or run `segno store salvage`"
                );
                ProviderError::new(ErrorKind::Corrupt, operation, text).in_condition(what)
            }
            RowError::Unreadable(what) => {
                let text = format!("the disk cannot be read: {what}");
                ProviderError::unavailable(operation, text)
                    .in_condition("the disk of the store cannot be read")
            }
            RowError::NotDurable(why) => ProviderError::unavailable(operation, why.clone()).in_condition(why),
        }
    }
}

impl From<Undecodable> for RowError {
    fn from(error: Undecodable) -> Self {
        RowError::Corrupt(error.to_string())
    }
}

impl From<redb::StorageError> for RowError {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Corrupted(what) => RowError::Corrupt(what),
            redb::StorageError::Io(error) if is_damage(&error) => RowError::Corrupt(without_path(&error)),
            other => RowError::Unreadable(other.to_string()),
        }
    }
}
