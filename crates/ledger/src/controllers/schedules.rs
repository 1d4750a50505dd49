//! `schedules`: due ticks of schedules, with bounded catch-up. A new schedule makes up for
//! nothing before its creation, and one that cannot be read has one failed tick per definition, not
//! one per pass.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::schedule::Zones;

use super::action::Action;
use super::controller::OrchestrationController;
use super::freshness::Freshness;
use super::limits::{DEFAULT_CATCHUP_MS, MAX_ACTIONS, MAX_TICKS_SCANNED};
use crate::event::{RunRequested, RunSource, ScheduleTicked, TickStatus};
use crate::fold::State;
use crate::ids::run_id_of_key;
use crate::tables::ScheduleDefinitionRow;

/// Ticks schedules.
#[derive(Clone)]
pub struct Schedules {
    zones: Arc<Zones>,
    tenant_secret: Arc<[u8]>,
}

impl Schedules {
    /// With these time zones, and the secret from which run ids are derived.
    pub fn new(zones: Arc<Zones>, tenant_secret: impl Into<Arc<[u8]>>) -> Self {
        Schedules { zones, tenant_secret: tenant_secret.into() }
    }
}

impl OrchestrationController for Schedules {
    fn name(&self) -> &'static str {
        "schedules"
    }

    fn lag_limit_ms(&self) -> Option<i64> {
        None
    }

    fn reconcile(&self, state: &State, now: i64, _: Freshness) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut schedules: Vec<&ScheduleDefinitionRow> = state.schedules().collect();
        schedules.sort_by_key(|row| &row.schedule_id);
        for row in schedules {
            let compiled = row.schedule().and_then(|spec| {
                spec.map(|spec| spec.compile(&self.zones).map_err(|error| error.to_string())).transpose()
            });
            match compiled {
                Ok(None) => {}
                Ok(Some(schedule)) => {
                    let (from, to) = (catch_up_from(state, row, now), now);
                    let times = Timestamp::from_millisecond(from)
                        .and_then(|from| Ok((from, Timestamp::from_millisecond(to)?)));
                    let Ok((from, to)) = times else { continue };
                    let most = (row.max_catchup_ticks.max(1) as usize).min(MAX_ACTIONS);
                    let mut recent = VecDeque::new();
                    for occurrence in schedule.between(from, to).take(MAX_TICKS_SCANNED) {
                        if recent.len() == most {
                            recent.pop_front();
                        }
                        recent.push_back(occurrence.time);
                    }
                    actions.extend(recent.into_iter().map(|time| self.tick(state, row, time)));
                }
                Err(error) => actions.extend(unreadable(state, row, &error)),
            }
            if actions.len() >= MAX_ACTIONS {
                break;
            }
        }
        actions
    }
}

impl Schedules {
    fn tick(&self, state: &State, row: &ScheduleDefinitionRow, time: Timestamp) -> Action {
        let epoch = time.as_second();
        let tick_id: Arc<str> = format!("{}:{epoch}", row.schedule_id).into();
        let run_key: Arc<str> = format!("sched:{}:{epoch}", row.schedule_id).into();
        let selection = row.asset_selection.as_deref();
        let mut request = RunRequested {
            run_id: run_id(&self.tenant_secret, state, &run_key),
            run_key: Arc::clone(&run_key),
            request_fingerprint: "".into(),
            asset_selection: selection.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default(),
            partition_selection: None,
            trigger_source_ref: RunSource::Schedule {
                schedule_id: Arc::clone(&row.schedule_id),
                tick_id: Arc::clone(&tick_id),
            },
            labels: Default::default(),
            code_version: row.code_version.clone(),
            dag: None,
            params: None,
        };
        request.request_fingerprint = request.content_fingerprint().into();
        let mut tick = ScheduleTicked {
            schedule_id: Arc::clone(&row.schedule_id),
            scheduled_for: time,
            tick_id,
            definition_version: row.row_version.to_string().into(),
            asset_selection: request.asset_selection.clone(),
            partition_selection: None,
            status: TickStatus::Skipped { reason: "paused".into() },
            run_key: None,
            request_fingerprint: None,
        };
        if !row.enabled {
            return Action::append(tick);
        }
        tick.status = TickStatus::Triggered;
        tick.run_key = Some(run_key);
        tick.request_fingerprint = Some(Arc::clone(&request.request_fingerprint));
        Action::Append(vec![tick.into(), request.into()])
    }
}

/// The run id of a key.
pub(super) fn run_id(tenant_secret: &[u8], state: &State, run_key: &str) -> Arc<str> {
    let scope = state.scope();
    run_id_of_key(tenant_secret, &scope.tenant_id, &scope.workspace_id, run_key).into()
}

/// The time after which ticks are due.
fn catch_up_from(state: &State, row: &ScheduleDefinitionRow, now: i64) -> i64 {
    let window_ms = match row.catchup_window_minutes {
        0 => DEFAULT_CATCHUP_MS,
        minutes => i64::from(minutes) * 60_000,
    };
    let last = state.schedule_state(&row.schedule_id).and_then(|state| state.last_scheduled_for);
    last.unwrap_or(row.created_at).max(now.saturating_sub(window_ms))
}

/// One failed tick for a definition that cannot be read.
fn unreadable(state: &State, row: &ScheduleDefinitionRow, error: &str) -> Option<Action> {
    let version = row.row_version.to_string();
    let tick_id: Arc<str> = format!("{}:invalid:{version}", row.schedule_id).into();
    if state.schedule_tick(&tick_id).is_some() {
        return None;
    }
    Some(Action::append(ScheduleTicked {
        schedule_id: Arc::clone(&row.schedule_id),
        scheduled_for: Timestamp::from_millisecond(row.row_version.time_ms()).ok()?,
        tick_id,
        definition_version: version.into(),
        asset_selection: Vec::new(),
        partition_selection: None,
        status: TickStatus::Failed { error: error.into() },
        run_key: None,
        request_fingerprint: None,
    }))
}
