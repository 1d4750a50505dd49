//! Why a schedule is refused.

/// The code of every [`ScheduleError`], with a page in `docs/errors/`.
pub const INVALID_SCHEDULE: &str = "invalid-schedule";

/// A field of a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem} [{INVALID_SCHEDULE}]")]
pub struct ScheduleError {
    field: &'static str,
    problem: String,
}

impl ScheduleError {
    pub(super) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        ScheduleError { field, problem: problem.into() }
    }

    /// The field, as it is called in a [`ScheduleSpec`](super::ScheduleSpec).
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        INVALID_SCHEDULE
    }

    /// What is wrong with it, and what to do.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}
