//! The state of a scope: what all tables say, in memory. Runs that ended leave it; what happened to
//! them does not matter to what follows.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::live_run::LiveRun;
use super::moment::Moment;
use super::shared::{Expiring, Name, RUN_DAYS, Scope, Shared, days_after};
use super::table::sorted_changes;
use crate::event::{Envelope, EventData};
use crate::ids::Ulid;
use crate::tables::{Changes, DepRow, OutboxRow, Row, Rows, RunRow, RunState, TaskRow, TaskState};

/// The state of a scope.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) runs: HashMap<Name, LiveRun>,
    pub(super) shared: Shared,
    /// Runs with changes.
    pub(super) touched: Vec<Name>,
    watermark: Option<Ulid>,
    gone_runs: BTreeSet<<RunRow as Row>::Key>,
    gone_tasks: BTreeSet<<TaskRow as Row>::Key>,
    gone_edges: BTreeSet<<DepRow as Row>::Key>,
}

/// A run that changed, and its tasks that did.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedRun {
    /// The run as it is now.
    pub run: RunRow,
    /// The tasks that changed, by key.
    pub tasks: Vec<TaskRow>,
}

/// A run that has failed, or whose tasks have.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRun {
    /// The run as it is now.
    pub run: RunRow,
    /// The tasks that have failed for good.
    pub tasks: Vec<TaskRow>,
    /// Of a run that has failed, the task that did so first.
    pub first: Option<TaskRow>,
}

impl State {
    /// The state before the first event.
    pub fn new(scope: Scope) -> Self {
        State {
            runs: HashMap::new(),
            shared: Shared::new(scope),
            touched: Vec::new(),
            watermark: None,
            gone_runs: BTreeSet::new(),
            gone_tasks: BTreeSet::new(),
            gone_edges: BTreeSet::new(),
        }
    }

    /// The state that stored rows describe, after the event at the watermark.
    pub fn load(scope: Scope, rows: Rows, watermark: Option<Ulid>) -> Self {
        let mut state = State::new(scope);
        state.watermark = watermark;
        state.load_shared(&rows);
        state.restore(rows);
        state
    }

    /// The scope.
    pub fn scope(&self) -> &Scope {
        &self.shared.scope
    }

    /// The largest id that was folded.
    pub fn watermark(&self) -> Option<Ulid> {
        self.watermark
    }

    /// Takes in the rows of a run that had left: its run, tasks, edges, dispatches and timers. They
    /// count as stored.
    pub fn restore(&mut self, rows: Rows) {
        let mut restored = BTreeSet::new();
        for row in rows.runs {
            let run_id = Arc::clone(&row.run_id);
            restored.insert(Arc::clone(&run_id));
            self.run_entry(&run_id).load_row(row);
        }
        for row in rows.tasks {
            let run_id = Arc::clone(&row.run_id);
            restored.insert(Arc::clone(&run_id));
            self.run_entry(&run_id).load_task(row);
        }
        for row in rows.dep_satisfaction {
            if let Some(run) = self.runs.get_mut(&row.run_id) {
                run.load_edge(row);
            }
        }
        for row in rows.dispatch_outbox {
            self.load_dispatch(row);
        }
        for row in rows.timers {
            if let (Some(run_id), Some(task_key)) = (&row.run_id, &row.task_key)
                && let Some(run) = self.runs.get_mut(run_id)
                && let Some(number) = run.number(task_key)
            {
                run.task_memory(number).timers.push(Arc::clone(&row.timer_id));
            }
            self.shared.timers.load(Arc::clone(&row.timer_id), row.clone());
            self.shared.list_timer(&row);
        }
        let mut dags = BTreeSet::new();
        for run_id in restored {
            if let Some(run) = self.runs.get_mut(&run_id) {
                dags.extend(self.shared.follow_slot(run));
                run.settle_places(&mut self.shared);
                run.known_state = run.row.as_ref().map(|row| row.state);
                self.shared.list_end(run);
            }
        }
        dags.iter().for_each(|dag| self.admit_runs(dag));
    }

    fn run_entry(&mut self, run_id: &Name) -> &mut LiveRun {
        self.runs.entry(Arc::clone(run_id)).or_insert_with(|| LiveRun::new(Arc::clone(run_id)))
    }

    fn load_dispatch(&mut self, row: OutboxRow) {
        if let Some(run) = self.runs.get_mut(&row.run_id)
            && let Some(number) = run.number(&row.task_key)
        {
            run.task_memory(number).dispatch = Some(Arc::clone(&row.dispatch_id));
        }
        self.shared.list_dispatch(&row);
        self.shared.outbox.load(Arc::clone(&row.dispatch_id), row);
    }

    fn load_shared(&mut self, rows: &Rows) {
        let shared = &mut self.shared;
        macro_rules! load {
            ($($field:ident from $rows:ident by $name:ident;)+) => {
                $(for row in &rows.$rows {
                    shared.$field.load(Arc::clone(&row.$name), row.clone());
                })+
            };
        }
        load! {
            keys from idempotency_keys by idempotency_key;
            schedule_definitions from schedule_definitions by schedule_id;
            schedule_state from schedule_state by schedule_id;
            schedule_ticks from schedule_ticks by tick_id;
            sensor_state from sensor_state by sensor_id;
            sensor_evals from sensor_evals by eval_id;
            run_keys from run_key_index by run_key;
            backfills from backfills by backfill_id;
            backfill_chunks from backfill_chunks by chunk_id;
            pools from pools by pool;
        }
        for row in &rows.idempotency_keys {
            shared.expire_later(row.recorded_at, Expiring::IdempotencyKey(Arc::clone(&row.idempotency_key)));
        }
        for row in &rows.schedule_ticks {
            shared.expire_later(row.scheduled_for, Expiring::ScheduleTick(Arc::clone(&row.tick_id)));
        }
        for row in &rows.sensor_evals {
            shared.expire_later(row.evaluated_at, Expiring::SensorEval(Arc::clone(&row.eval_id)));
        }
        for row in &rows.run_key_index {
            shared.expire_later(row.created_at, Expiring::RunKey(Arc::clone(&row.run_key)));
            if row.request.is_some() {
                shared.unbridged.insert((row.created_at, Arc::clone(&row.run_key)));
            }
        }
        for row in &rows.run_key_conflicts {
            let name = (Arc::clone(&row.run_key), Arc::clone(&row.conflicting_fingerprint));
            shared.expire_later(row.detected_at, Expiring::RunKeyConflict(name.0.clone(), name.1.clone()));
            shared.run_key_conflicts.load(name, row.clone());
        }
        for row in &rows.backfills {
            if !row.state.is_final() {
                shared.open_backfills.insert(Arc::clone(&row.backfill_id));
            }
        }
        for row in &rows.backfill_chunks {
            shared.index_chunk(row);
        }
        for row in &rows.backfills {
            shared.list_ended_backfill(&row.backfill_id);
        }
        for row in &rows.partition_status {
            let name = (Arc::clone(&row.asset_key), Arc::clone(&row.partition_key));
            shared.partitions.load(name, row.clone());
        }
    }

    /// An event with this id is folded next: what expires by its time goes first.
    pub(super) fn advance(&mut self, id: Ulid) {
        self.watermark = Some(id);
        let now = Moment::of(id).at;
        self.shared.expire(now);
        while self.shared.finished_runs.first().is_some_and(|(at, _)| days_after(*at, RUN_DAYS) <= now) {
            let Some((_, run_id)) = self.shared.finished_runs.pop_first() else { return };
            self.remove_run(&run_id);
        }
    }

    /// A chunk was planned whose run may exist already.
    pub(super) fn let_chunk_follow(&mut self, run_key: &Name, at: Moment) {
        let Some(row) = self.shared.run_keys.get(run_key) else { return };
        let run_id = Arc::clone(&row.run_id);
        if let Some(run) = self.runs.get(&run_id).and_then(|run| run.row.as_ref()) {
            let state = run.state;
            self.shared.follow_run(run_key, &run_id, state, at);
        }
    }

    /// The runs that have failed since changes were taken, and those with tasks that have.
    pub fn failed_runs(&self) -> Vec<FailedRun> {
        let failed = self.touched.iter().filter_map(|run_id| {
            let run = self.runs.get(run_id).filter(|run| run.is_listed)?;
            let rows = run.changed_tasks.iter().map(|number| &run.task(*number).row);
            let tasks: Vec<TaskRow> = rows.filter(|row| row.state == TaskState::Failed).cloned().collect();
            let row = run.row.as_ref()?;
            let has_failed = run.mark.changed && row.state == RunState::Failed;
            (has_failed || !tasks.is_empty()).then(|| FailedRun {
                run: row.clone(),
                tasks,
                first: first_failed(run, row),
            })
        });
        failed.collect()
    }

    /// The runs of the active state that have failed, with all of their tasks that have.
    pub fn all_failed(&self) -> Vec<FailedRun> {
        let failed = self.runs.values().filter_map(|run| {
            let row = run.row.as_ref()?;
            if row.tasks_failed == 0 && row.state != RunState::Failed {
                return None;
            }
            let rows = run.tasks.iter().map(|task| &task.row);
            let tasks = rows.filter(|row| row.state == TaskState::Failed).cloned().collect();
            Some(FailedRun { run: row.clone(), tasks, first: first_failed(run, row) })
        });
        failed.collect()
    }

    /// The runs that changed since changes were taken, with their tasks that did, by key.
    pub fn changed_runs(&self) -> Vec<ChangedRun> {
        let changed = self.touched.iter().filter_map(|run_id| {
            let run = self.runs.get(run_id).filter(|run| run.is_listed)?;
            let tasks = run.changed_tasks.iter().map(|number| run.task(*number).row.clone());
            let mut tasks: Vec<TaskRow> = tasks.collect();
            tasks.sort_by(|a, b| a.task_key.cmp(&b.task_key));
            Some(ChangedRun { run: run.row.clone()?, tasks })
        });
        changed.collect()
    }

    /// What changed since the last call: sorted by key, each row once in its last version.
    pub fn take_changes(&mut self) -> Changes {
        let (mut runs, mut tasks, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        for run_id in self.touched.drain(..) {
            // A run that was removed and came back is listed twice.
            let Some(run) = self.runs.get_mut(&run_id).filter(|run| run.is_listed) else { continue };
            run.is_listed = false;
            if run.mark.changed
                && let Some(row) = &run.row
            {
                runs.push(row.clone());
                run.mark.take();
            }
            for number in std::mem::take(&mut run.changed_tasks) {
                let task = &mut run.tasks[number as usize];
                task.mark.take();
                tasks.push(task.row.clone());
            }
            for number in std::mem::take(&mut run.changed_edges) {
                let edge = &mut run.edges[number as usize];
                edge.mark.take();
                edges.push(edge.row.clone());
            }
        }
        let shared = &mut self.shared;
        Changes {
            runs: sorted_changes(runs, std::mem::take(&mut self.gone_runs)),
            tasks: sorted_changes(tasks, std::mem::take(&mut self.gone_tasks)),
            dep_satisfaction: sorted_changes(edges, std::mem::take(&mut self.gone_edges)),
            timers: shared.timers.take_changes(),
            dispatch_outbox: shared.outbox.take_changes(),
            schedule_definitions: shared.schedule_definitions.take_changes(),
            schedule_state: shared.schedule_state.take_changes(),
            schedule_ticks: shared.schedule_ticks.take_changes(),
            sensor_state: shared.sensor_state.take_changes(),
            sensor_evals: shared.sensor_evals.take_changes(),
            run_key_index: shared.run_keys.take_changes(),
            run_key_conflicts: shared.run_key_conflicts.take_changes(),
            idempotency_keys: shared.keys.take_changes(),
            backfills: shared.backfills.take_changes(),
            backfill_chunks: shared.backfill_chunks.take_changes(),
            partition_status: shared.partitions.take_changes(),
            pools: shared.pools.take_changes(),
        }
    }

    /// All rows, sorted by key.
    pub fn rows(&self) -> Rows {
        let shared = &self.shared;
        let mut rows = Rows {
            runs: self.runs.values().filter_map(|run| run.row.clone()).collect(),
            tasks: self.runs.values().flat_map(|run| &run.tasks).map(|task| task.row.clone()).collect(),
            dep_satisfaction: self
                .runs
                .values()
                .flat_map(|run| &run.edges)
                .map(|edge| edge.row.clone())
                .collect(),
            timers: shared.timers.iter().cloned().collect(),
            dispatch_outbox: shared.outbox.iter().cloned().collect(),
            schedule_definitions: shared.schedule_definitions.iter().cloned().collect(),
            schedule_state: shared.schedule_state.iter().cloned().collect(),
            schedule_ticks: shared.schedule_ticks.iter().cloned().collect(),
            sensor_state: shared.sensor_state.iter().cloned().collect(),
            sensor_evals: shared.sensor_evals.iter().cloned().collect(),
            run_key_index: shared.run_keys.iter().cloned().collect(),
            run_key_conflicts: shared.run_key_conflicts.iter().cloned().collect(),
            idempotency_keys: shared.keys.iter().cloned().collect(),
            backfills: shared.backfills.iter().cloned().collect(),
            backfill_chunks: shared.backfill_chunks.iter().cloned().collect(),
            partition_status: shared.partitions.iter().cloned().collect(),
            pools: shared.pools.iter().cloned().collect(),
        };
        rows.sort();
        rows
    }

    /// The rows of a run that ended, which leaves the active state for its day partition. Rows that
    /// files have become tombstones of the next changes. Nothing for a run that has not ended.
    pub fn retire_run(&mut self, run_id: &str) -> Option<Rows> {
        let row = self.runs.get(run_id)?.row.as_ref()?;
        if !row.state.is_final() {
            return None;
        }
        let run = self.remove_run(run_id)?;
        let mut rows = Rows {
            runs: run.row.into_iter().collect(),
            tasks: run.tasks.into_iter().map(|task| task.row).collect(),
            dep_satisfaction: run.edges.into_iter().map(|edge| edge.row).collect(),
            ..Rows::default()
        };
        rows.sort();
        Some(rows)
    }

    /// Runs of these events that are not in the state although the events may change them: they
    /// ended and left, and have to be restored before the events are folded.
    pub fn absent_runs(&self, events: &[Envelope]) -> BTreeSet<Arc<str>> {
        let reopened = |envelope: &Envelope| match envelope.event()? {
            EventData::TaskCleared(event) => Some(Arc::clone(&event.run_id)),
            EventData::TaskMarked(event) => Some(Arc::clone(&event.run_id)),
            _ => None,
        };
        events.iter().filter_map(reopened).filter(|run_id| !self.runs.contains_key(run_id)).collect()
    }

    /// Removes a run with everything that belongs to it. Its keys stay.
    pub(super) fn remove_run(&mut self, run_id: &str) -> Option<LiveRun> {
        let mut run = self.runs.remove(run_id)?;
        if let Some(dag) = self.shared.leave_slot(&mut run) {
            self.admit_runs(&dag);
        }
        run.leave_places(&mut self.shared);
        for number in 0..run.tasks.len() as u32 {
            run.release(number, &mut self.shared);
        }
        if let Some(at) = run.listed_end.take() {
            self.shared.finished_runs.remove(&(at, Arc::clone(&run.run_id)));
        }
        if run.mark.published
            && let Some(row) = &run.row
        {
            self.gone_runs.insert(row.key());
        }
        let published = run.tasks.iter().filter(|task| task.mark.published);
        self.gone_tasks.extend(published.map(|task| task.row.key()));
        let published = run.edges.iter().filter(|edge| edge.mark.published);
        self.gone_edges.extend(published.map(|edge| edge.row.key()));
        Some(run)
    }
}

impl Shared {
    /// The state of a run may have changed: indexes and chunks follow.
    pub(super) fn follow_state(&mut self, run: &mut LiveRun, at: Moment) {
        let Some(row) = &run.row else { return };
        let is_news = run.known_state != Some(row.state);
        run.known_state = Some(row.state);
        if is_news && let Some(run_key) = &row.run_key {
            self.follow_run(run_key, &run.run_id, row.state, at);
        }
        // A run may end again in the state in which it had ended, at another time.
        self.list_end(run);
    }

    /// Lists a run that ended, and one that runs again no longer.
    fn list_end(&mut self, run: &mut LiveRun) {
        let ended = run.row.as_ref().filter(|row| row.state.is_final());
        let ended_at = ended.map(|row| row.completed_at.unwrap_or(row.triggered_at));
        if run.listed_end == ended_at {
            return;
        }
        if let Some(former) = std::mem::replace(&mut run.listed_end, ended_at) {
            self.finished_runs.remove(&(former, Arc::clone(&run.run_id)));
        }
        if let Some(at) = ended_at {
            self.finished_runs.insert((at, Arc::clone(&run.run_id)));
        }
    }
}

/// The task of a failed run that has failed first.
fn first_failed(run: &LiveRun, row: &RunRow) -> Option<TaskRow> {
    if row.state != RunState::Failed {
        return None;
    }
    let failed = run.tasks.iter().map(|task| &task.row).filter(|row| row.state == TaskState::Failed);
    failed.min_by_key(|row| (row.completed_at, Arc::clone(&row.task_key))).cloned()
}
