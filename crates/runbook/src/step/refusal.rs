//! Why a request of a person is refused: what it names does not exist, or is not in the right state.

use super::effect::Verdict;
use super::turn::{Step, Turn};
use crate::rows::{BatchStatus, MemberId, MemberStatus, PhaseId, StepId};

/// What refuses requests about a batch that is being cancelled.
pub(super) const CANCELLING: &str = "the batch is being cancelled";

/// The verdict about a request that cannot be fulfilled.
pub(super) fn refused(reason: impl Into<String>) -> Step<Verdict> {
    Ok(Verdict::Refused(reason.into()))
}

impl Turn<'_> {
    /// Refuses a decision about a phase that needs none.
    pub(super) fn refuse_decision(&self, id: PhaseId) -> Step<Option<String>> {
        if self.batch().is_cancelling() {
            return Ok(Some(CANCELLING.to_owned()));
        }
        if self.with_phase(id, |_, phase| phase.approval.is_some())? {
            return Ok(None);
        }
        let name = &self.phase(id).phase_name;
        Ok(Some(format!("phase {name:?} has no `approval` in the runbook; it needs no decision")))
    }

    pub(super) fn no_phase(&self, id: PhaseId) -> Step<Verdict> {
        Ok(Verdict::NotFound(format!("batch {} has no phase {id}", self.batch().id)))
    }

    pub(super) fn no_member(&self, id: MemberId) -> Step<Verdict> {
        Ok(Verdict::NotFound(format!("batch {} has no member {id}", self.batch().id)))
    }

    pub(super) fn no_step(&self, id: StepId) -> Step<Verdict> {
        Ok(Verdict::NotFound(format!("batch {} has no step {id}", self.batch().id)))
    }

    pub(super) fn has_member(&self, id: MemberId) -> Step<bool> {
        Ok(self.batch().ordinal(id).is_some() && self.member(id)?.is_some())
    }

    pub(super) fn has_step(&self, id: StepId) -> Step<bool> {
        Ok(self.rows.locate(id).is_some() && self.rows.step(id)?.is_some())
    }

    /// Refuses what would put a member to work while a sequence of it is at work, or after the batch was cancelled.
    pub(super) fn refuse_revival(&self, id: MemberId) -> Step<Option<String>> {
        let batch = self.batch();
        if batch.status == BatchStatus::Cancelled || batch.is_cancelling() {
            return Ok(Some("the batch was cancelled".to_owned()));
        }
        if batch.ending.is_some() || self.has_failed_init() {
            return Ok(Some("init has failed; retry init instead".to_owned()));
        }
        if self.member(id)?.is_some_and(|member| member.rollback_of.is_some()) {
            return Ok(Some("its rollback has not ended; wait for its end".to_owned()));
        }
        if self.is_leaving(id)? {
            return Ok(Some("its removal steps have not ended; wait for their end".to_owned()));
        }
        Ok(None)
    }

    pub(super) fn has_failed_init(&self) -> bool {
        self.rows.inits().any(|init| init.work.status.is_failure())
    }

    /// Refuses a retry of named members unless all of them have failed.
    pub(super) fn refuse_retry(&self, ids: &[MemberId]) -> Step<Option<Verdict>> {
        if ids.is_empty() {
            return Ok(Some(Verdict::Refused("no member is named".to_owned())));
        }
        for id in ids {
            if !self.has_member(*id)? {
                return self.no_member(*id).map(Some);
            }
            let Some(member) = self.member(*id)? else { continue };
            if member.status != MemberStatus::Failed {
                let reason = format!("member {id} has not failed: it is {}", member.status);
                return Ok(Some(Verdict::Refused(reason)));
            }
            if member.rollback_of.is_some() {
                let reason = format!("the rollback of member {id} has not ended; wait for its end");
                return Ok(Some(Verdict::Refused(reason)));
            }
        }
        Ok(None)
    }
}
