//! Sensors: evaluated.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A sensor was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorEvaluated {
    /// The sensor.
    pub sensor_id: Arc<str>,
    /// The evaluation.
    pub eval_id: Arc<str>,
    /// The cursor before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_before: Option<Arc<str>>,
    /// The cursor after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_after: Option<Arc<str>>,
    /// The version of the state that it started from; polls have one, pushes do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_state_version: Option<u32>,
    /// What caused it.
    pub trigger_source: EvalSource,
    /// The runs that it requests.
    #[serde(default)]
    pub run_requests: Vec<SensorRunRequest>,
    /// What became of it.
    pub status: EvalStatus,
}

/// What caused an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EvalSource {
    /// A message.
    Push {
        /// The message.
        message_id: Arc<str>,
    },
    /// The passing of time.
    Poll {
        /// The time, in Unix seconds.
        poll_epoch: i64,
    },
}

/// A run that an evaluation requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorRunRequest {
    /// Its key.
    pub run_key: Arc<str>,
    /// The fingerprint of the request.
    pub request_fingerprint: Arc<str>,
    /// What it makes.
    #[serde(default)]
    pub asset_selection: Vec<Arc<str>>,
    /// For which partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_selection: Option<Vec<Arc<str>>>,
}

/// What became of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EvalStatus {
    /// It requested runs.
    Triggered,
    /// There was nothing new.
    NoNewData,
    /// It failed.
    Error {
        /// Why.
        message: Arc<str>,
    },
    /// Another evaluation moved the cursor first.
    SkippedStaleCursor,
}
