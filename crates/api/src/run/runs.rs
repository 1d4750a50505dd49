//! Runs of DAGs.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunTask;
use crate::json::Json;
use crate::unreadable::Unreadable;

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It was requested and has no tasks yet.
    Triggered,
    /// Some of its tasks have not ended.
    Running,
    /// All tasks have ended, and none has failed or was cancelled.
    Succeeded,
    /// All tasks have ended, and at least one has failed.
    Failed,
    /// All tasks have ended, and at least one was cancelled.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing follows, unless tasks are cleared.
    pub fn is_final(self) -> bool {
        !matches!(self, RunStatus::Triggered | RunStatus::Running)
    }
}

impl fmt::Display for RunStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RunStatus::Triggered => "triggered",
            RunStatus::Running => "running",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        })
    }
}

/// What triggers runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunTriggerKind {
    /// The schedule of the DAG.
    Schedule,
    /// A caller.
    Manual,
    /// A newly made asset.
    Materialization,
    /// A webhook.
    Webhook,
    /// A sensor of the DAG.
    Sensor,
    /// A chunk of a backfill.
    Backfill,
}

impl fmt::Display for RunTriggerKind {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RunTriggerKind::Schedule => "schedule",
            RunTriggerKind::Manual => "manual",
            RunTriggerKind::Materialization => "materialization",
            RunTriggerKind::Webhook => "webhook",
            RunTriggerKind::Sensor => "sensor",
            RunTriggerKind::Backfill => "backfill",
        })
    }
}

/// What triggered a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTrigger {
    /// What it was.
    pub kind: RunTriggerKind,
    /// Its id: of the schedule, sensor, backfill, webhook or materialization; of a caller, its API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A run of a DAG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Id of the run.
    pub id: String,
    /// Name of the DAG.
    pub dag: String,
    /// Version of the DAG that it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag_version: Option<u32>,
    /// State of the run.
    pub status: RunStatus,
    /// Whether no further attempts are dispatched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// Whether its cancellation was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Why it was cancelled, or why its plan was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What triggered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<RunTrigger>,
    /// The key under which it was requested once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<String>,
    /// The run that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it was triggered.
    pub triggered_at: Timestamp,
    /// When its last task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Its tasks.
    pub tasks_total: u32,
    /// Tasks that have ended.
    pub tasks_completed: u32,
    /// Tasks that have succeeded.
    pub tasks_succeeded: u32,
    /// Tasks that have failed.
    pub tasks_failed: u32,
    /// Tasks that were skipped.
    pub tasks_skipped: u32,
    /// Tasks that were cancelled.
    pub tasks_cancelled: u32,
}

/// Runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<Run>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A run with its first tasks, and why it waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunDetails {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Json>,
    /// Its partition, if all its tasks have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Its first 1,000 tasks, upstream before downstream. `GET /v1/runs/{id}/tasks` lists all of them.
    pub tasks: Vec<RunTask>,
    /// Why it waits, and when it wakes.
    pub waits: RunWait,
}

/// Why a run or a task waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunWait {
    /// A sentence.
    pub why: String,
    /// When it wakes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_can_be_read_with_parameters_of_any_kind() {
        let text = json!({
            "id": "run_1", "dag": "d", "status": "running", "triggered_at": "2026-01-01T00:00:00Z",
            "tasks_total": 0, "tasks_completed": 0, "tasks_succeeded": 0, "tasks_failed": 0,
            "tasks_skipped": 0, "tasks_cancelled": 0, "params": {"a": 1.5}, "tasks": [],
            "waits": {"why": "it runs"},
        });
        let details: RunDetails = serde_json::from_str(&text.to_string()).unwrap();
        assert_eq!(details.params.as_ref().unwrap().text(), r#"{"a":1.5}"#);
        let again: RunDetails = serde_json::from_str(&serde_json::to_string(&details).unwrap()).unwrap();
        assert_eq!(again, details);
    }
}
