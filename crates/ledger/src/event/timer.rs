//! Timers: requested, accepted, fired.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tables::TimerType;

/// A timer is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRequested {
    /// The timer.
    pub timer_id: Arc<str>,
    /// What it is for.
    pub timer_type: TimerType,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Arc<str>>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_key: Option<Arc<str>>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When it fires.
    pub fire_at: Timestamp,
    /// What comes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// A timer was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerEnqueued {
    /// The timer.
    pub timer_id: Arc<str>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Arc<str>>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_key: Option<Arc<str>>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Under which name.
    pub cloud_task_id: Arc<str>,
}

/// A timer fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerFired {
    /// The timer.
    pub timer_id: Arc<str>,
    /// What it is for.
    pub timer_type: TimerType,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Arc<str>>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_key: Option<Arc<str>>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}
