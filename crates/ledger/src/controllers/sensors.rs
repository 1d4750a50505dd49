//! `sensors`: polls of active sensors, at most one per interval. Two nodes that poll at once start
//! from the same version of the cursor; the fold lets one of them move it.

use std::sync::Arc;

use super::action::{Action, Outside};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, MIN_POLL_MS};
use crate::fold::State;

/// A sensor that is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensorDefinition {
    /// Its id.
    pub sensor_id: Arc<str>,
    /// Milliseconds between two polls.
    pub interval_ms: i64,
    /// Whether it is polled.
    pub is_active: bool,
}

/// One poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The sensor.
    pub sensor_id: Arc<str>,
    /// The time of the poll in Unix seconds, the same on every node.
    pub poll_epoch: i64,
    /// Where it goes on.
    pub cursor: Option<Arc<str>>,
    /// The version of its state.
    pub expected_state_version: u32,
}

/// Polls sensors.
#[derive(Clone, Debug, Default)]
pub struct Sensors {
    definitions: Vec<SensorDefinition>,
}

impl Sensors {
    /// Polls these.
    pub fn new(definitions: Vec<SensorDefinition>) -> Self {
        Sensors { definitions }
    }
}

impl OrchestrationController for Sensors {
    fn name(&self) -> &'static str {
        "sensors"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        None
    }

    fn reconcile(&self, state: &State, now: i64, _: Freshness) -> Vec<Action> {
        let mut actions = Vec::new();
        for sensor in self.definitions.iter().filter(|sensor| sensor.is_active) {
            let interval_ms = sensor.interval_ms.max(MIN_POLL_MS);
            let row = state.sensor_state(&sensor.sensor_id);
            let last = row.and_then(|row| row.last_evaluation_at);
            if last.is_some_and(|last| now.saturating_sub(last) < interval_ms) {
                continue;
            }
            actions.push(Action::Outside(Outside::EvaluateSensor(Poll {
                sensor_id: Arc::clone(&sensor.sensor_id),
                poll_epoch: now.div_euclid(interval_ms) * interval_ms / 1_000,
                cursor: row.and_then(|row| row.cursor.clone()),
                expected_state_version: row.map_or(0, |row| row.state_version),
            })));
            if actions.len() == MAX_ACTIONS {
                break;
            }
        }
        actions
    }
}
