//! A recurring action as it is shown: whole, in a list, and after it was paused or resumed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::{Daylight, MissedPolicy, OverlapPolicy};
use crate::Json;
use crate::unreadable::Unreadable;

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
    /// What became of the last occurrences, newest first; only if the request wants them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<RecentOccurrence>,
}

/// What became of an occurrence, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentOccurrence {
    /// The scheduled time.
    pub time: Timestamp,
    /// `fired`, `skipped`, `buffered`, `refused` or `disabled`.
    pub decision: String,
    /// `completed`, `failed` or `cancelled`; absent while its call runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The instance of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
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
