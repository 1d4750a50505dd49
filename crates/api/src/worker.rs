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
    /// Functions that it asked for last. None for a worker of a pool: the pool has them.
    pub functions: Vec<String>,
    /// Tags that it asked for last.
    pub tags: Vec<String>,
    /// The pool that it asked for last; absent when it asked for functions by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Calls that it has leased from this node and not answered there.
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
