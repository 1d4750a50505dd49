//! Workers: who fetches work.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// A worker that has been heard of lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// The name that it gives itself.
    pub worker: String,
    /// Functions that it asked for by themselves. None for a worker of pools alone: the pools have them.
    pub functions: Vec<String>,
    /// Tags that it asked for, with those functions.
    pub tags: Vec<String>,
    /// The pools that it asked for in the last two minutes or holds calls of, by name; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// Calls that it has leased from this node and not answered there; among the workers of a pool, those of that pool.
    pub in_flight: u64,
    /// When it last fetched or answered.
    pub last_seen_at: Timestamp,
    /// The node that it talks to. A worker that talks to several is listed once for each.
    pub node: String,
}

/// A page of workers, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerList {
    /// The workers.
    pub workers: Vec<Worker>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
