//! Members that have left: their open steps are cancelled, then the removal steps run, one after the other.

use super::effect::Event;
use super::rollback::failure_of;
use super::turn::{Blueprint, Step, StepPath, Turn};
use crate::message::EventMessage;
use crate::rows::{MemberId, MemberStatus, RemovalRow, SequenceState, WorkKey, WorkStatus};

impl Turn<'_> {
    /// A member has left. Its removal steps begin once a rollback at work has ended.
    pub(super) fn remove_member(&mut self, id: MemberId) -> Step<()> {
        let now = self.now();
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        member.status = MemberStatus::Removed;
        member.removed_at = Some(now);
        member.remove_dispatched_at = Some(now);
        member.is_current = false;
        member.last_seen_at = Some(now);
        member.is_returning = false;
        let ordinal = member.ordinal;
        let is_rolling_back = member.rollback_of.is_some();
        let batch = self.batch();
        let message = EventMessage::MemberRemoved {
            runbook_name: batch.runbook_name.clone(),
            runbook_version: batch.runbook_version,
            batch_id: batch.id,
            batch_member_id: id,
            member_key: member.member_key.clone(),
        };
        let has_steps = !self.definition(batch.runbook_version)?.on_member_removed.is_empty();
        member.removal_state = (has_steps && is_rolling_back).then_some(SequenceState::Waiting);
        member.removal_error = None;
        self.rows.put_member(member);
        self.announce(Event::Bus(message));
        self.announce(Event::Member { member: id, status: MemberStatus::Removed });
        self.cancel_open_steps(ordinal)?;
        if has_steps && !is_rolling_back { self.start_removal(id) } else { Ok(()) }
    }

    /// Creates the removal steps of a member and sends the first.
    pub(super) fn start_removal(&mut self, id: MemberId) -> Step<()> {
        let version = self.batch().runbook_version;
        let batch_id = self.batch().id;
        let definition = self.definition(version)?;
        let count = u32::try_from(definition.on_member_removed.len()).unwrap_or(u32::MAX);
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        member.removal_runs += 1;
        member.removal_steps = count;
        member.removal_state = Some(SequenceState::Running);
        member.removal_error = None;
        let run = member.removal_runs;
        self.rows.put_member(member);
        for index in 0..count {
            let definition = definition.clone();
            let path = StepPath::Removal(index);
            let blueprint = Blueprint { version, member: Some(id), definition, path };
            let work = self.pending_work(&blueprint, index)?;
            let row = RemovalRow { batch_id, batch_member_id: id, runbook_version: version, run, work };
            self.rows.put_removal(row);
        }
        self.go_on_with_removal(id)
    }

    fn removal_length(&self, id: MemberId) -> Step<u32> {
        Ok(self.member(id)?.map_or(0, |member| member.removal_steps))
    }

    fn go_on_with_removal(&mut self, id: MemberId) -> Step<()> {
        for index in 0..self.removal_length(id)? {
            let status = self.rows.removal(id, index)?.map(|row| row.work.status);
            if status == Some(WorkStatus::Pending) {
                return self.dispatch(WorkKey::Removal(id, index));
            }
        }
        self.end_removal(id, SequenceState::Succeeded)
    }

    pub(super) fn removal_step_succeeded(&mut self, id: MemberId, _index: u32) -> Step<()> {
        self.go_on_with_removal(id)
    }

    pub(super) fn removal_step_failed(&mut self, id: MemberId, index: u32) -> Step<()> {
        for later in index + 1..self.removal_length(id)? {
            self.give_up(WorkKey::Removal(id, later), WorkStatus::Cancelled)?;
        }
        let error = self.rows.removal(id, index)?.map(|row| failure_of(&row.work));
        if let Some(mut member) = self.rows.member(id)?.cloned() {
            member.removal_error = error;
            self.rows.put_member(member);
        }
        self.announce(Event::RemovalFailed { member: id });
        self.end_removal(id, SequenceState::Failed)
    }

    /// The removal steps have ended: a member that has returned meanwhile takes part again.
    fn end_removal(&mut self, id: MemberId, state: SequenceState) -> Step<()> {
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        member.removal_state = Some(state);
        let is_returning = member.is_returning;
        member.is_returning = false;
        self.rows.put_member(member);
        if is_returning { self.welcome_back(id) } else { Ok(()) }
    }

    /// Tries failed removal steps again, from the one that failed. Its jobs get ids of their own.
    pub(super) fn retry_removal(&mut self, id: MemberId) -> Step<()> {
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        member.removal_runs += 1;
        member.removal_state = Some(SequenceState::Running);
        member.removal_error = None;
        let run = member.removal_runs;
        self.rows.put_member(member);
        for index in 0..self.removal_length(id)? {
            let Some(mut row) = self.rows.removal(id, index)?.cloned() else { continue };
            if row.work.status == WorkStatus::Succeeded {
                continue;
            }
            let max_retries = self
                .blueprint(WorkKey::Removal(id, index))?
                .map_or(0, |blueprint| blueprint.step().retry.max_retries);
            row.work.retry(None);
            row.work.retry_count = 0;
            row.work.retry_limit = max_retries;
            row.run = run;
            self.rows.put_removal(row);
        }
        self.go_on_with_removal(id)
    }
}
