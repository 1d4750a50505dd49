//! Assets: which tasks make and read them, what they are made of, and their partitions: what was made last, what was tried last,
//! and what is stale.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// A partition of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetPartition {
    /// Key of the asset.
    pub asset: String,
    /// Key of the partition; empty for an asset without partitions.
    pub partition: String,
    /// Run that made it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_materialization_run: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_materialization_at: Option<Timestamp>,
    /// Run that last attempted to make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_run: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
    /// `succeeded`, `failed`, `skipped` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_outcome: Option<String>,
    /// Since when it is stale, where a time is known: when what it is made of was made, or when it became too old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Timestamp>,
    /// Why it is stale, such as `upstream_newer`; absent while it is fresh, and in lists of assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_reason: Option<String>,
}

/// Partitions of an asset, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetPartitionList {
    /// The partitions.
    pub partitions: Vec<AssetPartition>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A task of a DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetTask {
    /// Name of the DAG.
    pub dag: String,
    /// Key of the task.
    pub task: String,
}

/// An asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asset {
    /// Its key.
    pub asset: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of its partition definition; absent for an asset that is made as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitioned_by: Option<String>,
    /// How old it may be before it is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<String>,
    /// Tasks that make it.
    #[serde(default)]
    pub producers: Vec<AssetTask>,
    /// Tasks that read it: those that make an asset downstream, and those that depend on a task that makes it.
    #[serde(default)]
    pub consumers: Vec<AssetTask>,
    /// Assets that it is made of.
    #[serde(default)]
    pub upstream: Vec<String>,
    /// Assets that are made of it.
    #[serde(default)]
    pub downstream: Vec<String>,
    /// Partitions that were made or attempted; 1 or 0 for an asset without partitions.
    pub partitions_known: u64,
    /// Those that were made.
    pub partitions_materialized: u64,
    /// Those whose last attempt has failed.
    pub partitions_failed: u64,
    /// The partition that was made last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_materialization: Option<AssetPartition>,
}

/// Assets, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetList {
    /// The assets.
    pub assets: Vec<Asset>,
    /// Whether the assets of all DAGs were looked at; a tenant with more than 5,000 DAGs has further ones.
    pub is_complete: bool,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Lineage of an asset, or of one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetLineage {
    /// Key of the asset.
    pub asset: String,
    /// The partition in question, with the run that has made it; absent for the asset as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<LineagePartition>,
    /// What it is made of, the nearest first.
    pub upstream: Vec<LineageAsset>,
    /// What is made of it, the nearest first.
    pub downstream: Vec<LineageAsset>,
    /// Whether nothing was left out: at most 500 assets in each direction are listed, and 100 partitions of each.
    pub is_complete: bool,
}

/// An asset upstream or downstream of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineageAsset {
    /// Its key.
    pub asset: String,
    /// How many edges away.
    pub distance: u32,
    /// The neighbour by which it was found.
    pub via: String,
    /// Which partitions belong to each other: `same`, `window` or `all`.
    pub mapping: String,
    /// Whether the edge is declared with the asset, or follows from the dependencies of tasks.
    pub is_declared: bool,
    /// Tasks that make it.
    pub producers: Vec<AssetTask>,
    /// Its partitions that belong to the one in question, with the runs that have made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<LineagePartition>,
}

/// A partition in a lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineagePartition {
    /// Its key; empty for an asset without partitions.
    pub partition: String,
    /// What is known of it; absent if it was neither made nor attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AssetPartition>,
}
