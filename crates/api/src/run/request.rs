//! What callers request of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::json::Json;

/// A run that is to be started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// Name of the DAG.
    pub dag: String,
    /// Version of the DAG; the active one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Parameters by name. Absent ones have their defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// Key of the partition; required by a DAG that has `partitioned_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-11-18")]
    pub partition: Option<String>,
    /// Which tasks run: `load` is one task, `+load` it and all before it, `load+` it and all after it, `+load+` both. All tasks run
    /// without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["+load"]))]
    pub select: Vec<String>,
    /// Names the run: a second request with the same key and the same payload returns the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub run_key: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A run that was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartedRun {
    /// Whether the request created the run; otherwise its key had one.
    pub created: bool,
    /// Id of the run.
    pub id: String,
    /// Whether reads show the run already. It is started in any case.
    pub is_visible: bool,
}

/// Cancels a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which tasks a rerun has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunFrom {
    /// Those that did not succeed. The others keep their outputs.
    #[default]
    Failure,
    /// Those that `tasks` names.
    Subset,
}

/// Repeats a run that has ended, as a new run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunRun {
    /// Which tasks.
    #[serde(default)]
    pub from: RerunFrom,
    /// Keys of tasks; only with `subset`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Whether everything downstream of these runs as well; only with `subset`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downstream: bool,
}

/// Clears tasks that have ended, so that they run again in the same run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearTasks {
    /// Keys of the tasks.
    #[schema(min_items = 1)]
    pub tasks: Vec<String>,
    /// Whether everything downstream runs again as well; otherwise only what was left out because of these tasks.
    #[serde(default = "always")]
    pub downstream: bool,
}

fn always() -> bool {
    true
}

/// States that can be set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkedStatus {
    /// As if it had succeeded.
    Succeeded,
    /// As if it had failed for good.
    Failed,
    /// Left out.
    Skipped,
}

/// Sets the state of a task by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkTask {
    /// Its new state.
    pub status: MarkedStatus,
    /// What it is taken to have returned; only with `succeeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A change of a run that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunChanged {
    /// Id of the run.
    pub id: String,
    /// Whether reads show the change already. It is applied in any case.
    pub is_visible: bool,
}
