//! Rollbacks: steps that undo a failed step, one after the other, with the member's data. The failed
//! step is `rolled_back` once the last one has succeeded. A rollback that fails stays visible and can be
//! retried.

use super::attempt::kept_message;
use super::effect::Event;
use super::turn::{Blueprint, Step, StepPath, Turn};
use crate::rows::{
    InitId, InitRow, MemberId, Origin, PhaseId, RollbackRow, SequenceState, StepId, StepRow, Work, WorkKey,
    WorkStatus,
};

/// A rollback that is to be begun.
struct Plan {
    origin: Origin,
    name: String,
    version: u32,
    member: Option<MemberId>,
    run: u32,
}

impl Turn<'_> {
    /// Begins the rollback of a failed step, if it has one.
    pub(super) fn start_rollback(&mut self, phase: PhaseId, step: StepId, member: MemberId) -> Step<()> {
        let version = self.phase(phase).runbook_version;
        let Some(blueprint) = self.blueprint(WorkKey::Step(step))? else { return Ok(()) };
        let Some(name) = blueprint.step().on_failure.clone() else { return Ok(()) };
        let Some(mut row) = self.rows.member(member)?.cloned() else { return Ok(()) };
        row.rollback_runs += 1;
        row.rollback_of = Some(step);
        let run = row.rollback_runs;
        self.rows.put_member(row);
        let plan = Plan { origin: Origin::Step(step), name, version, member: Some(member), run };
        self.begin_rollback(&plan)
    }

    /// Begins the rollback of a failed init step, if it has one.
    pub(super) fn start_init_rollback(&mut self, init: InitId) -> Step<()> {
        let Some(blueprint) = self.blueprint(WorkKey::Init(init))? else { return Ok(()) };
        let Some(name) = blueprint.step().on_failure.clone() else { return Ok(()) };
        let batch = self.batch_mut();
        batch.rollback_runs += 1;
        batch.rollback_of = Some(init);
        let run = batch.rollback_runs;
        let plan = Plan { origin: Origin::Init(init), name, version: blueprint.version, member: None, run };
        self.begin_rollback(&plan)
    }

    fn begin_rollback(&mut self, plan: &Plan) -> Step<()> {
        let definition = self.definition(plan.version)?;
        let count = definition.rollbacks.get(&plan.name).map_or(0, Vec::len);
        let batch_id = self.batch().id;
        for index in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            let path = StepPath::Rollback(plan.name.clone(), index);
            let definition = definition.clone();
            let blueprint = Blueprint { version: plan.version, member: plan.member, definition, path };
            let work = self.pending_work(&blueprint, index)?;
            let (step_execution_id, init_execution_id) = match plan.origin {
                Origin::Step(id) => (Some(id), None),
                Origin::Init(id) => (None, Some(id)),
            };
            let row = RollbackRow {
                batch_id,
                batch_member_id: plan.member,
                step_execution_id,
                init_execution_id,
                rollback_name: plan.name.clone(),
                runbook_version: plan.version,
                run: plan.run,
                work,
            };
            self.rows.put_rollback(plan.origin, row);
        }
        self.set_rollback_state(plan.origin, SequenceState::Running, Some(plan.run))?;
        self.go_on_with_rollback(plan.origin)
    }

    /// Steps of a rollback.
    pub(super) fn rollback_length(&self, origin: Origin) -> Step<u32> {
        let Some(first) = self.rows.rollback(origin, 0)? else { return Ok(0) };
        let definition = self.definition(first.runbook_version)?;
        let count = definition.rollbacks.get(&first.rollback_name).map_or(0, Vec::len);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Sends the next step of a rollback, or ends it.
    fn go_on_with_rollback(&mut self, origin: Origin) -> Step<()> {
        for index in 0..self.rollback_length(origin)? {
            let status = self.rows.rollback(origin, index)?.map(|row| row.work.status);
            if status == Some(WorkStatus::Pending) {
                return self.dispatch(WorkKey::Rollback(origin, index));
            }
        }
        self.set_rollback_state(origin, SequenceState::Succeeded, None)?;
        self.end_rollback(origin)
    }

    pub(super) fn rollback_step_succeeded(&mut self, origin: Origin, _index: u32) -> Step<()> {
        self.go_on_with_rollback(origin)
    }

    pub(super) fn rollback_step_failed(&mut self, origin: Origin, index: u32) -> Step<()> {
        for later in index + 1..self.rollback_length(origin)? {
            self.give_up(WorkKey::Rollback(origin, later), WorkStatus::Cancelled)?;
        }
        let error = match self.rows.work(WorkKey::Rollback(origin, index))? {
            Some(work) => failure_of(work),
            None => String::new(),
        };
        self.set_rollback_state(origin, SequenceState::Failed, None)?;
        self.set_rollback_error(origin, error)?;
        self.announce(Event::RollbackFailed { origin });
        self.end_rollback(origin)
    }

    /// Notes how far a rollback has got in the row of the step that it undoes.
    fn set_rollback_state(&mut self, origin: Origin, state: SequenceState, run: Option<u32>) -> Step<()> {
        match origin {
            Origin::Step(id) => {
                let Some(mut row) = self.rows.step(id)?.cloned() else { return Ok(()) };
                row.rollback_state = Some(state);
                row.rollback_run = run.or(row.rollback_run);
                row.rollback_error = None;
                if state == SequenceState::Succeeded {
                    row.work.status = WorkStatus::RolledBack;
                }
                self.rows.put_step(row);
            }
            Origin::Init(id) => {
                let Some(mut row) = self.rows.init(id).cloned() else { return Ok(()) };
                row.rollback_state = Some(state);
                row.rollback_run = run.or(row.rollback_run);
                row.rollback_error = None;
                if state == SequenceState::Succeeded {
                    row.work.status = WorkStatus::RolledBack;
                }
                self.rows.put_init(row);
            }
        }
        Ok(())
    }

    /// Keeps why a rollback failed in the row of the step that it undoes.
    fn set_rollback_error(&mut self, origin: Origin, error: String) -> Step<()> {
        match origin {
            Origin::Step(id) => {
                if let Some(mut row) = self.rows.step(id)?.cloned() {
                    row.rollback_error = Some(error);
                    self.rows.put_step(row);
                }
            }
            Origin::Init(id) => {
                if let Some(mut row) = self.rows.init(id).cloned() {
                    row.rollback_error = Some(error);
                    self.rows.put_init(row);
                }
            }
        }
        Ok(())
    }

    /// A rollback has ended: a removal that waited for it begins.
    fn end_rollback(&mut self, origin: Origin) -> Step<()> {
        let Origin::Step(step) = origin else {
            self.batch_mut().rollback_of = None;
            return Ok(());
        };
        let Some(member) = self.rows.step(step)?.map(|row| row.batch_member_id) else { return Ok(()) };
        let Some(mut row) = self.rows.member(member)?.cloned() else { return Ok(()) };
        row.rollback_of = None;
        let is_removal_waiting = row.removal_state == Some(SequenceState::Waiting);
        self.rows.put_member(row);
        if is_removal_waiting { self.start_removal(member) } else { Ok(()) }
    }

    /// Tries a failed rollback again, from the step that failed. Its jobs get ids of their own.
    pub(super) fn retry_rollback(&mut self, origin: Origin, run: u32) -> Step<()> {
        for index in 0..self.rollback_length(origin)? {
            let Some(mut row) = self.rows.rollback(origin, index)?.cloned() else { continue };
            if row.work.status == WorkStatus::Succeeded {
                continue;
            }
            let max_retries = self
                .blueprint(WorkKey::Rollback(origin, index))?
                .map_or(0, |blueprint| blueprint.step().retry.max_retries);
            row.work.retry(None);
            row.work.retry_count = 0;
            row.work.retry_limit = max_retries;
            row.run = run;
            self.rows.put_rollback(origin, row);
        }
        self.set_rollback_state(origin, SequenceState::Running, Some(run))?;
        self.go_on_with_rollback(origin)
    }
}

/// Which step of a rollback or removal failed, and why.
pub(super) fn failure_of(work: &Work) -> String {
    let reason = work.error_message.as_deref().unwrap_or("no reason is known");
    kept_message(&format!("step {:?} failed: {reason}", work.step_name))
}

/// Whether a failed step's rollback can be retried.
pub(super) fn has_failed_rollback(step: &StepRow) -> bool {
    step.rollback_state == Some(SequenceState::Failed)
}

/// Whether a failed init step's rollback can be retried.
pub(super) fn has_failed_init_rollback(init: &InitRow) -> bool {
    init.rollback_state == Some(SequenceState::Failed)
}
