//! Everything of a scope that does not belong to one run: tables, what expires, and indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::index::Indexes;
use super::moment::Moment;
use super::run_slots::OpenRuns;
use super::table::Table;
use crate::tables::{
    BackfillChunkRow, BackfillRow, IdempotencyKeyRow, OutboxRow, PartitionRow, PoolRow, RunKeyConflictRow,
    RunKeyRow, ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow, SensorEvalRow, SensorStateRow,
    TimerRow,
};

/// A name within the scope.
pub(super) type Name = Arc<str>;
/// Names in the order of a time.
pub(super) type ByTime = BTreeSet<(i64, Name)>;

/// A tenant and its workspace, which is our namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant.
    pub tenant_id: Arc<str>,
    /// The workspace.
    pub workspace_id: Arc<str>,
}

impl Scope {
    /// The scope of a tenant and a workspace.
    pub fn new(tenant_id: impl Into<Arc<str>>, workspace_id: impl Into<Arc<str>>) -> Self {
        Scope { tenant_id: tenant_id.into(), workspace_id: workspace_id.into() }
    }
}

/// A row that is removed after a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expiring {
    IdempotencyKey(Name),
    ScheduleTick(Name),
    SensorEval(Name),
    RunKey(Name),
    RunKeyConflict(Name, Name),
    Backfill(Name),
}

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the key of an applied event is remembered.
const IDEMPOTENCY_KEY_DAYS: i64 = 30;
/// How long an evaluation of a sensor is kept.
const SENSOR_EVAL_DAYS: i64 = 30;
/// How long ticks, run keys and their conflicts are kept, and backfills after their end, and how long a run that ended stays in
/// the active state at most.
pub(super) const RUN_DAYS: i64 = 90;

/// A time so many days later.
pub(super) const fn days_after(at: i64, days: i64) -> i64 {
    at.saturating_add(days * DAY_MS)
}

/// All tables of a scope but those of its runs.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) scope: Scope,
    pub(super) indexes: Indexes,
    pub(super) outbox: Table<Name, OutboxRow>,
    /// Dispatches that were not accepted yet, by request time.
    pub(super) outbox_pending: ByTime,
    /// Dispatches that were accepted, by the time of their last acceptance.
    pub(super) outbox_accepted: ByTime,
    pub(super) timers: Table<Name, TimerRow>,
    /// Timers that were not accepted yet.
    pub(super) timers_requested: ByTime,
    /// All timers, by the time at which they fire.
    pub(super) timers_by_time: ByTime,
    pub(super) keys: Table<Name, IdempotencyKeyRow>,
    pub(super) schedule_definitions: Table<Name, ScheduleDefinitionRow>,
    pub(super) schedule_state: Table<Name, ScheduleStateRow>,
    pub(super) schedule_ticks: Table<Name, ScheduleTickRow>,
    pub(super) sensor_state: Table<Name, SensorStateRow>,
    pub(super) sensor_evals: Table<Name, SensorEvalRow>,
    pub(super) run_keys: Table<Name, RunKeyRow>,
    pub(super) run_key_conflicts: Table<(Name, Name), RunKeyConflictRow>,
    /// Run keys whose run does not exist yet.
    pub(super) unbridged: ByTime,
    pub(super) backfills: Table<Name, BackfillRow>,
    pub(super) backfill_chunks: Table<Name, BackfillChunkRow>,
    /// Backfills that have not ended.
    pub(super) open_backfills: BTreeSet<Name>,
    /// Chunks that have not ended, by backfill.
    pub(super) open_chunks: BTreeMap<Name, BTreeSet<Name>>,
    pub(super) chunk_of_run_key: HashMap<Name, Name>,
    pub(super) partitions: Table<(Name, Name), PartitionRow>,
    pub(super) pools: Table<Name, PoolRow>,
    /// Runs that have not ended, by DAG.
    pub(super) open_runs: HashMap<Name, OpenRuns>,
    /// Runs that ended, by the time of their end.
    pub(super) finished_runs: ByTime,
    pub(super) expiring: BTreeSet<(i64, Expiring)>,
}

impl Shared {
    pub(super) fn new(scope: Scope) -> Self {
        Shared {
            scope,
            indexes: Indexes::default(),
            outbox: Table::default(),
            outbox_pending: ByTime::new(),
            outbox_accepted: ByTime::new(),
            timers: Table::default(),
            timers_requested: ByTime::new(),
            timers_by_time: ByTime::new(),
            keys: Table::default(),
            schedule_definitions: Table::default(),
            schedule_state: Table::default(),
            schedule_ticks: Table::default(),
            sensor_state: Table::default(),
            sensor_evals: Table::default(),
            run_keys: Table::default(),
            run_key_conflicts: Table::default(),
            unbridged: ByTime::new(),
            backfills: Table::default(),
            backfill_chunks: Table::default(),
            open_backfills: BTreeSet::new(),
            open_chunks: BTreeMap::new(),
            chunk_of_run_key: HashMap::new(),
            partitions: Table::default(),
            pools: Table::default(),
            open_runs: HashMap::new(),
            finished_runs: ByTime::new(),
            expiring: BTreeSet::new(),
        }
    }

    /// Lists a row for removal, counted from a time in it.
    pub(super) fn expire_later(&mut self, since: i64, row: Expiring) {
        let days = match row {
            Expiring::IdempotencyKey(_) => IDEMPOTENCY_KEY_DAYS,
            Expiring::SensorEval(_) => SENSOR_EVAL_DAYS,
            Expiring::ScheduleTick(_)
            | Expiring::RunKey(_)
            | Expiring::RunKeyConflict(..)
            | Expiring::Backfill(_) => RUN_DAYS,
        };
        self.expiring.insert((days_after(since, days), row));
    }

    /// Removes what is expired at the time of an event. It depends on ids alone, so every split of
    /// a log expires alike.
    pub(super) fn expire(&mut self, now: i64) {
        while self.expiring.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, row)) = self.expiring.pop_first() else { return };
            match row {
                Expiring::IdempotencyKey(key) => drop(self.keys.remove(&key)),
                Expiring::ScheduleTick(tick) => drop(self.schedule_ticks.remove(&tick)),
                Expiring::SensorEval(eval) => drop(self.sensor_evals.remove(&eval)),
                Expiring::RunKey(key) => {
                    if let Some(row) = self.run_keys.remove(&key) {
                        self.unbridged.remove(&(row.created_at, key));
                    }
                }
                Expiring::RunKeyConflict(key, fingerprint) => {
                    self.run_key_conflicts.remove(&(key, fingerprint));
                }
                Expiring::Backfill(backfill_id) => self.expire_backfill(&backfill_id, now),
            }
        }
    }

    /// Records the key of an event that was applied.
    pub(super) fn record_key(&mut self, key: &Name, event_type: &Name, run_id: Option<&Name>, at: Moment) {
        let row = IdempotencyKeyRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            idempotency_key: Arc::clone(key),
            event_id: at.id,
            event_type: Arc::clone(event_type),
            recorded_at: at.at,
            run_id: run_id.cloned(),
            row_version: at.id,
        };
        self.keys.put(Arc::clone(key), row);
        self.expire_later(at.at, Expiring::IdempotencyKey(Arc::clone(key)));
    }
}

/// JSON of a value that has text keys only.
pub(super) fn json(value: &impl serde::Serialize) -> Name {
    serde_json::to_string(value).expect("the values of events have text keys only").into()
}

/// JSON of a list; nothing for an empty one.
pub(super) fn json_list(list: &[Name]) -> Option<Name> {
    (!list.is_empty()).then(|| json(&list))
}
