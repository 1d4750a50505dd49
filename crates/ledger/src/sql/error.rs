//! Why a query has no answer.

use segno::store::ErrorKind;

use super::limits::MAX_MEMORY_BYTES;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The query is not one that may be run.
    #[error("{0}")]
    Refused(String),
    /// SQLite cannot evaluate it.
    #[error("the query failed: {0}")]
    Failed(String),
    /// It goes beyond a limit on sizes.
    #[error("{0}")]
    TooLarge(String),
    /// All queries together have taken the memory that they may.
    #[error("the query needs more memory than all queries together may take ({} MiB); group or sort fewer rows",
        MAX_MEMORY_BYTES / 1024 / 1024)]
    OutOfMemory,
    /// It takes too long.
    #[error(
        "the query took longer than {seconds} s; constrain id, name, status or creation time, or raise the time limit"
    )]
    TimedOut {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// Other queries had the places of the node for all of its time.
    #[error(
        "the query waited {seconds} s for other queries and did not begin; try again, or raise the time limit"
    )]
    NotBegun {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// Too many queries wait.
    #[error("{0}")]
    Busy(String),
    /// A table cannot be read. The source is the room's error.
    #[error("table {table} cannot be read: {error}")]
    Table {
        /// The table.
        table: &'static str,
        /// The error of the room.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine itself failed.
    #[error("the query could not be run: {0}")]
    Internal(String),
}

impl SqlError {
    /// The stable name of what is wrong, as in `docs/errors/`; `None` for the error of a table or of the engine.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            SqlError::Refused(_) => Some("sql-refused"),
            SqlError::Failed(_) => Some("sql-failed"),
            SqlError::TooLarge(_) | SqlError::OutOfMemory => Some("sql-too-large"),
            SqlError::TimedOut { .. } | SqlError::NotBegun { .. } => Some("sql-timeout"),
            SqlError::Busy(_) | SqlError::Table { .. } | SqlError::Internal(_) => None,
        }
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SqlError::Refused(_) | SqlError::Failed(_) | SqlError::TooLarge(_) | SqlError::OutOfMemory => {
                ErrorKind::Invalid
            }
            SqlError::TimedOut { .. }
            | SqlError::NotBegun { .. }
            | SqlError::Busy(_)
            | SqlError::Table { .. } => ErrorKind::Unavailable,
            SqlError::Internal(_) => ErrorKind::Internal,
        }
    }
}
