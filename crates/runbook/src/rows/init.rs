//! `init_executions`: one step that runs once for a batch, before its phases.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{BatchId, InitId};
use super::status::SequenceState;
use super::work::Work;

/// One init step of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitRow {
    /// Primary key.
    pub id: InitId,
    /// The batch.
    pub batch_id: BatchId,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// Function, parameters, attempts and outcome.
    #[serde(flatten)]
    pub work: Work,
    /// How far the rollback of this step has got. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_state: Option<SequenceState>,
    /// Run of the batch's rollbacks that `rollback_state` is about. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_run: Option<u32>,
    /// Why its rollback failed, while `rollback_state` is `failed`. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_error: Option<String>,
}

impl InitRow {
    /// The earliest time at which the row has to be looked at.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.work.due_at()
    }

    /// Whether its rollback has yet to end.
    pub fn rolls_back(&self) -> bool {
        self.rollback_state.is_some_and(SequenceState::is_open)
    }
}
