//! Schedules: defined, ticked.

use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::schedule::ScheduleSpec;
use serde::{Deserialize, Serialize};

/// A schedule is defined like this from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDefinitionUpserted {
    /// The schedule.
    pub schedule_id: Arc<str>,
    /// When it ticks; empty if `spec` says so.
    pub cron_expression: Arc<str>,
    /// In which zone.
    pub timezone: Arc<str>,
    /// How far back missed ticks are made up for.
    pub catchup_window_minutes: u32,
    /// What its runs make.
    #[serde(default)]
    pub asset_selection: Vec<Arc<str>>,
    /// The version of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
    /// How many missed ticks are made up for at most.
    pub max_catchup_ticks: u32,
    /// Whether it ticks.
    pub enabled: bool,
    /// When it ticks, if that is more than a cron expression in a zone. One that names no times ends the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ScheduleSpec>,
}

/// A schedule ticked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleTicked {
    /// The schedule.
    pub schedule_id: Arc<str>,
    /// The time of the tick.
    pub scheduled_for: Timestamp,
    /// `{schedule}:{epoch}`.
    pub tick_id: Arc<str>,
    /// The definition that it is from.
    pub definition_version: Arc<str>,
    /// What its run makes.
    #[serde(default)]
    pub asset_selection: Vec<Arc<str>>,
    /// For which partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_selection: Option<Vec<Arc<str>>>,
    /// What became of it.
    pub status: TickStatus,
    /// The key of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<Arc<str>>,
    /// The fingerprint of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_fingerprint: Option<Arc<str>>,
}

/// What became of a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TickStatus {
    /// A run was requested.
    Triggered,
    /// It was left out.
    Skipped {
        /// Why.
        reason: Arc<str>,
    },
    /// It could not be handled.
    Failed {
        /// Why.
        error: Arc<str>,
    },
}
