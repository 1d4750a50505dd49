//! What a recurring action is made of: schedule, call and policies, as a caller says them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Json;

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
    /// The payload, an object; `{}` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// The function, which gets `input` as it is; in place of `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The orchestration that is started with `input` as it is; in place of `provider` or `function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<String>,
    /// Input of `function` or `orchestration`; `null` without it.
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
