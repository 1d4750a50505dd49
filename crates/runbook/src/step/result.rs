//! Results. Only the result of the current job counts, once: results of earlier attempts, of rows that have
//! ended and of jobs whose result has been taken change nothing.

use serde_json::Value;

use super::effect::{Effect, IgnoredReason, Verdict};
use super::limits::THROTTLE_PAUSE_SEC;
use super::turn::{Step, Turn};
use crate::message::{CallResult, Outcome, WorkReference, result_field};
use crate::rows::{MemberId, Origin, WorkKey, WorkStatus, later};

impl Turn<'_> {
    pub(super) fn take_result(&mut self, result: &CallResult) -> Step<Verdict> {
        match self.current_work(result.work, &result.job_id)? {
            Ok(key) => {
                self.take_outcome(key, &result.outcome)?;
                Ok(Verdict::Applied)
            }
            Err(reason) => Ok(Verdict::Ignored(reason)),
        }
    }

    /// The piece of work that awaits the result of a job.
    pub(super) fn current_work(
        &self,
        reference: WorkReference,
        job_id: &str,
    ) -> Step<Result<WorkKey, IgnoredReason>> {
        let key = match reference {
            WorkReference::Step(id) => WorkKey::Step(id),
            WorkReference::Init(id) => WorkKey::Init(id),
            WorkReference::Removal(member, index) => WorkKey::Removal(member, index),
            WorkReference::Rollback(member) => match self.rollback_at_work(member)? {
                Some(key) => key,
                None => return Ok(Err(IgnoredReason::Stale)),
            },
        };
        if let WorkKey::Step(id) = key {
            // The row of a number that no phase has given cannot exist.
            if self.rows.locate(id).is_none() {
                return Ok(Err(IgnoredReason::Unknown));
            }
        }
        let Some(work) = self.rows.work(key)? else { return Ok(Err(IgnoredReason::Unknown)) };
        if work.status.is_terminal() {
            return Ok(Err(IgnoredReason::Ended));
        }
        if work.job_id.as_deref() != Some(job_id) {
            return Ok(Err(IgnoredReason::Stale));
        }
        if !work.is_called() {
            return Ok(Err(IgnoredReason::Duplicate));
        }
        Ok(Ok(key))
    }

    /// The rollback step at work for a member, or for the batch.
    fn rollback_at_work(&self, member: Option<MemberId>) -> Step<Option<WorkKey>> {
        let origin = match member {
            None => self.batch().rollback_of.map(Origin::Init),
            Some(id) if self.batch().ordinal(id).is_none() => None,
            Some(id) => self.member(id)?.and_then(|member| member.rollback_of).map(Origin::Step),
        };
        let Some(origin) = origin else { return Ok(None) };
        for index in 0..self.rollback_length(origin)? {
            let row = self.rows.rollback(origin, index)?;
            if row.is_some_and(|row| row.work.status.is_open()) {
                return Ok(Some(WorkKey::Rollback(origin, index)));
            }
        }
        Ok(None)
    }

    /// Takes the outcome of the current job.
    pub(super) fn take_outcome(&mut self, key: WorkKey, outcome: &Outcome) -> Step<()> {
        let Some(work) = self.rows.work(key)? else { return Ok(()) };
        match outcome {
            Outcome::Completed { result } => self.succeed(key, result),
            Outcome::InProgress if work.is_poll_step => self.wait_for_poll(key),
            Outcome::InProgress => {
                let message = "the worker reported {complete: false}, but the step has no `poll`: \
                               add `poll` with an interval and a timeout to the step";
                self.fail_attempt(key, message)
            }
            Outcome::Failed { message, throttled: false } => self.fail_attempt(key, message),
            Outcome::Failed { message, throttled: true } => self.slow_down(key, message),
        }
    }

    fn succeed(&mut self, key: WorkKey, result: &Value) -> Step<()> {
        self.keep_outputs(key, result)?;
        if let Some(mut work) = self.rows.work(key)?.cloned() {
            work.succeed(result.to_string(), self.now());
            self.rows.put_work(key, work)?;
        }
        match key {
            WorkKey::Step(id) => self.go_on_after(id),
            // The next init step is found by settling.
            WorkKey::Init(_) => Ok(()),
            WorkKey::Rollback(origin, index) => self.rollback_step_succeeded(origin, index),
            WorkKey::Removal(member, index) => self.removal_step_succeeded(member, index),
        }
    }

    fn wait_for_poll(&mut self, key: WorkKey) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        work.wait_for_poll(self.now());
        self.rows.put_work(key, work)
    }

    /// A throttled service is no failure: the pool is slowed down, and the step is tried again without
    /// using up a retry.
    fn slow_down(&mut self, key: WorkKey, message: &str) -> Step<()> {
        let Some(mut work) = self.rows.work(key)?.cloned() else { return Ok(()) };
        self.emit(Effect::SlowDown { worker_id: work.worker_id.clone() });
        if work.status == WorkStatus::Polling {
            work.wait_for_poll(self.now());
        } else {
            work.retry(Some(later(self.now(), THROTTLE_PAUSE_SEC)));
            work.retry_limit += 1;
        }
        work.error_message = Some(super::attempt::kept_message(message));
        self.rows.put_work(key, work)
    }

    /// Stores what `output_params` take from a result: with the member, or with the batch.
    fn keep_outputs(&mut self, key: WorkKey, result: &Value) -> Step<()> {
        let Some(blueprint) = self.blueprint(key)? else { return Ok(()) };
        let outputs = &blueprint.step().output_params;
        let found: Vec<(String, Value)> = outputs
            .iter()
            .filter_map(|(variable, field)| Some((variable.clone(), result_field(result, field)?.clone())))
            .collect();
        if found.is_empty() {
            return Ok(());
        }
        match blueprint.member {
            Some(id) => {
                if let Some(mut member) = self.rows.member(id)?.cloned() {
                    member.worker_data.extend(found);
                    self.rows.put_member(member);
                }
            }
            None => self.batch_mut().worker_data.extend(found),
        }
        Ok(())
    }
}
