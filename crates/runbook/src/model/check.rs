//! What must be true after every commit, whatever happened.

use std::collections::BTreeMap;

use super::Model;
use crate::definition::Members;
use crate::rows::{
    BatchStatus, Group, MemberCounts, MemberStatus, Origin, PhaseRow, Row, RowKey, SequenceState, StepCounts,
    StepRow, WorkKey, WorkStatus,
};
use crate::step::{Dispatch, Effect, Releaser, releaser};

impl Model {
    /// Checks everything that must be true of committed rows.
    ///
    /// # Panics
    /// When something is not.
    pub fn check(&mut self) {
        if self.has_batch() {
            self.check_counters();
            self.check_calls();
            self.check_members();
            self.check_rollbacks();
            self.check_end();
            self.check_releasers();
        }
    }

    /// Steps began only where their barrier and wave let them, and an index was released only once those before
    /// it were through.
    pub(super) fn check_starts(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Dispatch(Dispatch { work: WorkKey::Step(id), job_id, .. }) = effect else { continue };
            let phase = self.phases().find(|phase| phase.place(*id).is_some()).expect("steps have phases");
            let place = phase.place(*id).expect("it was found by it");
            let group = phase.group_of(place.ordinal);
            let is_open = group < phase.wave as usize || place.index <= phase.released;
            assert!(phase.dispatched_at.is_some() && is_open, "{job_id} began before its time: {phase:#?}");
        }
        let now: BTreeMap<_, _> =
            self.phases().map(|phase| (phase.id, (phase.wave, phase.released))).collect();
        let before = std::mem::replace(&mut self.released, now);
        // More inputs than one may have put a member to work again after the release.
        if self.inputs_per_commit > 1 {
            return;
        }
        for phase in self.phases() {
            let Some((wave, released)) = before.get(&phase.id) else { continue };
            let is_barrier = self.definitions[&phase.runbook_version].members == Members::Barrier;
            if is_barrier && *wave == phase.wave && *released < phase.released {
                self.check_index_done(phase, *released);
            }
        }
    }

    fn check_index_done(&self, phase: &PhaseRow, index: u32) {
        for step in self.steps().filter(|step| step.phase_execution_id == phase.id) {
            let place = phase.place(step.id).expect("steps are where their ids say");
            if place.index <= index && phase.group_of(place.ordinal) == phase.wave as usize {
                assert!(step.work.status.is_terminal(), "released, but {step:#?}");
                assert!(!step.rolls_back(), "released, but {step:#?}");
            }
        }
    }

    /// Counters equal counts.
    fn check_counters(&self) {
        let mut by_phase: BTreeMap<_, Vec<&StepRow>> = BTreeMap::new();
        for step in self.steps() {
            by_phase.entry(step.phase_execution_id).or_default().push(step);
        }
        for phase in self.phases() {
            let mut recounted = without_counts(phase);
            for step in by_phase.get(&phase.id).into_iter().flatten() {
                let place = phase.place(step.id).expect("steps are where their ids say");
                assert_eq!(self.batch().member_id(place.ordinal), Some(step.batch_member_id));
                assert_eq!(place.index, step.work.step_index);
                recounted.count(place.ordinal, None, step);
            }
            assert_eq!(phase, &recounted, "counters of a phase");
        }
        let mut counts = MemberCounts::default();
        for member in self.members() {
            match member.status {
                MemberStatus::Active => counts.active += 1,
                MemberStatus::Removed => counts.removed += 1,
                MemberStatus::Failed => counts.failed += 1,
                MemberStatus::Cancelled => counts.cancelled += 1,
            }
            counts.leaving += u32::from(member.is_leaving());
        }
        assert_eq!(self.batch().member_counts, counts, "counters of the batch");
    }

    /// No piece of work is at work twice, and what is at work is awaited.
    fn check_calls(&self) {
        let mut open: BTreeMap<WorkKey, &str> = BTreeMap::new();
        for (job_id, call) in self.calls().filter(|(_, call)| call.is_open()) {
            if let Some(other) = open.insert(call.work, job_id) {
                unreachable!("{other} and {job_id} are at work at once");
            }
            let work = self.work(call.work).expect("calls are made for rows");
            assert!(work.is_called(), "{job_id} is at work, but its row does not await it");
            assert_eq!(work.job_id.as_deref(), Some(job_id));
        }
    }

    fn work(&self, key: WorkKey) -> Option<&crate::rows::Work> {
        match self.store.get(&RowKey::Work(key))? {
            Row::Step(row) => Some(&row.work),
            Row::Init(row) => Some(&row.work),
            Row::Rollback(row) => Some(&row.work),
            Row::Removal(row) => Some(&row.work),
            _ => None,
        }
    }

    /// A member does one thing at a time, in order, and only while it takes part.
    fn check_members(&self) {
        let mut by_member: BTreeMap<_, Vec<&StepRow>> = BTreeMap::new();
        for step in self.steps() {
            by_member.entry(step.batch_member_id).or_default().push(step);
        }
        for (id, mut steps) in by_member {
            let Some(Row::Member(member)) = self.store.get(&RowKey::Member(id)) else {
                unreachable!("steps have members");
            };
            steps.sort_by_key(|step| (step.phase_execution_id, step.work.step_index));
            let open: Vec<_> = steps.iter().filter(|step| step.work.status.is_open()).collect();
            assert!(member.status == MemberStatus::Active || open.is_empty(), "{member:?} has {open:#?}");
            let at_work = steps.iter().filter(|step| step.work.takes_place()).count();
            assert!(at_work <= 1, "a member is at {at_work} steps at once: {steps:#?}");
            if let Some(step) = steps.iter().find(|step| step.work.takes_place()) {
                assert_eq!(step.id, open[0].id, "a member began a step before an earlier one");
            }
        }
    }

    /// Rollback steps run in order, and a step is rolled back once the last has succeeded.
    fn check_rollbacks(&self) {
        let mut by_origin: BTreeMap<Origin, Vec<WorkStatus>> = BTreeMap::new();
        for row in self.rollbacks() {
            let origin = row.origin().expect("rollbacks have an origin");
            by_origin.entry(origin).or_default().push(row.work.status);
        }
        for (origin, statuses) in &by_origin {
            let first_open = statuses.iter().position(|status| *status != WorkStatus::Succeeded);
            let later = &statuses[first_open.map_or(statuses.len(), |first| first + 1)..];
            let is_ordered =
                later.iter().all(|status| matches!(status, WorkStatus::Pending | WorkStatus::Cancelled));
            assert!(is_ordered, "rollback of {origin:?} out of order: {statuses:?}");
        }
        for step in self.steps() {
            let statuses = by_origin.get(&Origin::Step(step.id));
            match step.rollback_state {
                Some(SequenceState::Succeeded) => {
                    assert_eq!(step.work.status, WorkStatus::RolledBack);
                    let all = statuses.is_none_or(|list| list.iter().all(|s| *s == WorkStatus::Succeeded));
                    assert!(all, "rolled back, but {statuses:?}");
                }
                Some(_) => assert!(matches!(step.work.status, WorkStatus::Failed | WorkStatus::PollTimeout)),
                None => assert_ne!(step.work.status, WorkStatus::RolledBack),
            }
        }
    }

    /// A batch that has ended has nothing open, but for what was retried since.
    fn check_end(&self) {
        let batch = self.batch();
        if !batch.status.is_terminal() {
            return;
        }
        for phase in self.phases() {
            assert!(phase.status.is_terminal(), "{batch:#?} has ended, but {phase:#?}");
            assert_eq!(phase.step_counts.open(), 0);
        }
        let failed = self.phases().any(|phase| phase.status == crate::rows::PhaseStatus::Failed);
        assert!(batch.status != BatchStatus::Completed || !failed);
    }

    /// Every row that has yet to end has a wake-up, or names what releases it: a row that has yet to end itself.
    fn check_releasers(&mut self) {
        let keys: Vec<RowKey> =
            self.store.iter().filter(|(_, row)| row.waits()).map(|(key, _)| key.clone()).collect();
        let mut rows = self.open();
        for key in keys {
            let found = loop {
                match releaser(&mut rows, &key, &self.context()) {
                    Ok(found) => break found,
                    Err(missing) => self.load(&mut rows, &missing.0),
                }
            };
            match found {
                Some(Releaser::Nothing) => {
                    let phases: Vec<_> = self.phases().collect();
                    unreachable!(
                        "nothing wakes {key}: {:#?} of {:#?} with {phases:#?}",
                        self.store[&key],
                        self.batch()
                    );
                }
                Some(Releaser::Row(other)) => {
                    assert!(self.store[&other].waits(), "{key} waits for {other}, which has ended");
                }
                Some(_) | None => {}
            }
        }
    }
}

/// A phase as if it had no steps.
fn without_counts(phase: &PhaseRow) -> PhaseRow {
    let steps = phase.steps;
    PhaseRow {
        groups: phase.groups.iter().map(|group| Group::new(group.end, steps)).collect(),
        step_counts: StepCounts::default(),
        members_succeeded: 0,
        members_failed: 0,
        places_taken: 0,
        ..phase.clone()
    }
}
