//! `schedule_definitions`: schedules as they were last defined.

use std::sync::Arc;

use segno_actions::schedule::ScheduleSpec;

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
        /// When it ticks; empty if `spec` says so.
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
        /// When it ticks, a JSON object, if that is more than a cron expression in a zone. An addition.
        spec: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}

impl ScheduleDefinitionRow {
    /// When it ticks; nothing for a schedule that has ended.
    ///
    /// # Errors
    /// What is wrong with the stored schedule.
    pub fn schedule(&self) -> Result<Option<ScheduleSpec>, String> {
        let Some(json) = &self.spec else {
            return Ok(Some(ScheduleSpec::cron(&*self.cron_expression).timezone(&*self.timezone)));
        };
        let spec: ScheduleSpec = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let has_times = spec.cron_expr.is_some() || spec.every.is_some() || spec.at.is_some();
        Ok(has_times.then_some(spec))
    }
}
