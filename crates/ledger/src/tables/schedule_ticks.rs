//! `schedule_ticks`: every tick of every schedule.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A tick.
    ScheduleTickRow in "schedule_ticks"
    key 3 [tenant_id, workspace_id, tick_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The tick.
        tick_id: Arc<str>,
        /// The schedule.
        schedule_id: Arc<str>,
        /// Its time.
        scheduled_for: i64,
        /// The definition that it is from.
        definition_version: Arc<str>,
        /// What its run makes, a JSON list.
        asset_selection: Option<Arc<str>>,
        /// For which partitions, a JSON list.
        partition_selection: Option<Arc<str>>,
        /// What became of it, a JSON object.
        status: Arc<str>,
        /// The key of its run.
        run_key: Option<Arc<str>>,
        /// Its run.
        run_id: Option<Arc<str>>,
        /// The fingerprint of the request.
        request_fingerprint: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
