//! DAGs built in Rust. What is built is checked by the rules of the format, so it can be published like any other.
//!
//! ```
//! use segno_ledger::plan::{Dag, Function, TaskBuilder};
//! use serde_json::json;
//!
//! let parsed = Dag::builder("daily-sales")
//!     .param("day", "2026-01-01")
//!     .task(TaskBuilder::new("extract", Function::new("extract")).input(json!({ "day": "{{ params.day }}" })))
//!     .task(
//!         TaskBuilder::new("load", Function::new("load"))
//!             .depends_on(["extract"])
//!             .input(json!({ "rows": "{{ tasks.extract.output.rows }}" })),
//!     )
//!     .build()?;
//! assert_eq!(parsed.dag.tasks.len(), 2);
//! # Ok::<_, segno_ledger::plan::InvalidDag>(())
//! ```

use segno_actions::document::Problems;
use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{ScheduleSpec, Zones};
use serde_json::{Map, Value};

use super::definition::{
    Asset, Dag, DagSchedule, ForEach, Items, Notify, NotifyEvent, Parameter, Partitions, Retry, Sensor, Task,
};
use super::limits::MAX_FOR_EACH_ITEMS;
use super::yaml::{InvalidDag, Parsed, parse};
use crate::event::Target;
use crate::tables::{Completion, TriggerRule};

/// A function as what a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function(String);

impl Function {
    /// The function of the catalogue with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Function(name.into())
    }
}

impl From<Function> for Target {
    fn from(Function(name): Function) -> Self {
        Target::Function(name.into())
    }
}

/// An orchestration as what a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orchestration(String);

impl Orchestration {
    /// The orchestration with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Orchestration(name.into())
    }
}

impl From<Orchestration> for Target {
    fn from(Orchestration(name): Orchestration) -> Self {
        Target::Orchestration(name.into())
    }
}

impl Dag {
    /// A DAG without tasks.
    pub fn builder(name: impl Into<String>) -> DagBuilder {
        DagBuilder { dag: Dag { name: name.into(), ..Dag::default() } }
    }
}

/// Builds a DAG.
#[derive(Debug, Clone)]
#[must_use]
pub struct DagBuilder {
    dag: Dag,
}

impl DagBuilder {
    /// What it is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.dag.description = Some(text.into());
        self
    }

    /// A parameter with a default.
    pub fn param(self, name: impl Into<String>, default: impl Into<Value>) -> Self {
        self.parameter(name, Parameter { default: Some(default.into()), ..Parameter::default() })
    }

    /// A parameter.
    pub fn parameter(mut self, name: impl Into<String>, parameter: Parameter) -> Self {
        self.dag.params.insert(name.into(), parameter);
        self
    }

    /// A partition definition.
    pub fn partitions(mut self, name: impl Into<String>, partitions: Partitions) -> Self {
        self.dag.partitions.insert(name.into(), partitions);
        self
    }

    /// The partition definition of which every run has one key.
    pub fn partitioned_by(mut self, name: impl Into<String>) -> Self {
        self.dag.partitioned_by = Some(name.into());
        self
    }

    /// An asset.
    pub fn asset(mut self, key: impl Into<String>, asset: Asset) -> Self {
        self.dag.assets.insert(key.into(), asset);
        self
    }

    /// A concurrency pool with so many slots.
    pub fn pool(mut self, name: impl Into<String>, slots: u32) -> Self {
        self.dag.pools.insert(name.into(), slots);
        self
    }

    /// When it runs by itself, with the defaults of all parameters.
    pub fn schedule(mut self, spec: ScheduleSpec) -> Self {
        self.dag.schedule = Some(DagSchedule { spec, params: Map::new() });
        self
    }

    /// A sensor.
    pub fn sensor(mut self, sensor: Sensor) -> Self {
        self.dag.sensors.push(sensor);
        self
    }

    /// The function that is called for these events.
    pub fn notify(mut self, function: impl Into<String>, on: impl IntoIterator<Item = NotifyEvent>) -> Self {
        self.dag.notify = Some(Notify { function: function.into(), on: on.into_iter().collect() });
        self
    }

    /// Most runs at a time.
    pub fn max_concurrent_runs(mut self, runs: u32) -> Self {
        self.dag.max_concurrent_runs = Some(runs);
        self
    }

    /// A task.
    pub fn task(mut self, task: TaskBuilder) -> Self {
        self.dag.tasks.push(task.task);
        self
    }

    /// Checks the DAG with the time zones of this program.
    ///
    /// # Errors
    /// `invalid-dag` with all problems; their paths are those of the format.
    pub fn build(self) -> Result<Parsed, InvalidDag> {
        self.dag.checked(&Zones::newest())
    }
}

impl Dag {
    /// Checks a definition by the rules of the format.
    ///
    /// # Errors
    /// `invalid-dag` with all problems; their paths are those of the format.
    pub fn checked(&self, zones: &Zones) -> Result<Parsed, InvalidDag> {
        let without_lines = |problems: &Problems| problems.without_positions();
        match parse(self.to_json().as_bytes(), zones) {
            Ok(parsed) => Ok(Parsed { warnings: without_lines(&parsed.warnings), ..parsed }),
            Err(InvalidDag { problems }) => Err(InvalidDag { problems: without_lines(&problems) }),
        }
    }

    /// The document that has this definition, as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a definition has string keys only")
    }
}

/// Builds a task.
#[derive(Debug, Clone)]
#[must_use]
pub struct TaskBuilder {
    task: Task,
}

impl TaskBuilder {
    /// A task that runs a function or an orchestration.
    pub fn new(key: impl Into<String>, target: impl Into<Target>) -> Self {
        TaskBuilder { task: Task::new(key, target.into()) }
    }

    /// The tasks that come first.
    pub fn depends_on<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.task.depends_on.extend(keys.into_iter().map(Into::into));
        self
    }

    /// The template of its input.
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.task.input = input.into();
        self
    }

    /// How often it is tried.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.task.retry = retry;
        self
    }

    /// How long one attempt may take.
    pub fn timeout(mut self, timeout: HumanDuration) -> Self {
        self.task.timeout = Some(timeout);
        self
    }

    /// How long an attempt may be silent before it counts as lost.
    pub fn heartbeat_timeout(mut self, timeout: HumanDuration) -> Self {
        self.task.heartbeat_timeout = timeout;
        self
    }

    /// The tag of the workers that run it.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.task.tag = Some(tag.into());
        self
    }

    /// The concurrency pool that it takes a slot of.
    pub fn pool(mut self, pool: impl Into<String>) -> Self {
        self.task.pool = Some(pool.into());
        self
    }

    /// The pool of workers that its function is called through.
    pub fn worker_pool(mut self, pool: impl Into<String>) -> Self {
        self.task.worker_pool = Some(pool.into());
        self
    }

    /// Its worker reports the end of an attempt to the callback routes.
    pub fn completed_by_callback(mut self) -> Self {
        self.task.completion = Completion::Callback;
        self
    }

    /// Which ends of upstream tasks it needs.
    pub fn trigger_rule(mut self, rule: TriggerRule) -> Self {
        self.task.trigger_rule = rule;
        self
    }

    /// The placeholder of the list over which it is expanded, as in `{{ tasks.list.output.files }}`.
    pub fn for_each(mut self, items: impl Into<String>) -> Self {
        let items = Items::Template(items.into());
        self.task.for_each = Some(ForEach { items, max_items: MAX_FOR_EACH_ITEMS });
        self
    }

    /// The asset that it makes.
    pub fn asset(mut self, key: impl Into<String>) -> Self {
        self.task.asset = Some(key.into());
        self
    }
}
