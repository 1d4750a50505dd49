//! The tasks of a run: its plan, and the tasks that a list adds to it later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tables::{Completion, TriggerRule};

/// Attempts of a task that says nothing about them.
const DEFAULT_MAX_ATTEMPTS: u32 = 3;
/// Seconds without a heartbeat until an attempt counts as lost, of a task that says nothing about
/// them.
const DEFAULT_HEARTBEAT_TIMEOUT_SEC: u32 = 300;

/// The tasks of a run are known from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCreated {
    /// The run.
    pub run_id: Arc<str>,
    /// The plan: its name and version.
    pub plan_id: Arc<str>,
    /// Its tasks.
    pub tasks: Vec<PlannedTask>,
}

/// A task of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Its key, unique within the run.
    pub key: Arc<str>,
    /// Keys of the tasks that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Arc<str>>,
    /// The asset that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_key: Option<Arc<str>>,
    /// The partition of the asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<Arc<str>>,
    /// Attempts before it fails.
    #[serde(default = "default_max_attempts")]
    pub max_attempts: u32,
    /// Seconds without a heartbeat until an attempt counts as lost; 0 for never.
    #[serde(default = "default_heartbeat_timeout_sec")]
    pub heartbeat_timeout_sec: u32,
    /// Whether downstream tasks wait until its output is visible.
    #[serde(default)]
    pub requires_visible_output: bool,
    /// What it runs: the field `function` or `orchestration`. Without either it is for workers that
    /// know it by its key.
    #[serde(flatten)]
    pub target: Option<Target>,
    /// The template of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Waits between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The tag of the workers that run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Arc<str>>,
    /// The concurrency pool that it takes a slot of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Arc<str>>,
    /// The pool of workers that its function is called through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_pool: Option<Arc<str>>,
    /// What ends an attempt: the return of its function, or a callback of its worker.
    #[serde(default, skip_serializing_if = "is_by_return")]
    pub completion: Completion,
    /// Which ends of upstream tasks it needs.
    #[serde(default, skip_serializing_if = "is_all_success")]
    pub trigger_rule: TriggerRule,
    /// Over which list it is expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
}

impl PlannedTask {
    /// A task with this key and the defaults of everything else.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        PlannedTask {
            key: key.into(),
            depends_on: Vec::new(),
            asset_key: None,
            partition_key: None,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            heartbeat_timeout_sec: DEFAULT_HEARTBEAT_TIMEOUT_SEC,
            requires_visible_output: false,
            target: None,
            input: None,
            backoff: None,
            timeout_seconds: None,
            tag: None,
            pool: None,
            worker_pool: None,
            completion: Completion::Return,
            trigger_rule: TriggerRule::AllSuccess,
            for_each: None,
        }
    }
}

/// What a task runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A function, by name.
    Function(Arc<str>),
    /// An orchestration, by name.
    Orchestration(Arc<str>),
}

/// Waits between attempts: the first one, multiplied by a factor after every further attempt, up to
/// a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Seconds before the second attempt.
    pub initial_seconds: u32,
    /// By how much each wait is longer than the one before; 1 for equal waits.
    pub factor: u32,
    /// Seconds of the longest wait.
    pub max_seconds: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { initial_seconds: 30, factor: 2, max_seconds: 900 }
    }
}

/// A task that is expanded over a list: it adds one task for each item, and ends when they have
/// ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForEach {
    /// The template that yields the list.
    pub items: Value,
    /// How many items it takes at most; a longer list is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u32>,
}

/// The tasks that a `for_each` task adds, once per task and run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TasksAdded {
    /// The run.
    pub run_id: Arc<str>,
    /// The task with `for_each`.
    pub task_key: Arc<str>,
    /// Its attempt: 1, and higher after the task was cleared.
    pub attempt: u32,
    /// The tasks that it adds. They depend on nothing; the task with `for_each` waits for them.
    pub tasks: Vec<PlannedTask>,
    /// Why there is no list. The task fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

fn default_max_attempts() -> u32 {
    DEFAULT_MAX_ATTEMPTS
}

fn default_heartbeat_timeout_sec() -> u32 {
    DEFAULT_HEARTBEAT_TIMEOUT_SEC
}

fn is_by_return(completion: &Completion) -> bool {
    *completion == Completion::Return
}

fn is_all_success(rule: &TriggerRule) -> bool {
    *rule == TriggerRule::AllSuccess
}
