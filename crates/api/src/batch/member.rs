//! Members of batches.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Step;
use crate::unreadable::Unreadable;

/// Members to add to a batch, or to update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutMembers {
    /// Members as CSV text whose first line has the names of the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_csv: Option<String>,
    /// Members as objects: names are columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Map<String, Value>>,
}

/// Members to remove from a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveMembers {
    /// Their keys; letter case does not matter.
    pub keys: Vec<String>,
}

/// Members of a batch by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberCounts {
    /// Members that take part.
    pub active: u32,
    /// Members that have left.
    pub removed: u32,
    /// Members with a step that failed for good.
    pub failed: u32,
    /// Members that were cancelled.
    pub cancelled: u32,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// Takes part.
    Active,
    /// Has left.
    Removed,
    /// A step has failed for good.
    Failed,
    /// Cancelled by a request.
    Cancelled,
}

impl fmt::Display for MemberStatus {
    /// The word of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemberStatus::Active => "active",
            MemberStatus::Removed => "removed",
            MemberStatus::Failed => "failed",
            MemberStatus::Cancelled => "cancelled",
        })
    }
}

/// A member of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// Id of the member.
    pub id: u64,
    /// The batch.
    pub batch_id: u64,
    /// Value of the primary key column.
    pub member_key: String,
    /// State of the member.
    pub status: MemberStatus,
    /// When it was added, or added again.
    pub added_at: Timestamp,
    /// When it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
    /// When it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// How far its removal steps have got: `waiting`, `running`, `succeeded` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_state: Option<String>,
    /// Which of its removal steps failed, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_error: Option<String>,
    /// When its source first had it.
    #[serde(rename = "_first_seen_at")]
    pub first_seen_at: Timestamp,
    /// When its source last had it: of a current member, the last query of its runbook.
    #[serde(rename = "_last_seen_at")]
    pub last_seen_at: Timestamp,
    /// Whether its source has it.
    #[serde(rename = "_is_current")]
    pub is_current: bool,
    /// Columns of the source's row.
    pub data: Map<String, Value>,
    /// Variables that results have set.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub worker_data: Map<String, Value>,
}

/// Members of a batch, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberList {
    /// The members.
    pub members: Vec<Member>,
    /// Stored ones that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A member with its steps in all phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberDetails {
    /// The member.
    #[serde(flatten)]
    pub member: Member,
    /// Its steps, phase by phase.
    pub steps: Vec<Step>,
    /// Steps that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
}
