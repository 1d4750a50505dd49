//! The state of a row as it is announced: small, with the ids that place it, so that two of them
//! are compared to find out whether a commit changed what listeners and metrics follow.

use super::batch::BatchRow;
use super::ids::{InitId, MemberId, PhaseId, StepId};
use super::init::InitRow;
use super::key::Row;
use super::member::{MemberKeyRow, MemberRow};
use super::phase::PhaseRow;
use super::removal::RemovalRow;
use super::rollback::{Origin, RollbackRow};
use super::status::{BatchStatus, MemberStatus, PhaseStatus, WorkStatus};
use super::step::StepRow;

/// State of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// Of the batch.
    Batch {
        /// State of the batch.
        status: BatchStatus,
        /// Whether it is paused.
        is_paused: bool,
        /// Whether all its first members are created.
        is_sealed: bool,
    },
    /// Of a phase.
    Phase {
        /// The phase.
        id: PhaseId,
        /// State of the phase.
        status: PhaseStatus,
        /// What keeps it waiting for a person.
        held: Option<PhaseHeld>,
    },
    /// Of an init step.
    Init {
        /// The init step.
        id: InitId,
        /// State of the init step.
        status: WorkStatus,
    },
    /// Of a member.
    Member {
        /// The member.
        id: MemberId,
        /// State of the member.
        status: MemberStatus,
    },
    /// Of a step.
    Step {
        /// The step.
        id: StepId,
        /// Its phase.
        phase: PhaseId,
        /// Its member.
        member: MemberId,
        /// State of the step.
        status: WorkStatus,
    },
    /// Of a step of a rollback.
    Rollback {
        /// The step that is rolled back.
        origin: Origin,
        /// Order within the rollback, from 0.
        index: u32,
        /// State of the step.
        status: WorkStatus,
    },
    /// Of a removal step.
    Removal {
        /// The member that has left.
        member: MemberId,
        /// Order within the removal, from 0.
        index: u32,
        /// State of the step.
        status: WorkStatus,
    },
}

/// What keeps an open phase waiting for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseHeld {
    /// It waits for an approval.
    Approval,
    /// Its error budget is spent.
    Budget,
}

impl Row {
    /// Whether it has yet to end: it needs a wake-up, or something that releases it.
    pub fn waits(&self) -> bool {
        match self {
            Row::Batch(row) => !row.status.is_terminal(),
            Row::Phase(row) => !row.status.is_terminal(),
            Row::Member(row) => row.is_leaving() || row.is_returning,
            Row::MemberKey(_) => false,
            Row::Step(row) => row.work.status.is_open(),
            Row::Init(row) => row.work.status.is_open() || row.rolls_back(),
            Row::Rollback(row) => row.work.status.is_open(),
            Row::Removal(row) => row.work.status.is_open(),
        }
    }
}

/// A row that has a state to announce.
pub(super) trait Stateful {
    /// The state; none for rows that only help to find others.
    fn state(&self) -> Option<RowState>;
}

impl Stateful for BatchRow {
    fn state(&self) -> Option<RowState> {
        let (is_paused, is_sealed) = (self.paused_at.is_some(), self.is_sealed);
        Some(RowState::Batch { status: self.status, is_paused, is_sealed })
    }
}

impl Stateful for PhaseRow {
    fn state(&self) -> Option<RowState> {
        let waits = self.approval_requested_at.is_some() && self.approved_at.is_none();
        let held = match self.status {
            PhaseStatus::Pending if waits => Some(PhaseHeld::Approval),
            PhaseStatus::Dispatched if self.stopped_at.is_some() => Some(PhaseHeld::Budget),
            _ => None,
        };
        Some(RowState::Phase { id: self.id, status: self.status, held })
    }
}

impl Stateful for InitRow {
    fn state(&self) -> Option<RowState> {
        Some(RowState::Init { id: self.id, status: self.work.status })
    }
}

impl Stateful for MemberRow {
    fn state(&self) -> Option<RowState> {
        Some(RowState::Member { id: self.id, status: self.status })
    }
}

impl Stateful for MemberKeyRow {
    fn state(&self) -> Option<RowState> {
        None
    }
}

impl Stateful for StepRow {
    fn state(&self) -> Option<RowState> {
        let (phase, member) = (self.phase_execution_id, self.batch_member_id);
        Some(RowState::Step { id: self.id, phase, member, status: self.work.status })
    }
}

impl Stateful for RollbackRow {
    fn state(&self) -> Option<RowState> {
        let (index, status) = (self.work.step_index, self.work.status);
        self.origin().map(|origin| RowState::Rollback { origin, index, status })
    }
}

impl Stateful for RemovalRow {
    fn state(&self) -> Option<RowState> {
        let (member, index) = (self.batch_member_id, self.work.step_index);
        Some(RowState::Removal { member, index, status: self.work.status })
    }
}
