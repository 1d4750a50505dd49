//! `ready_dispatch`: a task that may run is dispatched, as far as its pool has slots.

use std::sync::Arc;

use super::action::Action;
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{LENIENT_LAG_MS, MAX_ACTIONS};
use crate::event::{DEFAULT_QUEUE, DispatchRequested};
use crate::fold::State;
use crate::ids::{attempt_id, dispatch_id};
use crate::tables::TaskRow;

/// Dispatches ready tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadyDispatch;

impl OrchestrationController for ReadyDispatch {
    fn name(&self) -> &'static str {
        "ready_dispatch"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(LENIENT_LAG_MS)
    }

    fn reconcile(&self, state: &State, now: i64, _: Freshness) -> Vec<Action> {
        let mut actions = Vec::new();
        for pool in state.ready() {
            // Retries come first, so that a pool with many ready tasks does not starve them.
            let retries = pool.pool.map_or(0, |_| state.due_retries(pool.pool, now, pool.free_slots));
            let slots = (pool.free_slots - retries) as usize;
            for (_, name) in pool.tasks().take(slots.min(MAX_ACTIONS - actions.len())) {
                let Some(task) = state.task(&name.run_id, &name.task_key) else { continue };
                // Its acceptance was folded before its request, which is on its way.
                if state.dispatch_of(name).is_some() {
                    continue;
                }
                actions.extend(dispatch(task).map(Action::append));
            }
        }
        actions
    }
}

/// The request of the next attempt of a task.
pub(super) fn dispatch(task: &TaskRow) -> Option<DispatchRequested> {
    let attempt = task.next_attempt()?;
    let dispatch_id = dispatch_id(&task.run_id, &task.task_key, attempt);
    Some(DispatchRequested {
        run_id: Arc::clone(&task.run_id),
        task_key: Arc::clone(&task.task_key),
        attempt,
        attempt_id: attempt_id(&dispatch_id).into(),
        worker_queue: task.tag.clone().unwrap_or_else(|| DEFAULT_QUEUE.into()),
        dispatch_id: dispatch_id.into(),
    })
}
