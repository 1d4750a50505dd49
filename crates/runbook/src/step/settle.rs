//! Consequences: what follows from the counters of phases and batch, until nothing changes. Drawn after
//! every input, from the batch, its phases and its init steps alone.

use super::turn::{Step, Turn};
use crate::rows::BatchStatus;

/// Rounds after which consequences would have no end: each changes the state of the batch, of a phase, of an init
/// step or of a wave, and none goes back.
const MAX_ROUNDS: u32 = 10_000;

impl Turn<'_> {
    /// Draws all consequences.
    pub(super) fn settle(&mut self) -> Step<()> {
        for round in 0.. {
            debug_assert!(round < MAX_ROUNDS, "consequences without end: {:#?}", self.rows);
            let mut has_changed = self.settle_start()?;
            has_changed |= self.settle_init()?;
            for phase in self.phase_ids() {
                has_changed |= self.settle_phase(phase)?;
            }
            has_changed |= self.settle_end()?;
            if !has_changed {
                break;
            }
        }
        self.settle_blackout()
    }

    /// While a blackout holds something back, the batch is due when it ends.
    fn settle_blackout(&mut self) -> Step<()> {
        let batch = self.batch();
        let is_open = !batch.status.is_terminal() && batch.paused_at.is_none() && !batch.is_cancelling();
        let waits = is_open
            && (self.rows.phases().any(|phase| phase.release_cursor.is_some())
                || (batch.status == BatchStatus::InitDispatched && self.next_init().is_some()));
        let until = if waits { self.blackout()? } else { None };
        if self.batch().blackout_until != until {
            self.batch_mut().blackout_until = until;
        }
        Ok(())
    }
}
