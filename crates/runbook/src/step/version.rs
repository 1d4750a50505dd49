//! A newer version of the runbook: its phases replace those that have not begun.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::{Event, IgnoredReason, Verdict};
use super::turn::{Step, Turn};
use crate::message::{Action, OverdueBehavior};
use crate::rows::{PhaseEnding, PhaseId, PhaseReason, PhaseStatus};

impl Turn<'_> {
    /// Follows a newer version: phases of the old one that have not begun are superseded; those of the new one
    /// that are overdue run again, or are skipped. Manual batches stay with their version.
    pub(super) fn publish_version(&mut self, action: &Action) -> Step<Verdict> {
        let Action::PublishVersion { runbook_id, runbook_version, overdue_behavior, rerun_init } = action
        else {
            return Ok(Verdict::Applied);
        };
        let batch = self.batch();
        if batch.status.is_terminal() || batch.ending.is_some() {
            return Ok(Verdict::Ignored(IgnoredReason::Ended));
        }
        if batch.runbook_version >= *runbook_version {
            return Ok(Verdict::Ignored(IgnoredReason::Stale));
        }
        if batch.is_manual {
            let text = "a manual batch stays with its version of the runbook".to_owned();
            return Ok(Verdict::Refused(text));
        }
        let definition = self.definition(*runbook_version)?;
        let replaced = self.supersede_pending();
        let created = self.create_phases(&definition, *runbook_version)?;
        self.keep_approvals(&created, &replaced)?;
        self.follow(*runbook_id, *runbook_version);
        if *overdue_behavior == OverdueBehavior::Ignore {
            self.ignore_overdue(&created, &replaced);
        }
        self.close_replaced(&created);
        if *rerun_init {
            // They begin once no phase is at work: no member has steps of two versions at once.
            self.create_inits(&definition, *runbook_version)?;
        }
        Ok(Verdict::Applied)
    }

    /// Supersedes the phases that have not begun. Returns them by their names in small letters.
    fn supersede_pending(&mut self) -> BTreeMap<String, PhaseId> {
        let ending = PhaseEnding { status: PhaseStatus::Superseded, reason: PhaseReason::NewerVersion };
        let mut replaced = BTreeMap::new();
        for id in self.phase_ids() {
            let phase = self.phase(id);
            if phase.status == PhaseStatus::Pending && phase.ending.is_none() {
                replaced.insert(phase.phase_name.to_lowercase(), id);
                self.end_early(id, ending);
            }
        }
        replaced
    }

    /// Keeps approvals of phases that had not begun, where the new version asks for the same decision.
    fn keep_approvals(&mut self, created: &[PhaseId], replaced: &BTreeMap<String, PhaseId>) -> Step<()> {
        for id in created {
            let Some(old) = replaced.get(&self.phase(*id).phase_name.to_lowercase()) else { continue };
            let row = self.phase(*old);
            let (approved_at, approved_by) = (row.approved_at, row.approved_by.clone());
            if approved_at.is_none() {
                continue;
            }
            let before = self.with_phase(*old, |_, phase| phase.approval.clone())?;
            let after = self.with_phase(*id, |_, phase| phase.approval.clone())?;
            if before == after {
                let phase = self.phase_mut(*id);
                phase.approved_at = approved_at;
                phase.approved_by = approved_by;
            }
        }
        Ok(())
    }

    /// Skips phases that are overdue. One that the old version had not begun is not skipped: nothing of it was
    /// done.
    fn ignore_overdue(&mut self, created: &[PhaseId], not_begun: &BTreeMap<String, PhaseId>) {
        let now = self.now();
        for id in created {
            let phase = self.phase(*id);
            let is_overdue = phase.due_at.is_some_and(|due_at| due_at <= now);
            if is_overdue && !not_begun.contains_key(&phase.phase_name.to_lowercase()) {
                let phase = self.phase_mut(*id);
                phase.status = PhaseStatus::Skipped;
                phase.reason = Some(PhaseReason::Overdue);
                phase.completed_at = Some(now);
                let (status, reason) = (PhaseStatus::Skipped, Some(PhaseReason::Overdue));
                self.announce(Event::Phase { phase: *id, status, reason });
            }
        }
    }

    /// Late members go through the newest phase of a name only.
    fn close_replaced(&mut self, created: &[PhaseId]) {
        let runs_again: BTreeSet<String> = created
            .iter()
            .map(|id| self.phase(*id))
            .filter(|phase| phase.status == PhaseStatus::Pending)
            .map(|phase| phase.phase_name.to_lowercase())
            .collect();
        for id in self.phase_ids() {
            let phase = self.phase(id);
            if !created.contains(&id) && runs_again.contains(&phase.phase_name.to_lowercase()) {
                self.phase_mut(id).is_closed = true;
            }
        }
    }
}
