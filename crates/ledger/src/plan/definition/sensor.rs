//! Sensors: functions that are polled for reasons to start runs.

use segno_actions::functions::HumanDuration;
use serde::Serialize;
use serde_json::Value;

/// A sensor. Its function is called with `input` and a cursor, and returns a new cursor and the runs that are wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensor {
    /// Its name, unique within the DAG.
    pub name: String,
    /// The function.
    pub function: String,
    /// What the function is called with, beside the cursor.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// The time between two calls.
    pub interval: HumanDuration,
}
