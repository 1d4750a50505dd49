//! `step_executions`: one step of one phase for one member.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{MemberId, PhaseId, StepId};
use super::status::SequenceState;
use super::work::Work;

/// One step of one phase for one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Primary key; gives phase, index and member by arithmetic.
    pub id: StepId,
    /// The phase.
    pub phase_execution_id: PhaseId,
    /// The member.
    pub batch_member_id: MemberId,
    /// Function, parameters, attempts and outcome.
    #[serde(flatten)]
    pub work: Work,
    /// How far the rollback of this step has got. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_state: Option<SequenceState>,
    /// Run of the member's rollbacks that `rollback_state` is about. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_run: Option<u32>,
    /// Why its rollback failed, while `rollback_state` is `failed`. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_error: Option<String>,
}

impl StepRow {
    /// The earliest time at which the row has to be looked at.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.work.due_at()
    }

    /// Whether its rollback has yet to end.
    pub fn rolls_back(&self) -> bool {
        self.rollback_state.is_some_and(SequenceState::is_open)
    }
}
