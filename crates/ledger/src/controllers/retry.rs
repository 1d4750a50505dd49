//! `retry`: a wait between two attempts that is over. The deadline is in the task's row, so a lost
//! timer delays nothing.

use super::action::Action;
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, STRICT_LAG_MS};
use super::ready_dispatch::dispatch;
use crate::fold::State;

/// Dispatches next attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retry;

impl OrchestrationController for Retry {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(STRICT_LAG_MS)
    }

    fn reconcile(&self, state: &State, now: i64, _: Freshness) -> Vec<Action> {
        retries_due(state, now)
    }
}

/// The next attempts whose time had come at this time, as far as pools have slots.
pub(super) fn retries_due(state: &State, by: i64) -> Vec<Action> {
    let mut actions = Vec::new();
    for pool in state.retries() {
        let due = pool.tasks().take_while(|(at, _)| *at <= by);
        for (_, name) in due.take((pool.free_slots as usize).min(MAX_ACTIONS - actions.len())) {
            let task = state.task(&name.run_id, &name.task_key);
            actions.extend(task.and_then(dispatch).map(Action::append));
        }
    }
    actions
}
