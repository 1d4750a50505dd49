//! One change for many instances.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::instance::Status;
use crate::several;

/// What to do with many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Cancel them.
    Cancel,
    /// Hold them.
    Pause,
    /// Let them go on.
    Resume,
    /// Delete those that have ended.
    Delete,
    /// Begin the next execution of those that have ended, with the input of their last start.
    Restart,
    /// Let their activities that wait for their next attempt run at once.
    Retry,
}

/// Which instances a bulk call touches. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkFilter {
    /// Only ids that start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only in one of these states; one alone needs no list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "several")]
    pub status: Vec<Status>,
    /// Only of this orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Only calls of this function, whatever made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only with all of these labels, each `key=value`; one alone needs no list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "several")]
    pub label: Vec<String>,
    /// Only created at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Timestamp>,
    /// Only created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// Only children of this instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Only those that failed with this code, or with this category where there is no code. For this and all that follow rows are
    /// looked at, not found by an index: a call may change few instances, or none, and return a cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Only those that ended at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Timestamp>,
    /// Only those that ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Timestamp>,
    /// Only those that took longer than this from their start to their end, or to now if they have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_than_ms: Option<u64>,
    /// Only those that took less than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shorter_than_ms: Option<u64>,
}

/// Something to do with many instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// What to do.
    pub action: BulkAction,
    /// All that match this. Either this or `ids` is given, and something in it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub filter: BulkFilter,
    /// The instances of these ids, in this order; an id that comes twice counts once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10000)]
    pub ids: Vec<String>,
    /// Kept in the histories and in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only count what would be touched.
    #[serde(default)]
    pub dry_run: bool,
    /// Delete or restart also what has not ended.
    #[serde(default)]
    pub force: bool,
    /// Touch at most this many: newest first, or in the order of `ids`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the call before, to go on after it: no instance is touched or counted twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What a bulk call did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkResult {
    /// Instances that matched, up to the limit, or up to where the time of one request was over.
    pub matched: usize,
    /// Instances that were changed; 0 in a dry run.
    pub changed: usize,
    /// Of a dry run: instances that would be changed, as they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_change: Option<usize>,
    /// The first that were changed, or would be in a dry run; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<String>,
    /// Instances that matched and were left as they are, or would be in a dry run, by the reason;
    /// absent when there are none.
    #[serde(default, skip_serializing_if = "BulkLeft::is_none")]
    pub left: BulkLeft,
    /// The first of these, each with its reason; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_sample: Vec<LeftInstance>,
    /// Give this as `cursor` to go on; absent when no more match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An instance that a bulk call left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftInstance {
    /// Its id.
    pub id: String,
    /// Why, in words for people.
    pub reason: String,
}

/// Instances that a bulk call left as they are, by the reason. Reasons without instances are
/// absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct BulkLeft {
    /// Calls of batches: their batch decides about them, and keeps them as long as it may look
    /// after them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub batch_calls: usize,
    /// They have ended, so that there is nothing to cancel, pause or resume.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended: usize,
    /// They or descendants of theirs still run, so that they are neither deleted nor restarted without `force`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running: usize,
    /// None of their activities waits for its next attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_waiting: usize,
    /// A start of them is refused now: no node has their orchestration, their function is gone, or it does not take their
    /// input any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: usize,
    /// Children, which are deleted with the root of their tree.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: usize,
    /// They vanished meanwhile, as children do whose root was deleted, or never existed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: usize,
    /// What is stored of them cannot be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: usize,
}

impl BulkLeft {
    /// Every reason with how many instances it concerns, in words.
    pub fn reasons(&self) -> [(usize, &'static str); 8] {
        [
            (self.batch_calls, "calls of batches, which decide about them"),
            (self.ended, "ended"),
            (self.running, "running, or with running children"),
            (self.children, "children, deleted with their root"),
            (self.not_waiting, "without an activity that waits for its next attempt"),
            (self.refused, "cannot be started as they were"),
            (self.gone, "do not exist"),
            (self.unreadable, "unreadable"),
        ]
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.reasons().iter().map(|(count, _)| count).sum()
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.total() == 0
    }
}

impl std::ops::AddAssign for BulkLeft {
    fn add_assign(&mut self, more: Self) {
        self.batch_calls += more.batch_calls;
        self.ended += more.ended;
        self.running += more.running;
        self.children += more.children;
        self.not_waiting += more.not_waiting;
        self.refused += more.refused;
        self.gone += more.gone;
        self.unreadable += more.unreadable;
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn is_empty(filter: &BulkFilter) -> bool {
    *filter == BulkFilter::default()
}
