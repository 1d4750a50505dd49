//! Why a report of a worker is refused. Each reason has a code of its own, so that a worker knows whether to go on.

use std::borrow::Cow;

use segno::store::ErrorKind;

use crate::drive::error::LedgerError;

/// Why a report is refused.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The token was not signed by this store, or is for another task.
    #[error(
        "the task token is not valid for this task; send taskToken of the envelope as \"Authorization: Bearer …\" [invalid-task-token]"
    )]
    InvalidToken,
    /// The token has expired.
    #[error(
        "the task token has expired; heartbeats return a token that is valid for longer, and the attempt that replaces this one has its own [task-expired]"
    )]
    Expired,
    /// There is no such task.
    #[error("there is no task {0:?}; pass taskId of the envelope unchanged [unknown-task]")]
    UnknownTask(String),
    /// The task has ended.
    #[error("the task is {0} already; stop working on it [task-already-terminal]")]
    Terminal(&'static str),
    /// The attempt has ended, and another one follows.
    #[error(
        "attempt {0} has ended already and is followed by another one; stop working on it [attempt-already-completed]"
    )]
    Completed(u32),
    /// The report names another attempt than its token.
    #[error(
        "the report names attempt {reported}, and its token is for attempt {token}; pass attempt and taskToken of one envelope unchanged [attempt-mismatch]"
    )]
    TokenAttempt {
        /// The attempt that was reported.
        reported: u32,
        /// The one of the token.
        token: u32,
    },
    /// Another attempt is under way.
    #[error(
        "attempt {reported} is over, and the task has moved on to attempt {current}; stop working on it [attempt-mismatch]"
    )]
    Attempt {
        /// The attempt that was reported.
        reported: u32,
        /// The one of the tables.
        current: u32,
    },
    /// The attempt has another id.
    #[error("the attempt has another id; pass attemptId of the envelope unchanged [attempt-id-mismatch]")]
    AttemptId,
    /// Another worker has started it.
    #[error("worker {0:?} has started this attempt already; stop working on it [attempt-already-started]")]
    OtherWorker(String),
    /// A value of the report cannot be used.
    #[error("{field}: {problem} [invalid-request]")]
    Invalid {
        /// The field.
        field: Cow<'static, str>,
        /// What is wrong with it.
        problem: String,
    },
    /// The ledger or the store refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl CallbackError {
    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            CallbackError::InvalidToken => "invalid-task-token",
            CallbackError::Expired => "task-expired",
            CallbackError::UnknownTask(_) => "unknown-task",
            CallbackError::Terminal(_) => "task-already-terminal",
            CallbackError::Completed(_) => "attempt-already-completed",
            CallbackError::TokenAttempt { .. } | CallbackError::Attempt { .. } => "attempt-mismatch",
            CallbackError::AttemptId => "attempt-id-mismatch",
            CallbackError::OtherWorker(_) => "attempt-already-started",
            CallbackError::Invalid { .. } => "invalid-request",
            CallbackError::Ledger(error) => error.code(),
        }
    }

    /// What the worker can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CallbackError::UnknownTask(_) => ErrorKind::NotFound,
            CallbackError::Invalid { .. } | CallbackError::InvalidToken => ErrorKind::Invalid,
            CallbackError::Ledger(error) => error.kind(),
            _ => ErrorKind::Conflict,
        }
    }

    pub(super) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        CallbackError::Invalid { field: field.into(), problem: problem.into() }
    }
}
