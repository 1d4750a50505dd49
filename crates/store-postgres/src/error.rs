//! Why a store could not be opened, and what a database's error means for an operation.

use segno::store::{ErrorKind, ProviderError};
use tokio_postgres::error::SqlState;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL or a setting is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The database cannot be reached or is not ready.
    #[error("the database cannot be reached: {0}; check that it runs and that the URL is right")]
    Unavailable(String),
    /// The database refused: no such user or database, a wrong password, a missing right.
    #[error("the database refused: {0}")]
    Refused(String),
    /// The certificate of the database was not accepted, or certificates could not be read.
    #[error("{0}")]
    Tls(String),
    /// The schema was written by a newer build.
    #[error(
        "the schema {schema} is at migration {found}, this build knows {known}; use a newer build, or another schema"
    )]
    TooNew {
        /// The schema.
        schema: String,
        /// Newest migration in the database.
        found: i32,
        /// Newest migration of this build.
        known: i32,
    },
    /// There is no store at that place, and the options forbid to create one.
    #[error(
        "there is no store at {address}: {why}; name the schema that the server has in its store.url, as in \
         postgres://USER@HOST/DATABASE?schema=NAME"
    )]
    NoStore {
        /// Host, port, database and schema.
        address: String,
        /// What is missing.
        why: String,
    },
    /// The schema was written by an older build, and the options forbid to upgrade it.
    #[error(
        "the store at {address} is at migration {found}, this build needs {needed}; nothing was changed: use the build \
         that serves it, or start `segno serve` of this build to upgrade it"
    )]
    TooOld {
        /// Host, port, database and schema.
        address: String,
        /// Newest migration in the database.
        found: i32,
        /// Newest migration of this build.
        needed: i32,
    },
    /// The server is too old.
    #[error("the server is PostgreSQL {found}; at least {needed} is needed")]
    OldServer {
        /// Version of the server.
        found: String,
        /// Oldest version that works.
        needed: i32,
    },
}

impl OpenError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            OpenError::Unavailable(_) => ErrorKind::Unavailable,
            OpenError::NoStore { .. } => ErrorKind::NotFound,
            _ => ErrorKind::Invalid,
        }
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        match Trouble::of(&error) {
            Trouble::Refused => OpenError::Refused(describe(&error)),
            Trouble::Defect if error.as_db_error().is_some() => OpenError::Refused(describe(&error)),
            _ => OpenError::Unavailable(describe(&error)),
        }
    }
}

/// What an error of the database means for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is gone or the server is going or coming; what was asked may have been done.
    Away,
    /// Two transactions were in each other's way and this one was undone; the same again will do.
    Collision,
    /// It took too long or the server is out of something; it was undone.
    Overload,
    /// The server knows the user, but does not let it.
    Refused,
    /// A value that cannot be stored.
    BadValue,
    /// The writer is not registered any more.
    UnknownWriter,
    /// A defect of ours.
    Defect,
}

/// The state that `exchange` raises for a writer that is not registered.
const UNKNOWN_WRITER: &str = "SG001";

impl Trouble {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return if is_bad_parameter(error) { Trouble::BadValue } else { Trouble::Away };
        };
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION]
            .contains(state)
        {
            return Trouble::Collision;
        }
        if state.code() == UNKNOWN_WRITER {
            return Trouble::UnknownWriter;
        }
        match &state.code()[..2] {
            "08" => Trouble::Away,
            "57" if *state == SqlState::QUERY_CANCELED => Trouble::Overload,
            "57" => Trouble::Away,
            // Read-only: a standby, or a primary that was just demoted.
            "25" => Trouble::Away,
            "53" | "55" | "58" => Trouble::Overload,
            "28" | "3D" => Trouble::Refused,
            "42" if *state == SqlState::INSUFFICIENT_PRIVILEGE => Trouble::Refused,
            "22" | "54" => Trouble::BadValue,
            _ => Trouble::Defect,
        }
    }

    /// The error of an operation that met this trouble.
    pub(crate) fn at(self, operation: &'static str, text: String) -> ProviderError {
        let (kind, text) = match self {
            Trouble::Away => (ErrorKind::Unavailable, format!("the database is away: {text}")),
            Trouble::Collision => (ErrorKind::Unavailable, format!("other commits were in the way: {text}")),
            Trouble::Overload => {
                (ErrorKind::Unavailable, format!("the database could not do it in time: {text}"))
            }
            Trouble::UnknownWriter => {
                (ErrorKind::Unavailable, format!("the connection was forgotten: {text}"))
            }
            Trouble::Refused => (ErrorKind::Invalid, format!("the database does not allow it: {text}")),
            Trouble::BadValue => (
                ErrorKind::Invalid,
                format!(
                    "PostgreSQL cannot store a value: {text}; text must not contain the character U+0000"
                ),
            ),
            Trouble::Defect => (ErrorKind::Internal, format!("{text}; please report this")),
        };
        ProviderError::new(kind, operation, text)
    }
}

/// Whether the driver could not even encode a parameter.
fn is_bad_parameter(error: &tokio_postgres::Error) -> bool {
    error.to_string().starts_with("error serializing parameter")
}

/// The error of an operation that a statement of the database failed.
pub(crate) fn failed(operation: &'static str, error: &tokio_postgres::Error) -> ProviderError {
    Trouble::of(error).at(operation, describe(error))
}

/// What the server or the driver says, with its cause.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} ({})", error.message(), error.code().code());
    }
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
