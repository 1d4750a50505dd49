//! The error of a store: what went wrong, in terms of what the caller can do about it.

use std::fmt;

/// What the caller can do about an error. Retryability is decided by this kind, never by text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another writer was first, or the thing exists already. Read again and decide.
    Conflict,
    /// The thing is not there.
    NotFound,
    /// The request itself is wrong. Sending it again gives the same answer.
    Invalid,
    /// The store is busy or away for the moment. The outcome of a write is unknown, unless the
    /// error reports otherwise ([`ProviderError::outcome`]); retry with the same key.
    Unavailable,
    /// The lock token is unknown, expired, or its entry was removed. Nothing was changed.
    LockLost,
    /// Stored data does not decode or fails its checksum.
    Corrupt,
    /// The store, runtime or client has been shut down.
    Closed,
    /// A defect. Please report it.
    Internal,
}

impl ErrorKind {
    /// Whether the same call may succeed later without any change.
    pub fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Unavailable)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::Conflict => "conflict",
            ErrorKind::NotFound => "not found",
            ErrorKind::Invalid => "invalid",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::LockLost => "lock lost",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Closed => "closed",
            ErrorKind::Internal => "internal",
        })
    }
}

/// What a failed write has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Nothing was changed, and nothing will be.
    NothingChanged,
    /// The write may have been done, or may still be done.
    Unknown,
}

/// An error of a store operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {message} ({kind})")]
pub struct ProviderError {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    outcome: WriteOutcome,
    condition: Option<Box<str>>,
}

impl ProviderError {
    /// An error of `kind` in `operation`; the message has the failure, its location and the next step.
    ///
    /// The outcome of the write follows from the kind: a store that has compared or validated a
    /// request and refused it has changed nothing; after every other error the outcome is unknown
    /// until [`ProviderError::nothing_changed`] rules it out.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        let outcome = match kind {
            ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::LockLost => {
                WriteOutcome::NothingChanged
            }
            ErrorKind::Unavailable | ErrorKind::Corrupt | ErrorKind::Closed | ErrorKind::Internal => {
                WriteOutcome::Unknown
            }
        };
        ProviderError { kind, operation, message: message.into(), outcome, condition: None }
    }

    /// The store knows that the failed write changed nothing and never will: it was refused before
    /// it began, or undone.
    #[must_use]
    pub fn nothing_changed(mut self) -> Self {
        self.outcome = WriteOutcome::NothingChanged;
        self
    }

    /// The store is in a condition that every caller may know of, such as a full disk. The text has no stored data, and no path or
    /// address of the machine.
    #[must_use]
    pub fn in_condition(mut self, condition: impl Into<String>) -> Self {
        self.condition = Some(condition.into().into_boxed_str());
        self
    }

    /// The condition of the store that every caller may know of.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// What a write that failed with this error has left behind.
    pub fn outcome(&self) -> WriteOutcome {
        self.outcome
    }

    /// The store cannot do it now but may later.
    pub fn unavailable(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, operation, message)
    }

    /// The lock that the caller relied on is gone.
    pub fn lock_lost(operation: &'static str) -> Self {
        Self::new(
            ErrorKind::LockLost,
            operation,
            "the lock token is unknown or expired, or its entry was removed; drop the work, another holder has it",
        )
    }

    /// Whether the caller should try again, and what else it can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The store method that failed.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The human-readable part.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}
