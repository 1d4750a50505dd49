//! A scope under test: events go in one by one or in any order, rows come out.

use std::sync::Arc;

use jiff::Timestamp;

use crate::event::{
    Attempt, DispatchEnqueued, DispatchRequested, Envelope, EventData, Header, Outcome, PlanCreated,
    PlannedTask, RunTriggered, TaskError, TaskFinished, TaskHeartbeat, TaskStarted, Trigger,
};
use crate::fold::{Scope, State, fold};
use crate::ids::{Ulid, attempt_id, dispatch_id};
use crate::tables::{RunRow, RunState, TaskRow, TaskState};

/// The time of the first event.
pub(super) const START_MS: u64 = 1_705_340_000_000;

/// A state, and the log that led to it.
pub(super) struct World {
    pub(super) state: State,
    pub(super) log: Vec<Envelope>,
    pub(super) now_ms: u64,
    sequence: u128,
}

/// The scope of all tests.
pub(super) fn scope() -> Scope {
    Scope::new("acme", "default")
}

/// A header with a time that decides nothing.
pub(super) fn header() -> Header {
    let scope = scope();
    Header { tenant_id: scope.tenant_id, workspace_id: scope.workspace_id, timestamp: Timestamp::UNIX_EPOCH }
}

/// A task that depends on others: `task("c", "a b")`.
pub(super) fn task(key: &str, depends_on: &str) -> PlannedTask {
    PlannedTask {
        depends_on: depends_on.split_whitespace().map(Arc::from).collect(),
        ..PlannedTask::new(key)
    }
}

/// An attempt of a task of `run1`.
pub(super) fn attempt(task_key: &str, attempt: u32) -> Attempt {
    Attempt {
        run_id: "run1".into(),
        task_key: task_key.into(),
        attempt,
        attempt_id: attempt_id(&dispatch_id("run1", task_key, attempt)).into(),
    }
}

/// The trigger of `run1`.
pub(super) fn triggered(run_id: &str) -> RunTriggered {
    RunTriggered {
        run_id: run_id.into(),
        plan_id: "plan@1".into(),
        trigger: Trigger::Manual { user_id: "ada".into() },
        root_assets: Vec::new(),
        run_key: None,
        labels: Default::default(),
        code_version: None,
        dag: None,
        params: None,
        parent_run_id: None,
    }
}

/// A plan of a run.
pub(super) fn planned(run_id: &str, tasks: Vec<PlannedTask>) -> PlanCreated {
    PlanCreated { run_id: run_id.into(), plan_id: "plan@1".into(), tasks }
}

/// The request of a dispatch.
pub(super) fn requested(task_key: &str, number: u32) -> DispatchRequested {
    let Attempt { run_id, task_key, attempt, attempt_id } = attempt(task_key, number);
    let dispatch_id = dispatch_id(&run_id, &task_key, attempt).into();
    DispatchRequested {
        run_id,
        task_key,
        attempt,
        attempt_id,
        worker_queue: "default-queue".into(),
        dispatch_id,
    }
}

/// The acceptance of a dispatch.
pub(super) fn enqueued(task_key: &str, number: u32, repair: u32) -> DispatchEnqueued {
    DispatchEnqueued {
        dispatch_id: dispatch_id("run1", task_key, number).into(),
        run_id: Some("run1".into()),
        task_key: Some(task_key.into()),
        attempt: Some(number),
        cloud_task_id: format!("queue-{repair}").into(),
        repair,
    }
}

/// The start of an attempt.
pub(super) fn started(task_key: &str, number: u32) -> TaskStarted {
    TaskStarted { attempt: attempt(task_key, number), worker_id: "w1".into() }
}

/// A sign of life.
pub(super) fn heartbeat(task_key: &str, number: u32, at_ms: u64) -> TaskHeartbeat {
    TaskHeartbeat {
        attempt: attempt(task_key, number),
        worker_id: "w1".into(),
        heartbeat_at: Some(Timestamp::from_millisecond(at_ms as i64).unwrap()),
        progress_pct: None,
        message: None,
    }
}

/// The end of an attempt.
pub(super) fn finished(task_key: &str, number: u32, outcome: Outcome) -> TaskFinished {
    let error = TaskError { category: None, message: "broken".into(), stack_trace: None, retryable: None };
    TaskFinished {
        attempt: attempt(task_key, number),
        worker_id: "w1".into(),
        outcome,
        materialization_id: None,
        error_message: None,
        output: None,
        error: (outcome == Outcome::Failed).then_some(error),
        metrics: None,
        cancelled_during_phase: None,
        partial_progress_json: None,
        asset_key: None,
        partition_key: None,
        code_version: None,
    }
}

impl World {
    pub(super) fn new() -> Self {
        World { state: State::new(scope()), log: Vec::new(), now_ms: START_MS, sequence: 0 }
    }

    /// A world with `run1`, which has these tasks.
    pub(super) fn with(tasks: Vec<PlannedTask>) -> Self {
        let mut world = World::new();
        assert!(world.send(triggered("run1")));
        assert!(world.send(planned("run1", tasks)));
        world
    }

    /// The next id.
    pub(super) fn next_id(&mut self) -> Ulid {
        self.sequence += 1;
        Ulid::at(self.now_ms, self.sequence)
    }

    /// An event that is not folded yet.
    pub(super) fn envelope(&mut self, event: impl Into<EventData>) -> Envelope {
        let id = self.next_id();
        Envelope::new(&header(), id, event)
    }

    /// Folds an event; whether it changed something.
    pub(super) fn send(&mut self, event: impl Into<EventData>) -> bool {
        let envelope = self.envelope(event);
        self.log.push(envelope.clone());
        let report = fold(&mut self.state, &[envelope]);
        assert!(report.stragglers.is_empty());
        report.applied == 1
    }

    /// Folds events that all have to change something.
    pub(super) fn send_all(&mut self, events: impl IntoIterator<Item = EventData>) {
        for event in events {
            let shown = format!("{event:?}");
            assert!(self.send(event), "{shown} changed nothing");
        }
    }

    /// Dispatches, starts and ends an attempt.
    pub(super) fn run(&mut self, task_key: &str, number: u32, outcome: Outcome) {
        let events: [EventData; 3] = [
            requested(task_key, number).into(),
            started(task_key, number).into(),
            finished(task_key, number, outcome).into(),
        ];
        self.send_all(events);
    }

    pub(super) fn task(&self, task_key: &str) -> &TaskRow {
        self.state.task("run1", task_key).unwrap()
    }

    pub(super) fn state_of(&self, task_key: &str) -> TaskState {
        self.task(task_key).state
    }

    pub(super) fn run_row(&self) -> &RunRow {
        self.state.run("run1").unwrap()
    }

    pub(super) fn run_state(&self) -> RunState {
        self.run_row().state
    }

    /// The states of these tasks, one letter each: blocked, ready, dispatched, Running, Wait,
    /// skipped, cancelled, failed, Succeeded, planned.
    pub(super) fn states(&self, task_keys: &str) -> String {
        let letter = |task_key: &str| match self.state_of(task_key) {
            TaskState::Planned => 'p',
            TaskState::Blocked => 'b',
            TaskState::Ready => 'r',
            TaskState::Dispatched => 'd',
            TaskState::Running => 'R',
            TaskState::RetryWait => 'W',
            TaskState::Skipped => 's',
            TaskState::Cancelled => 'c',
            TaskState::Failed => 'f',
            TaskState::Succeeded => 'S',
        };
        task_keys.split_whitespace().map(letter).collect()
    }
}
