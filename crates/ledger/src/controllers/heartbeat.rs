//! `heartbeat`: an attempt that is silent for too long, or that takes too long, is ended. One
//! without any heartbeat counts from its start, so a worker that dies at once is noticed too.

use super::action::{Action, Report};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, STRICT_LAG_MS};
use super::lost::end_of_lost;
use crate::fold::State;

/// Ends attempts that are lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heartbeat;

impl OrchestrationController for Heartbeat {
    fn name(&self) -> &'static str {
        "heartbeat"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(STRICT_LAG_MS)
    }

    fn reconcile(&self, state: &State, now: i64, freshness: Freshness) -> Vec<Action> {
        let mut lost = state.running().take_while(|(at, _)| *at <= now).take(MAX_ACTIONS).peekable();
        if lost.peek().is_some() && !freshness.allows_force_fail(now, STRICT_LAG_MS) {
            let lag_ms = freshness.lag_ms(now);
            return vec![Action::Report(Report::Stale { controller: self.name(), lag_ms })];
        }
        lost.filter_map(|(_, name)| end_of_lost(state, name, now, self.name())).map(Action::append).collect()
    }
}
