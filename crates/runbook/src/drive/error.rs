//! Errors: of a driver that cannot go on with a batch, and of requests about runbooks and batches.

use segno::store::{ErrorKind, ProviderError};
use segno_actions::functions::FunctionError;

use crate::members::InvalidMembers;
use crate::rows::{BatchId, Want};
use crate::source::SourceError;
use crate::yaml::InvalidRunbook;

/// Why a batch could not be driven further. Nothing is lost: the lease expires, and the batch is
/// looked after again.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store refused or did not answer.
    #[error(transparent)]
    Store(#[from] ProviderError),
    /// Calls could not be prepared or read.
    #[error(transparent)]
    Calls(#[from] FunctionError),
    /// Another node holds the batch now.
    #[error("the lease of the batch was lost to another node")]
    LeaseLost,
    /// A stored record cannot be read.
    #[error("record {id} of {kind} cannot be read: {problem}")]
    Unreadable {
        /// Kind of the record.
        kind: &'static str,
        /// Id of the record.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A version of a runbook that a batch follows cannot be used.
    #[error("version {version} of runbook {runbook} cannot be used: {problem}")]
    Definition {
        /// Name of the runbook.
        runbook: String,
        /// The version.
        version: u32,
        /// Why.
        problem: String,
    },
    /// Loading does not give what the decision needs. A defect of the program.
    #[error("rows are loaded, and still wanted: {0:?}")]
    StillMissing(Vec<Want>),
}

/// Why something that was requested about runbooks and batches was not done.
#[derive(Debug, thiserror::Error)]
pub enum RunbookError {
    /// The text is not a runbook.
    #[error(transparent)]
    Runbook(#[from] InvalidRunbook),
    /// Rows cannot be members.
    #[error(transparent)]
    Members(#[from] InvalidMembers),
    /// There is no such runbook, or no such version of it.
    #[error(
        "there is no runbook {name:?}{}; publish it, or check the name [unknown-runbook]",
        version.map(|version| format!(" of version {version}")).unwrap_or_default()
    )]
    UnknownRunbook {
        /// The name.
        name: String,
        /// The version, if one was asked for.
        version: Option<u32>,
    },
    /// There is no such batch.
    #[error("there is no batch {0}; list the batches to find its id [unknown-batch]")]
    UnknownBatch(BatchId),
    /// A batch that has not ended cannot be deleted.
    #[error(
        "batch {0} has not ended; wait for its end, or cancel it with `segno batch cancel {0}` [batch-request-refused]"
    )]
    BatchNotEnded(BatchId),
    /// A runbook or a version that is used cannot be deleted.
    #[error("runbook {name:?} cannot be deleted: {reason} [runbook-in-use]")]
    InUse {
        /// The runbook.
        name: String,
        /// What uses it, and what to do.
        reason: String,
    },
    /// A batch cannot be created so, or a request has a value that cannot be used.
    #[error("{field}: {problem} [invalid-batch]")]
    InvalidBatch {
        /// The field.
        field: &'static str,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// The key was used for another request.
    #[error("key {key:?} was used for another request; choose another key [idempotency-mismatch]")]
    KeyUsed {
        /// The key.
        key: String,
    },
    /// The query of a data source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The data source is manual.
    #[error(
        "the data source of runbook {name:?} is manual, and nothing is queried; create batches by hand, or publish a \
         version with a data source of another type [source-not-queried]"
    )]
    NotQueried {
        /// The runbook.
        name: String,
    },
    /// The removal that was decided about is not the one that waits for approval.
    #[error(
        "no removal {set} of runbook {name:?} waits for approval; {} [removal-not-pending]",
        pending.map_or_else(
            || "nothing has to be decided".to_owned(),
            |pending| format!("look at removal {pending}, which does"),
        )
    )]
    RemovalNotPending {
        /// The runbook.
        name: String,
        /// What was decided about.
        set: u64,
        /// What waits instead.
        pending: Option<u64>,
    },
    /// Something stored cannot be read.
    #[error("{what} cannot be read: {reason} [stored-data-unreadable]")]
    Unreadable {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
    /// The store refused or did not answer.
    #[error("{0} [store]")]
    Store(#[from] ProviderError),
}

impl RunbookError {
    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            RunbookError::Runbook(error) => error.code(),
            RunbookError::Members(error) => error.code(),
            RunbookError::UnknownRunbook { .. } => "unknown-runbook",
            RunbookError::UnknownBatch(_) => "unknown-batch",
            RunbookError::BatchNotEnded(_) => "batch-request-refused",
            RunbookError::InUse { .. } => "runbook-in-use",
            RunbookError::InvalidBatch { .. } => "invalid-batch",
            RunbookError::KeyUsed { .. } => "idempotency-mismatch",
            RunbookError::Source(error) => error.code(),
            RunbookError::NotQueried { .. } => "source-not-queried",
            RunbookError::RemovalNotPending { .. } => "removal-not-pending",
            RunbookError::Unreadable { .. } => "stored-data-unreadable",
            RunbookError::Store(_) => "store",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RunbookError::Runbook(_) | RunbookError::Members(_) | RunbookError::InvalidBatch { .. } => {
                ErrorKind::Invalid
            }
            RunbookError::UnknownRunbook { .. } | RunbookError::UnknownBatch(_) => ErrorKind::NotFound,
            RunbookError::KeyUsed { .. }
            | RunbookError::BatchNotEnded(_)
            | RunbookError::InUse { .. }
            | RunbookError::NotQueried { .. }
            | RunbookError::RemovalNotPending { .. } => ErrorKind::Conflict,
            RunbookError::Source(error) => error.kind(),
            RunbookError::Unreadable { .. } => ErrorKind::Corrupt,
            RunbookError::Store(error) => error.kind(),
        }
    }

    /// Why stored data cannot be read, in words that every caller may know.
    pub(super) fn damage(&self) -> String {
        match self {
            RunbookError::Store(error) => error.condition().unwrap_or("it is damaged").to_owned(),
            RunbookError::Unreadable { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    pub(super) fn in_use(name: &str, reason: impl Into<String>) -> Self {
        RunbookError::InUse { name: name.to_owned(), reason: reason.into() }
    }

    pub(super) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        RunbookError::InvalidBatch { field, problem: problem.into() }
    }
}

impl From<DriveError> for RunbookError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Store(error) => RunbookError::Store(error),
            DriveError::Unreadable { kind, id, problem } => {
                RunbookError::Unreadable { what: format!("record {id} of {kind}"), reason: problem }
            }
            DriveError::Definition { runbook, version, problem } => RunbookError::Unreadable {
                what: format!("version {version} of runbook {runbook}"),
                reason: problem,
            },
            other @ (DriveError::Calls(_) | DriveError::LeaseLost | DriveError::StillMissing(_)) => {
                RunbookError::Store(ProviderError::new(ErrorKind::Internal, "drive", other.to_string()))
            }
        }
    }
}
