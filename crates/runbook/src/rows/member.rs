//! `batch_members`, with the member's data, and `member_keys`, by which members are found.

use jiff::Timestamp;
use segno_actions::document::folded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ids::{BatchId, MemberId, StepId};
use super::status::{MemberStatus, SequenceState};

/// A member of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberRow {
    /// Primary key; the block of `BatchRow::member_blocks` that has it gives the ordinal.
    pub id: MemberId,
    /// The batch.
    pub batch_id: BatchId,
    /// Value of the primary key column, as the source wrote it.
    pub member_key: String,
    /// State of the member.
    pub status: MemberStatus,
    /// When it was added, or added again.
    pub added_at: Timestamp,
    /// When it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
    /// When `member-added` was sent; for the first members of a batch, when they were created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_dispatched_at: Option<Timestamp>,
    /// When `member-removed` was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_dispatched_at: Option<Timestamp>,
    /// Place in the batch, from 0. Addition.
    pub ordinal: u32,
    /// Columns of the source's row. Addition.
    pub data: Map<String, Value>,
    /// Variables that results have set; they win over `data`. Addition.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub worker_data: Map<String, Value>,
    /// When it failed. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// When the source first had it. Addition.
    #[serde(rename = "_first_seen_at")]
    pub first_seen_at: Timestamp,
    /// When the source last had it; stored once it has disappeared. Addition.
    #[serde(rename = "_last_seen_at", default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// Whether the source has it. Addition.
    #[serde(rename = "_is_current")]
    pub is_current: bool,
    /// The failed step whose rollback is at work. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<StepId>,
    /// Rollbacks that were begun for it. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rollback_runs: u32,
    /// How far its removal steps have got. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_state: Option<SequenceState>,
    /// Removals that were begun for it. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removal_runs: u32,
    /// Number of steps of the removal at work. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removal_steps: u32,
    /// Why its removal steps failed, while `removal_state` is `failed`. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_error: Option<String>,
    /// The source has it again, and its removal steps have yet to end. Addition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_returning: bool,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

impl MemberRow {
    /// Whether its removal steps have yet to end.
    pub fn is_leaving(&self) -> bool {
        self.removal_state.is_some_and(SequenceState::is_open)
    }
}

/// Which member has a key, and a digest of its data, so that a query finds differences without
/// reading the members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberKeyRow {
    /// The key in small letters: the same for keys that differ in letter case only.
    pub key: String,
    /// The member.
    pub batch_member_id: MemberId,
    /// Digest of the member's data.
    pub digest: String,
    /// Whether the source has it.
    pub is_current: bool,
}

/// A member's key as it is compared: whatever the letter case.
pub fn normal_key(key: &str) -> String {
    folded(key)
}
