//! `sensor_evals`: evaluations of sensors.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// An evaluation.
    SensorEvalRow in "sensor_evals"
    key 3 [tenant_id, workspace_id, eval_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The evaluation.
        eval_id: Arc<str>,
        /// The sensor.
        sensor_id: Arc<str>,
        /// The cursor before it.
        cursor_before: Option<Arc<str>>,
        /// The cursor after it.
        cursor_after: Option<Arc<str>>,
        /// The version of the state that it started from.
        expected_state_version: Option<u32>,
        /// What caused it, a JSON object.
        trigger_source: Arc<str>,
        /// The runs that it requested, a JSON list.
        run_requests: Option<Arc<str>>,
        /// What became of it, a JSON object.
        status: Arc<str>,
        /// When.
        evaluated_at: i64,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
