//! Callbacks of workers that have a task token: the start, the heartbeats and the end of an attempt of a task of a DAG run.
//!
//! This contract is shared with other systems, so its fields are in camel case; the same names in snake case are read, too.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;

/// A worker has started the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskStarted {
    /// Number of the attempt, as in the envelope.
    pub attempt: u32,
    /// Id of the attempt, as in the envelope.
    #[serde(alias = "attempt_id")]
    pub attempt_id: String,
    /// Name of the worker.
    #[serde(alias = "worker_id")]
    pub worker_id: String,
    /// When the worker started, by its clock. It is not stored: the time of receipt counts.
    #[serde(default, alias = "started_at", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// W3C trace context of the worker. It is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The attempt is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskHeartbeat {
    /// Number of the attempt, as in the envelope.
    pub attempt: u32,
    /// Id of the attempt, as in the envelope.
    #[serde(alias = "attempt_id")]
    pub attempt_id: String,
    /// Name of the worker.
    #[serde(alias = "worker_id")]
    pub worker_id: String,
    /// When, by the clock of the worker. It is not stored: the time of receipt counts.
    #[serde(default, alias = "heartbeat_at", skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// How far the attempt is, in percent.
    #[serde(default, alias = "progress_pct", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub progress_pct: Option<u32>,
    /// What the worker adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// W3C trace context of the worker. It is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The attempt has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskCompleted {
    /// Number of the attempt, as in the envelope.
    pub attempt: u32,
    /// Id of the attempt, as in the envelope.
    #[serde(alias = "attempt_id")]
    pub attempt_id: String,
    /// Name of the worker.
    #[serde(alias = "worker_id")]
    pub worker_id: String,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// When, by the clock of the worker. It is not stored: the time of receipt counts.
    #[serde(default, alias = "completed_at", skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TaskOutput>,
    /// Why it failed. A failure has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<TaskMetrics>,
    /// Where it was when it was cancelled.
    #[serde(default, alias = "cancelled_during_phase", skip_serializing_if = "Option::is_none")]
    pub cancelled_during_phase: Option<String>,
    /// What it had done by then, at most 16 KiB of JSON text.
    #[serde(default, alias = "partial_progress", skip_serializing_if = "Option::is_none")]
    pub partial_progress: Option<Json>,
    /// W3C trace context of the worker. It is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskOutcome {
    /// It succeeded.
    #[serde(alias = "succeeded")]
    Succeeded,
    /// It failed.
    #[serde(alias = "failed")]
    Failed,
    /// It left itself out; so are the tasks downstream.
    #[serde(alias = "skipped")]
    Skipped,
    /// It was cancelled.
    #[serde(alias = "cancelled")]
    Cancelled,
}

/// What an attempt made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskOutput {
    /// What templates of downstream tasks read as the output, at most 64 KiB of JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// Id of what it made.
    #[serde(default, alias = "materialization_id", skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<String>,
    /// Rows that it wrote.
    #[serde(default, alias = "row_count", skip_serializing_if = "Option::is_none")]
    pub row_count: Option<i64>,
    /// Bytes that it wrote.
    #[serde(default, alias = "byte_size", skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<i64>,
    /// Where it wrote.
    #[serde(default, alias = "output_path", skip_serializing_if = "Option::is_none")]
    pub output_path: Option<String>,
    /// Table that it wrote.
    #[serde(default, alias = "delta_table", skip_serializing_if = "Option::is_none")]
    pub delta_table: Option<String>,
    /// Version of that table.
    #[serde(default, alias = "delta_version", skip_serializing_if = "Option::is_none")]
    pub delta_version: Option<i64>,
    /// Partition of that table.
    #[serde(default, alias = "delta_partition", skip_serializing_if = "Option::is_none")]
    pub delta_partition: Option<String>,
    /// Whether readers see the output.
    #[serde(default, alias = "output_visibility_state", skip_serializing_if = "Option::is_none")]
    pub output_visibility_state: Option<OutputVisibility>,
    /// Since when.
    #[serde(default, alias = "published_at", skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    /// Why they do not.
    #[serde(default, alias = "publish_error", skip_serializing_if = "Option::is_none")]
    pub publish_error: Option<String>,
}

/// Whether readers see an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OutputVisibility {
    /// Not yet.
    #[serde(alias = "pending")]
    Pending,
    /// They do.
    #[serde(alias = "visible")]
    Visible,
    /// They never will.
    #[serde(alias = "failed")]
    Failed,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskError {
    /// `USER_CODE`, `INFRASTRUCTURE`, `TIMEOUT`, `DATA_QUALITY`, `CONFIGURATION`, `CANCELLED`, or one of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What happened; cut after 4 KiB.
    pub message: String,
    /// Where it happened; cut after 4 KiB.
    #[serde(default, alias = "stack_trace", skip_serializing_if = "Option::is_none")]
    pub stack_trace: Option<String>,
    /// Whether another attempt may succeed. Without it the category decides: `DATA_QUALITY`, `CONFIGURATION` and `CANCELLED` are
    /// not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// What an attempt used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskMetrics {
    /// Processor time.
    #[serde(default, alias = "cpu_time_ms", skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<i64>,
    /// Most memory at a time.
    #[serde(default, alias = "peak_memory_bytes", skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<i64>,
    /// Bytes read.
    #[serde(default, alias = "io_read_bytes", skip_serializing_if = "Option::is_none")]
    pub io_read_bytes: Option<i64>,
    /// Bytes written.
    #[serde(default, alias = "io_write_bytes", skip_serializing_if = "Option::is_none")]
    pub io_write_bytes: Option<i64>,
}

/// A start or an end was accepted: it is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskAcknowledged {
    /// Always true; a report that is not accepted is answered with a problem.
    pub acknowledged: bool,
    /// Whether reads of the run show it. They do so a moment later otherwise.
    pub is_visible: bool,
    /// The time of the server.
    pub server_time: Timestamp,
}

/// A heartbeat was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskAlive {
    /// Always true; a report that is not accepted is answered with a problem.
    pub acknowledged: bool,
    /// Whether the run was cancelled: end the attempt and report `CANCELLED`.
    pub should_cancel: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    /// The time of the server.
    pub server_time: Timestamp,
    /// A token that is valid for longer than the one of the request. Use it from now on.
    pub task_token: String,
    /// Until when.
    pub token_expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_in_camel_case_and_in_snake_case() {
        let camel = r#"{"attempt":1,"attemptId":"a","workerId":"w","outcome":"SUCCEEDED","output":{"rowCount":7,"outputVisibilityState":"VISIBLE"},"metrics":{"cpuTimeMs":5}}"#;
        let snake = r#"{"attempt":1,"attempt_id":"a","worker_id":"w","outcome":"succeeded","output":{"row_count":7,"output_visibility_state":"visible"},"metrics":{"cpu_time_ms":5}}"#;
        let read: TaskCompleted = serde_json::from_str(camel).unwrap();
        assert_eq!(serde_json::from_str::<TaskCompleted>(snake).unwrap(), read);
        assert_eq!(serde_json::to_string(&read).unwrap(), camel);
        let unknown = camel.replace("rowCount", "rows");
        assert!(serde_json::from_str::<TaskCompleted>(&unknown).is_err());
    }
}
