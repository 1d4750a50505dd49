//! Webhooks: what is kept of them, and how many may come.

use std::time::Duration;

use segno_actions::hooks::HookSettings as ForHooks;
use segno_actions::hooks::limits::{DEFAULT_MAX_EVENTS, DEFAULT_RETENTION, MAX_EVENTS, MAX_RETENTION};
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

const SECONDS_PER_HOUR: u64 = 60 * 60;

/// Webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookSettings {
    /// How long payloads are kept if their route does not say.
    pub retention_hours: u64,
    /// About how many events of a tenant are kept.
    pub max_events: usize,
    /// How long events are kept.
    pub event_retention_hours: u64,
    /// Most requests per second of one route, on this node; no limit without it.
    pub requests_per_second: Option<u32>,
}

impl Default for HookSettings {
    fn default() -> Self {
        let hours = DEFAULT_RETENTION.as_secs() / SECONDS_PER_HOUR;
        HookSettings {
            retention_hours: hours,
            max_events: DEFAULT_MAX_EVENTS,
            event_retention_hours: hours,
            requests_per_second: None,
        }
    }
}

impl Settings {
    /// What routes are told.
    pub fn for_hooks(&self) -> ForHooks {
        let hours = |hours: u64| Duration::from_secs(hours.saturating_mul(SECONDS_PER_HOUR));
        ForHooks {
            retention: hours(self.hooks.retention_hours),
            max_body_bytes: self.server.max_body_bytes,
            max_events: self.hooks.max_events,
            event_retention: hours(self.hooks.event_retention_hours),
        }
    }

    pub(super) fn check_hooks(&self) -> Result<(), SettingsError> {
        let hooks = &self.hooks;
        let most_hours = MAX_RETENTION.get().as_secs() / SECONDS_PER_HOUR;
        for (name, value, most) in [
            ("hooks.retention_hours", hooks.retention_hours, most_hours),
            ("hooks.event_retention_hours", hooks.event_retention_hours, most_hours),
            ("hooks.max_events", hooks.max_events as u64, MAX_EVENTS as u64),
            ("hooks.requests_per_second", u64::from(hooks.requests_per_second.unwrap_or(1)), u64::MAX),
        ] {
            if !(1..=most).contains(&value) {
                return Err(SettingsError::value(name, format!("must be from 1 to {most}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_named() {
        for (change, name) in [
            ((|hooks| hooks.retention_hours = 0) as fn(&mut HookSettings), "hooks.retention_hours"),
            (|hooks| hooks.retention_hours = 100_000, "hooks.retention_hours"),
            (|hooks| hooks.max_events = 0, "hooks.max_events"),
            (|hooks| hooks.max_events = 1_000_000, "hooks.max_events"),
            (|hooks| hooks.event_retention_hours = 0, "hooks.event_retention_hours"),
            (|hooks| hooks.requests_per_second = Some(0), "hooks.requests_per_second"),
        ] {
            let mut settings = Settings::default();
            assert!(settings.check().is_ok());
            change(&mut settings.hooks);
            assert!(settings.check().unwrap_err().to_string().contains(name), "{name}");
        }
        assert_eq!(Settings::default().for_hooks(), ForHooks::default());
    }
}
