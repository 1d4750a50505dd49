//! Requests of people. One that cannot be fulfilled is refused with a reason and changes nothing.

use super::effect::{Event, Verdict};
use super::refusal::{CANCELLING, refused};
use super::revive::Again;
use super::rollback::{has_failed_init_rollback, has_failed_rollback};
use super::turn::{Step, Turn};
use crate::message::{Action, Request};
use crate::rows::{
    BatchStatus, InitId, MemberId, MemberStatus, Origin, PhaseEnding, PhaseId, PhaseReason, PhaseStatus,
    RetryCursor, RetryFrom, SequenceState, StepId, WorkKey, WorkStatus, earlier,
};

impl Turn<'_> {
    pub(super) fn take_request(&mut self, request: &Request) -> Step<Verdict> {
        match &request.action {
            action @ Action::CreateBatch { .. } => self.create_batch(action),
            Action::PutMembers { members } => self.put_members(request, members),
            Action::RemoveMembers { keys } => self.remove_members(request, keys),
            Action::Seal => self.seal(),
            Action::Advance => self.advance(),
            Action::ApprovePhase { phase_execution_id } => {
                self.approve(*phase_execution_id, request.by.clone())
            }
            Action::RejectPhase { phase_execution_id } => self.reject(*phase_execution_id),
            Action::PauseBatch { reason } => self.pause_batch(reason.clone()),
            Action::ResumeBatch => self.resume_batch(),
            Action::ResumePhase { phase_execution_id } => self.resume_phase(*phase_execution_id),
            Action::ResumeMember { batch_member_id } => self.resume_member(*batch_member_id),
            Action::CancelBatch { reason } => self.cancel_batch(reason.clone()),
            Action::CancelPhase { phase_execution_id } => {
                self.give_up_phase(*phase_execution_id, PhaseStatus::Failed, PhaseReason::Cancelled)
            }
            Action::CancelMember { batch_member_id } => self.cancel_member(*batch_member_id),
            Action::CancelStep { step_execution_id } => self.cancel_step(*step_execution_id),
            Action::SkipPhase { phase_execution_id } => {
                self.give_up_phase(*phase_execution_id, PhaseStatus::Skipped, PhaseReason::Requested)
            }
            Action::SkipStep { step_execution_id } => self.skip_step(*step_execution_id),
            Action::RetryMembers { batch_member_ids, from } => {
                self.retry_members(request, batch_member_ids.as_deref(), *from)
            }
            Action::RetryInit => self.request_retry_init(),
            Action::RetryRollback { step_execution_id } => self.request_retry_rollback(*step_execution_id),
            Action::RetryInitRollback { init_execution_id } => {
                self.request_retry_init_rollback(*init_execution_id)
            }
            Action::RetryRemoval { batch_member_id } => self.request_retry_removal(*batch_member_id),
            Action::Reschedule { batch_start_time } => self.reschedule(*batch_start_time),
            action @ Action::PublishVersion { .. } => self.publish_version(action),
        }
    }

    fn seal(&mut self) -> Step<Verdict> {
        if self.batch().is_sealed {
            return refused("all its first members are stored already");
        }
        self.batch_mut().is_sealed = true;
        Ok(Verdict::Applied)
    }

    /// Begins init, or the next phase, of a manual batch.
    fn advance(&mut self) -> Step<Verdict> {
        let batch = self.batch();
        if !batch.is_manual {
            return refused("only manual batches are advanced; this one follows its start time");
        }
        if batch.status.is_terminal() || batch.ending.is_some() {
            return refused("the batch has ended");
        }
        if !batch.is_sealed {
            return refused("the batch is still being created");
        }
        match batch.status {
            BatchStatus::Detected => {
                self.begin_init();
                return Ok(Verdict::Applied);
            }
            BatchStatus::InitDispatched => return refused("the init steps have not ended yet"),
            _ => {}
        }
        let is_begun = |phase: &&crate::rows::PhaseRow| {
            phase.status == PhaseStatus::Dispatched
                || (phase.status == PhaseStatus::Pending && phase.due_at.is_some())
        };
        if let Some(phase) = self.rows.phases().find(is_begun) {
            return refused(format!("phase {:?} has not ended yet", phase.phase_name));
        }
        let next =
            self.rows.phases().find(|phase| phase.status == PhaseStatus::Pending).map(|phase| phase.id);
        let Some(next) = next else { return refused("there is no further phase") };
        let now = self.now();
        self.phase_mut(next).due_at = Some(now);
        Ok(Verdict::Applied)
    }

    fn approve(&mut self, id: PhaseId, by: Option<String>) -> Step<Verdict> {
        let now = self.now();
        let Some(phase) = self.rows.phase(id) else { return self.no_phase(id) };
        if phase.status != PhaseStatus::Pending || phase.ending.is_some() {
            return refused(format!("phase {:?} does not wait for an approval", phase.phase_name));
        }
        if phase.approved_at.is_some() {
            return refused(format!("phase {:?} is approved already", phase.phase_name));
        }
        if let Some(reason) = self.refuse_decision(id)? {
            return refused(reason);
        }
        let phase = self.phase_mut(id);
        phase.approved_at = Some(now);
        phase.approved_by = by;
        Ok(Verdict::Applied)
    }

    fn reject(&mut self, id: PhaseId) -> Step<Verdict> {
        if self.rows.phase(id).is_none() {
            return self.no_phase(id);
        }
        match self.refuse_decision(id)? {
            Some(reason) => refused(reason),
            None => self.give_up_phase(id, PhaseStatus::Failed, PhaseReason::Rejected),
        }
    }

    /// Cancels, skips or rejects a phase.
    fn give_up_phase(&mut self, id: PhaseId, status: PhaseStatus, reason: PhaseReason) -> Step<Verdict> {
        let Some(phase) = self.rows.phase(id) else { return self.no_phase(id) };
        let may_have_begun = reason != PhaseReason::Rejected;
        let is_open = match phase.status {
            PhaseStatus::Pending => true,
            PhaseStatus::Dispatched => may_have_begun,
            _ => false,
        };
        if !is_open || phase.ending.is_some() {
            let name = &phase.phase_name;
            let what = if may_have_begun { "has ended" } else { "has begun or ended" };
            return refused(format!("phase {name:?} {what}; it is too late for that"));
        }
        self.end_early(id, PhaseEnding { status, reason });
        Ok(Verdict::Applied)
    }

    fn pause_batch(&mut self, reason: Option<String>) -> Step<Verdict> {
        let batch = self.batch();
        if batch.status.is_terminal() {
            return refused("the batch has ended");
        }
        if batch.is_cancelling() {
            return refused(CANCELLING);
        }
        if batch.paused_at.is_some() {
            return refused("the batch is paused already");
        }
        self.pause(reason);
        Ok(Verdict::Applied)
    }

    fn resume_batch(&mut self) -> Step<Verdict> {
        if self.batch().paused_at.is_none() {
            return refused("the batch is not paused");
        }
        let batch = self.batch_mut();
        batch.paused_at = None;
        batch.pause_reason = None;
        self.announce(Event::Paused { since: None });
        Ok(Verdict::Applied)
    }

    fn resume_phase(&mut self, id: PhaseId) -> Step<Verdict> {
        let Some(phase) = self.rows.phase(id) else { return self.no_phase(id) };
        if phase.status.is_terminal() || phase.ending.is_some() {
            return refused(format!("phase {:?} has ended; it is too late for that", phase.phase_name));
        }
        if phase.stopped_at.is_none() {
            return refused(format!("phase {:?} was not stopped by its error budget", phase.phase_name));
        }
        let phase = self.phase_mut(id);
        phase.stopped_at = None;
        phase.budget_base = phase.members_failed;
        Ok(Verdict::Applied)
    }

    fn resume_member(&mut self, id: MemberId) -> Step<Verdict> {
        if !self.has_member(id)? {
            return self.no_member(id);
        }
        if let Some(reason) = self.refuse_revival(id)? {
            return refused(reason);
        }
        match self.member(id)?.map(|member| member.status) {
            Some(MemberStatus::Cancelled | MemberStatus::Failed) => {}
            Some(MemberStatus::Removed) => {
                return refused("it has left; it returns when its source has it again");
            }
            _ => return refused("it takes part already"),
        }
        self.reopen_ended_batch();
        self.revive(id, Again::FromStop)?;
        Ok(Verdict::Applied)
    }

    fn reopen_ended_batch(&mut self) {
        if self.batch().status.is_terminal() {
            self.reopen_batch(BatchStatus::Active);
        }
    }

    fn cancel_batch(&mut self, reason: Option<String>) -> Step<Verdict> {
        let batch = self.batch();
        if batch.status.is_terminal() || batch.is_cancelling() {
            return refused("the batch has ended or is being cancelled");
        }
        let batch = self.batch_mut();
        batch.ending = Some(BatchStatus::Cancelled);
        batch.error_message = reason.or(batch.error_message.take());
        batch.retry_cursor = None;
        // A pause holds nothing back any more.
        if batch.paused_at.take().is_some() {
            batch.pause_reason = None;
            self.announce(Event::Paused { since: None });
        }
        let open: Vec<InitId> =
            self.rows.inits().filter(|init| init.work.status.is_open()).map(|init| init.id).collect();
        for id in open {
            self.give_up(WorkKey::Init(id), WorkStatus::Cancelled)?;
        }
        Ok(Verdict::Applied)
    }

    fn cancel_member(&mut self, id: MemberId) -> Step<Verdict> {
        let ordinal = self.batch().ordinal(id);
        let status = match ordinal {
            Some(_) => self.member(id)?.map(|member| member.status),
            None => None,
        };
        let (Some(ordinal), Some(status)) = (ordinal, status) else { return self.no_member(id) };
        if self.batch().status.is_terminal() {
            return refused("the batch has ended");
        }
        if self.batch().is_cancelling() {
            return refused(CANCELLING);
        }
        if status != MemberStatus::Active {
            return refused(format!("member {id} takes no part: it is {status}"));
        }
        self.set_member_status(id, MemberStatus::Cancelled)?;
        self.cancel_open_steps(ordinal)?;
        Ok(Verdict::Applied)
    }

    fn cancel_step(&mut self, id: StepId) -> Step<Verdict> {
        if !self.has_step(id)? {
            return self.no_step(id);
        }
        let Some(step) = self.rows.step(id)? else { return self.no_step(id) };
        match step.work.status {
            status if status.is_open() => self.cancel_member(step.batch_member_id),
            status => refused(format!("step {id} has ended: {status}")),
        }
    }

    /// Leaves out a step that is open or has failed. The member goes on with the next.
    fn skip_step(&mut self, id: StepId) -> Step<Verdict> {
        let Some((phase, place)) = self.rows.locate(id) else { return self.no_step(id) };
        let (phase, ordinal) = (phase.id, place.ordinal);
        let Some(mut step) = self.rows.step(id)?.cloned() else { return self.no_step(id) };
        if self.batch().is_cancelling() {
            return refused(CANCELLING);
        }
        if step.work.status.is_open() {
            if self.first_open(phase, ordinal)? != Some(place.index) {
                return refused("an earlier step of the member is open; skip that one first");
            }
            self.give_up(WorkKey::Step(id), WorkStatus::Skipped)?;
            self.start_first_open(ordinal)?;
            return Ok(Verdict::Applied);
        }
        if !matches!(step.work.status, WorkStatus::Failed | WorkStatus::PollTimeout) {
            return refused(format!("step {id} has ended: {}", step.work.status));
        }
        if let Some(reason) = self.refuse_revival(step.batch_member_id)? {
            return refused(reason);
        }
        if !self.can_reopen(phase) {
            return refused("its phase was given up");
        }
        let member = step.batch_member_id;
        let is_failed = self.member(member)?.is_some_and(|member| member.status == MemberStatus::Failed);
        if !is_failed {
            return refused("its member has not failed");
        }
        self.reopen_ended_batch();
        step.work.give_up(WorkStatus::Skipped, self.now());
        step.rollback_state = None;
        step.rollback_run = None;
        step.rollback_error = None;
        self.rows.put_step(step);
        self.revive(member, Again::FromStop)?;
        Ok(Verdict::Applied)
    }

    fn can_reopen(&self, phase: PhaseId) -> bool {
        self.phase(phase).takes_members()
    }

    fn retry_members(
        &mut self,
        request: &Request,
        ids: Option<&[MemberId]>,
        from: RetryFrom,
    ) -> Step<Verdict> {
        let batch = self.batch();
        if batch.status == BatchStatus::Cancelled || batch.is_cancelling() {
            return refused("the batch was cancelled");
        }
        if batch.ending.is_some() || self.has_failed_init() {
            return refused("init has failed; retry init instead");
        }
        if batch.retry_cursor.is_some() {
            return refused("failed members are being retried already");
        }
        let is_going_on = batch.list_cursor.as_ref().is_some_and(|cursor| cursor.message == request.key);
        if let (Some(ids), false) = (ids, is_going_on)
            && let Some(verdict) = self.refuse_retry(ids)?
        {
            return Ok(verdict);
        }
        let batch = self.batch();
        if batch.member_counts.failed == 0 && !is_going_on {
            return refused("no member has failed");
        }
        let end = batch.members;
        self.reopen_ended_batch();
        match ids {
            Some(ids) => self.retry_list(request, ids, from),
            None => {
                self.batch_mut().retry_cursor = Some(RetryCursor { next: 0, end, from });
                Ok(Verdict::Applied)
            }
        }
    }

    fn request_retry_init(&mut self) -> Step<Verdict> {
        let batch = self.batch();
        if batch.status != BatchStatus::Failed || !self.has_failed_init() {
            return refused("no init step has failed, or the batch has not ended yet");
        }
        if batch.rollback_of.is_some() {
            return refused("its rollback has not ended; wait for its end");
        }
        self.retry_init()?;
        Ok(Verdict::Applied)
    }

    fn request_retry_rollback(&mut self, id: StepId) -> Step<Verdict> {
        if !self.has_step(id)? {
            return self.no_step(id);
        }
        let Some(step) = self.rows.step(id)? else { return self.no_step(id) };
        if !has_failed_rollback(step) {
            return refused(format!("step {id} has no failed rollback"));
        }
        let member = step.batch_member_id;
        let Some(mut row) = self.rows.member(member)?.cloned() else { return self.no_member(member) };
        if row.rollback_of.is_some() || row.is_leaving() || row.status == MemberStatus::Active {
            return refused(
                "another rollback or removal of the member has not ended, or it takes part again",
            );
        }
        row.rollback_of = Some(id);
        row.rollback_runs += 1;
        let run = row.rollback_runs;
        self.rows.put_member(row);
        self.retry_rollback(Origin::Step(id), run)?;
        Ok(Verdict::Applied)
    }

    fn request_retry_init_rollback(&mut self, id: InitId) -> Step<Verdict> {
        let Some(init) = self.rows.init(id) else {
            return Ok(Verdict::NotFound(format!("batch {} has no init step {id}", self.batch().id)));
        };
        if !has_failed_init_rollback(init) {
            return refused(format!("init step {id} has no failed rollback"));
        }
        if self.batch().rollback_of.is_some() {
            return refused("another rollback of the batch has not ended");
        }
        let batch = self.batch_mut();
        batch.rollback_of = Some(id);
        batch.rollback_runs += 1;
        let run = batch.rollback_runs;
        self.retry_rollback(Origin::Init(id), run)?;
        Ok(Verdict::Applied)
    }

    fn request_retry_removal(&mut self, id: MemberId) -> Step<Verdict> {
        if !self.has_member(id)? {
            return self.no_member(id);
        }
        let state = self.member(id)?.and_then(|member| member.removal_state);
        if state != Some(SequenceState::Failed) {
            return refused(format!("the removal steps of member {id} have not failed"));
        }
        self.retry_removal(id)?;
        Ok(Verdict::Applied)
    }

    /// Moves the reference time, and with it the phases that have not begun.
    fn reschedule(&mut self, batch_start_time: jiff::Timestamp) -> Step<Verdict> {
        let batch = self.batch();
        if batch.is_manual {
            return refused("a manual batch has no start time; advance it instead");
        }
        if batch.status.is_terminal() || batch.ending.is_some() {
            return refused("the batch has ended");
        }
        if batch.batch_start_time == Some(batch_start_time) {
            return refused(format!("the batch starts at {batch_start_time} already"));
        }
        if !self.rows.phases().any(|phase| phase.status == PhaseStatus::Pending) {
            return refused("all its phases have begun or ended; there is nothing to move");
        }
        self.batch_mut().batch_start_time = Some(batch_start_time);
        for id in self.phase_ids() {
            let phase = self.phase_mut(id);
            if phase.status == PhaseStatus::Pending {
                phase.due_at = Some(earlier(batch_start_time, phase.offset_minutes.saturating_mul(60)));
            }
        }
        Ok(Verdict::Applied)
    }
}
