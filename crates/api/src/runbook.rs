//! Runbooks and their versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::automation::Automation;
use crate::unreadable::Unreadable;

/// A runbook that is to be published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishRunbook {
    /// The YAML document.
    #[schema(example = "name: wave-mailbox-move\n…")]
    pub yaml_content: String,
    /// What happens to phases of running batches that were due before this version was published.
    #[serde(default)]
    pub overdue_behavior: OverdueBehavior,
    /// Whether init steps run again in running batches that move to this version.
    #[serde(default)]
    pub rerun_init: bool,
}

/// What happens to phases that were due before their version was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverdueBehavior {
    /// They run at once.
    #[default]
    Rerun,
    /// They are skipped, unless the older version had not begun them.
    Ignore,
}

/// A runbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Runbook {
    /// Name of the runbook.
    #[schema(example = "wave-mailbox-move")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version that new batches follow.
    pub active_version: u32,
    /// When the first version was published.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// The query of its data source.
    #[serde(default)]
    pub automation: Automation,
}

/// Runbooks by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunbookList {
    /// The runbooks.
    pub runbooks: Vec<Runbook>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A version of a runbook. Versions never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunbookVersion {
    /// Id of the row in `runbooks`.
    pub id: u64,
    /// Name of the runbook.
    pub name: String,
    /// The version, from 1.
    pub version: u32,
    /// Whether new batches follow it.
    pub is_active: bool,
    /// What happens to phases of running batches that were due before it was published.
    pub overdue_behavior: OverdueBehavior,
    /// Whether init steps run again in running batches that move to it.
    pub rerun_init: bool,
    /// When it was published.
    pub created_at: Timestamp,
    /// Id of the API key with which it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The YAML document; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml_content: Option<String>,
    /// What its author probably did not intend; only in the answer to publishing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What it does to open batches of the runbook; only in the answer to publishing, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<VersionMoves>,
}

/// What publishing a version would do. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublishPlan {
    /// Name of the runbook.
    pub name: String,
    /// The version that it would have.
    pub version: u32,
    /// Whether it would be a new version; publishing the active one again changes nothing.
    pub is_new: bool,
    /// What its author probably did not intend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What it would do to open batches of the runbook.
    pub moves: VersionMoves,
}

/// What a version does to the open batches of its runbook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionMoves {
    /// Batches with a start time, which move to the version.
    pub batches: u64,
    /// Members that take part in them.
    pub members: u64,
    /// Batches that are advanced by hand, which stay with their version.
    pub staying: u64,
    /// Batches in which init steps run again.
    pub init_again: u64,
    /// Phases that run again, are skipped, or have to be approved again.
    pub phases: Vec<PhaseMoves>,
    /// Batches that move and were not counted, because there are more than 1,000.
    pub not_counted: u64,
}

/// What becomes of a phase of a version in batches that move to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PhaseMoves {
    /// Name of the phase.
    pub phase_name: String,
    /// Batches that have begun it in an older version and run it again.
    pub runs_again: u64,
    /// Members that take part in those batches.
    pub members: u64,
    /// Of those batches, the ones in which it is in progress: that ends first.
    pub in_progress: u64,
    /// Batches that skip it, because it is overdue.
    pub skipped: u64,
    /// Batches in which it was approved and has to be approved again.
    pub approval_again: u64,
}

/// Versions of a runbook, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunbookVersionList {
    /// The versions.
    pub versions: Vec<RunbookVersion>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
