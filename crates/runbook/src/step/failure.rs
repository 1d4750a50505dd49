//! Failures: another attempt, or the end. A failed member takes no further part.

use super::effect::Event;
use super::turn::{Step, Turn};
use crate::rows::{MemberId, MemberStatus, Ordinal, PhaseId, StepId, WorkKey, WorkStatus, later};

impl Turn<'_> {
    /// An attempt has failed: try again if there are retries left, unless the batch or phase ends.
    pub(super) fn fail_attempt(&mut self, key: WorkKey, message: &str) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        if work.retry_count >= work.retry_limit || self.is_ending(key) {
            return self.fail_for_good(key, WorkStatus::Failed, message);
        }
        let retry_after = later(self.now(), work.retry_interval_sec);
        work.retry(Some(retry_after));
        work.error_message = Some(super::attempt::kept_message(message));
        self.rows.put_work(key, work)
    }

    /// Whether steps are given up, so that another attempt would be too.
    fn is_ending(&self, key: WorkKey) -> bool {
        match key {
            WorkKey::Step(id) => {
                let phase = self.rows.locate(id).map(|(phase, _)| phase);
                self.batch().is_cancelling() || phase.is_some_and(|phase| phase.ending.is_some())
            }
            WorkKey::Init(_) => self.batch().is_cancelling(),
            WorkKey::Rollback(..) | WorkKey::Removal(..) => false,
        }
    }

    /// A piece of work has failed for good.
    pub(super) fn fail_for_good(&mut self, key: WorkKey, status: WorkStatus, message: &str) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        work.fail(status, message, self.now());
        self.rows.put_work(key, work)?;
        match key {
            WorkKey::Step(id) => self.fail_member(id),
            WorkKey::Init(id) => self.fail_init(id),
            WorkKey::Rollback(origin, index) => self.rollback_step_failed(origin, index),
            WorkKey::Removal(member, index) => self.removal_step_failed(member, index),
        }
    }

    /// The member of a failed step takes no further part; what the step has done is rolled back.
    fn fail_member(&mut self, step: StepId) -> Step<()> {
        let Some((phase, place)) = self.rows.locate(step) else { return Ok(()) };
        let (phase, ordinal) = (phase.id, place.ordinal);
        let Some(id) = self.batch().member_id(ordinal) else { return Ok(()) };
        self.set_member_status(id, MemberStatus::Failed)?;
        self.cancel_open_steps(ordinal)?;
        self.start_rollback(phase, step, id)
    }

    /// Gives a member another state.
    pub(super) fn set_member_status(&mut self, id: MemberId, status: MemberStatus) -> Step<()> {
        let now = self.now();
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        if member.status != status {
            member.status = status;
            member.failed_at = (status == MemberStatus::Failed).then_some(now);
            self.rows.put_member(member);
            self.announce(Event::Member { member: id, status });
        }
        Ok(())
    }

    /// Cancels all open steps of a member, in all phases. Running work is told.
    pub(super) fn cancel_open_steps(&mut self, ordinal: Ordinal) -> Step<()> {
        for phase in self.phase_ids() {
            if self.phase(phase).step_counts.open() > 0 {
                self.cancel_steps_of_phase(phase, ordinal)?;
            }
        }
        Ok(())
    }

    /// Cancels the open steps of a member in one phase.
    pub(super) fn cancel_steps_of_phase(&mut self, phase: PhaseId, ordinal: Ordinal) -> Step<()> {
        for index in 0..self.phase(phase).steps {
            let step = self.step_of(phase, ordinal, index)?;
            let open = step.filter(|step| step.work.status.is_open()).map(|step| step.id);
            if let Some(id) = open {
                self.give_up(WorkKey::Step(id), WorkStatus::Cancelled)?;
            }
        }
        Ok(())
    }
}
