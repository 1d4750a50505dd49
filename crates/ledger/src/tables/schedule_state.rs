//! `schedule_state`: how far each schedule is.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// How far a schedule is.
    ScheduleStateRow in "schedule_state"
    key 3 [tenant_id, workspace_id, schedule_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The schedule.
        schedule_id: Arc<str>,
        /// The last tick.
        last_scheduled_for: Option<i64>,
        /// Its id.
        last_tick_id: Option<Arc<str>>,
        /// The key of the last run.
        last_run_key: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
