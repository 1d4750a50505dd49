//! What became of occurrences and why, and runs out of schedule.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// What became of an occurrence, or of a stretch of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringEntry {
    /// The scheduled time; of a stretch, the first.
    pub time: Timestamp,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// `fired`, `skipped`, `buffered`, `refused` or `disabled`.
    pub decision: String,
    /// Why it was skipped: `overlap`, `paused`, `calendar`, `dedup`, `missed` or `coalesced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What daylight saving has to do with it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether a caller ran it, out of schedule; its time is that of the request then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `completed`, `failed`, or `cancelled` for the next occurrence; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When its call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Of a stretch: the first scheduled time after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Of a stretch: how many occurrences it has; of very many, a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A run out of schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecurring {
    /// Names the run: a second one with the same key changes nothing and gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub key: Option<String>,
}

/// What became of a run out of schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecurringRun {
    /// Id of the recurring action.
    pub id: String,
    /// Whether this request made the run; false when one with its key was there.
    pub created: bool,
    /// The time of the run, by which its history has it.
    pub time: Timestamp,
    /// `fired`, `skipped` when its dedup key had been seen, or `refused` when its call could not be made.
    pub decision: String,
    /// Why it was not fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// What became of occurrences, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringHistory {
    /// Newest first.
    pub entries: Vec<RecurringEntry>,
    /// Entries that cannot be read, by their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Why something did or did not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringExplanation {
    /// The time that was asked for.
    pub time: Timestamp,
    /// Whether it ran, or will run.
    pub runs: bool,
    /// Why, for people. Times are in fields of their own.
    pub text: String,
    /// The next occurrence after it that will run; absent when there is none, or the action is paused without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Since when the action is paused, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// When the paused action goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<Timestamp>,
    /// When the action was created, if that was later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// What is written down about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<RecurringEntry>,
}
