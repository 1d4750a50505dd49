//! Members that take part again: they returned, were resumed or are retried. Steps that were cancelled
//! or have failed wait again, and phases that had ended are open again.

use super::effect::Event;
use super::turn::{Step, Turn};
use crate::message::EventMessage;
use crate::rows::{
    BatchStatus, MemberId, MemberStatus, Ordinal, PhaseId, PhaseReason, PhaseRow, PhaseStatus, RetryFrom,
    SequenceState, StepRow, WorkKey,
};

/// Which steps of a member wait again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Those that did not succeed.
    FromStop,
    /// All of the phase in which the member failed, and those that did not succeed.
    FromPhase,
    /// All, because the removal steps have undone them.
    All,
}

impl From<RetryFrom> for Again {
    fn from(from: RetryFrom) -> Self {
        match from {
            RetryFrom::Step => Again::FromStop,
            RetryFrom::Phase => Again::FromPhase,
        }
    }
}

impl Turn<'_> {
    /// A member that had left has returned, and its removal steps have ended. If there were any, it
    /// starts over; else it goes on where it was.
    pub(super) fn welcome_back(&mut self, id: MemberId) -> Step<()> {
        let now = self.now();
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        let again = if member.removal_state.is_some() { Again::All } else { Again::FromStop };
        if again == Again::All {
            member.worker_data.clear();
        }
        member.removal_state = None;
        member.removal_error = None;
        member.removed_at = None;
        member.remove_dispatched_at = None;
        member.added_at = now;
        member.add_dispatched_at = Some(now);
        member.is_current = true;
        member.last_seen_at = None;
        let member_key = member.member_key.clone();
        self.rows.put_member(member);
        self.announce_member_added(id, member_key);
        self.revive(id, again)
    }

    /// `member-added`
    pub(super) fn announce_member_added(&mut self, id: MemberId, member_key: String) {
        let batch = self.batch();
        let message = EventMessage::MemberAdded {
            runbook_name: batch.runbook_name.clone(),
            runbook_version: batch.runbook_version,
            batch_id: batch.id,
            batch_member_id: id,
            member_key,
        };
        self.announce(Event::Bus(message));
    }

    /// A member takes part again, in all phases that take members.
    pub(super) fn revive(&mut self, id: MemberId, again: Again) -> Step<()> {
        let Some(ordinal) = self.batch().ordinal(id) else { return Ok(()) };
        self.set_member_status(id, MemberStatus::Active)?;
        for phase in self.phase_ids() {
            let row = self.phase(phase);
            if row.takes_members() && ordinal < row.created {
                self.revive_in_phase(phase, id, ordinal, again)?;
            }
        }
        self.start_first_open(ordinal)
    }

    fn revive_in_phase(&mut self, phase: PhaseId, id: MemberId, ordinal: Ordinal, again: Again) -> Step<()> {
        let steps = self.phase(phase).steps;
        let mut has_failed = false;
        for index in 0..steps {
            let step = self.step_of(phase, ordinal, index)?;
            has_failed |= step.is_some_and(|step| step.work.status.is_failure());
        }
        let is_whole_phase = again == Again::All || (again == Again::FromPhase && has_failed);
        for index in 0..steps {
            match self.step_of(phase, ordinal, index)?.cloned() {
                None => self.create_step(phase, ordinal, id, index)?,
                Some(step) if step.work.status.is_open() => {}
                Some(step) if step.work.status.is_passed() && !is_whole_phase => {}
                Some(step) => self.reset_step(step)?,
            }
        }
        self.reopen_phase(phase);
        Ok(())
    }

    /// A step that had ended waits for its turn again.
    pub(super) fn reset_step(&mut self, mut step: StepRow) -> Step<()> {
        let blueprint = self.blueprint(WorkKey::Step(step.id))?;
        step.work.reset(blueprint.map_or(0, |blueprint| blueprint.step().retry.max_retries));
        step.rollback_state = None;
        step.rollback_run = None;
        step.rollback_error = None;
        self.rows.put_step(step);
        Ok(())
    }

    /// Begins the first open step of a member, if it may begin.
    pub(super) fn start_first_open(&mut self, ordinal: Ordinal) -> Step<()> {
        for phase in self.phase_ids() {
            if ordinal < self.phase(phase).created
                && self.phase(phase).step_counts.open() > 0
                && let Some(index) = self.first_open(phase, ordinal)?
            {
                return self.start_if_allowed(phase, ordinal, index);
            }
        }
        Ok(())
    }

    /// A phase that had ended is at work again, because it has open steps.
    pub(super) fn reopen_phase(&mut self, id: PhaseId) {
        let phase = self.phase(id);
        if !phase.status.is_terminal() || phase.step_counts.open() == 0 {
            return;
        }
        let phase = self.phase_mut(id);
        phase.status = PhaseStatus::Dispatched;
        phase.completed_at = None;
        phase.reason = None;
        self.announce(Event::Phase { phase: id, status: PhaseStatus::Dispatched, reason: None });
    }

    /// A batch that had ended is at work again. Phases that were left out because it stopped are due again.
    pub(super) fn reopen_batch(&mut self, status: BatchStatus) {
        // Phases of an earlier version are replaced by those of the version that the batch follows.
        let version = self.batch().runbook_version;
        let stopped: Vec<PhaseId> = self
            .rows
            .phases()
            .filter(|phase| phase.runbook_version == version && was_left_out(phase))
            .map(|phase| phase.id)
            .collect();
        for id in stopped {
            let phase = self.phase_mut(id);
            phase.status = PhaseStatus::Pending;
            phase.reason = None;
            phase.completed_at = None;
            phase.preparing_at = None;
            phase.created_before = phase.created_before.max(phase.created);
            phase.created = 0;
            self.announce(Event::Phase { phase: id, status: PhaseStatus::Pending, reason: None });
        }
        let batch = self.batch_mut();
        batch.ending = None;
        batch.error_message = None;
        batch.completed_at = None;
        if batch.status != status {
            batch.status = status;
            self.announce(Event::Batch(status));
        }
    }

    /// Whether a member's removal steps are at work, or wait for a rollback.
    pub(super) fn is_leaving(&self, id: MemberId) -> Step<bool> {
        Ok(self.member(id)?.is_some_and(|member| member.removal_state.is_some_and(SequenceState::is_open)))
    }
}

/// Whether a phase never began because the batch stopped or its init failed.
fn was_left_out(phase: &PhaseRow) -> bool {
    phase.status == PhaseStatus::Skipped
        && matches!(phase.reason, Some(PhaseReason::Stopped | PhaseReason::InitFailed))
}
