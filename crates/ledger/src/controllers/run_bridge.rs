//! `run_bridge`: a run that was requested by key is planned and begun. The request is in the index
//! itself, under its key and with its fingerprint.

use std::sync::Arc;

use super::action::{Action, Outside};
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{MAX_ACTIONS, STRICT_LAG_MS};
use crate::event::{EventData, PlanCreated, PlannedTask, RunRequested, RunSource, RunTriggered, Trigger};
use crate::fold::State;

/// Begins requested runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunBridge;

impl OrchestrationController for RunBridge {
    fn name(&self) -> &'static str {
        "run_bridge"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        Some(STRICT_LAG_MS)
    }

    fn reconcile(&self, state: &State, _: i64, _: Freshness) -> Vec<Action> {
        let requests = state.requested_runs().take(MAX_ACTIONS);
        let read = requests.filter_map(|row| serde_json::from_str(row.request.as_deref()?).ok());
        read.map(|request| Action::Outside(Outside::PlanRun(Box::new(request)))).collect()
    }
}

/// The beginning of a requested run with its plan: two events that are appended together.
pub fn bridged(request: &RunRequested, plan_id: &Arc<str>, tasks: Vec<PlannedTask>) -> Vec<EventData> {
    let trigger = match &request.trigger_source_ref {
        RunSource::Schedule { schedule_id, .. } => Trigger::Cron { schedule_id: Arc::clone(schedule_id) },
        RunSource::Sensor { sensor_id, .. } => {
            Trigger::Sensor { sensor_id: Arc::clone(sensor_id), cursor: None }
        }
        RunSource::Backfill { backfill_id, chunk_id } => {
            Trigger::Backfill { backfill_id: Arc::clone(backfill_id), chunk_id: Arc::clone(chunk_id) }
        }
        RunSource::Manual { user_id, .. } => Trigger::Manual { user_id: Arc::clone(user_id) },
    };
    let triggered = RunTriggered {
        run_id: Arc::clone(&request.run_id),
        plan_id: Arc::clone(plan_id),
        trigger,
        root_assets: request.asset_selection.clone(),
        run_key: Some(Arc::clone(&request.run_key)),
        labels: request.labels.clone(),
        code_version: request.code_version.clone(),
        dag: request.dag.clone(),
        params: request.params.clone(),
        parent_run_id: None,
    };
    let planned = PlanCreated { run_id: Arc::clone(&request.run_id), plan_id: Arc::clone(plan_id), tasks };
    vec![triggered.into(), planned.into()]
}
