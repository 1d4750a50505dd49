//! A scope that lives: controllers decide, workers answer at random, people interfere, and all of
//! it leaves a log. One seed is one life.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use segno_testkit::seeded::Random;

use crate::controllers::{
    AntiEntropy, Dispatcher, Expansion, Freshness, Heartbeat, OrchestrationController, Outside,
    ReadyDispatch, Retry, Snapshot, Timers,
};
use crate::event::{
    Attempt, Envelope, EventData, ForEach, Header, MarkedState, Outcome, OutputVisibility, PlanCreated,
    PlannedTask, PoolDefined, RunCancelRequested, RunPaused, RunResumed, RunTriggered, TaskCleared,
    TaskCompletionRecorded, TaskError, TaskFinished, TaskHeartbeat, TaskMarked, TaskOutputVisibilityChanged,
    TaskStarted, TasksAdded, Trigger, VisibilityState,
};
use crate::fold::{Scope, State, TaskRef, fold};
use crate::ids::Ulid;
use crate::tables::{OutboxRow, TaskRow, TaskState, TriggerRule};

/// The time of the first event.
const START_MS: u64 = 1_705_340_000_000;
/// Steps within which every life has to end.
const MAX_STEPS: usize = 600;

/// What a life may contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features {
    /// Tasks share pools. What a pool refuses depends on other runs, so such runs are not rebuilt.
    pub(super) pools: bool,
    /// People cancel, clear, mark and pause.
    pub(super) people: bool,
}

/// One life of a scope.
pub(super) struct Life {
    pub(super) state: State,
    pub(super) log: Vec<Envelope>,
    random: Random,
    features: Features,
    now_ms: u64,
    sequence: u128,
    /// Attempts that a worker has taken up and not ended, and whether they were started.
    under_way: BTreeMap<Arc<str>, (OutboxRow, bool)>,
    /// Attempts that were started at any time: starting twice is starting once.
    invoked: BTreeSet<Arc<str>>,
    /// Dispatches that the fold admitted.
    admitted: BTreeSet<Arc<str>>,
    requests: u32,
}

pub(super) fn scope() -> Scope {
    Scope::new("acme", "default")
}

fn controllers() -> [&'static dyn OrchestrationController; 7] {
    [&ReadyDispatch, &Dispatcher, &Timers, &Retry, &Heartbeat, &Expansion, &AntiEntropy]
}

impl Life {
    /// Lives the life of a seed to its end.
    pub(super) fn of(seed: u64, features: Features) -> Life {
        let mut life = Life {
            state: State::new(scope()),
            log: Vec::new(),
            random: Random::new(seed),
            features,
            now_ms: START_MS,
            sequence: 0,
            under_way: BTreeMap::new(),
            invoked: BTreeSet::new(),
            admitted: BTreeSet::new(),
            requests: 0,
        };
        if features.pools {
            let slots = life.random.between(1, 2) as u32;
            let (pool, requested_by) = ("p".into(), "ada".into());
            life.send(PoolDefined { pool, slots, request_id: "pool".into(), requested_by });
        }
        for run in 0..life.random.between(1, 2) {
            life.begin(format!("run{run}").into());
        }
        let mut steps = 0;
        while !life.is_over() {
            life.step();
            steps += 1;
            assert!(steps < MAX_STEPS, "a run does not end: {:#?}", life.open_tasks());
        }
        life
    }

    fn begin(&mut self, run_id: Arc<str>) {
        let tasks = self.tasks();
        let triggered = RunTriggered {
            run_id: Arc::clone(&run_id),
            plan_id: "p@1".into(),
            trigger: Trigger::Manual { user_id: "ada".into() },
            root_assets: Vec::new(),
            run_key: None,
            labels: Default::default(),
            code_version: None,
            dag: None,
            params: None,
            parent_run_id: None,
        };
        let planned = PlanCreated { run_id, plan_id: "p@1".into(), tasks };
        if self.random.chance(1, 10) {
            self.send(planned);
            self.send(triggered);
        } else {
            self.send(triggered);
            self.send(planned);
        }
    }

    fn tasks(&mut self) -> Vec<PlannedTask> {
        let count = self.random.between(1, 5);
        (0..count)
            .map(|number| {
                let mut task = PlannedTask::new(format!("t{number}"));
                task.depends_on = (0..number)
                    .filter(|_| self.random.chance(1, 2))
                    .map(|upstream| format!("t{upstream}").into())
                    .collect();
                task.max_attempts = self.random.between(1, 3) as u32;
                task.heartbeat_timeout_sec = if self.random.chance(1, 2) { 60 } else { 0 };
                task.timeout_seconds = (task.heartbeat_timeout_sec == 0).then_some(120);
                task.requires_visible_output = self.random.chance(1, 8);
                if self.random.chance(1, 3) {
                    let rule = self.random.below(TriggerRule::ALL.len() as u64);
                    task.trigger_rule = TriggerRule::ALL[rule as usize];
                }
                if self.features.pools && self.random.chance(2, 3) {
                    task.pool = Some(if self.random.chance(1, 3) { "undefined" } else { "p" }.into());
                }
                if self.random.chance(1, 8) {
                    task.for_each = Some(ForEach { items: "{{ list }}".into(), max_items: None });
                }
                task
            })
            .collect()
    }

    /// Appends and folds an event.
    fn send(&mut self, event: impl Into<EventData>) -> bool {
        let event = event.into();
        self.sequence += 1;
        let id = Ulid::at(self.now_ms, self.sequence);
        let Scope { tenant_id, workspace_id } = scope();
        let header = Header { tenant_id, workspace_id, timestamp: Timestamp::UNIX_EPOCH };
        let envelope = Envelope::new(&header, id, event);
        let report = fold(&mut self.state, std::slice::from_ref(&envelope));
        let is_applied = report.applied == 1;
        if is_applied && let Some(EventData::DispatchRequested(event)) = envelope.event() {
            let dispatch_id = Arc::clone(&event.dispatch_id);
            assert!(self.admitted.insert(dispatch_id), "{} was dispatched twice", event.dispatch_id);
        }
        self.log.push(envelope);
        is_applied
    }

    /// Whether all runs ended and nothing is left to do.
    fn is_over(&self) -> bool {
        self.state.runs().all(|run| run.state.is_final())
    }

    fn open_tasks(&self) -> Vec<(Arc<str>, Arc<str>, TaskState)> {
        let tasks = self.state.runs().flat_map(|run| self.state.tasks_of(&run.run_id));
        let open = tasks.filter(|task| !task.state.is_final());
        open.map(|task| (Arc::clone(&task.run_id), Arc::clone(&task.task_key), task.state)).collect()
    }

    fn step(&mut self) {
        self.now_ms += self.random.below(2_000);
        let length = self.log.len();
        // Several controllers of a kind see the same tables and want the same.
        let replicas = if self.random.chance(1, 6) { 2 } else { 1 };
        let freshness = Freshness::current(self.now_ms as i64);
        let snapshot = Snapshot { state: &self.state, freshness };
        let mut work = Vec::new();
        for controller in controllers() {
            let execution = controller.run(&snapshot, self.now_ms as i64);
            assert!(execution.reports.is_empty(), "{:?}", execution.reports);
            work.extend((0..replicas).map(|_| execution.clone()));
        }
        for execution in work {
            for event in execution.events.into_iter().flatten() {
                self.send(event);
            }
            for outside in execution.outside {
                self.do_outside(outside);
            }
        }
        self.work();
        if self.features.people && self.random.chance(1, 12) {
            self.interfere();
        }
        if self.log.len() == length {
            // Nothing happened: what is left waits for time.
            self.now_ms += self.random.between(10_000, 200_000);
            self.resume_all();
            self.publish_all();
        }
    }

    fn do_outside(&mut self, outside: Outside) {
        match outside {
            Outside::Enqueue(enqueue) => {
                let dispatch_id = Arc::clone(&enqueue.dispatch.dispatch_id);
                if self.invoked.insert(Arc::clone(&dispatch_id)) {
                    self.under_way.insert(dispatch_id, (enqueue.dispatch.clone(), false));
                }
                self.send(enqueue.accepted("queue"));
            }
            Outside::Expand { task, attempt } => {
                let items = self.random.below(3);
                let tasks = (0..items).map(|item| self.item(&task, item)).collect();
                let error = self.random.chance(1, 10).then(|| Arc::from("no list"));
                let TaskRef { run_id, task_key } = task;
                self.send(TasksAdded { run_id, task_key, attempt, tasks, error });
            }
            _ => {}
        }
    }

    fn item(&mut self, task: &TaskRef, item: u64) -> PlannedTask {
        PlannedTask {
            max_attempts: self.random.between(1, 2) as u32,
            heartbeat_timeout_sec: 60,
            ..PlannedTask::new(format!("{}[{item}]", task.task_key))
        }
    }

    /// Workers start, beat, end and vanish.
    fn work(&mut self) {
        for (dispatch_id, (dispatch, is_started)) in self.under_way.clone() {
            let attempt = Attempt {
                run_id: Arc::clone(&dispatch.run_id),
                task_key: Arc::clone(&dispatch.task_key),
                attempt: dispatch.attempt,
                attempt_id: Arc::clone(&dispatch.attempt_id),
            };
            let worker_id: Arc<str> = "w1".into();
            match self.random.below(8) {
                0..=2 if !is_started => {
                    self.send(TaskStarted { attempt, worker_id });
                    self.under_way.insert(dispatch_id, (dispatch, true));
                }
                3 if is_started => {
                    let heartbeat_at = Timestamp::from_millisecond(self.now_ms as i64).ok();
                    let (progress_pct, message) = (Some(50), None);
                    self.send(TaskHeartbeat { attempt, worker_id, heartbeat_at, progress_pct, message });
                }
                4..=6 => {
                    // Some are so fast that only their end is seen.
                    self.finish(attempt, worker_id);
                    self.under_way.remove(&dispatch_id);
                }
                // A worker that started and is never seen again.
                7 if is_started && self.random.chance(1, 4) => {
                    self.under_way.remove(&dispatch_id);
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, attempt: Attempt, worker_id: Arc<str>) {
        let outcome = match self.random.below(20) {
            0..=11 => Outcome::Succeeded,
            12..=17 => Outcome::Failed,
            18 => Outcome::Skipped,
            _ => Outcome::Cancelled,
        };
        let retryable = if self.random.chance(1, 5) { Some(false) } else { None };
        let error = TaskError { category: None, message: "broken".into(), stack_trace: None, retryable };
        let finished = TaskFinished {
            attempt,
            worker_id,
            outcome,
            materialization_id: None,
            error_message: None,
            output: None,
            error: (outcome == Outcome::Failed).then_some(error),
            metrics: None,
            cancelled_during_phase: None,
            partial_progress_json: None,
            asset_key: Some("asset".into()),
            partition_key: None,
            code_version: None,
        };
        if self.random.chance(1, 3) {
            let output_visibility = self.random.chance(1, 2).then_some(OutputVisibility {
                visibility_state: VisibilityState::Visible,
                published_at: None,
                publish_error: None,
            });
            self.send(TaskCompletionRecorded { finished, output_visibility });
        } else {
            self.send(finished);
        }
    }

    /// Outputs that are waited for become visible or fail.
    fn publish_all(&mut self) {
        let tasks = self.state.runs().flat_map(|run| self.state.tasks_of(&run.run_id));
        let pending = |task: &&TaskRow| {
            task.state == TaskState::Succeeded && task.output_visibility_state.as_deref() == Some("pending")
        };
        let pending: Vec<TaskRow> = tasks.filter(pending).cloned().collect();
        for task in pending {
            let Some(attempt_id) = task.attempt_id else { continue };
            let TaskRow { run_id, task_key, attempt, .. } = task;
            let state = self.random.chance(4, 5);
            let visibility_state = if state { VisibilityState::Visible } else { VisibilityState::Failed };
            self.send(TaskOutputVisibilityChanged {
                attempt: Attempt { run_id, task_key, attempt, attempt_id },
                visibility: OutputVisibility { visibility_state, published_at: None, publish_error: None },
            });
        }
    }

    fn resume_all(&mut self) {
        let paused = self.state.runs().filter(|run| run.paused);
        let paused: Vec<Arc<str>> = paused.map(|run| Arc::clone(&run.run_id)).collect();
        for run_id in paused {
            let request_id = self.request();
            self.send(RunResumed { run_id, request_id, requested_by: "ada".into() });
        }
    }

    fn request(&mut self) -> Arc<str> {
        self.requests += 1;
        format!("r{}", self.requests).into()
    }

    /// A person changes something.
    fn interfere(&mut self) {
        let mut tasks: Vec<TaskRow> =
            self.state.runs().flat_map(|run| self.state.tasks_of(&run.run_id)).cloned().collect();
        tasks.sort_by(|left, right| (&left.run_id, &left.task_key).cmp(&(&right.run_id, &right.task_key)));
        let Some(task) = tasks.get(self.random.below(tasks.len() as u64) as usize) else { return };
        let (run_id, task_key) = (Arc::clone(&task.run_id), Arc::clone(&task.task_key));
        let generation = self.state.run(&run_id).map_or(0, |run| run.generation);
        let (request_id, requested_by) = (self.request(), Arc::<str>::from("ada"));
        match self.random.below(6) {
            0 => {
                self.send(RunCancelRequested { run_id, reason: None, requested_by, generation });
            }
            1 | 2 => {
                let downstream = self.random.chance(1, 2);
                let task_keys = vec![task_key];
                self.send(TaskCleared { run_id, task_keys, downstream, request_id, requested_by });
            }
            3 | 4 => {
                let state = match self.random.below(3) {
                    0 => MarkedState::Succeeded,
                    1 => MarkedState::Failed,
                    _ => MarkedState::Skipped,
                };
                let (output, reason) = (None, None);
                self.send(TaskMarked { run_id, task_key, state, output, reason, request_id, requested_by });
            }
            _ => {
                self.send(RunPaused { run_id, request_id, requested_by });
            }
        }
    }
}
