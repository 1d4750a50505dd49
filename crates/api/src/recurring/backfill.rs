//! Running what lies in the past.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
