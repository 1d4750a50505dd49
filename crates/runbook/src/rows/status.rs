//! The values of the `status` columns, to the letter of the seed, with the additions that `mod.rs` lists.

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

impl WorkStatus {
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
    /// Whether it has yet to end.
    pub fn is_open(self) -> bool {
        matches!(self, SequenceState::Waiting | SequenceState::Running)
    }
}
