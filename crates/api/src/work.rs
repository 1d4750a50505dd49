//! The workers' protocol: fetching calls of remote functions and answering them. The guide's page "workers" explains it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchWork {
    /// Name of the worker, for people: letters, digits and `-_.:`.
    #[schema(min_length = 1, max_length = 128, example = "render-3")]
    pub worker: String,
    /// Functions that it runs: 1 to 32. With `pool`, those of the pool that it has, up to 1,000; they may be called from then on.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub functions: Vec<String>,
    /// Take calls of this pool, whatever their function, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, example = "cloud-01")]
    pub pool: Option<String>,
    /// Also take calls with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 5)]
    pub tags: Vec<String>,
    /// Whether to take calls without a tag.
    #[serde(default = "yes")]
    pub untagged: bool,
    /// At most this many calls.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_items: usize,
    /// For how long each call is leased unless a heartbeat extends it.
    #[serde(default = "half_a_minute_ms")]
    #[schema(minimum = 10, maximum = 86_400_000)]
    pub lease_ms: u64,
    /// How long to wait for work when there is none.
    #[serde(default)]
    #[schema(maximum = 60_000)]
    pub wait_ms: u64,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

fn half_a_minute_ms() -> u64 {
    30_000
}

impl FetchWork {
    /// Asks for one call of these functions, without waiting.
    pub fn new(worker: impl Into<String>, functions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        FetchWork {
            worker: worker.into(),
            functions: functions.into_iter().map(Into::into).collect(),
            pool: None,
            tags: Vec::new(),
            untagged: yes(),
            max_items: one(),
            lease_ms: half_a_minute_ms(),
            wait_ms: 0,
        }
    }
}

impl FetchWork {
    /// Asks for one call of a pool, without waiting, and says which functions of it the worker has.
    pub fn of_pool(
        worker: impl Into<String>,
        pool: impl Into<String>,
        functions: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        FetchWork { pool: Some(pool.into()), ..FetchWork::new(worker, functions) }
    }
}

/// Calls that the worker has leased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FetchedWork {
    /// The calls, oldest first; none when the time was up.
    pub items: Vec<WorkItem>,
}

/// A call with the right to answer for it; also the body of a call that is pushed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkItem {
    /// The right to answer, to be shown with every answer. Nothing is to be read from it.
    pub lease: String,
    /// When the lease ends unless a heartbeat extends it, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// The function to run.
    pub function: String,
    /// Its input.
    pub input: Json,
    /// Attempt by the retry policy, from 1.
    pub attempt: u32,
    /// How often this attempt has been handed out, this time included.
    pub delivery: u32,
    /// The same for every attempt and delivery of the call: hand it to whatever must not happen twice.
    pub idempotency_key: String,
    /// The instance that made the call.
    pub instance: String,
    /// When nobody waits for the call any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Longest time of this attempt, in milliseconds from the fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest silence between two heartbeats, in milliseconds. The lease is never longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// What an earlier attempt or delivery reported with its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// W3C trace context of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The lease.
    pub lease: String,
    /// Until so many milliseconds from now.
    #[serde(default = "half_a_minute_ms")]
    #[schema(minimum = 10, maximum = 86_400_000)]
    pub extend_ms: u64,
    /// Kept for whoever runs the call next, should this worker not finish it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
}

/// What a worker is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeartbeatAction {
    /// Go on, and show the new lease from now on.
    Continue,
    /// Stop: the answer is not wanted any more.
    Cancel,
}

/// The answer to a sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// What to do.
    pub action: HeartbeatAction,
    /// The extended lease, if the worker is to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// Why it is to stop: `cancelled` or `timed-out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteWork {
    /// The lease.
    pub lease: String,
    /// The result.
    #[serde(default = "Json::null")]
    pub result: Json,
}

/// Sort of a failure that a worker may report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    /// The function itself says that it failed.
    #[default]
    Application,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It cannot work as it is set up.
    Configuration,
    /// Something around it failed.
    Infrastructure,
}

/// A failure. The retry policy of the call decides what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailWork {
    /// The lease.
    pub lease: String,
    /// What happened, for people.
    pub message: String,
    /// What sort of failure it is.
    #[serde(default)]
    pub category: FailureCategory,
    /// A stable word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long to wait before the next attempt, at least, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub retry_after_ms: Option<u64>,
    /// Whether another attempt may succeed; by the category without it: application, timeout and infrastructure may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Anything that the caller is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

/// Gives a call back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseWork {
    /// The lease.
    pub lease: String,
    /// Nobody gets it for so many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 86_400_000)]
    pub delay_ms: Option<u64>,
}
