//! The next times of a schedule.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// Where the search ended because it took too long, although more times were wanted; give this as `from` to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<Timestamp>,
}
