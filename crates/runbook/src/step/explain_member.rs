//! Why a member waits: for its removal or rollback, for one of its steps, for a phase that has not
//! begun; or why it takes no part any more.

use super::explain::{Found, LOST, Releaser, rests, waits};
use super::turn::{Step, Turn};
use crate::rows::{
    MemberId, MemberRow, MemberStatus, Ordinal, Origin, PhaseStatus, RowKey, SequenceState, StepRow, WorkKey,
};

impl Turn<'_> {
    pub(super) fn member_releaser(&self, id: MemberId) -> Step<Found> {
        let Some(member) = self.member(id)? else { return rests("there is no such member") };
        match (member.removal_state, member.rollback_of) {
            (Some(SequenceState::Running), _) => {
                let key = |index| WorkKey::Removal(id, index);
                return self.sequence_releaser(member.removal_steps, key, "its removal steps have not ended");
            }
            (Some(SequenceState::Waiting), None) => return waits(Releaser::Nothing, LOST),
            (waiting, Some(step)) => {
                let is_leaving = waiting == Some(SequenceState::Waiting);
                let why = if is_leaving {
                    "it leaves once its rollback has ended"
                } else {
                    "it has failed, and its rollback has not ended"
                };
                let origin = Origin::Step(step);
                let count = self.rollback_length(origin)?;
                return self.sequence_releaser(count, |index| WorkKey::Rollback(origin, index), why);
            }
            _ if member.is_returning => return waits(Releaser::Nothing, LOST),
            _ => {}
        }
        match member.status {
            MemberStatus::Active => self.active_member_releaser(member),
            MemberStatus::Failed => self.failed_member(member),
            MemberStatus::Cancelled => {
                rests("it was cancelled and takes no further part; the request `resume_member` lets it go on")
            }
            MemberStatus::Removed => rests(removed(member)),
        }
    }

    /// What waits for a sequence waits for the step of it that is open.
    fn sequence_releaser(&self, count: u32, key: impl Fn(u32) -> WorkKey, why: &str) -> Step<Found> {
        for key in (0..count).map(key) {
            if self.rows.work(key)?.is_some_and(|work| work.status.is_open()) {
                return waits(Releaser::Row(key.into()), why);
            }
        }
        waits(Releaser::Nothing, LOST)
    }

    /// A member that takes part waits for its first open step, or for a phase that will have one.
    fn active_member_releaser(&self, member: &MemberRow) -> Step<Found> {
        if self.batch().status.is_terminal() {
            return rests("the batch has ended");
        }
        for phase in self.rows.phases().filter(|phase| phase.step_counts.open() > 0) {
            let open = |step: &&StepRow| step.work.status.is_open();
            if let Some(step) = self.find_step(phase.id, member.ordinal, open)? {
                let (name, phase) = (&step.work.step_name, &phase.phase_name);
                let why = format!("step {name:?} of phase {phase:?} is {}", step.work.status);
                return waits(Releaser::Row(WorkKey::Step(step.id).into()), why);
            }
        }
        let waiting = self.rows.phases().find(|phase| {
            let is_late = phase.takes_members() && phase.created <= member.ordinal;
            match phase.status {
                PhaseStatus::Pending => phase.ending.is_none(),
                PhaseStatus::Dispatched => is_late,
                _ => false,
            }
        });
        if let Some(phase) = waiting {
            let why = format!("it has no open step; phase {:?} comes next", phase.phase_name);
            return waits(Releaser::Row(RowKey::Phase(phase.id)), why);
        }
        waits(Releaser::Row(RowKey::Batch), "all its steps have ended; the batch has not")
    }

    /// Why a failed member has failed, and what became of the rollback.
    fn failed_member(&self, member: &MemberRow) -> Step<Found> {
        for phase in self.rows.phases().filter(|phase| phase.members_failed > 0) {
            let failed = |step: &&StepRow| step.work.status.is_failure();
            let Some(step) = self.find_step(phase.id, member.ordinal, failed)? else { continue };
            let reason = step.work.error_message.as_deref().unwrap_or("no reason is known");
            let mut why = format!(
                "it has failed in step {:?} (step-{}) of phase {:?}: {reason}",
                step.work.step_name, step.id, phase.phase_name
            );
            match (step.rollback_state, &step.rollback_error) {
                (Some(SequenceState::Failed), error) => {
                    let error = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
                    why.push_str(&format!(
                        "; its rollback has failed{error}; the request `retry_rollback` tries it again"
                    ));
                }
                (Some(SequenceState::Succeeded), _) => why.push_str("; the step is rolled back"),
                _ => {}
            }
            why.push_str("; the request `retry_members` tries the member again");
            return rests(why);
        }
        rests("it has failed; the request `retry_members` tries it again")
    }

    /// The first step of a member in a phase for which a condition holds.
    fn find_step(
        &self,
        phase: crate::rows::PhaseId,
        ordinal: Ordinal,
        is_wanted: impl Fn(&&StepRow) -> bool,
    ) -> Step<Option<&StepRow>> {
        for index in 0..self.phase(phase).steps {
            if let Some(step) = self.step_of(phase, ordinal, index)?.filter(&is_wanted) {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }
}

/// That a member has left, and what became of its removal steps.
fn removed(member: &MemberRow) -> String {
    match (member.removal_state, &member.removal_error) {
        (Some(SequenceState::Failed), error) => {
            let error = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            format!(
                "it has left, and its removal steps have failed{error}; the request `retry_removal` tries \
                 them again"
            )
        }
        (Some(SequenceState::Succeeded), _) => "it has left, and its removal steps have succeeded".to_owned(),
        _ => "it has left; it takes part again when its source has it again".to_owned(),
    }
}
