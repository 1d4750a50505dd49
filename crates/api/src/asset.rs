//! Partitions of assets: what was made last, what was tried last, and what is stale.

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
    /// Since when it is stale; absent while it is fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Timestamp>,
    /// Why it is stale: never materialized, code changed, upstream newer, or too old.
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
