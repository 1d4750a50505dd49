//! Phases of batches.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Not due yet, or waits for its predecessor, its steps or an approval.
    Pending,
    /// Its steps are running.
    Dispatched,
    /// Ended, and enough members have succeeded.
    Completed,
    /// Ended, and too few members have succeeded.
    Failed,
    /// Left out.
    Skipped,
    /// Replaced by a phase of a newer version before it began.
    Superseded,
}

impl fmt::Display for PhaseStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PhaseStatus::Pending => "pending",
            PhaseStatus::Dispatched => "dispatched",
            PhaseStatus::Completed => "completed",
            PhaseStatus::Failed => "failed",
            PhaseStatus::Skipped => "skipped",
            PhaseStatus::Superseded => "superseded",
        })
    }
}

/// A phase of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Phase {
    /// Id of the phase execution.
    pub id: u64,
    /// The batch.
    pub batch_id: u64,
    /// Name of the phase.
    pub phase_name: String,
    /// Minutes before `batch_start_time`.
    pub offset_minutes: u64,
    /// When it becomes due; absent in a batch that is advanced by hand until it is advanced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Version of the runbook that it is from.
    pub runbook_version: u32,
    /// State of the phase.
    pub status: PhaseStatus,
    /// When its steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it failed or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of its steps.
    pub steps: u32,
    /// Steps of all members by state.
    pub step_counts: BTreeMap<String, u64>,
    /// Members that have passed its last step.
    pub members_succeeded: u32,
    /// Members with a failed step.
    pub members_failed: u32,
    /// When an approval was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_requested_at: Option<Timestamp>,
    /// When it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// Id of the API key with which it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When its error budget was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
}
