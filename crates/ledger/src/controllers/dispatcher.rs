//! `dispatcher`: a pending dispatch is started. Started now or started before, it is acknowledged.

use super::action::{Action, Enqueue, Outside};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{LENIENT_LAG_MS, MAX_ACTIONS};
use crate::fold::State;

/// Starts pending dispatches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dispatcher;

impl OrchestrationController for Dispatcher {
    fn name(&self) -> &'static str {
        "dispatcher"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(LENIENT_LAG_MS)
    }

    fn reconcile(&self, state: &State, _: i64, _: Freshness) -> Vec<Action> {
        let enqueue = |dispatch| Action::Outside(Outside::Enqueue(Enqueue { dispatch, repair: 0 }));
        state.pending_dispatches().take(MAX_ACTIONS).cloned().map(enqueue).collect()
    }
}
