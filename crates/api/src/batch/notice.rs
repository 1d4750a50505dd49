//! Notices of a batch.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// Its call has not ended.
    Sending,
    /// The function has returned.
    Delivered,
    /// The function has failed for good, or could not be called.
    Failed,
}

/// A notice of a batch: a call of the function that the runbook names under `notify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notice {
    /// `approval_wanted`, `phase_failed` or `budget_spent`.
    pub event: String,
    /// The phase.
    pub phase_execution_id: u64,
    /// Its name.
    pub phase_name: String,
    /// The function.
    pub function_name: String,
    /// Id of the call's instance.
    pub instance: String,
    /// What became of it.
    pub state: NoticeState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was delivered or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}
