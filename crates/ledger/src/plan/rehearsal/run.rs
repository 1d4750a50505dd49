//! The loop of a rehearsal: append what a driver would append, fold it, and pass to the next time at which something
//! happens. Decisions are those of the fold; here is only what functions answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use segno::Payload;
use serde_json::Value;

use super::report::{Ended, Report, Step, StepKind};
use super::stubs::{Stub, Stubs};
use crate::event::{
    Attempt, DispatchRequested, Envelope, EventData, Header, Outcome, PlanCreated, PlannedTask, PoolDefined,
    RunTriggered, TaskError, TaskFinished, TaskOutput, TaskStarted, TasksAdded, Trigger,
};
use crate::fold::{Scope, State, TaskRef, fold};
use crate::ids::{Ulid, attempt_id, dispatch_id};
use crate::plan::limits::MAX_REHEARSAL_STEPS;
use crate::plan::{Plan, RunNames, expand, resolve_input};
use crate::tables::{RunState, TaskRow, TaskState};

/// The id of the run, as `{{ run.id }}` has it.
const RUN_ID: &str = "run_test";

/// A run that is played through.
struct Rehearsal<'r> {
    plan: &'r Plan,
    stubs: &'r Stubs,
    /// All tasks by key, those that lists added included.
    tasks: BTreeMap<Arc<str>, PlannedTask>,
    state: State,
    start_ms: i64,
    now_ms: i64,
    sequence: u128,
    steps: Vec<Step>,
    /// Attempts that are under way, by the time at which they end.
    ends: BTreeSet<(i64, Arc<str>, u32)>,
    inputs: BTreeMap<Arc<str>, Value>,
    unused_stubs: BTreeSet<String>,
}

/// Plays a plan through from a time on. `pools` are the slots of concurrency pools.
pub fn rehearse(plan: &Plan, pools: &BTreeMap<String, u32>, stubs: &Stubs, start: Timestamp) -> Report {
    let start_ms = start.as_millisecond().max(0);
    let mut rehearsal = Rehearsal {
        plan,
        stubs,
        tasks: plan.tasks.iter().map(|task| (Arc::clone(&task.key), task.clone())).collect(),
        state: State::new(Scope::new("default", "default")),
        start_ms,
        now_ms: start_ms,
        sequence: 0,
        steps: Vec::new(),
        ends: BTreeSet::new(),
        inputs: BTreeMap::new(),
        unused_stubs: stubs.names().collect(),
    };
    for (pool, slots) in pools {
        rehearsal.append(PoolDefined {
            pool: pool.as_str().into(),
            slots: *slots,
            request_id: "test".into(),
            requested_by: "test".into(),
        });
    }
    rehearsal.append(RunTriggered {
        run_id: RUN_ID.into(),
        plan_id: Arc::clone(&plan.plan_id),
        trigger: Trigger::Manual { user_id: "test".into() },
        root_assets: Vec::new(),
        run_key: None,
        labels: BTreeMap::new(),
        code_version: None,
        dag: None,
        params: Some(plan.params.clone().into()),
        parent_run_id: None,
    });
    rehearsal.append(PlanCreated {
        run_id: RUN_ID.into(),
        plan_id: Arc::clone(&plan.plan_id),
        tasks: plan.tasks.clone(),
    });
    rehearsal.play();
    rehearsal.report(start)
}

impl Rehearsal<'_> {
    fn play(&mut self) {
        while self.steps.len() < MAX_REHEARSAL_STEPS {
            let expansion = self.state.expansions().next().map(|(_, task)| task.clone());
            if let Some(task) = expansion {
                self.expand(&task);
            } else if let Some((task, attempt)) = self.next_start() {
                self.start(&task, attempt);
            } else if !self.pass_time() {
                return;
            }
        }
    }

    /// A task that may be called now, and its attempt.
    fn next_start(&self) -> Option<(TaskRef, u32)> {
        let ready = self.state.ready().chain(self.state.retries()).filter(|pool| pool.free_slots > 0);
        let first = ready.filter_map(|pool| pool.tasks().next());
        let (_, task) = first.filter(|(at, _)| *at <= self.now_ms).min()?;
        Some((task.clone(), self.state.task(RUN_ID, &task.task_key)?.next_attempt()?))
    }

    /// Passes to the next time at which an attempt ends or may start; whether there is one.
    fn pass_time(&mut self) -> bool {
        let end = self.ends.first().map(|(at, ..)| *at);
        let retry = self.state.retries().filter(|pool| pool.free_slots > 0);
        let retry = retry.filter_map(|pool| pool.tasks().next().map(|(at, _)| *at)).min();
        let Some(next) = end.into_iter().chain(retry).min() else { return false };
        self.now_ms = self.now_ms.max(next);
        if end.is_some_and(|end| end <= self.now_ms)
            && let Some((_, task, attempt)) = self.ends.pop_first()
        {
            self.finish(&task, attempt);
        }
        true
    }

    fn expand(&mut self, task: &TaskRef) {
        let Some(planned) = self.tasks.get(&task.task_key).cloned() else { return };
        let expanded = expand(&planned, &self.names(), |key| self.output(key));
        let attempt = self.state.task(RUN_ID, &task.task_key).and_then(TaskRow::next_attempt).unwrap_or(1);
        let (tasks, error) = match expanded {
            Ok(tasks) => (tasks, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let kind = match &error {
            None => StepKind::Expanded { count: tasks.len() },
            Some(error) => StepKind::NotExpanded { error: error.clone() },
        };
        self.step(&task.task_key, 0, kind);
        self.tasks.extend(tasks.iter().map(|task| (Arc::clone(&task.key), task.clone())));
        self.append(TasksAdded {
            run_id: RUN_ID.into(),
            task_key: Arc::clone(&task.task_key),
            attempt,
            tasks,
            error: error.map(Arc::from),
        });
    }

    fn start(&mut self, task: &TaskRef, number: u32) {
        let key = &task.task_key;
        let attempt = attempt_of(key, number);
        self.append(DispatchRequested {
            run_id: RUN_ID.into(),
            task_key: Arc::clone(key),
            attempt: number,
            attempt_id: Arc::clone(&attempt.attempt_id),
            worker_queue: "default-queue".into(),
            dispatch_id: dispatch_id(RUN_ID, key, number).into(),
        });
        self.append(TaskStarted { attempt, worker_id: "test".into() });
        let Some(planned) = self.tasks.get(key).cloned() else { return };
        match resolve_input(&planned, &self.names(), |key| self.output(key)) {
            Ok(input) => {
                self.step(key, number, StepKind::Started { input: input.clone() });
                self.inputs.insert(Arc::clone(key), input);
                let (stub, timeout_ms) = (self.stub(&planned), timeout_ms(&planned));
                let duration_ms = ms(stub.duration.as_ms()).min(timeout_ms.unwrap_or(i64::MAX));
                self.ends.insert((self.now_ms.saturating_add(duration_ms), Arc::clone(key), number));
            }
            Err(error) => {
                let error = TaskError {
                    category: Some("CONFIGURATION".into()),
                    message: error.to_string().into(),
                    stack_trace: None,
                    retryable: Some(false),
                };
                self.end(key, number, Err(error));
            }
        }
    }

    fn finish(&mut self, key: &Arc<str>, number: u32) {
        let Some(planned) = self.tasks.get(key).cloned() else { return };
        let stub = self.stub(&planned);
        let failed = |category: &str, message: &str, retryable: bool| TaskError {
            category: Some(category.into()),
            message: message.into(),
            stack_trace: None,
            retryable: Some(retryable),
        };
        let too_long = timeout_ms(&planned).is_some_and(|timeout| ms(stub.duration.as_ms()) > timeout);
        let outcome = if too_long {
            Err(failed("TIMEOUT", &format!("timed out; the stub takes {}", stub.duration), true))
        } else if number <= stub.failures {
            Err(failed("USER_CODE", &stub.error, stub.retryable))
        } else {
            Ok(stub.output.unwrap_or_else(|| self.inputs.get(key).cloned().unwrap_or_default()))
        };
        self.end(key, number, outcome);
    }

    fn end(&mut self, key: &Arc<str>, number: u32, outcome: Result<Value, TaskError>) {
        let is_success = outcome.is_ok();
        let (value, error) = match outcome {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        self.append(TaskFinished {
            attempt: attempt_of(key, number),
            worker_id: "test".into(),
            outcome: if is_success { Outcome::Succeeded } else { Outcome::Failed },
            materialization_id: None,
            error_message: error.as_ref().map(|error| Arc::clone(&error.message)),
            output: value
                .as_ref()
                .map(|value| TaskOutput { value: Payload::encode(value).ok(), ..TaskOutput::default() }),
            error: error.clone(),
            metrics: None,
            cancelled_during_phase: None,
            partial_progress_json: None,
            asset_key: None,
            partition_key: None,
            code_version: None,
        });
        let row = self.state.task(RUN_ID, key);
        let retry_at =
            row.filter(|row| row.state == TaskState::RetryWait).and_then(|row| row.retry_not_before);
        let kind = match (value, error) {
            (Some(output), _) => StepKind::Succeeded { output },
            (None, error) => StepKind::Failed {
                error: error.map(|error| error.message.to_string()).unwrap_or_default(),
                retry_at_ms: retry_at.map(|at| at - self.start_ms),
            },
        };
        self.step(key, number, kind);
    }

    /// What a task has returned, if it has succeeded; of a list what its items have returned.
    fn output(&self, key: &str) -> Option<Value> {
        let row = self.state.task(RUN_ID, key).filter(|row| row.state == TaskState::Succeeded)?;
        if row.added_count.is_none() {
            return value_of(row);
        }
        let mut items = self.state.items_of(RUN_ID, key);
        items.sort_by_key(|item| (item.task_key.len(), Arc::clone(&item.task_key)));
        Some(items.into_iter().map(|item| value_of(item).unwrap_or_default()).collect())
    }

    fn names(&self) -> RunNames<'_> {
        RunNames { run_id: RUN_ID, params: &self.plan.params, partition: self.plan.partition.as_ref() }
    }

    fn stub(&mut self, task: &PlannedTask) -> Stub {
        match self.stubs.of(task) {
            Some((name, stub)) => {
                self.unused_stubs.remove(&name);
                stub.clone()
            }
            None => Stub::default(),
        }
    }

    fn step(&mut self, task: &str, attempt: u32, kind: StepKind) {
        self.steps.push(Step { at_ms: self.now_ms - self.start_ms, task: task.to_owned(), attempt, kind });
    }

    fn append(&mut self, event: impl Into<EventData>) {
        self.sequence += 1;
        let timestamp = Timestamp::from_millisecond(self.now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let scope = self.state.scope();
        let header = Header {
            tenant_id: Arc::clone(&scope.tenant_id),
            workspace_id: Arc::clone(&scope.workspace_id),
            timestamp,
        };
        let id = Ulid::at(u64::try_from(self.now_ms).unwrap_or_default(), self.sequence);
        fold(&mut self.state, &[Envelope::new(&header, id, event)]);
    }

    fn report(self, started_at: Timestamp) -> Report {
        let ended = |row: &TaskRow| Ended {
            task: row.task_key.to_string(),
            state: row.state,
            attempts: row.attempt,
            reason: row.error_message.as_deref().map(str::to_owned),
        };
        Report {
            state: self.state.run(RUN_ID).map_or(RunState::Triggered, |run| run.state),
            started_at,
            duration_ms: self.now_ms - self.start_ms,
            steps: self.steps,
            tasks: self.state.tasks_of(RUN_ID).map(ended).collect(),
            unused_stubs: self.unused_stubs.into_iter().collect(),
        }
    }
}

fn attempt_of(key: &Arc<str>, number: u32) -> Attempt {
    Attempt {
        run_id: RUN_ID.into(),
        task_key: Arc::clone(key),
        attempt: number,
        attempt_id: attempt_id(&dispatch_id(RUN_ID, key, number)).into(),
    }
}

fn timeout_ms(task: &PlannedTask) -> Option<i64> {
    task.timeout_seconds.map(|seconds| i64::from(seconds) * 1_000)
}

fn ms(duration_ms: u64) -> i64 {
    i64::try_from(duration_ms).unwrap_or(i64::MAX)
}

fn value_of(row: &TaskRow) -> Option<Value> {
    serde_json::from_str(row.output.as_deref()?).ok()
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
