//! `timers`: a requested timer is set, and one that is due fires. Firing removes its row, so none
//! fires in every pass.

use std::sync::Arc;

use super::action::{Action, Outside, TimerCreation};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, STRICT_LAG_MS};
use crate::event::TimerFired;
use crate::fold::State;

/// Sets and fires timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timers;

impl OrchestrationController for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(STRICT_LAG_MS)
    }

    fn reconcile(&self, state: &State, now: i64, _: Freshness) -> Vec<Action> {
        let due = state.timers().take_while(|timer| timer.fire_at <= now).map(|timer| {
            Action::append(TimerFired {
                timer_id: Arc::clone(&timer.timer_id),
                timer_type: timer.timer_type,
                run_id: timer.run_id.clone(),
                task_key: timer.task_key.clone(),
                attempt: timer.attempt,
            })
        });
        let requested = state
            .requested_timers()
            .filter(|timer| timer.fire_at > now)
            .map(|timer| Action::Outside(Outside::CreateTimer(TimerCreation { timer: timer.clone() })));
        due.take(MAX_ACTIONS).chain(requested.take(MAX_ACTIONS)).collect()
    }
}
