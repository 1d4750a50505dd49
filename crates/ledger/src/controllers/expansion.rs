//! `expansion`: the list of a task that is ready is made.

use super::action::{Action, Outside};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{LENIENT_LAG_MS, MAX_ACTIONS};
use crate::fold::State;

/// Expands tasks over their lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expansion;

impl OrchestrationController for Expansion {
    fn name(&self) -> &'static str {
        "expansion"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(LENIENT_LAG_MS)
    }

    fn reconcile(&self, state: &State, _: i64, _: Freshness) -> Vec<Action> {
        let expand = |(_, name): &crate::fold::Due| {
            let attempt = state.task(&name.run_id, &name.task_key)?.next_attempt()?;
            Some(Action::Outside(Outside::Expand { task: name.clone(), attempt }))
        };
        state.expansions().take(MAX_ACTIONS).filter_map(expand).collect()
    }
}
