//! `anti_entropy`: every state in which a task waits has a second producer of its wake-up. What the
//! other controllers should have done long ago and have not is done here. Only ending an attempt
//! can be wrong in newer tables; it needs a complete look at the log, and is reported where that is
//! missing.

use super::action::{Action, Enqueue, Outside, Report};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{LENIENT_LAG_MS, MAX_ACTIONS, STUCK_DISPATCH_MS, STUCK_LOST_MS, STUCK_READY_MS};
use super::lost::end_of_lost;
use super::ready_dispatch::dispatch;
use super::retry::retries_due;
use crate::fold::State;

/// Repairs what is stuck.
#[derive(Clone, Copy, Debug, Default)]
pub struct AntiEntropy;

impl OrchestrationController for AntiEntropy {
    fn name(&self) -> &'static str {
        "anti_entropy"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(LENIENT_LAG_MS)
    }

    fn reconcile(&self, state: &State, now: i64, freshness: Freshness) -> Vec<Action> {
        let mut actions = stuck_ready(state, now - STUCK_READY_MS);
        actions.extend(retries_due(state, now - STUCK_READY_MS));
        actions.extend(stuck_dispatches(state, now - STUCK_DISPATCH_MS));
        actions.extend(self.lost(
            state,
            now - STUCK_LOST_MS,
            freshness.allows_force_fail(now, LENIENT_LAG_MS),
        ));
        actions
    }
}

impl AntiEntropy {
    fn lost(&self, state: &State, by: i64, may_end: bool) -> Vec<Action> {
        let lost = state.running().take_while(|(at, _)| *at <= by).take(MAX_ACTIONS);
        let end = |name| end_of_lost(state, name, by, self.name()).map(Action::append);
        let report = |name: &crate::fold::TaskRef| {
            Action::Report(Report::Suppressed {
                controller: self.name(),
                repair: "end a lost attempt",
                task: name.clone(),
            })
        };
        lost.filter_map(|(_, name)| if may_end { end(name) } else { Some(report(name)) }).collect()
    }
}

/// Tasks that are ready for too long, whatever the outbox says of them.
fn stuck_ready(state: &State, by: i64) -> Vec<Action> {
    let mut actions = Vec::new();
    for pool in state.ready() {
        let stuck = pool.tasks().take_while(|(at, _)| *at <= by);
        for (_, name) in stuck.take((pool.free_slots as usize).min(MAX_ACTIONS - actions.len())) {
            let task = state.task(&name.run_id, &name.task_key);
            actions.extend(task.and_then(dispatch).map(Action::append));
        }
    }
    actions
}

/// Dispatches that no worker took up are started again, in their own queue. Every acceptance is
/// counted and refreshes the age, so a dispatch is repaired once in this time and not in every
/// pass.
fn stuck_dispatches(state: &State, by: i64) -> Vec<Action> {
    let accepted_at = |row: &crate::tables::OutboxRow| row.enqueued_at.unwrap_or(row.created_at);
    let stuck = state.accepted_dispatches().take_while(|row| accepted_at(row) <= by);
    let repair = |row: &crate::tables::OutboxRow| {
        let repair = row.repairs.saturating_add(1);
        Action::Outside(Outside::Enqueue(Enqueue { dispatch: row.clone(), repair }))
    };
    stuck.take(MAX_ACTIONS).map(repair).collect()
}
