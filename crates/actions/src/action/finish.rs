//! The end of an action: its status, and the action that is its next run.

use jiff::Timestamp;
use segno::store::RecordWrite;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error::ActionError;
use super::model::{Action, ActionStatus, ActionTrigger};
use crate::functions::Scope;

impl Action {
    /// Ends the action. Returns the write that stores its next run, if it recurs: it belongs into the same commit, so that
    /// no end, good or bad, is the end of the recurrence.
    pub(crate) fn finish(
        &mut self,
        scope: &Scope,
        status: ActionStatus,
        now: Timestamp,
    ) -> Result<Option<RecordWrite>, ActionError> {
        self.status = status;
        self.updated_at = now;
        self.next_run(now).map(|next| next.insertion(scope)).transpose()
    }

    /// The action that is the next run of this one.
    fn next_run(&self, now: Timestamp) -> Option<Action> {
        let next_tick_at = self.next_run_at(now)?;
        Some(Action {
            id: next_id(self.id, next_tick_at),
            trigger: ActionTrigger::Scheduled { next_tick_at },
            status: ActionStatus::Pending,
            created_at: now,
            updated_at: now,
            instance: None,
            ..self.clone()
        })
    }
}

/// An id that follows from the run before, so that ending twice makes one next run.
fn next_id(before: Uuid, at: Timestamp) -> Uuid {
    let hash = Sha256::digest(format!("{before} {at}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
