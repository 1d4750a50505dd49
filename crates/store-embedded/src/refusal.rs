//! Why a store does not write, and what callers hear of it.

use std::io;

use segno::store::{ErrorKind, ProviderError};

use crate::directory::without_path;

/// What became of a batch.
pub type Outcome = Result<(), Refusal>;

/// Why the store does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    kind: ErrorKind,
    message: String,
    /// What every caller may know.
    condition: Option<String>,
    /// Whether the next batch that is written is its end.
    pub passes: bool,
}

impl Refusal {
    /// No room on the disk; goes away by itself.
    pub fn full(error: &io::Error) -> Self {
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

    /// A write or sync failed, so what is on the disk is not known.
    pub fn failed(what: &str) -> Self {
        let message =
            format!("the store is read-only since a write failed ({what}); check the disk and reopen it");
        let condition = Some(format!(
            "the store is read-only since a write failed ({what}), until the server is restarted"
        ));
        Refusal { kind: ErrorKind::Unavailable, message, condition, passes: false }
    }

    /// What a checkpoint has to change is damaged, so that nothing can be written any more.
    pub fn damaged(what: &str) -> Self {
        let message = format!(
            "the store is read-only since damage was met ({what}); run `segno store check`, then restore a backup or run `segno store salvage`"
        );
        let condition = Some(format!("the store is read-only since damage was met ({what})"));
        Refusal { kind: ErrorKind::Corrupt, message, condition, passes: false }
    }

    /// The store is being closed.
    pub fn closed() -> Self {
        let message = "the store has been closed".to_owned();
        Refusal { kind: ErrorKind::Closed, message, condition: None, passes: false }
    }

    /// What every caller may know of it.
    pub fn condition(&self) -> &str {
        self.condition.as_deref().unwrap_or(&self.message)
    }

    /// The error of an operation that was refused.
    pub fn at(&self, operation: &'static str) -> ProviderError {
        let error = ProviderError::new(self.kind, operation, self.message.clone());
        match &self.condition {
            Some(condition) => error.in_condition(condition),
            None => error,
        }
    }
}
