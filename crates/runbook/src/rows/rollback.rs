//! `rollback_executions`: one step of a rollback. The table is an addition.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{BatchId, InitId, MemberId, StepId};
use super::work::Work;

/// The failed step that a rollback undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A step of a phase, with its member's data.
    Step(StepId),
    /// An init step, with the batch's data.
    Init(InitId),
}

/// One step of a rollback. Its key is the failed step and `step_index`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollbackRow {
    /// The batch.
    pub batch_id: BatchId,
    /// The member; none for an init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_member_id: Option<MemberId>,
    /// The failed step of a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_execution_id: Option<StepId>,
    /// The failed init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_execution_id: Option<InitId>,
    /// Name of the rollback in the runbook.
    pub rollback_name: String,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// Which rollback of the member, or of the batch, this is, from 1.
    pub run: u32,
    /// Function, parameters, attempts and outcome.
    #[serde(flatten)]
    pub work: Work,
}

impl RollbackRow {
    /// The failed step.
    pub fn origin(&self) -> Option<Origin> {
        self.step_execution_id.map(Origin::Step).or(self.init_execution_id.map(Origin::Init))
    }

    /// The earliest time at which the row has to be looked at.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.work.due_at()
    }
}
