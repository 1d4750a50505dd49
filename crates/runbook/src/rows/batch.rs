//! `batches`: a group of members with one start time, and the counters and cursors of the batch.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ids::{BatchId, InitId, MemberId, RunbookId};
use super::numbering::{Blocks, Ordinal};
use super::status::BatchStatus;

/// A group of members with one start time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchRow {
    /// Primary key.
    pub id: BatchId,
    /// The version of the runbook that the batch follows.
    pub runbook_id: RunbookId,
    /// Reference time of the phases; none in manual batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_start_time: Option<Timestamp>,
    /// State of the batch.
    pub status: BatchStatus,
    /// When it was first seen.
    pub detected_at: Timestamp,
    /// When its init steps began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_dispatched_at: Option<Timestamp>,
    /// Name of the runbook. Addition.
    pub runbook_name: String,
    /// Version that `runbook_id` stands for. Addition.
    pub runbook_version: u32,
    /// Whether people advance it, phase by phase. Addition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_manual: bool,
    /// Whether all its first members are created; nothing begins before. Addition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_sealed: bool,
    /// When it ended. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Why it failed or was cancelled. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Since when it is paused. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Why it is paused. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    /// End of the blackout that holds steps back: the row's wake-up. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blackout_until: Option<Timestamp>,
    /// What the batch ends as, once the work at hand has ended. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<BatchStatus>,
    /// Members that were ever created; the next one gets this ordinal. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub members: Ordinal,
    /// First ids of the blocks of members. Addition.
    #[serde(default, skip_serializing_if = "Blocks::is_empty")]
    pub member_blocks: Blocks,
    /// Members by state. Addition.
    #[serde(default)]
    pub member_counts: MemberCounts,
    /// Variables that the results of init steps have set. Addition.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub worker_data: Map<String, Value>,
    /// The failed init step whose rollback is at work. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<InitId>,
    /// Rollbacks of init steps that were begun. Addition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rollback_runs: u32,
    /// How far a request over all failed members has got. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_cursor: Option<RetryCursor>,
    /// How far a message with a list of members has got. Addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_cursor: Option<ListCursor>,
    /// Pools that jobs could not be sent to, because they were unknown or paused. Addition.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsent_pools: BTreeSet<String>,
    /// Parts of cursor work done so far; releasing and preparing take turns by it. Addition.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub parts: u64,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_zero_u64(count: &u64) -> bool {
    *count == 0
}

/// Members of a batch by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCounts {
    /// Members that take part.
    pub active: u32,
    /// Members that have left.
    pub removed: u32,
    /// Members with a step that failed for good.
    pub failed: u32,
    /// Members that a person has cancelled.
    pub cancelled: u32,
    /// Members whose removal steps have yet to end.
    pub leaving: u32,
}

/// From where a failed member is tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryFrom {
    /// The step that failed.
    #[default]
    Step,
    /// The first step of the phase in which it failed.
    Phase,
}

/// How far a retry of all failed members has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryCursor {
    /// First member that has not been looked at.
    pub next: Ordinal,
    /// First member that is not to be looked at.
    pub end: Ordinal,
    /// From where members are tried again.
    pub from: RetryFrom,
}

/// How far a message with a list of members has got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCursor {
    /// Key of the message.
    pub message: String,
    /// Entries that are done.
    pub done: u32,
}

impl BatchRow {
    /// The earliest time at which the row has to be looked at.
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.status.is_terminal() { None } else { self.blackout_until }
    }

    /// Whether a person has cancelled it, and open work has yet to end.
    pub fn is_cancelling(&self) -> bool {
        self.ending == Some(BatchStatus::Cancelled)
    }

    /// The id of a member.
    pub fn member_id(&self, ordinal: Ordinal) -> Option<MemberId> {
        (ordinal < self.members).then(|| self.member_blocks.id(ordinal, 0)).flatten().map(MemberId)
    }

    /// The ordinal of a member.
    pub fn ordinal(&self, member: MemberId) -> Option<Ordinal> {
        let place = self.member_blocks.place(member.0, 1)?;
        (place.ordinal < self.members).then_some(place.ordinal)
    }
}
