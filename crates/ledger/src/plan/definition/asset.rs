//! Assets: the lasting things that tasks make.

use segno_actions::functions::HumanDuration;
use serde::{Serialize, Serializer};

/// What documents write for assets without partitions.
pub(crate) const UNPARTITIONED: &str = "none";

/// An asset.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Asset {
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of its partition definition; without one it is made as a whole.
    #[serde(serialize_with = "name_or_none")]
    pub partitions: Option<String>,
    /// How old it may be before it is stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness: Option<HumanDuration>,
    /// The assets that it is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<UpstreamAsset>,
}

/// An asset that another one is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamAsset {
    /// Its key.
    pub asset: String,
    /// Which of its partitions a partition of the downstream asset is made of.
    pub mapping: PartitionMapping,
}

/// From a partition of a downstream asset to those of an upstream asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMapping {
    /// The one with the same key.
    Same,
    /// Those whose time windows overlap with its own.
    Window,
    /// All of them.
    All,
}

fn name_or_none<S: Serializer>(name: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_deref().unwrap_or(UNPARTITIONED))
}
