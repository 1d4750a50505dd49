//! `sensor_state`, `sensor_evals`: a poll moves the cursor only from the version that it started
//! from; a push always does.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Expiring, Shared, json};
use crate::event::{EvalStatus, SensorEvaluated};
use crate::tables::{SensorEvalRow, SensorStateRow};

impl Shared {
    /// `SensorEvaluated`.
    pub(super) fn evaluate_sensor(&mut self, event: &SensorEvaluated, at: Moment) -> bool {
        if self.sensor_evals.get(&event.eval_id).is_some() {
            return false;
        }
        let state = self.sensor_state.get(&event.sensor_id);
        let version = state.map_or(0, |row| row.state_version);
        let is_stale = event.expected_state_version.is_some_and(|expected| expected != version);
        let status = if is_stale { &EvalStatus::SkippedStaleCursor } else { &event.status };
        let status_json = json(status);
        let is_success = matches!(status, EvalStatus::Triggered | EvalStatus::NoNewData);
        let cursor = state.and_then(|row| row.cursor.clone());
        if !is_stale {
            let row = SensorStateRow {
                tenant_id: Arc::clone(&self.scope.tenant_id),
                workspace_id: Arc::clone(&self.scope.workspace_id),
                sensor_id: Arc::clone(&event.sensor_id),
                cursor: event.cursor_after.clone().filter(|_| is_success).or(cursor),
                last_evaluation_at: Some(at.at),
                last_eval_id: Some(Arc::clone(&event.eval_id)),
                status: Arc::clone(&status_json),
                state_version: version + u32::from(is_success),
                row_version: at.id,
            };
            self.sensor_state.put(Arc::clone(&event.sensor_id), row);
        }
        let row = SensorEvalRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            eval_id: Arc::clone(&event.eval_id),
            sensor_id: Arc::clone(&event.sensor_id),
            cursor_before: event.cursor_before.clone(),
            cursor_after: event.cursor_after.clone(),
            expected_state_version: event.expected_state_version,
            trigger_source: json(&event.trigger_source),
            run_requests: (!event.run_requests.is_empty()).then(|| json(&event.run_requests)),
            status: status_json,
            evaluated_at: at.at,
            row_version: at.id,
        };
        self.sensor_evals.put(Arc::clone(&event.eval_id), row);
        self.expire_later(at.at, Expiring::SensorEval(Arc::clone(&event.eval_id)));
        true
    }

    /// Whether an evaluation came too late to move the cursor.
    pub(super) fn is_stale_eval(&self, eval_id: &str) -> bool {
        let stale = json(&EvalStatus::SkippedStaleCursor);
        self.sensor_evals.get(eval_id).is_some_and(|row| row.status == stale)
    }
}
