//! How calls about webhooks fail: a code with a page of advice, and a kind that says what the caller can do.

use segno::store::{ErrorKind, ProviderError};

use crate::action::ActionError;
use crate::functions::FunctionError;

/// An error of a call about a webhook's route or payload.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// A setting of a route is wrong.
    #[error("{field}: {problem} [invalid-hook]")]
    Invalid {
        /// The setting.
        field: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// There is no such route.
    #[error("there is no hook {hook:?}; declare it, or check the name [unknown-hook]")]
    Unknown {
        /// The name that was asked for.
        hook: String,
    },
    /// There is such a route already.
    #[error("hook {hook:?} exists already; replace it, or choose another name [hook-exists]")]
    Exists {
        /// The name.
        hook: String,
    },
    /// The stored route is not the version that the caller knows.
    #[error("hook {hook:?} was changed by somebody else; read it again and decide [hook-changed]")]
    Changed {
        /// The name.
        hook: String,
    },
    /// A tenant has as many routes as it may have.
    #[error("there are {limit} hooks already, which is the limit; delete some [too-many-hooks]")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
    /// There is no such payload, or it is not kept any more.
    #[error("there is no payload {payload:?}; it may have been kept no longer [unknown-payload]")]
    UnknownPayload {
        /// The id that was asked for.
        payload: String,
    },
    /// No call can be made of a payload.
    #[error("{reason}")]
    NoCall {
        /// Why, with the template and the path, and `[template-failed]`.
        reason: String,
    },
    /// A name or a secret is not allowed.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// An action cannot be made.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// Something that is stored cannot be read.
    #[error("{what} cannot be read: {reason} [stored-data-unreadable]")]
    Unreadable {
        /// What it is.
        what: String,
        /// Why.
        reason: String,
    },
    /// The store refused or could not do it.
    #[error("{0} [store]")]
    Store(#[from] ProviderError),
}

impl HookError {
    pub(super) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        HookError::Invalid { field: field.into(), problem: problem.into() }
    }

    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            HookError::Invalid { .. } => "invalid-hook",
            HookError::Unknown { .. } => "unknown-hook",
            HookError::Exists { .. } => "hook-exists",
            HookError::Changed { .. } => "hook-changed",
            HookError::TooMany { .. } => "too-many-hooks",
            HookError::UnknownPayload { .. } => "unknown-payload",
            HookError::NoCall { .. } => "template-failed",
            HookError::Function(error) => error.code(),
            HookError::Action(error) => error.code(),
            HookError::Unreadable { .. } => "stored-data-unreadable",
            HookError::Store(_) => "store",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            HookError::Invalid { .. } | HookError::NoCall { .. } => ErrorKind::Invalid,
            HookError::Unknown { .. } | HookError::UnknownPayload { .. } => ErrorKind::NotFound,
            HookError::Exists { .. } | HookError::Changed { .. } | HookError::TooMany { .. } => {
                ErrorKind::Conflict
            }
            HookError::Function(error) => error.kind(),
            HookError::Action(error) => error.kind(),
            HookError::Unreadable { .. } => ErrorKind::Corrupt,
            HookError::Store(error) => error.kind(),
        }
    }
}
