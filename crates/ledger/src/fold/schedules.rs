//! `schedule_definitions`, `schedule_state`, `schedule_ticks`: the newer event counts, in whatever
//! order they come.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Expiring, Shared, json, json_list};
use crate::event::{ScheduleDefinitionUpserted, ScheduleTicked};
use crate::tables::{ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow};

impl Shared {
    /// `ScheduleDefinitionUpserted`.
    pub(super) fn define_schedule(&mut self, event: &ScheduleDefinitionUpserted, at: Moment) -> bool {
        let existing = self.schedule_definitions.get(&event.schedule_id);
        if existing.is_some_and(|row| row.row_version >= at.id) {
            return false;
        }
        let row = ScheduleDefinitionRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            schedule_id: Arc::clone(&event.schedule_id),
            cron_expression: Arc::clone(&event.cron_expression),
            timezone: Arc::clone(&event.timezone),
            catchup_window_minutes: event.catchup_window_minutes,
            asset_selection: json_list(&event.asset_selection),
            code_version: event.code_version.clone(),
            max_catchup_ticks: event.max_catchup_ticks,
            enabled: event.enabled,
            created_at: existing.map_or(at.at, |row| row.created_at),
            spec: event.spec.as_ref().map(json),
            row_version: at.id,
        };
        self.schedule_definitions.put(Arc::clone(&event.schedule_id), row);
        true
    }

    /// `ScheduleTicked`: a row for the tick, and how far the schedule is.
    pub(super) fn tick_schedule(&mut self, event: &ScheduleTicked, at: Moment) -> bool {
        let existing = self.schedule_ticks.get(&event.tick_id);
        if existing.is_some_and(|row| row.row_version >= at.id) {
            return false;
        }
        let run_id = event.run_key.as_ref().and_then(|key| self.run_keys.get(key));
        let scheduled_for = event.scheduled_for.as_millisecond();
        let row = ScheduleTickRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            tick_id: Arc::clone(&event.tick_id),
            schedule_id: Arc::clone(&event.schedule_id),
            scheduled_for,
            definition_version: Arc::clone(&event.definition_version),
            asset_selection: json_list(&event.asset_selection),
            partition_selection: event.partition_selection.as_ref().map(json),
            status: json(&event.status),
            run_key: event.run_key.clone(),
            run_id: run_id.map(|row| Arc::clone(&row.run_id)),
            request_fingerprint: event.request_fingerprint.clone(),
            row_version: at.id,
        };
        if existing.is_none() {
            self.expire_later(scheduled_for, Expiring::ScheduleTick(Arc::clone(&event.tick_id)));
        }
        self.schedule_ticks.put(Arc::clone(&event.tick_id), row);
        let state = self.schedule_state.get(&event.schedule_id);
        let is_ahead = state.is_none_or(|row| row.last_scheduled_for.is_none_or(|last| scheduled_for > last));
        if is_ahead {
            let row = ScheduleStateRow {
                tenant_id: Arc::clone(&self.scope.tenant_id),
                workspace_id: Arc::clone(&self.scope.workspace_id),
                schedule_id: Arc::clone(&event.schedule_id),
                last_scheduled_for: Some(scheduled_for),
                last_tick_id: Some(Arc::clone(&event.tick_id)),
                last_run_key: event
                    .run_key
                    .clone()
                    .or_else(|| state.and_then(|row| row.last_run_key.clone())),
                row_version: at.id,
            };
            self.schedule_state.put(Arc::clone(&event.schedule_id), row);
        }
        true
    }
}
