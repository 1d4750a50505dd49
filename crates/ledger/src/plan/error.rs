//! Why a run cannot be planned, and why a list cannot be expanded.

use segno::store::ErrorKind;

/// The code of [`PlanError`], with a page in `docs/errors/`.
pub const INVALID_RUN: &str = "invalid-run";

/// A run cannot be planned: parameters, partition or selection do not fit the DAG.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} [{INVALID_RUN}]", .problems.join("\n"))]
pub struct PlanError {
    problems: Vec<String>,
}

impl PlanError {
    pub(super) fn new(problems: Vec<String>) -> Self {
        PlanError { problems }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_RUN
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// All that is wrong.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
