//! Tasks: what each runs, after which others, and how often it is tried.

use segno_actions::functions::HumanDuration;
use serde::Serialize;
use serde_json::Value;

use crate::event::{Backoff, PlannedTask, Target};
use crate::tables::{Completion, TriggerRule};

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// Its key, unique within the DAG.
    pub key: String,
    /// Keys of the tasks that come first, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What it runs: a function or an orchestration.
    #[serde(flatten)]
    pub target: Target,
    /// The template of its input.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// How often it is tried.
    #[serde(skip_serializing_if = "Retry::is_default")]
    pub retry: Retry,
    /// How long one attempt may take; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// How long an attempt may be silent before it counts as lost; 0 is for ever.
    pub heartbeat_timeout: HumanDuration,
    /// The tag of the workers that run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The concurrency pool that it takes a slot of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The pool of workers that its function is called through; without it, the function of the catalogue is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_pool: Option<String>,
    /// What ends an attempt.
    #[serde(skip_serializing_if = "is_by_return")]
    pub completion: Completion,
    /// Which ends of upstream tasks it needs.
    pub trigger_rule: TriggerRule,
    /// The list over which it is expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// The asset that it makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
}

impl Task {
    /// A task with the defaults of everything else.
    pub fn new(key: impl Into<String>, target: Target) -> Self {
        let planned = PlannedTask::new("");
        Task {
            key: key.into(),
            depends_on: Vec::new(),
            target,
            input: Value::Null,
            retry: Retry::default(),
            timeout: None,
            heartbeat_timeout: HumanDuration::from_secs(planned.heartbeat_timeout_sec.into()),
            tag: None,
            pool: None,
            worker_pool: None,
            completion: Completion::Return,
            trigger_rule: planned.trigger_rule,
            for_each: None,
            asset: None,
        }
    }
}

fn is_by_return(completion: &Completion) -> bool {
    *completion == Completion::Return
}

/// How often a task is tried, and how long it waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The first wait.
    pub initial_delay: HumanDuration,
    /// What each further wait is multiplied by.
    pub factor: u32,
    /// The longest wait.
    pub max_delay: HumanDuration,
}

impl Retry {
    fn is_default(&self) -> bool {
        *self == Retry::default()
    }
}

impl Default for Retry {
    /// The defaults of the ledger: three attempts, 30 s before the second, doubling, up to 15 minutes.
    fn default() -> Self {
        let Backoff { initial_seconds, factor, max_seconds } = Backoff::default();
        Retry {
            attempts: PlannedTask::new("").max_attempts,
            initial_delay: HumanDuration::from_secs(initial_seconds.into()),
            factor,
            max_delay: HumanDuration::from_secs(max_seconds.into()),
        }
    }
}

/// A list over which a task is expanded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForEach {
    /// The list.
    pub items: Items,
    /// How many items it has at most; a longer list fails the task.
    pub max_items: u32,
}

/// Where the list is from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Items {
    /// It is a parameter or a part of an output, as in `{{ tasks.list.output.files }}`.
    Template(String),
    /// It is written in the DAG.
    List(Vec<Value>),
}
