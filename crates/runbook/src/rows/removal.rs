//! `removal_executions`: one step for a member that has left its batch. The table is an addition.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{BatchId, MemberId};
use super::work::Work;

/// One step for a member that has left. Its key is the member and `step_index`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovalRow {
    /// The batch.
    pub batch_id: BatchId,
    /// The member.
    pub batch_member_id: MemberId,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// Which removal of the member this is, from 1.
    pub run: u32,
    /// Function, parameters, attempts and outcome.
    #[serde(flatten)]
    pub work: Work,
}

impl RemovalRow {
    /// The earliest time at which the row has to be looked at.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.work.due_at()
    }
}
