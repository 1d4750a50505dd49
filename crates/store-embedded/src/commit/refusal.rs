//! Refusals: why a store does not write, and the errors that callers get.

use std::io;

use segno::store::{ErrorKind, ProviderError};

use crate::disk::directory::without_path;

/// The outcome of a batch.
pub(crate) type Outcome = Result<(), Refusal>;

/// Why the store does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    kind: ErrorKind,
    message: String,
    /// The part without paths of the machine, for every caller.
    condition: Option<String>,
    /// Whether it ends with the next batch that is written.
    pub(crate) passes: bool,
}

impl Refusal {
    /// The disk is full; ends when there is room.
    pub(crate) fn full(error: &io::Error) -> Self {
        // A file at the limit of the process does not grow when files of others are removed.
        let (what, advice) = match error.kind() {
            io::ErrorKind::FileTooLarge => (
                "limit of file sizes is reached",
                "it is raised: raise it with `ulimit -f`, or LimitFSIZE= of the service, and restart",
            ),
            _ => ("disk is full", "there is room, make some"),
        };
        let message = format!("the {what} ({error}); writes of the store are refused until {advice}");
        let condition = Some(format!("its {what} ({})", without_path(error)));
        Refusal { kind: ErrorKind::Unavailable, message, condition, passes: true }
    }

    /// A write or sync failed, so the content of the disk is unknown.
    pub(crate) fn failed(what: &str) -> Self {
        let message =
            format!("the store is read-only since a write failed ({what}); check the disk and reopen it");
        let condition = Some(format!(
            "the store is read-only since a write failed ({what}), until the server is restarted"
        ));
        Refusal { kind: ErrorKind::Unavailable, message, condition, passes: false }
    }

    /// Rows that a checkpoint has to change are damaged, so the store cannot write any more.
    pub(crate) fn damaged(what: &str) -> Self {
        let message = format!(
            "the store is read-only since damage was met ({what}); run `segno store check`, then restore a backup or run `segno store salvage`"
        );
        let condition = Some(format!("the store is read-only since damage was met ({what})"));
        Refusal { kind: ErrorKind::Corrupt, message, condition, passes: false }
    }

    /// The store is being closed.
    pub(crate) fn closed() -> Self {
        let message = "the store has been closed".to_owned();
        Refusal { kind: ErrorKind::Closed, message, condition: None, passes: false }
    }

    /// The part for every caller.
    pub(crate) fn condition(&self) -> &str {
        self.condition.as_deref().unwrap_or(&self.message)
    }

    /// The error of a refused operation.
    pub(crate) fn at(&self, operation: &'static str) -> ProviderError {
        let error = ProviderError::new(self.kind, operation, self.message.clone());
        match &self.condition {
            Some(condition) => error.in_condition(condition),
            None => error,
        }
    }
}
