//! How calls of the catalogue fail: a code with a page of advice, and a kind that says what the caller can do.

use segno::store::{ErrorKind, ProviderError};

use super::names::{CALL_NAME, FUNCTION_NAME, Letters};
use super::schema::Violation;

/// An error of a function's declaration, of the catalogue, or of a request to invoke one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// A name of a function or pool, a namespace, tenant or tag is none.
    #[error(
        "{text:?} cannot be a {what}: {problem}; use 1 to {max_bytes} {letters}, digits, '-', '_' and '.', \
         beginning with a letter or digit [{}]",
        name_code(what)
    )]
    InvalidName {
        /// What it was to name.
        what: &'static str,
        /// The text, shortened.
        text: String,
        /// What is wrong with it.
        problem: String,
        /// Which letters it may have.
        letters: Letters,
        /// How long it may be.
        max_bytes: usize,
    },
    /// A setting of a function is wrong.
    #[error("{field}: {problem} [invalid-function]")]
    InvalidFunction {
        /// The setting.
        field: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A stored function asks for something that only configured ones may have.
    #[error("{field}: {problem} [function-not-permitted]")]
    NotPermitted {
        /// The setting.
        field: String,
        /// Why it is refused, and what to do.
        problem: String,
    },
    /// The input does not fit the schema of the function or orchestration.
    #[error("the input does not fit the schema of {of}: {} [invalid-input]", list(violations))]
    InvalidInput {
        /// `function …` or `orchestration …`, with its name.
        of: String,
        /// What does not fit, at most ten.
        violations: Vec<Violation>,
    },
    /// Checking the input against the schema would take too long, or recurse too deep.
    #[error(
        "the input is not checked against the schema of {of}: {problem}; send less, or simplify the \
         schema [schema-too-costly]"
    )]
    TooCostly {
        /// `function …` or `orchestration …`, with its name.
        of: String,
        /// Which limit it would break.
        problem: String,
    },
    /// Too much work of the tenant waits for a thread.
    #[error(
        "too much work of this tenant waits for a thread (checks of inputs, large templates, previews); try again in a \
         moment [unavailable]"
    )]
    Busy,
    /// There is no such function.
    #[error("there is no function {function:?}; declare it, or check the name [unknown-function]")]
    Unknown {
        /// The name that was asked for.
        function: String,
    },
    /// There is such a function already.
    #[error("function {function:?} exists already{hint} [function-exists]")]
    Exists {
        /// The name.
        function: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The stored function is not the version that the caller knows.
    #[error(
        "function {function:?} was changed by somebody else; read it again and decide [function-changed]"
    )]
    Changed {
        /// The name.
        function: String,
    },
    /// A setting of a pool is wrong.
    #[error("{field}: {problem} [invalid-pool]")]
    InvalidPool {
        /// The setting.
        field: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// There is no such pool.
    #[error(
        "there is no pool {pool:?} (case counts); declare it as [pools.{pool}] with its functions in the settings of the server, or fetch \
         as a worker with \"pool\": {pool:?} and \"functions\", the names of those that it runs [unknown-pool]"
    )]
    UnknownPool {
        /// The name that was asked for.
        pool: String,
    },
    /// The pool may not be asked for this function.
    #[error(
        "function {function:?} is not in the allow-list of pool {pool:?}; add it to {place} [function-not-in-pool]"
    )]
    NotInPool {
        /// The pool.
        pool: String,
        /// The function.
        function: String,
        /// Where the allow-list stands.
        place: String,
    },
    /// The pool is paused, and its calls cannot wait in a queue.
    #[error("pool {pool:?} is paused; resume it with `segno pool resume {pool}` [pool-paused]")]
    PoolPaused {
        /// The pool.
        pool: String,
    },
    /// The pool is reached over a bus, and there is none.
    #[error(
        "pool {pool:?} has transport = \"bus\", and no bus is configured for this namespace and tenant; set bus.url, \
         bus.namespace and bus.tenant, or set pools.{pool}.transport to \"queue\" or \"local\" [bus-not-configured]"
    )]
    NoBus {
        /// The pool.
        pool: String,
    },
    /// The pool is reached over a bus, which carries jobs of runbooks only.
    #[error(
        "pool {pool:?} is reached over the bus, which carries jobs of runbooks only; set pools.{pool}.transport to \"queue\" \
         or \"local\" to call its functions otherwise [pool-is-bus]"
    )]
    BusPool {
        /// The pool.
        pool: String,
    },
    /// A request to invoke a function is wrong.
    #[error("{field}: {problem} [invalid-invocation]")]
    InvalidInvocation {
        /// The part of the request.
        field: &'static str,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A stored declaration or log cannot be read.
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

impl FunctionError {
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        FunctionError::InvalidFunction { field: field.into(), problem: problem.into() }
    }

    pub(crate) fn invalid_pool(field: impl Into<String>, problem: impl Into<String>) -> Self {
        FunctionError::InvalidPool { field: field.into(), problem: problem.into() }
    }

    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            FunctionError::InvalidName { what, .. } => name_code(what),
            FunctionError::InvalidFunction { .. } => "invalid-function",
            FunctionError::NotPermitted { .. } => "function-not-permitted",
            FunctionError::InvalidInput { .. } => "invalid-input",
            FunctionError::TooCostly { .. } => "schema-too-costly",
            FunctionError::Busy => "unavailable",
            FunctionError::Unknown { .. } => "unknown-function",
            FunctionError::Exists { .. } => "function-exists",
            FunctionError::Changed { .. } => "function-changed",
            FunctionError::InvalidPool { .. } => "invalid-pool",
            FunctionError::UnknownPool { .. } => "unknown-pool",
            FunctionError::NotInPool { .. } => "function-not-in-pool",
            FunctionError::PoolPaused { .. } => "pool-paused",
            FunctionError::NoBus { .. } => "bus-not-configured",
            FunctionError::BusPool { .. } => "pool-is-bus",
            FunctionError::InvalidInvocation { .. } => "invalid-invocation",
            FunctionError::Unreadable { .. } => "stored-data-unreadable",
            FunctionError::Store(_) => "store",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            FunctionError::InvalidName { .. }
            | FunctionError::InvalidFunction { .. }
            | FunctionError::NotPermitted { .. }
            | FunctionError::InvalidInput { .. }
            | FunctionError::TooCostly { .. }
            | FunctionError::InvalidPool { .. }
            | FunctionError::NotInPool { .. }
            | FunctionError::NoBus { .. }
            | FunctionError::BusPool { .. }
            | FunctionError::InvalidInvocation { .. } => ErrorKind::Invalid,
            FunctionError::Busy => ErrorKind::Unavailable,
            FunctionError::Unknown { .. } | FunctionError::UnknownPool { .. } => ErrorKind::NotFound,
            FunctionError::Exists { .. }
            | FunctionError::Changed { .. }
            | FunctionError::PoolPaused { .. } => ErrorKind::Conflict,
            FunctionError::Unreadable { .. } => ErrorKind::Corrupt,
            FunctionError::Store(error) => error.kind(),
        }
    }
}

/// The code of a name that is none, by what it was to name.
fn name_code(what: &str) -> &'static str {
    match what {
        FUNCTION_NAME | CALL_NAME => "invalid-function-name",
        _ => "invalid-name",
    }
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
