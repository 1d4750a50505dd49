//! Sending jobs: ids, placeholders, and what holds steps back.

use super::effect::{CancelJob, Dispatch, Effect, Event};
use super::template::variables;
use super::turn::{Blueprint, Step, Turn};
use crate::message::{CorrelationData, EventMessage};
use crate::rows::{
    MemberId, Ordinal, Origin, PhaseId, PhaseStatus, ReleaseCursor, Work, WorkKey, WorkStatus,
};

/// Whether a step began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// It was sent, or has failed because it could not be.
    Begun,
    /// All places of the phase are taken, or something holds it back. A release cursor will find it.
    Held,
}

impl Turn<'_> {
    /// What the ids of a piece of work's jobs begin with.
    fn job_base(&self, key: WorkKey) -> Step<String> {
        let run_suffix = |run: u32| if run > 1 { format!("-run-{run}") } else { String::new() };
        Ok(match key {
            WorkKey::Step(id) => format!("step-{id}"),
            WorkKey::Init(id) => format!("init-{id}"),
            WorkKey::Rollback(origin, index) => {
                let batch = self.batch().id;
                let row = self.rows.rollback(origin, index)?;
                let (name, run) = row.map_or(("", 1), |row| (row.rollback_name.as_str(), row.run));
                let of = match row.and_then(|row| row.batch_member_id) {
                    Some(MemberId(member)) => member.to_string(),
                    None => "batch".to_owned(),
                };
                format!("rollback-{batch}-{of}-{name}-{index}{}", run_suffix(run))
            }
            WorkKey::Removal(member, index) => {
                let run = self.rows.removal(member, index)?.map_or(1, |row| row.run);
                format!("removed-{member}-{index}{}", run_suffix(run))
            }
        })
    }

    /// `pending` → `dispatched`. Placeholders are resolved now, because results may have set variables
    /// since the row was created; those that cannot be are a failure without retry.
    pub(super) fn dispatch(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        if work.status != WorkStatus::Pending {
            return Ok(());
        }
        let Some(blueprint) = self.blueprint(key)? else {
            return self.fail_for_good(key, WorkStatus::Failed, "the runbook no longer has this step");
        };
        let member = match blueprint.member {
            Some(id) => self.rows.member(id)?,
            None => None,
        };
        let names = variables(self.batch(), member);
        match self.context.templates.resolve(blueprint.step(), &names) {
            Ok(resolved) => {
                work.function_name = resolved.function;
                work.params_json = resolved.params_json;
                let base = self.job_base(key)?;
                work.send(&base, self.now(), self.context.dispatch_timeout_sec);
                self.emit_job(key, &work, blueprint.version);
                self.rows.put_work(key, work)
            }
            Err(unresolved) => self.fail_for_good(key, WorkStatus::Failed, &unresolved.0),
        }
    }

    /// `polling` → `polling` with a job at work: the same function with the same parameters.
    pub(super) fn dispatch_poll(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        let base = self.job_base(key)?;
        work.poll(&base, self.now(), self.context.dispatch_timeout_sec);
        let version = self.version_of(key)?;
        if let Some((step_execution_id, is_init_step)) = seed_id(key) {
            let batch = self.batch();
            let message = EventMessage::PollCheck {
                runbook_name: batch.runbook_name.clone(),
                runbook_version: version,
                batch_id: batch.id,
                step_execution_id,
                step_name: work.step_name.clone(),
                poll_count: work.poll_count,
                is_init_step,
            };
            self.announce(Event::Bus(message));
        }
        self.emit_job(key, &work, version);
        self.rows.put_work(key, work)
    }

    /// Sends the current job again, because there is no call of it. The id is the same.
    pub(super) fn dispatch_again(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        work.await_call(self.now(), self.context.dispatch_timeout_sec);
        let version = self.version_of(key)?;
        self.emit_job(key, &work, version);
        self.rows.put_work(key, work)
    }

    fn version_of(&self, key: WorkKey) -> Step<u32> {
        let version = match key {
            WorkKey::Step(id) => self.rows.locate(id).map(|(phase, _)| phase.runbook_version),
            WorkKey::Init(id) => self.rows.init(id).map(|row| row.runbook_version),
            WorkKey::Rollback(origin, index) => {
                self.rows.rollback(origin, index)?.map(|row| row.runbook_version)
            }
            WorkKey::Removal(member, index) => {
                self.rows.removal(member, index)?.map(|row| row.runbook_version)
            }
        };
        Ok(version.unwrap_or(self.batch().runbook_version))
    }

    fn emit_job(&mut self, key: WorkKey, work: &Work, version: u32) {
        let Some(job_id) = work.job_id.clone() else { return };
        let (step_execution_id, init_execution_id) = match key {
            WorkKey::Step(id) | WorkKey::Rollback(Origin::Step(id), _) => (Some(id), None),
            WorkKey::Init(id) | WorkKey::Rollback(Origin::Init(id), _) => (None, Some(id)),
            WorkKey::Removal(..) => (None, None),
        };
        let batch = self.batch();
        let correlation_data = CorrelationData {
            step_execution_id,
            init_execution_id,
            is_init_step: init_execution_id.is_some(),
            runbook_name: batch.runbook_name.clone(),
            runbook_version: version,
        };
        let dispatch = Dispatch {
            work: key,
            job_id,
            batch_id: batch.id,
            worker_id: work.worker_id.clone(),
            function_name: work.function_name.clone(),
            params_json: work.params_json.clone(),
            correlation_data,
            dispatch_timeout_sec: self.context.dispatch_timeout_sec,
        };
        self.emit(Effect::Dispatch(dispatch));
    }

    /// Gives up a piece of work that is open: `cancelled` or `skipped`. Running work is told.
    pub(super) fn give_up(&mut self, key: WorkKey, status: WorkStatus) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        if work.status.is_open() {
            self.cancel_call(key, &work);
            work.give_up(status, self.now());
            self.rows.put_work(key, work)?;
        }
        Ok(())
    }

    /// Tells the worker that the result of the current job no longer counts.
    pub(super) fn cancel_call(&mut self, key: WorkKey, work: &Work) {
        if let (true, Some(job_id)) = (work.is_called(), work.job_id.clone()) {
            let worker_id = work.worker_id.clone();
            self.emit(Effect::CancelJob(CancelJob { work: key, job_id, worker_id }));
        }
    }

    /// Whether the whole batch holds steps back: it is paused or cancelled, or there is a blackout.
    pub(super) fn is_batch_held(&self) -> Step<bool> {
        let batch = self.batch();
        if batch.status.is_terminal() || batch.is_cancelling() || batch.paused_at.is_some() {
            return Ok(true);
        }
        Ok(self.blackout()?.is_some())
    }

    /// Whether a phase has a place for one more step.
    pub(super) fn has_place(&self, phase: PhaseId) -> Step<bool> {
        let max_parallel = self.with_phase(phase, |_, phase| phase.max_parallel)?;
        let phase = self.phase(phase);
        Ok(max_parallel.is_none_or(|most| phase.places_taken < most.of(phase.members())))
    }

    /// Begins a step whose turn has come, unless something holds it back.
    pub(super) fn start(&mut self, phase: PhaseId, ordinal: Ordinal, index: u32) -> Step<Start> {
        let row = self.phase(phase);
        let is_running = row.status == PhaseStatus::Dispatched && row.ending.is_none();
        let is_stopped = row.stopped_at.is_some();
        let step = row.step_id(ordinal, index);
        if !is_running {
            return Ok(Start::Held);
        }
        if is_stopped || self.is_batch_held()? || !self.has_place(phase)? {
            self.hold(phase, ordinal);
            return Ok(Start::Held);
        }
        if let Some(step) = step {
            self.dispatch(WorkKey::Step(step))?;
        }
        Ok(Start::Begun)
    }

    /// Makes the release cursor of a phase find a member whose step could not begin.
    pub(super) fn hold(&mut self, phase: PhaseId, ordinal: Ordinal) {
        let row = self.phase_mut(phase);
        let end = ordinal.saturating_add(1);
        let held = match row.release_cursor {
            None => ReleaseCursor { next: ordinal, end: Some(end), index: None },
            Some(cursor) => ReleaseCursor {
                next: cursor.next.min(ordinal),
                end: cursor.end.map(|before| before.max(end)),
                index: None,
            },
        };
        row.release_cursor = Some(held);
    }

    /// A step as it is stored before it is sent, with what can be resolved by now.
    pub(super) fn pending_work(&self, blueprint: &Blueprint, index: u32) -> Step<Work> {
        let member = match blueprint.member {
            Some(id) => self.rows.member(id)?,
            None => None,
        };
        let names = variables(self.batch(), member);
        let templates = self.context.templates;
        let resolved =
            templates.resolve(blueprint.step(), &names).unwrap_or_else(|_| templates.raw(blueprint.step()));
        Ok(Work::pending(blueprint.step(), index, resolved.function, resolved.params_json))
    }
}

/// The id by which the seed's messages name a step or an init step.
fn seed_id(key: WorkKey) -> Option<(u64, bool)> {
    match key {
        WorkKey::Step(id) => Some((id.0, false)),
        WorkKey::Init(id) => Some((id.0, true)),
        WorkKey::Rollback(..) | WorkKey::Removal(..) => None,
    }
}
