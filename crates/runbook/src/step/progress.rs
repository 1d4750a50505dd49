//! Which step of a member is next, and whether it may begin.
//!
//! A step may begin when waves and barrier let it (`PhaseRow::is_gate_open`), the member has passed
//! its earlier steps of the phase, and has no open step in an earlier phase. The counters of the phases tell
//! whether the last two have to be looked at: usually not.

use super::turn::{Step, Turn};
use crate::rows::{Ordinal, PhaseId, PhaseStatus, StepId, StepRow, WorkStatus};

/// Whether a step waits for its turn, and not for a retry.
pub(super) fn waits_for_turn(step: &StepRow) -> bool {
    step.work.status == WorkStatus::Pending && step.work.retry_after.is_none()
}

impl Turn<'_> {
    /// A step was passed: the member begins the next one, if it may.
    pub(super) fn go_on_after(&mut self, step: StepId) -> Step<()> {
        let Some((phase, place)) = self.rows.locate(step) else { return Ok(()) };
        let (id, steps) = (phase.id, phase.steps);
        if place.index + 1 < steps {
            return self.start_if_allowed(id, place.ordinal, place.index + 1);
        }
        for later in self.phase_ids() {
            let row = self.phase(later);
            if later > id
                && row.status == PhaseStatus::Dispatched
                && place.ordinal < row.created
                && let Some(index) = self.first_open(later, place.ordinal)?
            {
                return self.start_if_allowed(later, place.ordinal, index);
            }
        }
        Ok(())
    }

    /// Begins a step if its turn has come.
    pub(super) fn start_if_allowed(&mut self, phase: PhaseId, ordinal: Ordinal, index: u32) -> Step<()> {
        // The gate comes first: behind a closed one, the row need not be loaded.
        if !self.phase(phase).is_gate_open(ordinal, index) {
            return Ok(());
        }
        let is_waiting = self.step_of(phase, ordinal, index)?.is_some_and(waits_for_turn);
        if is_waiting && self.may_begin(phase, ordinal, index)? {
            self.start(phase, ordinal, index)?;
        }
        Ok(())
    }

    /// Index of the first open step of a member in a phase.
    pub(super) fn first_open(&self, phase: PhaseId, ordinal: Ordinal) -> Step<Option<u32>> {
        for index in 0..self.phase(phase).steps {
            let step = self.step_of(phase, ordinal, index)?;
            if step.is_some_and(|step| step.work.status.is_open()) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Whether gate, earlier steps and earlier phases let a member begin a step.
    pub(super) fn may_begin(&self, phase: PhaseId, ordinal: Ordinal, index: u32) -> Step<bool> {
        let row = self.phase(phase);
        if !row.is_gate_open(ordinal, index) {
            return Ok(false);
        }
        if let Some(before) = index.checked_sub(1) {
            let group = row.groups.get(row.group_of(ordinal));
            if group.is_some_and(|group| group.open_until(before) > 0) {
                let step = self.step_of(phase, ordinal, before)?;
                if step.is_none_or(|step| !step.work.status.is_passed()) {
                    return Ok(false);
                }
            }
        }
        self.is_free_before(phase, ordinal)
    }

    /// Whether a member has no open step in the phases before one.
    fn is_free_before(&self, phase: PhaseId, ordinal: Ordinal) -> Step<bool> {
        for earlier in self.rows.phases() {
            if earlier.id >= phase || earlier.step_counts.open() == 0 {
                continue;
            }
            // When a step fails, the later ones are cancelled: an open step leaves the last one open.
            let last = self.step_of(earlier.id, ordinal, earlier.steps.saturating_sub(1))?;
            if last.is_some_and(|step| step.work.status.is_open()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
