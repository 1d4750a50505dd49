//! DAGs and their versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;
use crate::unreadable::Unreadable;

/// A DAG that is to be published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishDag {
    /// The document, YAML or JSON.
    #[schema(example = "name: daily-sales\ntasks: …")]
    pub document: String,
}

/// A DAG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Dag {
    /// Name of the DAG.
    #[schema(example = "daily-sales")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version that new runs follow.
    pub active_version: u32,
    /// Whether its schedule, its sensors and its backfills start no runs.
    pub is_paused: bool,
    /// When the first version was published.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// Id of the API key with which it was changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// A DAG with the tasks of its active version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagDetails {
    /// The DAG.
    #[serde(flatten)]
    pub dag: Dag,
    /// When it runs by itself, in words; absent without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The partition definition of which every run has one key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitioned_by: Option<String>,
    /// Parameters of its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<DagParam>,
    /// How many runs may be under way at a time; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs: Option<u32>,
    /// Its sensors, and how far each is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<DagSensor>,
    /// Its first 1,000 tasks, as in the document.
    pub tasks: Vec<DagTask>,
    /// Number of its tasks.
    pub tasks_total: u32,
}

/// A sensor of a DAG: a function that is polled for reasons to start runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagSensor {
    /// Its name.
    pub name: String,
    /// The function that is polled.
    pub function: String,
    /// The time between two polls, such as `1m`.
    pub interval: String,
    /// Where the next poll continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// What the last poll came to: `triggered`, `no_new_data` or `error`; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<String>,
    /// Why the last poll failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Polls that have failed since the last one that did not. Each of them doubles the time to the next poll, up to an hour.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// When it was polled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_polled_at: Option<Timestamp>,
    /// When it is polled next; absent while the DAG is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_poll_at: Option<Timestamp>,
}

/// Whether a count is left out.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A parameter of the runs of a DAG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagParam {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its value in runs that do not set it; without one, every run has to set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
}

/// A task of a DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DagTask {
    /// Key of the task, unique within its DAG.
    pub key: String,
    /// Keys of the tasks that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The function that it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The orchestration that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The asset that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
}

/// DAGs by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagList {
    /// The DAGs.
    pub dags: Vec<Dag>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A version of a DAG. Versions never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagVersion {
    /// Name of the DAG.
    pub name: String,
    /// The version, from 1.
    pub version: u32,
    /// Whether new runs follow it.
    pub is_active: bool,
    /// Number of its tasks; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// When it was published.
    pub created_at: Timestamp,
    /// Id of the API key with which it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Whether publishing changed something; only in the answer to publishing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_new: Option<bool>,
    /// The document; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// What its author probably did not intend; only in the answer to publishing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Versions of a DAG, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DagVersionList {
    /// The versions.
    pub versions: Vec<DagVersion>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
