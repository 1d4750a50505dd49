//! Tasks of runs.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunWait;
use crate::json::Json;
use crate::unreadable::Unreadable;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Known, not placed yet.
    Planned,
    /// Waits for upstream tasks.
    Blocked,
    /// May be dispatched.
    Ready,
    /// An attempt was dispatched.
    Dispatched,
    /// A worker runs the attempt.
    Running,
    /// An attempt failed; the next one has to wait.
    RetryWait,
    /// Left out.
    Skipped,
    /// Cancelled.
    Cancelled,
    /// Failed for good.
    Failed,
    /// Succeeded.
    Succeeded,
}

impl TaskStatus {
    /// Whether nothing follows, unless the task is cleared.
    pub fn is_final(self) -> bool {
        use TaskStatus::{Cancelled, Failed, Skipped, Succeeded};
        matches!(self, Skipped | Cancelled | Failed | Succeeded)
    }
}

impl fmt::Display for TaskStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskStatus::Planned => "planned",
            TaskStatus::Blocked => "blocked",
            TaskStatus::Ready => "ready",
            TaskStatus::Dispatched => "dispatched",
            TaskStatus::Running => "running",
            TaskStatus::RetryWait => "retry_wait",
            TaskStatus::Skipped => "skipped",
            TaskStatus::Cancelled => "cancelled",
            TaskStatus::Failed => "failed",
            TaskStatus::Succeeded => "succeeded",
        })
    }
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTask {
    /// Key of the task, unique within its run.
    pub key: String,
    /// State of the task.
    pub status: TaskStatus,
    /// Keys of the tasks that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The function that it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The orchestration that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The attempt that is under way or comes next; 0 before the first.
    pub attempt: u32,
    /// Attempts before it fails.
    pub max_attempts: u32,
    /// Which ends of upstream tasks it needs.
    pub trigger_rule: String,
    /// When it became ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// When the attempt was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When the attempt started. An attempt that ended before a node noticed its start counts from its dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The earliest time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_not_before: Option<Timestamp>,
    /// How far the attempt is, in percent, as its worker reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_pct: Option<u32>,
    /// The worker that runs the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Why the last attempt failed, or why the task was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The category of that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_category: Option<String>,
    /// The concurrency pool that it takes a slot of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The asset that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// The partition of the asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The task that added it for an item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expanded_from: Option<String>,
    /// Id of the API key with which its state was set by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_by: Option<String>,
    /// Instance of the attempt; its history, logs and workers are found under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Why it waits, and when it wakes; absent after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<RunWait>,
}

/// Tasks of a run, upstream before downstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTaskList {
    /// The tasks.
    pub tasks: Vec<RunTask>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A task with its input and output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTaskDetails {
    /// The task.
    #[serde(flatten)]
    pub task: RunTask,
    /// The template of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What it returned, if that is at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Instance that returned it, if it is larger; `GET /v1/runs/{id}/tasks/{task}/output` has both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<String>,
}
