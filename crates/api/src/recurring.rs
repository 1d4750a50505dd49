//! Recurring actions: functions that are called again and again, by a schedule.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;
use crate::unreadable::Unreadable;

/// What becomes of an occurrence whose predecessor still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// Both run.
    #[serde(alias = "allow_all")]
    Allow,
    /// It does not run.
    Skip,
    /// It runs when the other has ended; more than one do not wait.
    BufferOne,
    /// The other is cancelled.
    CancelOther,
}

/// What becomes of occurrences while nobody was there to fire them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// They do not run.
    None,
    /// The last of them runs.
    Latest,
    /// They run, as many as the window and the limit allow.
    All,
}

/// What becomes of local times that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DaylightGap {
    /// They happen once, when the clock is put forward.
    #[default]
    Shift,
    /// They do not happen.
    Skip,
}

/// When local times happen that come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DaylightOverlap {
    /// The first time.
    #[default]
    First,
    /// The second time.
    Last,
    /// Both times.
    Both,
}

/// What a cron expression means where clocks are put forward or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Daylight {
    /// For local times that do not exist.
    pub gap: DaylightGap,
    /// For local times that come twice.
    pub overlap: DaylightOverlap,
}

/// What can be said of a recurring action. To create one, give a schedule (one of `cron_expr`, `every` and `at`) and a
/// function (`provider` with `action_type` and `payload`, or `function` with `input`). To change one, give what changes;
/// `null` clears a field.
///
/// Durations are texts such as `30s`, `10m` or `1h30m`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecurringFields {
    /// Namespace, if it is not in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Tenant, if it is not in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A cron expression with 5, 6 or 7 fields.
    #[serde(alias = "cron_expression", skip_serializing_if = "Option::is_none")]
    #[schema(example = "0 9 * * MON-FRI")]
    pub cron_expr: Option<String>,
    /// The zone whose clocks the expression means; `UTC` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// What the expression means where clocks are put forward or back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daylight: Option<Daylight>,
    /// An interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Where intervals are counted from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Timestamp>,
    /// One moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Nothing happens before this time.
    #[serde(alias = "start_date", skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// Nothing happens after this time.
    #[serde(alias = "end_date", skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// Days of the zone on which nothing happens: `2026-12-25`, `12-25` (every year), `SAT`, and ranges such as
    /// `2026-12-24..2027-01-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 500, example = json!(["SAT..SUN", "12-25"]))]
    pub exclude: Option<Vec<String>>,
    /// The function, which gets an object with `action_type`, `payload`, `metadata` and `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "echo")]
    pub provider: Option<String>,
    /// What sort of action it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "send_digest")]
    pub action_type: Option<String>,
    /// The payload, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// The function, which gets `input` as it is; in place of `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The orchestration that is started with `input` as it is; in place of `provider` or `function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Input of `function` or `orchestration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Labels that the function gets with each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// A text that stands for the call; `{{recurring_id}}` and `{{execution_time}}` are expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// For how long a dedup key suppresses further calls; `1d` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_window: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For finding and sorting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Whether it fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// When the run before has not ended; `allow` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_policy: Option<OverlapPolicy>,
    /// When nobody was there; `none` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedPolicy>,
    /// With `missed: all`: how far back; `1h` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up_window: Option<String>,
    /// With `missed: all`: how many in a row; 100 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub catch_up_limit: Option<u32>,
    /// Each occurrence is fired up to this much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// After so many executions it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_executions: Option<u64>,
    /// After so many failures in a row it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub pause_after_failures: Option<u32>,
}

/// The answer to a creation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringCreated {
    /// Its id.
    pub recurring_id: String,
    /// When it fires first; none if it is paused.
    pub next_execution: Option<Timestamp>,
    /// Its cron expression, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expr: Option<String>,
    /// Its zone.
    pub timezone: String,
    /// Whether it fires.
    pub enabled: bool,
    /// The schedule in plain English.
    pub schedule: String,
    /// How the schedule reads what other implementations of cron read differently, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The action that is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringTemplate {
    /// The function; empty if an orchestration is started.
    pub provider: String,
    /// The orchestration that is started, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// What sort of action it is; empty if the function gets the payload as it is.
    pub action_type: String,
    /// The payload.
    pub payload: Json,
    /// Labels that the function gets with each call.
    pub metadata: BTreeMap<String, String>,
    /// A text that stands for the call.
    pub dedup_key: Option<String>,
}

/// A recurring action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringAction {
    /// Its id.
    pub id: String,
    /// Namespace.
    pub namespace: String,
    /// Tenant.
    pub tenant: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its cron expression, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expr: Option<String>,
    /// Its interval, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Where intervals are counted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Timestamp>,
    /// Its one moment, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Its zone.
    pub timezone: String,
    /// What the expression means where clocks are put forward or back.
    pub daylight: Daylight,
    /// The schedule in plain English.
    pub schedule: String,
    /// How the schedule reads what other implementations of cron read differently, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether it fires.
    pub enabled: bool,
    /// `active`, `paused` or `completed`.
    pub status: String,
    /// The action that is called.
    pub action_template: RecurringTemplate,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed by somebody.
    pub updated_at: Timestamp,
    /// When it last fired.
    pub last_executed_at: Option<Timestamp>,
    /// The next scheduled time.
    pub next_execution_at: Option<Timestamp>,
    /// Nothing happens before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// Nothing happens after this time.
    pub ends_at: Option<Timestamp>,
    /// Days on which nothing happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// How often it has fired.
    pub execution_count: u64,
    /// How many of its calls have failed.
    pub failure_count: u64,
    /// How many of its calls have failed since one succeeded.
    pub consecutive_failures: u32,
    /// Why the last failure was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The instance of its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_id: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Why somebody paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_note: Option<String>,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<Timestamp>,
    /// Why it does not fire any more, if nobody paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// For finding and sorting.
    pub labels: BTreeMap<String, String>,
    /// When the run before has not ended.
    pub overlap_policy: OverlapPolicy,
    /// When nobody was there.
    pub missed: MissedPolicy,
    /// With `missed: all`: how far back.
    pub catch_up_window: String,
    /// With `missed: all`: how many in a row.
    pub catch_up_limit: u32,
    /// Each occurrence is fired up to this much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// After so many executions it is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_executions: Option<u64>,
    /// After so many failures in a row it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after_failures: Option<u32>,
    /// For how long a dedup key suppresses further calls.
    pub dedup_window: String,
}

/// A recurring action in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringSummary {
    /// Its id.
    pub id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its cron expression, if it has one.
    pub cron_expr: Option<String>,
    /// Its zone.
    pub timezone: String,
    /// The schedule in plain English.
    pub schedule: String,
    /// Whether it fires.
    pub enabled: bool,
    /// `active`, `paused` or `completed`.
    pub status: String,
    /// What it is for.
    pub description: Option<String>,
    /// The function; empty if an orchestration is started.
    pub provider: String,
    /// The orchestration that is started, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// What sort of action it is.
    pub action_type: String,
    /// The next scheduled time.
    pub next_execution_at: Option<Timestamp>,
    /// When it last fired.
    pub last_executed_at: Option<Timestamp>,
    /// How often it has fired.
    pub execution_count: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// For finding and sorting.
    pub labels: BTreeMap<String, String>,
}

/// A page of recurring actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringList {
    /// Newest first.
    pub recurring_actions: Vec<RecurringSummary>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A pause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseRecurring {
    /// Namespace, if it is not in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Tenant, if it is not in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it goes on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<Timestamp>,
}

/// The answer to pausing and resuming.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringState {
    /// Its id.
    pub id: String,
    /// Whether it fires.
    pub enabled: bool,
    /// The next scheduled time.
    pub next_execution_at: Option<Timestamp>,
}

/// What became of an occurrence, or of a stretch of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringEntry {
    /// The scheduled time; of a stretch, the first.
    pub time: Timestamp,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// `fired`, `skipped`, `buffered`, `refused` or `disabled`.
    pub decision: String,
    /// Why it was skipped: `overlap`, `paused`, `calendar`, `dedup` or `missed`.
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
    /// Why, for people.
    pub text: String,
    /// What is written down about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<RecurringEntry>,
}

/// A time at which something will run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreviewTime {
    /// In UTC.
    pub time: Timestamp,
    /// As the clocks of the zone show it.
    pub local: String,
    /// What daylight saving or the calendar has to do with it, for people.
    pub note: Option<String>,
}

/// The next times of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringPreview {
    /// The schedule in plain English.
    pub schedule: String,
    /// How the schedule reads what other implementations of cron read differently, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Version of the zone database.
    pub zones: String,
    /// The times.
    pub times: Vec<PreviewTime>,
}

/// A range of the past to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillRecurring {
    /// Namespace, if it is not in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Tenant, if it is not in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// From this time on.
    pub start: Timestamp,
    /// Up to and including this time.
    pub end: Timestamp,
    /// At most so many; 100 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
    /// Only say what would be run.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of one occurrence of a backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BackfillResult {
    /// The scheduled time.
    pub occurrence: Timestamp,
    /// `started`, `would_start`, `already_run`, `excluded` (the calendar leaves it out, and all up to the next), `deduplicated`
    /// or `refused`.
    pub outcome: String,
    /// What it is excluded by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_by: Option<String>,
    /// Why its call could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// What became of a backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Backfilled {
    /// The recurring action.
    pub id: String,
    /// Occurrences in the range.
    pub occurrences: usize,
    /// How many of them were started.
    pub dispatched: usize,
    /// One by one.
    pub results: Vec<BackfillResult>,
}
