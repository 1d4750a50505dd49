//! Steps of members, and init steps.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not yet sent to a worker, or waiting for its next attempt.
    Pending,
    /// Sent to a worker.
    Dispatched,
    /// Completed by the worker.
    Succeeded,
    /// The worker returned an error, and there is no further attempt.
    Failed,
    /// The worker reported that it is still in progress.
    Polling,
    /// Polling took longer than allowed.
    PollTimeout,
    /// The rollback of a failed step has succeeded.
    RolledBack,
    /// Given up before it ended.
    Cancelled,
    /// Left out by a request.
    Skipped,
}

impl fmt::Display for StepStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StepStatus::Pending => "pending",
            StepStatus::Dispatched => "dispatched",
            StepStatus::Succeeded => "succeeded",
            StepStatus::Failed => "failed",
            StepStatus::Polling => "polling",
            StepStatus::PollTimeout => "poll_timeout",
            StepStatus::RolledBack => "rolled_back",
            StepStatus::Cancelled => "cancelled",
            StepStatus::Skipped => "skipped",
        })
    }
}

/// One step for one member, or an init step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// Id of the step execution.
    pub id: u64,
    /// The phase; absent for an init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_execution_id: Option<u64>,
    /// The member; absent for an init step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_member_id: Option<u64>,
    /// Name of the step.
    pub step_name: String,
    /// Order within its phase, from 0.
    pub step_index: u32,
    /// The worker pool.
    pub worker_id: String,
    /// The function.
    pub function_name: String,
    /// Its parameters as JSON text.
    pub params_json: String,
    /// State of the step.
    pub status: StepStatus,
    /// Job that was sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What the worker returned, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_json: Option<String>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When the current attempt was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Polls of the current attempt.
    pub poll_count: u32,
    /// Attempts after the first.
    pub retry_count: u32,
    /// How far its rollback has got: `waiting`, `running`, `succeeded` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_state: Option<String>,
    /// Which step of its rollback failed, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_error: Option<String>,
}
