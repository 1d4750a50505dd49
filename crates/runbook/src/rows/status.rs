//! The values of the `status` columns, to the letter of the seed, with the additions that `mod.rs` lists.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `batches.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// Found or created; init has not begun.
    Detected,
    /// Init steps are at work.
    InitDispatched,
    /// Init has ended; phases run when they are due.
    Active,
    /// All phases have ended and none has failed.
    Completed,
    /// A phase or an init step has failed, and nothing is left to do.
    Failed,
    /// Cancelled by a person. Addition.
    Cancelled,
}

impl BatchStatus {
    /// The value of the column.
    pub fn name(self) -> &'static str {
        match self {
            BatchStatus::Detected => "detected",
            BatchStatus::InitDispatched => "init_dispatched",
            BatchStatus::Active => "active",
            BatchStatus::Completed => "completed",
            BatchStatus::Failed => "failed",
            BatchStatus::Cancelled => "cancelled",
        }
    }

    /// Whether the batch has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, BatchStatus::Completed | BatchStatus::Failed | BatchStatus::Cancelled)
    }
}

/// `batch_members.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// Takes part.
    Active,
    /// No longer returned by the data source.
    Removed,
    /// A step has failed for good; the member takes no further part. Addition.
    Failed,
    /// Cancelled by a person; takes no further part until it is resumed. Addition.
    Cancelled,
}

impl MemberStatus {
    /// The value of the column.
    pub fn name(self) -> &'static str {
        match self {
            MemberStatus::Active => "active",
            MemberStatus::Removed => "removed",
            MemberStatus::Failed => "failed",
            MemberStatus::Cancelled => "cancelled",
        }
    }
}

/// `phase_executions.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Not due yet, or waits for its predecessor, its steps or an approval.
    Pending,
    /// Its steps are released.
    Dispatched,
    /// Ended, and enough members have succeeded.
    Completed,
    /// Ended, and too few members have succeeded.
    Failed,
    /// Left out.
    Skipped,
    /// Replaced by a phase of a newer version before it began. Addition.
    Superseded,
}

impl PhaseStatus {
    /// The value of the column.
    pub fn name(self) -> &'static str {
        match self {
            PhaseStatus::Pending => "pending",
            PhaseStatus::Dispatched => "dispatched",
            PhaseStatus::Completed => "completed",
            PhaseStatus::Failed => "failed",
            PhaseStatus::Skipped => "skipped",
            PhaseStatus::Superseded => "superseded",
        }
    }

    /// Whether the phase has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, PhaseStatus::Pending | PhaseStatus::Dispatched)
    }
}

/// `status` of the four tables of work: steps, init steps, rollback steps and removal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkStatus {
    /// Not yet sent to a worker, or waiting for its next attempt.
    Pending,
    /// Sent to a worker; its result has not arrived.
    Dispatched,
    /// The worker has completed it.
    Succeeded,
    /// The worker returned an error, and there is no further attempt.
    Failed,
    /// The worker reported that it is still in progress.
    Polling,
    /// Polling took longer than allowed. A failure.
    PollTimeout,
    /// The rollback of a failed step has succeeded.
    RolledBack,
    /// Given up before it ended.
    Cancelled,
    /// Left out by a person; the member goes on with the next step. Addition.
    Skipped,
}

impl fmt::Display for WorkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl WorkStatus {
    /// The value of the column.
    pub fn name(self) -> &'static str {
        match self {
            WorkStatus::Pending => "pending",
            WorkStatus::Dispatched => "dispatched",
            WorkStatus::Succeeded => "succeeded",
            WorkStatus::Failed => "failed",
            WorkStatus::Polling => "polling",
            WorkStatus::PollTimeout => "poll_timeout",
            WorkStatus::RolledBack => "rolled_back",
            WorkStatus::Cancelled => "cancelled",
            WorkStatus::Skipped => "skipped",
        }
    }

    /// Whether it has ended.
    pub fn is_terminal(self) -> bool {
        !self.is_open()
    }

    /// Whether it has yet to end.
    pub fn is_open(self) -> bool {
        matches!(self, WorkStatus::Pending | WorkStatus::Dispatched | WorkStatus::Polling)
    }

    /// Whether the member may go on after it.
    pub fn is_passed(self) -> bool {
        matches!(self, WorkStatus::Succeeded | WorkStatus::Skipped)
    }

    /// Whether it has failed, rolled back or not.
    pub fn is_failure(self) -> bool {
        matches!(self, WorkStatus::Failed | WorkStatus::PollTimeout | WorkStatus::RolledBack)
    }
}

/// How far a sequence that follows a step or a member has got: a rollback or a removal. Addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceState {
    /// Has to wait for another sequence of the member.
    Waiting,
    /// Its steps are at work, one after the other.
    Running,
    /// All its steps have succeeded.
    Succeeded,
    /// One of its steps has failed; a person may retry it.
    Failed,
}

impl SequenceState {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            SequenceState::Waiting => "waiting",
            SequenceState::Running => "running",
            SequenceState::Succeeded => "succeeded",
            SequenceState::Failed => "failed",
        }
    }

    /// Whether it has yet to end.
    pub fn is_open(self) -> bool {
        matches!(self, SequenceState::Waiting | SequenceState::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(status: impl Serialize) -> String {
        serde_json::to_value(status).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn names_are_those_that_are_stored() {
        for status in [
            BatchStatus::Detected,
            BatchStatus::InitDispatched,
            BatchStatus::Active,
            BatchStatus::Completed,
            BatchStatus::Failed,
            BatchStatus::Cancelled,
        ] {
            assert_eq!(status.name(), stored(status));
        }
        for status in
            [MemberStatus::Active, MemberStatus::Removed, MemberStatus::Failed, MemberStatus::Cancelled]
        {
            assert_eq!(status.name(), stored(status));
        }
        for status in [
            PhaseStatus::Pending,
            PhaseStatus::Dispatched,
            PhaseStatus::Completed,
            PhaseStatus::Failed,
            PhaseStatus::Skipped,
            PhaseStatus::Superseded,
        ] {
            assert_eq!(status.name(), stored(status));
        }
        for status in [
            WorkStatus::Pending,
            WorkStatus::Dispatched,
            WorkStatus::Succeeded,
            WorkStatus::Failed,
            WorkStatus::Polling,
            WorkStatus::PollTimeout,
            WorkStatus::RolledBack,
            WorkStatus::Cancelled,
            WorkStatus::Skipped,
        ] {
            assert_eq!(status.name(), stored(status));
        }
        for state in
            [SequenceState::Waiting, SequenceState::Running, SequenceState::Succeeded, SequenceState::Failed]
        {
            assert_eq!(state.name(), stored(state));
        }
    }
}
