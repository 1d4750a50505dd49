//! Pools of workers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;
use crate::worker::Worker;

/// A pool of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    #[schema(example = "cloud-01")]
    pub name: String,
    /// Where it is declared.
    pub origin: PoolOrigin,
    /// How calls reach its workers.
    pub transport: PoolTransport,
    /// Functions that may be called through it; `Set-*` is all that begin with `Set-`.
    pub functions: Vec<String>,
    /// At most so many calls are handed out per second; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_second: Option<f64>,
    /// Longest time of one attempt of calls that do not say; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Workers that fetched for it in the last two minutes, or hold calls of it, among the first 10,000 of the tenant by name. A pool
    /// with none has nobody to run its calls.
    pub worker_count: u64,
    /// Calls of it that they have leased and not answered.
    pub in_flight: u64,
    /// When one of them last fetched or answered; absent when none was heard of lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// While it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PoolPause>,
    /// Until when it rests because its workers were throttled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_until: Option<Timestamp>,
    /// Why `paused` and `throttled_until` are not known; absent when they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Where a pool is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolOrigin {
    /// In the settings of the server.
    Settings,
    /// By its workers, when they fetched.
    Announced,
}

/// How the calls of a pool reach what runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolTransport {
    /// Workers fetch them.
    Queue,
    /// Nodes run the functions.
    Local,
    /// Workers get them from a message bus.
    Bus,
}

/// Since when and why a pool is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolPause {
    /// Since when.
    pub at: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Asks for a pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PausePool {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub reason: Option<String>,
}

/// A pool with its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolDetails {
    /// The pool.
    pub pool: Pool,
    /// A page of its workers that were heard of in the last two minutes, by name. `worker_count` is how many there are.
    pub workers: Vec<Worker>,
    /// Why workers are missing that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page of workers; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A page of pools, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    /// The pools.
    pub pools: Vec<Pool>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
