//! Queries of runbooks' data sources: the switch, what came of them, and previews.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The switch of a runbook's query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAutomation {
    /// Whether the data source is queried every interval.
    pub enabled: bool,
}

/// The query of a runbook's data source: when it runs, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Automation {
    /// Whether the data source is queried every interval.
    pub enabled: bool,
    /// Whether a node runs the query now.
    pub running: bool,
    /// When the query is due next, or was due that runs now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// When the last run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
    /// Why the last run failed; absent once a run has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<QueryError>,
    /// What the last run that succeeded found and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<QueryResult>,
    /// Members whose removal waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_removal: Option<PendingRemoval>,
    /// What was decided last about members whose removal waited for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<RemovalDecided>,
    /// Why all but `enabled` is not known; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueryError {
    /// The stable code.
    #[schema(example = "source-failed")]
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// What a run found and changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueryResult {
    /// Rows of the query.
    pub rows: u64,
    /// Batches that they belong to.
    pub batches: u64,
    /// Batches that were created.
    pub created: u64,
    /// Members that were added, or have returned.
    pub added: u64,
    /// Members whose data has changed.
    pub changed: u64,
    /// Members that were removed.
    pub removed: u64,
    /// Rows without a batch: their batch time cannot be read, or their batch has ended.
    pub skipped: u64,
    /// Those of them whose batch has ended.
    #[serde(default)]
    pub skipped_ended: u64,
}

/// Members that the query no longer has, more than `max_removed_percent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PendingRemoval {
    /// Names these members; a decision is about them only.
    pub set: u64,
    /// How many there are.
    pub count: u64,
    /// Members that the batches have in all, these included.
    pub of: u64,
    /// Batches that they are in.
    pub batches: u64,
    /// The first of them.
    pub sample: Vec<HeldMember>,
    /// When the last of them was found missing.
    pub at: Timestamp,
    /// Whether the removal is approved, and made by the next run.
    pub approved: bool,
}

/// A decision about members whose removal waited for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovalDecided {
    /// `set` of the removal.
    pub set: u64,
    /// Whether the removal was approved; otherwise the members stay.
    pub approved: bool,
    /// Members that it was about.
    pub count: u64,
    /// When.
    pub at: Timestamp,
    /// Id of the API key that decided; absent on a server without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A member whose removal waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldMember {
    /// Its batch.
    pub batch_id: u64,
    /// Its key, in small letters.
    pub member_key: String,
}

/// A decision about members whose removal waits for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideRemoval {
    /// `set` of the pending removal that was shown.
    pub set: u64,
}

/// Which query to preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PreviewRunbook {
    /// A YAML document that is not published; the active version without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yaml_content: Option<String>,
}

/// What a query returns, and what a run would change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunbookPreview {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// Rows in all.
    pub rows: u64,
    /// Batches in all.
    pub batches: u64,
    /// The first 100 batches, earliest first.
    pub groups: Vec<PreviewGroup>,
    /// The first 100 rows, in the order of the source.
    pub samples: Vec<PreviewSample>,
    /// Rows whose batch time cannot be read.
    pub skipped: u64,
    /// Why the first of them cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Members that a run would add.
    pub added: u64,
    /// Rows that a run would skip because their batch has ended.
    #[serde(default)]
    pub skipped_ended: u64,
    /// Members whose data a run would change.
    pub changed: u64,
    /// Members that a run would remove.
    pub removed: u64,
    /// Members whose removal would wait for approval.
    pub held: u64,
}

/// A batch of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewGroup {
    /// Its start.
    pub batch_start_time: Timestamp,
    /// Rows that belong to it.
    pub rows: u64,
}

/// A row of a preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreviewSample {
    /// Key of the member.
    pub member_key: String,
    /// Start of its batch; absent if its batch time cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// Its columns.
    pub data: Map<String, Value>,
}
