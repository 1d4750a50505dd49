//! Why a step cannot be turned into a call.

use segno::store::ErrorKind;
use segno_actions::template::TemplateError;

/// The code of [`ResolveError::Unresolved`], with a page in `docs/errors/`.
pub const UNRESOLVED_VARIABLE: &str = "unresolved-variable";

/// Why a step cannot be turned into a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Variables have no value, or none yet: an earlier step may set them.
    #[error("the step uses {} without a value [{UNRESOLVED_VARIABLE}]", quoted(names))]
    Unresolved {
        /// The names, sorted.
        names: Vec<String>,
    },
    /// A template is wrong, or cannot be rendered with these values.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The call is larger than allowed, or its function has a name that is not allowed.
    #[error("{problem} [template-failed]")]
    Call {
        /// What is wrong, with the value.
        problem: String,
    },
}

impl ResolveError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ResolveError::Unresolved { .. } => UNRESOLVED_VARIABLE,
            ResolveError::Template(error) => error.code(),
            ResolveError::Call { .. } => "template-failed",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let what = if names.len() == 1 { "the variable" } else { "the variables" };
    format!("{what} {}", quoted.join(", "))
}
