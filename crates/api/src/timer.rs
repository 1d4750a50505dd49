//! What wakes up by itself, in one list.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::explain::WaitKind;

/// Something of an instance that happens by itself at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingTimer {
    /// When.
    pub at: Timestamp,
    /// `timer`, `activity` (its next attempt) or `start`.
    pub kind: WaitKind,
    /// The instance.
    pub instance: String,
    /// Its orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// The function that it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The activity that is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when it waits.
    pub since: Timestamp,
    /// The event that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
}

/// What wakes up by itself, soonest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerList {
    /// Soonest first, at most 500.
    pub timers: Vec<PendingTimer>,
    /// Instances that were looked at.
    pub examined: u64,
    /// Whether there may be more: only the newest instances that run or wait for their start were looked at, or there are more
    /// timers than are shown, or a history was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
