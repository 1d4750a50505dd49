//! The next run of an action that recurs.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::model::{Action, ActionStatus, ActionTrigger};

impl Action {
    /// The action that is the next run of this one. It is stored in the commit that ends this one, so that no end, good
    /// or bad, is the end of the recurrence.
    pub(crate) fn next_run(&self, now: Timestamp) -> Option<Action> {
        let next_tick_at = self.next_run_at(now)?;
        Some(Action {
            id: next_id(self.id, next_tick_at),
            trigger: ActionTrigger::Scheduled { next_tick_at },
            status: ActionStatus::Pending,
            created_at: now,
            updated_at: now,
            instance: None,
            note: None,
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
