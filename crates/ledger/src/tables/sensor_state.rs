//! `sensor_state`: how far each sensor is.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// How far a sensor is.
    SensorStateRow in "sensor_state"
    key 3 [tenant_id, workspace_id, sensor_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The sensor.
        sensor_id: Arc<str>,
        /// Where it goes on.
        cursor: Option<Arc<str>>,
        /// When it was last evaluated.
        last_evaluation_at: Option<i64>,
        /// The id of that evaluation.
        last_eval_id: Option<Arc<str>>,
        /// What became of it, a JSON object.
        status: Arc<str>,
        /// How often its cursor was moved.
        state_version: u32,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
