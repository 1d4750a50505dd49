//! Messages of the bus. We send them ourselves; those of others are accepted for rows that we hold. Phases and
//! init begin by the state of the rows, so their messages are reminders: what is due has begun or
//! begins now, what is not due does not.

use super::effect::{IgnoredReason, Verdict};
use super::turn::{Step, Turn};
use crate::message::EventMessage;
use crate::rows::{
    BatchStatus, InitId, MemberId, MemberStatus, PhaseId, PhaseStatus, StepId, WorkKey, WorkStatus,
};

/// The row that the seed's messages name by `stepExecutionId`.
fn work_key(id: u64, is_init_step: bool) -> WorkKey {
    if is_init_step { WorkKey::Init(InitId(id)) } else { WorkKey::Step(StepId(id)) }
}

impl Turn<'_> {
    pub(super) fn take_event(&mut self, event: &EventMessage) -> Step<Verdict> {
        if event.batch_id() != self.batch().id {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        }
        match event {
            EventMessage::BatchInit { .. } => Ok(match self.batch().status {
                BatchStatus::Detected => Verdict::Applied,
                _ => Verdict::Ignored(IgnoredReason::Duplicate),
            }),
            EventMessage::PhaseDue { phase_execution_id, .. } => Ok(self.take_phase_due(*phase_execution_id)),
            EventMessage::MemberAdded { batch_member_id, .. } => self.take_member_added(*batch_member_id),
            EventMessage::MemberRemoved { batch_member_id, .. } => self.take_member_removed(*batch_member_id),
            EventMessage::PollCheck { step_execution_id, is_init_step, .. } => {
                self.take_check(work_key(*step_execution_id, *is_init_step), WorkStatus::Polling)
            }
            EventMessage::RetryCheck { step_execution_id, is_init_step, .. } => {
                self.take_check(work_key(*step_execution_id, *is_init_step), WorkStatus::Pending)
            }
            EventMessage::DispatchTimeout { step_execution_id, is_init_step, dispatched_at, .. } => {
                let key = work_key(*step_execution_id, *is_init_step);
                if !self.is_known(key) {
                    return Ok(Verdict::Ignored(IgnoredReason::Unknown));
                }
                self.take_dispatch_timeout(key, *dispatched_at)
            }
        }
    }

    fn take_phase_due(&self, id: PhaseId) -> Verdict {
        let Some(phase) = self.rows.phase(id) else { return Verdict::Ignored(IgnoredReason::Unknown) };
        let is_due = phase.due_at.is_some_and(|due_at| due_at <= self.now());
        match phase.status {
            PhaseStatus::Pending if is_due => Verdict::Applied,
            PhaseStatus::Pending => Verdict::Ignored(IgnoredReason::Early),
            PhaseStatus::Dispatched => Verdict::Ignored(IgnoredReason::Duplicate),
            _ => Verdict::Ignored(IgnoredReason::Ended),
        }
    }

    fn take_member_added(&mut self, id: MemberId) -> Step<Verdict> {
        if self.batch().ordinal(id).is_none() {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        }
        if self.batch().status.is_terminal() || self.batch().ending.is_some() {
            return Ok(Verdict::Ignored(IgnoredReason::Ended));
        }
        let Some(mut member) = self.rows.member(id)?.cloned() else {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        };
        // The first members of a batch have been added by its creation.
        if member.status != MemberStatus::Removed || member.is_returning {
            return Ok(Verdict::Ignored(IgnoredReason::Duplicate));
        }
        let is_leaving = member.is_leaving();
        if is_leaving {
            member.is_returning = true;
            self.rows.put_member(member);
        } else {
            self.welcome_back(id)?;
        }
        Ok(Verdict::Applied)
    }

    fn take_member_removed(&mut self, id: MemberId) -> Step<Verdict> {
        if self.batch().ordinal(id).is_none() {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        }
        if self.batch().status.is_terminal() || self.batch().ending.is_some() {
            return Ok(Verdict::Ignored(IgnoredReason::Ended));
        }
        let has_changed = self.remove_if_present(id)?;
        Ok(if has_changed { Verdict::Applied } else { Verdict::Ignored(IgnoredReason::Duplicate) })
    }

    /// `poll-check` and `retry-check`: as if the row were due, if it is in the state that they are about.
    fn take_check(&mut self, key: WorkKey, status: WorkStatus) -> Step<Verdict> {
        if !self.is_known(key) {
            return Ok(Verdict::Ignored(IgnoredReason::Unknown));
        }
        let found = self.rows.work(key)?.map(|work| (work.status, work.is_called()));
        match found {
            None => Ok(Verdict::Ignored(IgnoredReason::Unknown)),
            // The call of a poll is at work: the interval counts from it.
            Some((_, true)) => Ok(Verdict::Ignored(IgnoredReason::Duplicate)),
            Some((found, false)) if found != status => Ok(Verdict::Ignored(IgnoredReason::Ended)),
            Some(_) => self.take_due(key),
        }
    }

    /// Whether a number can be that of a row of this batch.
    fn is_known(&self, key: WorkKey) -> bool {
        match key {
            WorkKey::Step(id) => self.rows.locate(id).is_some(),
            WorkKey::Init(id) => self.rows.init(id).is_some(),
            WorkKey::Rollback(..) | WorkKey::Removal(..) => true,
        }
    }
}
