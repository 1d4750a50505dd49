//! How far a call of a function is: its input, its attempts, and what it waits for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::instance::{Failure, Kind};

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// No worker has its current attempt, and one may take it.
    WaitsForWorker,
    /// An attempt failed, and the next one has to wait for its time.
    WaitsForRetry,
    /// It was given back, or is not to begin before its time.
    Delayed,
    /// A worker or node has its current attempt.
    Held,
    /// The end of an attempt is being recorded.
    Settling,
    /// It is paused.
    Paused,
    /// It has ended.
    Ended,
}

/// The pool that a call goes through, and whether it hands out calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallPool {
    /// Its name.
    #[schema(example = "cloud-01")]
    pub name: String,
    /// Whether it hands out calls.
    pub state: CallPoolState,
    /// Why it is paused, if a reason was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Until when it hands out nothing because its workers were throttled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_until: Option<Timestamp>,
}

/// Whether a pool hands out calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPoolState {
    /// It does.
    Active,
    /// It is paused until it is resumed.
    Paused,
    /// Its workers were throttled.
    Throttled,
    /// There is no such pool any more.
    Missing,
}

/// What made a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeBy {
    /// What it was.
    pub kind: Kind,
    /// Id of the action or recurring action, or of what a room made it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The scheduled time of the occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FailedAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When its failure was recorded.
    pub failed_at: Timestamp,
    /// Why; a long message is cut.
    pub failure: Failure,
    /// When the next one may start; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallDetails {
    /// The function.
    pub function: String,
    /// Its input.
    pub input: Json,
    /// What made it.
    pub made_by: MadeBy,
    /// What it waits for.
    pub state: CallState,
    /// The same for people, with what is missing: what "it waits for" is followed by. Times are in fields of their own.
    #[schema(example = "a worker: none has announced `charge`")]
    pub waits_for: String,
    /// Until when it waits, if that is known: its next attempt, its next delivery, or the end of the throttling of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// The pool that it goes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<CallPool>,
    /// Number of the attempt that runs or comes next, from 1; that of the last one when the call has ended.
    pub attempt: u32,
    /// Most attempts by its retry policy.
    pub max_attempts: u32,
    /// Failed attempts, oldest first: the last 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_attempts: Vec<FailedAttempt>,
    /// How often the current attempt was handed out.
    pub deliveries: u32,
    /// When the next attempt may start, if it has to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The worker that holds the current attempt, by the name that it announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When the lease on the current attempt ends unless it is extended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Timestamp>,
    /// When the worker that holds it was last heard of: a fetch, or a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// What a heartbeat last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// When that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
    /// Only workers with this tag take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// When nobody waits for it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}
