//! A phase from pending to ended: its turn, its preparation, its approval, and what its end means for the
//! batch.

use jiff::Timestamp;

use super::effect::{Event, Notice};
use super::limits::{PREPARE_SEC, PREPARED_STEPS_PER_SEC};
use super::turn::{Step, Turn};
use crate::definition::{OnPhaseFailure, Phase};
use crate::rows::{
    BatchStatus, Group, Ordinal, PhaseEnding, PhaseId, PhaseReason, PhaseRow, PhaseStatus, ReleaseCursor,
    earlier, later,
};

impl Turn<'_> {
    /// Draws the consequences for one phase. Returns whether something changed.
    pub(super) fn settle_phase(&mut self, id: PhaseId) -> Step<bool> {
        let phase = self.phase(id);
        let batch = self.batch();
        if batch.status.is_terminal() {
            self.set_wake(id, None);
            return Ok(false);
        }
        if phase.ending.is_some() {
            return self.settle_ending_phase(id);
        }
        match phase.status {
            PhaseStatus::Pending if batch.ending.is_some() => {
                let reason = self.early_reason();
                self.end_early(id, PhaseEnding { status: PhaseStatus::Skipped, reason });
                Ok(true)
            }
            PhaseStatus::Dispatched if batch.is_cancelling() => {
                let ending = PhaseEnding { status: PhaseStatus::Failed, reason: PhaseReason::Cancelled };
                self.end_early(id, ending);
                Ok(true)
            }
            PhaseStatus::Pending => self.settle_pending(id),
            PhaseStatus::Dispatched => self.settle_dispatched(id),
            _ => Ok(false),
        }
    }

    pub(super) fn set_wake(&mut self, id: PhaseId, wake_at: Option<Timestamp>) {
        if self.phase(id).wake_at != wake_at {
            self.phase_mut(id).wake_at = wake_at;
        }
    }

    /// Prepares and begins a phase when its time has come.
    fn settle_pending(&mut self, id: PhaseId) -> Step<bool> {
        let now = self.now();
        let batch = self.batch();
        let is_batch_ready =
            batch.status == BatchStatus::Active && batch.paused_at.is_none() && self.next_init().is_none();
        let (members, row) = (batch.members, self.phase(id));
        let Some(due_at) = row.due_at.filter(|_| is_batch_ready) else {
            self.set_wake(id, None);
            return Ok(false);
        };
        if !self.are_predecessors_done(id)? {
            self.set_wake(id, None);
            return Ok(false);
        }
        if row.preparing_at.is_none() {
            let steps = u64::from(members) * u64::from(row.steps);
            let prepare_at = earlier(due_at, PREPARE_SEC + steps / PREPARED_STEPS_PER_SEC);
            if now < prepare_at {
                self.set_wake(id, Some(prepare_at));
                return Ok(false);
            }
            self.prepare(id)?;
            return Ok(true);
        }
        if row.created < members {
            // Creating the steps is cursor work.
            self.set_wake(id, None);
            return Ok(false);
        }
        if now < due_at {
            self.set_wake(id, Some(due_at));
            return Ok(false);
        }
        if self.waits_for_approval(id)? {
            return Ok(self.phase(id).ending.is_some());
        }
        self.begin_phase(id)?;
        Ok(true)
    }

    /// Whether a phase may begin as far as others are concerned: those before it have ended. Where members
    /// go on by themselves, it is enough that those of the same version have begun.
    pub(super) fn are_predecessors_done(&self, id: PhaseId) -> Step<bool> {
        let is_barrier = self.is_barrier(id)?;
        let version = self.phase(id).runbook_version;
        Ok(self.rows.phases().filter(|other| other.id != id).all(|other| {
            let may_overlap = !is_barrier && other.runbook_version == version;
            match other.status {
                PhaseStatus::Pending => other.id > id,
                PhaseStatus::Dispatched => may_overlap,
                _ => true,
            }
        }))
    }

    /// Makes the groups of members; steps are created by a cursor.
    fn prepare(&mut self, id: PhaseId) -> Step<()> {
        let members = self.batch().members;
        let steps = self.phase(id).steps;
        let ends = self.with_phase(id, |_, phase| group_ends(phase, members))?;
        let now = self.now();
        let phase = self.phase_mut(id);
        phase.preparing_at = Some(now);
        // A phase that is taken up again keeps its groups, because its steps are counted in them.
        if phase.groups.is_empty() {
            phase.groups = ends.into_iter().map(|end| Group::new(end, steps)).collect();
        }
        Ok(())
    }

    /// Asks for an approval, and fails the phase when none is given in time.
    fn waits_for_approval(&mut self, id: PhaseId) -> Step<bool> {
        let Some(approval) = self.with_phase(id, |_, phase| phase.approval.clone())? else {
            return Ok(false);
        };
        if self.phase(id).approved_at.is_some() {
            return Ok(false);
        }
        let now = self.now();
        let is_asked = self.phase(id).approval_requested_at.is_some();
        let requested_at = *self.phase_mut(id).approval_requested_at.get_or_insert(now);
        let deadline = approval.timeout_sec.map(|timeout_sec| later(requested_at, timeout_sec));
        if !is_asked {
            let phase_name = self.phase(id).phase_name.clone();
            let message = approval.message;
            self.notify(Notice::ApprovalWanted { phase: id, phase_name, message, deadline });
        }
        if deadline.is_some_and(|deadline| deadline <= now) {
            let ending = PhaseEnding { status: PhaseStatus::Failed, reason: PhaseReason::ApprovalTimeout };
            self.end_early(id, ending);
        } else {
            self.set_wake(id, deadline);
        }
        Ok(true)
    }

    /// `pending` → `dispatched`
    fn begin_phase(&mut self, id: PhaseId) -> Step<()> {
        let now = self.now();
        let phase = self.phase_mut(id);
        phase.status = PhaseStatus::Dispatched;
        phase.dispatched_at = Some(now);
        phase.wake_at = None;
        self.begin_wave(id, 0)?;
        self.announce(Event::Phase { phase: id, status: PhaseStatus::Dispatched, reason: None });
        Ok(())
    }

    /// Gives up a phase: its open steps are cancelled by a cursor, then it ends.
    pub(super) fn end_early(&mut self, id: PhaseId, ending: PhaseEnding) {
        let phase = self.phase_mut(id);
        phase.ending = Some(ending);
        phase.release_cursor = None;
        phase.wake_at = None;
        phase.wave_at = None;
        phase.stopped_at = None;
        phase.cancel_cursor = (phase.step_counts.open() > 0).then_some(0);
    }

    fn settle_ending_phase(&mut self, id: PhaseId) -> Step<bool> {
        let phase = self.phase(id);
        let is_done =
            phase.cancel_cursor.is_none() && phase.step_counts.open() == 0 && phase.rolling_back() == 0;
        match phase.ending {
            Some(ending) if is_done => {
                self.end_phase(id, ending)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Ends a phase that has run, by the share of members that have succeeded.
    pub(super) fn complete_phase(&mut self, id: PhaseId) -> Step<()> {
        let threshold = self.with_phase(id, |_, phase| phase.success_threshold)?;
        let ending =
            if has_succeeded(self.phase(id), threshold) { None } else { Some(PhaseReason::MembersFailed) };
        let status = if ending.is_none() { PhaseStatus::Completed } else { PhaseStatus::Failed };
        self.set_phase_ended(id, status, ending);
        if ending.is_some() { self.react_to_failure(id, PhaseReason::MembersFailed) } else { Ok(()) }
    }

    fn end_phase(&mut self, id: PhaseId, ending: PhaseEnding) -> Step<()> {
        self.set_phase_ended(id, ending.status, Some(ending.reason));
        self.release_later(id);
        let is_failure = ending.status == PhaseStatus::Failed && !self.batch().is_cancelling();
        if is_failure { self.react_to_failure(id, ending.reason) } else { Ok(()) }
    }

    /// Members whose steps were cancelled with a phase go on with their steps in later phases that are at work.
    fn release_later(&mut self, id: PhaseId) {
        for later in self.phase_ids() {
            if later > id && self.phase(later).status == PhaseStatus::Dispatched {
                let all = ReleaseCursor { next: 0, end: None, index: None };
                self.phase_mut(later).release_cursor = Some(all);
            }
        }
    }

    fn set_phase_ended(&mut self, id: PhaseId, status: PhaseStatus, reason: Option<PhaseReason>) {
        let now = self.now();
        let phase = self.phase_mut(id);
        phase.status = status;
        phase.reason = reason;
        phase.completed_at = Some(now);
        phase.ending = None;
        phase.release_cursor = None;
        phase.wake_at = None;
        phase.stopped_at = None;
        self.announce(Event::Phase { phase: id, status, reason });
    }

    /// What a failed phase does to the batch.
    fn react_to_failure(&mut self, id: PhaseId, reason: PhaseReason) -> Step<()> {
        let phase = self.phase(id);
        let notice = Notice::PhaseFailed {
            phase: id,
            phase_name: phase.phase_name.clone(),
            reason,
            members_failed: phase.members_failed,
        };
        let name = phase.phase_name.clone();
        self.notify(notice);
        let policy = self.with_phase(id, |definition, _| definition.on_phase_failure)?;
        let pending: Vec<PhaseId> = self
            .rows
            .phases()
            .filter(|phase| phase.status == PhaseStatus::Pending && phase.ending.is_none())
            .map(|phase| phase.id)
            .collect();
        match policy {
            OnPhaseFailure::Continue => {}
            OnPhaseFailure::Pause if pending.is_empty() => {}
            OnPhaseFailure::Pause => self.pause(Some(format!("phase {name:?} failed"))),
            OnPhaseFailure::Stop => {
                let ending = PhaseEnding { status: PhaseStatus::Skipped, reason: PhaseReason::Stopped };
                pending.into_iter().for_each(|phase| self.end_early(phase, ending));
            }
        }
        Ok(())
    }

    /// Holds back everything that has not begun.
    pub(super) fn pause(&mut self, reason: Option<String>) {
        let now = self.now();
        let batch = self.batch_mut();
        batch.paused_at = Some(now);
        batch.pause_reason = reason;
        self.announce(Event::Paused { since: Some(now) });
    }
}

/// Ends of the groups of members: one for each wave. The last takes in all that are left, and those who come
/// later.
fn group_ends(phase: &Phase, members: Ordinal) -> Vec<Option<Ordinal>> {
    let until_last = phase.waves.len().saturating_sub(1);
    let end = |percent: u8| u64::from(members) * u64::from(percent.min(100));
    let ends = phase.waves[..until_last].iter().map(|wave| {
        let end = end(wave.percent).div_ceil(100);
        Some(Ordinal::try_from(end).unwrap_or(Ordinal::MAX))
    });
    ends.chain([None]).collect()
}

/// Whether enough members have succeeded. A phase that no member took part in has nothing that failed.
fn has_succeeded(phase: &PhaseRow, threshold: u8) -> bool {
    let total = u64::from(phase.members_succeeded) + u64::from(phase.members_failed);
    u64::from(phase.members_succeeded) * 100 >= total * u64::from(threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Wave;

    fn phase(percents: &[u8]) -> Phase {
        Phase {
            name: "cutover".to_owned(),
            offset_minutes: 0,
            steps: Vec::new(),
            success_threshold: 100,
            max_parallel: None,
            waves: percents.iter().map(|percent| Wave { percent: *percent, pause_sec: 0 }).collect(),
            error_budget: None,
            approval: None,
        }
    }

    #[test]
    fn waves_cover_all_members_and_the_last_is_open() {
        for (percents, members, ends) in [
            (vec![], 10, vec![None]),
            (vec![100], 10, vec![None]),
            (vec![5, 25, 100], 100, vec![Some(5), Some(25), None]),
            (vec![1, 50, 100], 3, vec![Some(1), Some(2), None]),
            (vec![1, 100], 0, vec![Some(0), None]),
        ] {
            assert_eq!(group_ends(&phase(&percents), members), ends, "{percents:?} of {members}");
        }
    }
}
