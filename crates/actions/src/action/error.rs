//! How calls about actions and recurring actions fail: a code with a page of advice, and a kind that says what to do.

use segno::store::{ErrorKind, ProviderError};

use crate::functions::{FunctionError, SettleError};

/// An error of a call about an action or a recurring action.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionError {
    /// A field of an action is wrong.
    #[error("{field}: {problem} [invalid-action]")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// There is no such action.
    #[error("there is no {what} {id:?} [unknown-action]")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The id that was asked for.
        id: String,
    },
    /// Several have the name that was asked for.
    #[error("several recurring actions are called {name:?}; use the id of one: {} [ambiguous-name]", candidates.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Ids of those that have it, at most ten.
        candidates: Vec<String>,
    },
    /// There is an action of this id already.
    #[error("there is {what} {id:?} already; choose another id [action-exists]")]
    Exists {
        /// What it is.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The action is not in a state in which this can be done.
    #[error("{problem} [action-state]")]
    State {
        /// What state it is in, and what to do.
        problem: String,
    },
    /// A tenant has as many definitions as it may have.
    #[error(
        "there are {limit} recurring actions already, which is the limit; delete some, or raise actions.max_recurring_per_tenant [too-many-recurring]"
    )]
    TooMany {
        /// How many there may be.
        limit: u64,
    },
    /// A stored action cannot be read.
    #[error("{what} cannot be read: {reason} [stored-data-unreadable]")]
    Unreadable {
        /// What it is.
        what: String,
        /// Why.
        reason: String,
    },
    /// The function cannot be called like this.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The engine refused.
    #[error("{message} [{code}]")]
    Engine {
        /// Its code.
        code: &'static str,
        /// What the caller can do.
        kind: ErrorKind,
        /// What it says.
        message: String,
    },
    /// The store refused or could not do it.
    #[error("{0} [store]")]
    Store(#[from] ProviderError),
}

impl ActionError {
    /// A field is wrong.
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        ActionError::Invalid { field: field.into(), problem: problem.into() }
    }

    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            ActionError::Invalid { .. } => "invalid-action",
            ActionError::Unknown { .. } => "unknown-action",
            ActionError::Ambiguous { .. } => "ambiguous-name",
            ActionError::Exists { .. } => "action-exists",
            ActionError::State { .. } => "action-state",
            ActionError::TooMany { .. } => "too-many-recurring",
            ActionError::Unreadable { .. } => "stored-data-unreadable",
            ActionError::Function(error) => error.code(),
            ActionError::Engine { code, .. } => code,
            ActionError::Store(_) => "store",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ActionError::Invalid { .. } => ErrorKind::Invalid,
            ActionError::Unknown { .. } => ErrorKind::NotFound,
            ActionError::Ambiguous { .. }
            | ActionError::Exists { .. }
            | ActionError::State { .. }
            | ActionError::TooMany { .. } => ErrorKind::Conflict,
            ActionError::Unreadable { .. } => ErrorKind::Corrupt,
            ActionError::Function(error) => error.kind(),
            ActionError::Engine { kind, .. } => *kind,
            ActionError::Store(error) => error.kind(),
        }
    }
}

impl From<SettleError> for ActionError {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::Store(error) => ActionError::Store(error),
            SettleError::Unusable(reason) => {
                ActionError::Unreadable { what: "what a call was made for".to_owned(), reason }
            }
        }
    }
}

impl From<ActionError> for SettleError {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Store(error) => SettleError::Store(error),
            other => SettleError::Unusable(other.to_string()),
        }
    }
}

impl From<segno::Error> for ActionError {
    fn from(error: segno::Error) -> Self {
        let code = error.code().as_str();
        // The text of an engine's error ends with its code, and so does ours.
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" [{code}]")).unwrap_or(&text).to_owned();
        ActionError::Engine { code, kind: error.kind(), message }
    }
}
