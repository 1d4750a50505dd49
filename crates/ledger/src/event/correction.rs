//! What people change about a run: tasks cleared to run again, tasks whose state is set by hand,
//! pause and resume.

use std::sync::Arc;

use segno::Payload;
use serde::{Deserialize, Serialize};

/// Tasks that ended run again, with everything downstream of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCleared {
    /// The run.
    pub run_id: Arc<str>,
    /// The tasks.
    pub task_keys: Vec<Arc<str>>,
    /// Whether everything downstream runs again as well; otherwise only what was left out because
    /// of them.
    #[serde(default = "always")]
    pub downstream: bool,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Who.
    pub requested_by: Arc<str>,
}

/// The state of a task is set by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskMarked {
    /// The run.
    pub run_id: Arc<str>,
    /// The task.
    pub task_key: Arc<str>,
    /// Its new state.
    pub state: MarkedState,
    /// What it is taken to have returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Who.
    pub requested_by: Arc<str>,
}

/// States that can be set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkedState {
    /// As if it had succeeded.
    Succeeded,
    /// As if it had failed for good.
    Failed,
    /// Left out.
    Skipped,
}

/// The run dispatches no further attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPaused {
    /// The run.
    pub run_id: Arc<str>,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Who.
    pub requested_by: Arc<str>,
}

/// The run dispatches attempts again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    /// The run.
    pub run_id: Arc<str>,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Who.
    pub requested_by: Arc<str>,
}

fn always() -> bool {
    true
}
