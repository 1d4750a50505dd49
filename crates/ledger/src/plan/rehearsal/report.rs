//! What happened in a rehearsal.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::tables::{RunState, TaskState};

/// A run that was played through.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How the run ended; a run that has not ended was stopped because it took too many steps.
    pub state: RunState,
    /// When the run began.
    pub started_at: Timestamp,
    /// Milliseconds that the run took.
    pub duration_ms: i64,
    /// What happened, in its order.
    pub steps: Vec<Step>,
    /// The tasks at the end, in the order of the plan; those that a list added last.
    pub tasks: Vec<Ended>,
    /// Stubs of tasks and functions that were never called.
    pub unused_stubs: Vec<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Milliseconds since the run began.
    pub at_ms: i64,
    /// The task.
    pub task: String,
    /// The attempt; 0 for a list that added tasks.
    pub attempt: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: StepKind,
}

/// What happened to a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepKind {
    /// Its list added so many tasks.
    Expanded {
        /// How many.
        count: usize,
    },
    /// Its list added none.
    NotExpanded {
        /// Why.
        error: String,
    },
    /// It was called.
    Started {
        /// With what.
        input: Value,
    },
    /// It returned.
    Succeeded {
        /// What.
        output: Value,
    },
    /// The attempt failed.
    Failed {
        /// Why.
        error: String,
        /// Milliseconds since the run began at which the next attempt may start, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
}

/// A task at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// Its key.
    pub task: String,
    /// Its state.
    pub state: TaskState,
    /// Attempts that were made.
    pub attempts: u32,
    /// Why it failed or was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
