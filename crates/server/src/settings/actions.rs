//! Actions and recurring actions.

use std::time::Duration;

use segno_actions::ActionOptions;
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

/// Seconds of a day.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Actions and recurring actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionSettings {
    /// Whether this node fires recurring actions.
    pub enable_recurring_actions: bool,
    /// Longest time before the node looks again for what is due. It wakes by itself when something is.
    pub recurring_check_interval_seconds: u64,
    /// An occurrence that is later than this was missed.
    pub missed_after_seconds: u64,
    /// Shortest time between two occurrences of a recurring action.
    pub min_interval_seconds: u64,
    /// Most recurring actions of a namespace and tenant.
    pub max_recurring_per_tenant: u64,
    /// How long actions that have ended are kept.
    pub keep_finished_days: u64,
    /// How long it is kept what became of each occurrence.
    pub keep_history_days: u64,
}

impl Default for ActionSettings {
    fn default() -> Self {
        let options = ActionOptions::default();
        ActionSettings {
            enable_recurring_actions: options.fires_recurring,
            recurring_check_interval_seconds: options.check_interval.as_secs(),
            missed_after_seconds: options.missed_after.as_secs(),
            min_interval_seconds: options.min_interval.as_secs(),
            max_recurring_per_tenant: options.max_recurring_per_tenant,
            keep_finished_days: options.keep_finished.as_secs() / DAY_SECONDS,
            keep_history_days: options.keep_history.as_secs() / DAY_SECONDS,
        }
    }
}

impl Settings {
    /// What actions are told.
    pub fn action_options(&self) -> ActionOptions {
        let actions = &self.actions;
        let days = |days: u64| Duration::from_secs(days.saturating_mul(DAY_SECONDS));
        ActionOptions {
            fires_recurring: actions.enable_recurring_actions,
            check_interval: Duration::from_secs(actions.recurring_check_interval_seconds),
            missed_after: Duration::from_secs(actions.missed_after_seconds),
            min_interval: Duration::from_secs(actions.min_interval_seconds),
            max_recurring_per_tenant: actions.max_recurring_per_tenant,
            keep_finished: days(actions.keep_finished_days),
            keep_history: days(actions.keep_history_days),
            retires: self.archive.enabled,
            ..ActionOptions::default()
        }
    }

    /// Checks what types cannot.
    pub(super) fn check_actions(&self) -> Result<(), SettingsError> {
        let actions = &self.actions;
        for (name, value) in [
            ("actions.recurring_check_interval_seconds", actions.recurring_check_interval_seconds),
            ("actions.min_interval_seconds", actions.min_interval_seconds),
            ("actions.keep_finished_days", actions.keep_finished_days),
            ("actions.keep_history_days", actions.keep_history_days),
        ] {
            if value == 0 {
                return Err(SettingsError::value(name, "must be at least 1"));
            }
        }
        Ok(())
    }
}
