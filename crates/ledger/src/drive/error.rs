//! Errors: of a driver that cannot go on with a scope, and of requests about DAGs, runs and backfills.

use segno::store::{ErrorKind, ProviderError};
use segno_actions::functions::FunctionError;

use crate::objects::StorageError;
use crate::plan::{InvalidDag, PlanError};

/// Why a scope could not be driven further. Nothing is lost: the lease expires, and the scope is looked after again.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The store refused or did not answer.
    #[error(transparent)]
    Store(#[from] ProviderError),
    /// Calls could not be prepared or read.
    #[error(transparent)]
    Calls(#[from] FunctionError),
    /// The object store refused or did not answer.
    #[error(transparent)]
    Storage(StorageError),
    /// What a decision needs cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Another node holds the scope now.
    #[error("the lease of the scope was lost to another node")]
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
}

impl From<StorageError> for DriveError {
    fn from(error: StorageError) -> Self {
        // A compactor of a higher epoch has taken over.
        if error.kind() == ErrorKind::LockLost { DriveError::LeaseLost } else { DriveError::Storage(error) }
    }
}

/// Why something that was requested was not done.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The text is not a DAG.
    #[error(transparent)]
    Dag(#[from] InvalidDag),
    /// The run does not fit its DAG.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no such DAG, or no such version of it.
    #[error(
        "there is no DAG {name:?}{}; publish it, or check the name [unknown-dag]",
        version.map(|version| format!(" of version {version}")).unwrap_or_default()
    )]
    UnknownDag {
        /// The name.
        name: String,
        /// The version, if one was requested.
        version: Option<u32>,
    },
    /// There is no such run.
    #[error("there is no run {0:?}; list the runs to find its id [unknown-run]")]
    UnknownRun(String),
    /// There is no such run any more.
    #[error(
        "there is no run {run:?}: runs that were triggered until {through} were removed when `ledger.run_days` had passed since their end [unknown-run]"
    )]
    RunRemoved {
        /// The run.
        run: String,
        /// The newest day whose runs were removed.
        through: String,
    },
    /// The run has no such task.
    #[error("run {run:?} has no task {task:?}; show the run to find its tasks [unknown-task]")]
    UnknownTask {
        /// The run.
        run: String,
        /// The task.
        task: String,
    },
    /// There is no such asset.
    #[error("there is no asset {0:?}; list the assets to find its key [unknown-asset]")]
    UnknownAsset(String),
    /// There is no such backfill.
    #[error("there is no backfill {0:?}; list the backfills to find its id [unknown-backfill]")]
    UnknownBackfill(String),
    /// A value of the request cannot be used.
    #[error("{field}: {problem} [invalid-run]")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// The state of the run or backfill does not allow it.
    #[error("{what} cannot be {verb}: {reason} [run-request-refused]")]
    Refused {
        /// What it is about.
        what: String,
        /// What was requested.
        verb: &'static str,
        /// Why not, and what to do.
        reason: String,
    },
    /// The key was used for another request.
    #[error("run key {key:?} was used for another request; choose another key [idempotency-mismatch]")]
    KeyUsed {
        /// The key.
        key: String,
    },
    /// Something stored cannot be read.
    #[error("{what} cannot be read: {reason} [stored-data-unreadable]")]
    Unreadable {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
    /// The scope has had runs, and its tables are not there.
    #[error(
        "the tables of {0} are not where the ledger is; mount or restore it, or correct `ledger.url` [ledger-unavailable]"
    )]
    Gone(String),
    /// The run is stored, and its first events are not in the tables.
    #[error("run {0:?} was accepted and is not in the tables yet; read it again later [ledger-unavailable]")]
    NotVisible(String),
    /// The graph of the assets would take too much memory.
    #[error(
        "the assets of this tenant have more than {max} {what}; declare fewer upstream assets, or put a task that makes an asset between tasks that make many and tasks that read them [lineage-too-large]"
    )]
    LineageTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// Too much work of the tenant waits for a thread.
    #[error(
        "too much work of this tenant waits for a thread (documents, checks of inputs, previews); try again in a moment [unavailable]"
    )]
    Busy,
    /// The object store of the ledger refused or did not answer.
    #[error("the ledger cannot be used: {0}; check its object store [ledger-unavailable]")]
    Storage(StorageError),
    /// The store refused or did not answer.
    #[error("{0} [store]")]
    Store(#[from] ProviderError),
}

impl LedgerError {
    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            LedgerError::Dag(error) => error.code(),
            LedgerError::Plan(error) => error.code(),
            LedgerError::UnknownDag { .. } => "unknown-dag",
            LedgerError::UnknownRun(_) | LedgerError::RunRemoved { .. } => "unknown-run",
            LedgerError::UnknownTask { .. } => "unknown-task",
            LedgerError::UnknownAsset(_) => "unknown-asset",
            LedgerError::UnknownBackfill(_) => "unknown-backfill",
            LedgerError::Invalid { .. } => "invalid-run",
            LedgerError::Refused { .. } => "run-request-refused",
            LedgerError::KeyUsed { .. } => "idempotency-mismatch",
            LedgerError::Unreadable { .. } => "stored-data-unreadable",
            LedgerError::LineageTooLarge { .. } => "lineage-too-large",
            LedgerError::Busy => "unavailable",
            LedgerError::Gone(_) | LedgerError::NotVisible(_) | LedgerError::Storage(_) => {
                "ledger-unavailable"
            }
            LedgerError::Store(_) => "store",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            LedgerError::Dag(_)
            | LedgerError::Plan(_)
            | LedgerError::Invalid { .. }
            | LedgerError::LineageTooLarge { .. } => ErrorKind::Invalid,
            LedgerError::UnknownDag { .. }
            | LedgerError::UnknownRun(_)
            | LedgerError::RunRemoved { .. }
            | LedgerError::UnknownTask { .. }
            | LedgerError::UnknownAsset(_)
            | LedgerError::UnknownBackfill(_) => ErrorKind::NotFound,
            LedgerError::Refused { .. } | LedgerError::KeyUsed { .. } => ErrorKind::Conflict,
            LedgerError::Unreadable { .. } => ErrorKind::Corrupt,
            LedgerError::Gone(_) | LedgerError::NotVisible(_) | LedgerError::Busy => ErrorKind::Unavailable,
            LedgerError::Storage(error) => error.kind(),
            LedgerError::Store(error) => error.kind(),
        }
    }

    pub(super) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        LedgerError::Invalid { field, problem: problem.into() }
    }

    pub(super) fn refused(what: String, verb: &'static str, reason: impl Into<String>) -> Self {
        LedgerError::Refused { what, verb, reason: reason.into() }
    }

    pub(super) fn unreadable(kind: &str, id: &str, error: &dyn std::fmt::Display) -> Self {
        LedgerError::Unreadable { what: format!("record {id} of {kind}"), reason: error.to_string() }
    }
}

impl From<StorageError> for LedgerError {
    fn from(error: StorageError) -> Self {
        match error.kind() {
            // A file that the newest manifest names is not there.
            ErrorKind::Corrupt | ErrorKind::NotFound => {
                LedgerError::Unreadable { what: "the ledger".to_owned(), reason: error.to_string() }
            }
            _ => LedgerError::Storage(error),
        }
    }
}
