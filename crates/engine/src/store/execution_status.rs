//! The states of an execution.

/// State of an execution, as the runtime computes it. A store keeps it and knows only what is terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ExecutionStatus {
    /// Known, but its start lies ahead (delayed start, or messages that came before the start).
    Pending,
    /// Started and not ended.
    #[default]
    Running,
    /// Held by an operator or by an exhausted activity; resumes where it stopped.
    Paused,
    /// Ended with a result.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Ended because it was cancelled.
    Cancelled,
    /// Ended by starting the next execution of the same instance.
    ContinuedAsNew,
}

impl ExecutionStatus {
    /// All states, for listings and tests.
    pub const ALL: [ExecutionStatus; 7] = [
        ExecutionStatus::Pending,
        ExecutionStatus::Running,
        ExecutionStatus::Paused,
        ExecutionStatus::Completed,
        ExecutionStatus::Failed,
        ExecutionStatus::Cancelled,
        ExecutionStatus::ContinuedAsNew,
    ];

    /// Whether the instance has ended for good. `ContinuedAsNew` is not: the next execution follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, ExecutionStatus::Completed | ExecutionStatus::Failed | ExecutionStatus::Cancelled)
    }

    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Pending => "Pending",
            ExecutionStatus::Running => "Running",
            ExecutionStatus::Paused => "Paused",
            ExecutionStatus::Completed => "Completed",
            ExecutionStatus::Failed => "Failed",
            ExecutionStatus::Cancelled => "Cancelled",
            ExecutionStatus::ContinuedAsNew => "ContinuedAsNew",
        }
    }

    /// The state with this stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl std::fmt::Display for ExecutionStatus {
    /// In words, for people; the stored name is [`ExecutionStatus::as_str`].
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ExecutionStatus::Pending => "pending",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Paused => "paused",
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::ContinuedAsNew => "continued as new",
        })
    }
}
