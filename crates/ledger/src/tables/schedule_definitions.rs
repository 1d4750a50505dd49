//! `schedule_definitions`: schedules as they were last defined.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A schedule.
    ScheduleDefinitionRow in "schedule_definitions"
    key 3 [tenant_id, workspace_id, schedule_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The schedule.
        schedule_id: Arc<str>,
        /// When it ticks.
        cron_expression: Arc<str>,
        /// In which zone.
        timezone: Arc<str>,
        /// How far back missed ticks are made up for.
        catchup_window_minutes: u32,
        /// What its runs make, a JSON list.
        asset_selection: Option<Arc<str>>,
        /// The version of the code.
        code_version: Option<Arc<str>>,
        /// How many missed ticks at most.
        max_catchup_ticks: u32,
        /// Whether it ticks.
        enabled: bool,
        /// When it was first defined.
        created_at: i64,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
