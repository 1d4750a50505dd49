//! Backfills: created, planned chunk by chunk, paused, resumed, ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tables::BackfillState;

/// A backfill exists from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillCreated {
    /// The backfill.
    pub backfill_id: Arc<str>,
    /// The id of the request.
    pub client_request_id: Arc<str>,
    /// What it makes.
    #[serde(default)]
    pub asset_selection: Vec<Arc<str>>,
    /// The version of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
    /// For which partitions.
    pub partition_selector: PartitionSelector,
    /// How many they are.
    pub total_partitions: u32,
    /// Partitions in a chunk.
    pub chunk_size: u32,
    /// Chunks at a time.
    pub max_concurrent_runs: u32,
    /// The backfill that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_backfill_id: Option<Arc<str>>,
    /// The DAG of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<Arc<str>>,
    /// The parameters of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

/// For which partitions a backfill is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PartitionSelector {
    /// All from one to another.
    Range {
        /// The first.
        start: Arc<str>,
        /// The last.
        end: Arc<str>,
    },
    /// These.
    Explicit {
        /// Which.
        keys: Vec<Arc<str>>,
    },
    /// All with these dimensions.
    Filter {
        /// The dimensions.
        filter: BTreeMap<Arc<str>, Arc<str>>,
    },
}

/// A chunk of a backfill was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillChunkPlanned {
    /// The backfill.
    pub backfill_id: Arc<str>,
    /// `{backfill}:{index}`.
    pub chunk_id: Arc<str>,
    /// Its place, from 0.
    pub chunk_index: u32,
    /// Its partitions.
    pub partition_keys: Vec<Arc<str>>,
    /// The key of its run.
    pub run_key: Arc<str>,
    /// The fingerprint of the request.
    pub request_fingerprint: Arc<str>,
}

/// The state of a backfill changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillStateChanged {
    /// The backfill.
    pub backfill_id: Arc<str>,
    /// The state that it had.
    pub from_state: BackfillState,
    /// The state that it has.
    pub to_state: BackfillState,
    /// The number of the change: one more than the backfill shows.
    pub state_version: u32,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<Arc<str>>,
}
