//! Attempts of tasks: started, alive, ended, and when their output became visible.

use std::sync::Arc;

use jiff::Timestamp;
use segno::Payload;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use serde_json::value::RawValue;

/// An attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The run.
    pub run_id: Arc<str>,
    /// The task.
    pub task_key: Arc<str>,
    /// Its number, from 1.
    pub attempt: u32,
    /// Its id.
    pub attempt_id: Arc<str>,
}

/// A worker started the attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The worker.
    pub worker_id: Arc<str>,
}

/// The attempt is alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskHeartbeat {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The worker.
    pub worker_id: Arc<str>,
    /// When; otherwise the time of the event's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// How far it says that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_pct: Option<u32>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
}

/// The attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The worker.
    pub worker_id: Arc<str>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialization_id: Option<Arc<str>>,
    /// Why it failed, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<Arc<str>>,
    /// What it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TaskOutput>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Value>,
    /// Where it was when it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_during_phase: Option<Arc<str>>,
    /// What it had done when it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_progress_json: Option<Arc<str>>,
    /// The asset that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_key: Option<Arc<str>>,
    /// The partition of the asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<Arc<str>>,
    /// The version of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
}

/// The end of an attempt and the visibility of its output, as one fact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskCompletionRecorded {
    /// The end.
    #[serde(flatten)]
    pub finished: TaskFinished,
    /// The visibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_visibility: Option<OutputVisibility>,
}

impl<'de> Deserialize<'de> for TaskCompletionRecorded {
    /// Derived code would read the end from a buffer, which cannot hold the text of an output.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Rest {
            #[serde(default)]
            output_visibility: Option<OutputVisibility>,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let finished = serde_json::from_str(json.get()).map_err(de::Error::custom)?;
        let Rest { output_visibility } = serde_json::from_str(json.get()).map_err(de::Error::custom)?;
        Ok(TaskCompletionRecorded { finished, output_visibility })
    }
}

/// The visibility of the output of an attempt changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOutputVisibilityChanged {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The visibility.
    #[serde(flatten)]
    pub visibility: OutputVisibility,
}

/// Whether readers see the output of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputVisibility {
    /// Whether they do.
    pub visibility_state: VisibilityState,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    /// Why they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_error: Option<Arc<str>>,
}

/// Whether readers see an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisibilityState {
    /// Not yet.
    Pending,
    /// They do.
    Visible,
    /// They never will.
    Failed,
}

impl VisibilityState {
    /// Its text in the tables.
    pub const fn text(self) -> &'static str {
        match self {
            VisibilityState::Pending => "pending",
            VisibilityState::Visible => "visible",
            VisibilityState::Failed => "failed",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It left itself out.
    Skipped,
    /// It was cancelled.
    Cancelled,
}

impl Outcome {
    /// Its text.
    pub const fn text(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// What an attempt returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskOutput {
    /// The value itself, if it is small: the JSON that the worker wrote, with all digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Payload>,
    /// Where the value is stored, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Arc<str>>,
    /// Rows that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_count: Option<i64>,
    /// Bytes that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<i64>,
    /// Where it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_path: Option<Arc<str>>,
    /// The table that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_table: Option<Arc<str>>,
    /// The version of that table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_version: Option<i64>,
    /// The partition of that table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_partition: Option<Arc<str>>,
    /// Where its lineage is described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_lineage_ref: Option<Arc<str>>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// `USER_CODE`, `INFRASTRUCTURE`, `TIMEOUT`, `DATA_QUALITY`, `CONFIGURATION`, `CANCELLED` or
    /// one of the worker's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Arc<str>>,
    /// What happened.
    pub message: Arc<str>,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_trace: Option<Arc<str>>,
    /// Whether another attempt may succeed, if the worker knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl TaskError {
    /// Whether another attempt may succeed: as the worker says, else by the category, else yes.
    pub fn is_retryable(&self) -> bool {
        let by_category =
            || !matches!(self.category.as_deref(), Some("DATA_QUALITY" | "CONFIGURATION" | "CANCELLED"));
        self.retryable.unwrap_or_else(by_category)
    }
}
