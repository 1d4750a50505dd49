//! Batches, new ones included, and why their rows wait.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{MemberCounts, Notice, Phase, Step};
use crate::unreadable::Unreadable;

/// A batch that is to be created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBatch {
    /// Name of the runbook.
    pub runbook: String,
    /// Version of the runbook; the active one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Reference time of the phases. A batch without one is advanced by hand, phase by phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// Members as CSV text whose first line has the names of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_csv: Option<String>,
    /// Members as objects: names are columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Map<String, Value>>,
}

/// State of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// Created; init has not begun.
    Detected,
    /// Init steps are running.
    InitDispatched,
    /// Phases run when they are due.
    Active,
    /// All phases have ended and none has failed.
    Completed,
    /// A phase or an init step has failed, and nothing is left to do.
    Failed,
    /// Cancelled by a request.
    Cancelled,
}

impl fmt::Display for BatchStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BatchStatus::Detected => "detected",
            BatchStatus::InitDispatched => "init_dispatched",
            BatchStatus::Active => "active",
            BatchStatus::Completed => "completed",
            BatchStatus::Failed => "failed",
            BatchStatus::Cancelled => "cancelled",
        })
    }
}

/// A batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Batch {
    /// Id of the batch.
    pub id: u64,
    /// Name of its runbook.
    pub runbook_name: String,
    /// Version that it follows.
    pub runbook_version: u32,
    /// Reference time of the phases; absent in a batch that is advanced by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// State of the batch.
    pub status: BatchStatus,
    /// When it was created.
    pub detected_at: Timestamp,
    /// When its init steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_dispatched_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// State in which it ends once what is open has ended; absent in one that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<BatchStatus>,
    /// Why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    /// Whether all its first members are stored; nothing begins before.
    pub is_sealed: bool,
    /// Whether it is in the archive: its time in the store is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Members by state.
    pub member_counts: MemberCounts,
}

/// Batches, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchList {
    /// The batches.
    pub batches: Vec<Batch>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A batch with its phases and init steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchDetails {
    /// The batch.
    #[serde(flatten)]
    pub batch: Batch,
    /// Its phases, in due order.
    pub phases: Vec<Phase>,
    /// Its init steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<Step>,
    /// Notices that were sent to people, oldest first; the last 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Phases, init steps and notices that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Why it waits, what will wake it, and when.
    pub explanation: Explanation,
}

/// Why a row waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// A sentence.
    pub why: String,
    /// What releases it; absent if it has ended or waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_by: Option<String>,
    /// When it wakes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
}
