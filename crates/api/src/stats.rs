//! Time series of a tenant.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which time series.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GetStats {
    /// Seconds of a point: a multiple of 60, 60 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 60, maximum = 86400)]
    pub step: Option<u64>,
    /// Minutes before now: 60 unless given, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1440)]
    pub minutes: Option<u64>,
}

/// What happened in a tenant, summed over all nodes. Nodes write their counts every 5 seconds, and
/// a node that is killed loses those since then. Counts are kept for a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Seconds of a point.
    pub step: u64,
    /// Points without gaps, in order; the last one is not over.
    pub points: Vec<StatsPoint>,
    /// How calls ended, by function, most first; at most 100, the rest as `(others)`.
    pub functions: Vec<NameStats>,
    /// How all other instances ended, by orchestration, most first; at most 100, the rest as
    /// `(others)`.
    pub orchestrations: Vec<NameStats>,
    /// Failures by code, or by category where there is none, most first.
    pub failures: Vec<FailureStats>,
    /// Lengths of the queues of the whole store, once a minute; only for keys with a grant for all
    /// tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueStats>,
    /// Whether some counts could not be read, so that all numbers are lower bounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// What happened in the time from a point to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatsPoint {
    /// Where it begins.
    pub at: Timestamp,
    /// Instances that began.
    pub started: u64,
    /// That completed.
    pub completed: u64,
    /// That failed.
    pub failed: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// Half of the timers that were delivered were at most so late, in milliseconds; absent when
    /// there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_p50_ms: Option<u64>,
    /// All but one of a hundred were at most so late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_p99_ms: Option<u64>,
}

/// How executions of one name ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameStats {
    /// The function or orchestration.
    pub name: String,
    /// That completed.
    pub completed: u64,
    /// That failed.
    pub failed: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// Half of them took at most so long from the begin of the execution to its end, in
    /// milliseconds, at most an eighth above the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<u64>,
    /// All but one of a hundred took at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<u64>,
}

/// Failures with one code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailureStats {
    /// The code.
    pub code: String,
    /// How many.
    pub count: u64,
}

/// Lengths of the queues of the whole store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueStats {
    /// The minute in which they were looked at.
    pub at: Timestamp,
    /// Turns that wait for a node.
    pub orchestrator: u64,
    /// Activities that wait for a worker.
    pub worker: u64,
    /// What is not due yet, of both queues.
    pub delayed: u64,
    /// What is worked on.
    pub locked: u64,
}
