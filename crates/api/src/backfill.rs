//! Backfills: runs of a DAG over a range of partitions, chunk by chunk.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// A backfill that is to be created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBackfill {
    /// Name of the DAG, which has `partitioned_by`.
    pub dag: String,
    /// Its partitions: `FIRST..LAST` with both ends, one key, or `*` for all up to now.
    #[schema(example = "2026-10-01..2026-10-30")]
    pub partitions: String,
    /// Parameters of its runs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// Partitions of one run; 10 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub chunk_size: Option<u32>,
    /// Runs at a time; 2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_concurrent_runs: Option<u32>,
}

/// State of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackfillStatus {
    /// Not begun.
    Pending,
    /// Its chunks run.
    Running,
    /// No further chunks are started.
    Paused,
    /// All chunks have succeeded.
    Succeeded,
    /// All chunks have ended, and at least one has failed.
    Failed,
    /// Cancelled by a request.
    Cancelled,
}

impl BackfillStatus {
    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, BackfillStatus::Succeeded | BackfillStatus::Failed | BackfillStatus::Cancelled)
    }
}

impl fmt::Display for BackfillStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BackfillStatus::Pending => "pending",
            BackfillStatus::Running => "running",
            BackfillStatus::Paused => "paused",
            BackfillStatus::Succeeded => "succeeded",
            BackfillStatus::Failed => "failed",
            BackfillStatus::Cancelled => "cancelled",
        })
    }
}

/// A backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Backfill {
    /// Id of the backfill.
    pub id: String,
    /// Name of the DAG.
    pub dag: String,
    /// State of the backfill.
    pub status: BackfillStatus,
    /// Key of the first partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_partition: Option<String>,
    /// Key of the last partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_partition: Option<String>,
    /// Number of its partitions.
    pub total_partitions: u32,
    /// Partitions of one run.
    pub chunk_size: u32,
    /// Runs at a time.
    pub max_concurrent_runs: u32,
    /// Chunks that were started.
    pub planned_chunks: u32,
    /// Chunks that have succeeded.
    pub completed_chunks: u32,
    /// Chunks that have failed or were cancelled.
    pub failed_chunks: u32,
    /// The backfill whose failed chunks it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_backfill: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Backfills, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackfillList {
    /// The backfills.
    pub backfills: Vec<Backfill>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// State of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkStatus {
    /// Its run was requested.
    Planned,
    /// Its run exists.
    Running,
    /// Its run has succeeded.
    Succeeded,
    /// Its run has failed or was cancelled.
    Failed,
}

impl fmt::Display for ChunkStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunkStatus::Planned => "planned",
            ChunkStatus::Running => "running",
            ChunkStatus::Succeeded => "succeeded",
            ChunkStatus::Failed => "failed",
        })
    }
}

/// A chunk of a backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackfillChunk {
    /// Its place, from 0.
    pub index: u32,
    /// State of the chunk.
    pub status: ChunkStatus,
    /// Its partitions.
    pub partitions: Vec<String>,
    /// Its run, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Chunks of a backfill, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackfillChunkList {
    /// The chunks.
    pub chunks: Vec<BackfillChunk>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A backfill that was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedBackfill {
    /// Id of the backfill.
    pub id: String,
    /// Number of its partitions.
    pub total_partitions: u32,
    /// Whether reads show the backfill already. It is started in any case.
    pub is_visible: bool,
}

/// A change of a backfill that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillChanged {
    /// Id of the backfill.
    pub id: String,
    /// Whether reads show the change already. It is applied in any case.
    pub is_visible: bool,
}
