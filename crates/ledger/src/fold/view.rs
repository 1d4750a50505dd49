//! What readers and controllers ask of a state. Everything here costs as much as it returns.

use std::sync::Arc;

use super::index::{Due, TaskRef};
use super::shared::Name;
use super::state::State;
use crate::tables::{
    BackfillChunkRow, BackfillRow, DepRow, OutboxRow, PartitionRow, PoolRow, RunKeyRow, RunRow,
    ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow, SensorStateRow, TaskRow, TimerRow,
};

/// Tasks of a pool, or without one, that may be dispatched.
#[derive(Clone, Copy, Debug)]
pub struct PoolReady<'a> {
    /// The pool.
    pub pool: Option<&'a Arc<str>>,
    /// Its free slots.
    pub free_slots: u32,
    tasks: &'a std::collections::BTreeSet<Due>,
}

impl<'a> PoolReady<'a> {
    /// The tasks and the times since or from which they may be dispatched, earliest first.
    pub fn tasks(&self) -> impl Iterator<Item = &'a Due> + use<'a> {
        self.tasks.iter()
    }
}

impl State {
    /// A run of the active state.
    pub fn run(&self, run_id: &str) -> Option<&RunRow> {
        self.runs.get(run_id)?.row.as_ref()
    }

    /// All runs of the active state, in no order.
    pub fn runs(&self) -> impl Iterator<Item = &RunRow> {
        self.runs.values().filter_map(|run| run.row.as_ref())
    }

    /// A task.
    pub fn task(&self, run_id: &str, task_key: &str) -> Option<&TaskRow> {
        let run = self.runs.get(run_id)?;
        Some(&run.task(run.number(task_key)?).row)
    }

    /// The tasks of a run, in the order of its plan.
    pub fn tasks_of(&self, run_id: &str) -> impl Iterator<Item = &TaskRow> {
        self.runs.get(run_id).into_iter().flat_map(|run| &run.tasks).map(|task| &task.row)
    }

    /// The edges of a run.
    pub fn edges_of(&self, run_id: &str) -> impl Iterator<Item = &DepRow> {
        self.runs.get(run_id).into_iter().flat_map(|run| &run.edges).map(|edge| &edge.row)
    }

    /// The keys of the tasks directly upstream of a task, without those that it added itself.
    pub fn upstream_of(&self, run_id: &str, task_key: &str) -> Vec<&TaskRow> {
        let Some(run) = self.runs.get(run_id) else { return Vec::new() };
        let Some(number) = run.number(task_key) else { return Vec::new() };
        let edges = run.task(number).upstream.iter().map(|edge| &run.edges[*edge as usize]);
        edges.filter(|edge| !edge.is_added).map(|edge| &run.task(edge.upstream).row).collect()
    }

    /// The tasks that a task added for the items of its list.
    pub fn items_of(&self, run_id: &str, task_key: &str) -> Vec<&TaskRow> {
        let Some(run) = self.runs.get(run_id) else { return Vec::new() };
        let Some(number) = run.number(task_key) else { return Vec::new() };
        run.items_of(number).into_iter().map(|item| &run.task(item).row).collect()
    }

    /// Tasks that may be dispatched, by pool.
    pub fn ready(&self) -> impl Iterator<Item = PoolReady<'_>> {
        self.shared.indexes.ready.iter().map(|(pool, tasks)| self.of_pool(pool.as_ref(), tasks))
    }

    /// Tasks that wait for their next attempt, by pool, with the earliest time of each.
    pub fn retries(&self) -> impl Iterator<Item = PoolReady<'_>> {
        self.shared.indexes.retry.iter().map(|(pool, tasks)| self.of_pool(pool.as_ref(), tasks))
    }

    fn of_pool<'a>(
        &'a self,
        pool: Option<&'a Name>,
        tasks: &'a std::collections::BTreeSet<Due>,
    ) -> PoolReady<'a> {
        PoolReady { pool, free_slots: self.shared.free_slots(pool), tasks }
    }

    /// How many retries of a pool are due, counted up to a limit.
    pub fn due_retries(&self, pool: Option<&Arc<str>>, now: i64, limit: u32) -> u32 {
        let Some(tasks) = self.shared.indexes.retry.get(&pool.cloned()) else { return 0 };
        tasks.iter().take_while(|(at, _)| *at <= now).take(limit as usize).count() as u32
    }

    /// Tasks whose list may be made, with the time since which.
    pub fn expansions(&self) -> impl Iterator<Item = &Due> {
        self.shared.indexes.expansions.iter()
    }

    /// Dispatched tasks, longest ago first.
    pub fn dispatched(&self) -> impl Iterator<Item = &Due> {
        self.shared.indexes.dispatched.iter()
    }

    /// Running tasks with the time from which they count as lost, earliest first. Tasks that never
    /// do are left out.
    pub fn running(&self) -> impl Iterator<Item = &Due> {
        self.shared.indexes.running.iter()
    }

    /// Dispatches that were not accepted yet, earliest first.
    pub fn pending_dispatches(&self) -> impl Iterator<Item = &OutboxRow> {
        self.shared.outbox_pending.iter().filter_map(|(_, dispatch_id)| self.shared.outbox.get(dispatch_id))
    }

    /// Accepted dispatches that no worker has taken up, by their last acceptance, longest ago
    /// first.
    pub fn accepted_dispatches(&self) -> impl Iterator<Item = &OutboxRow> {
        self.shared.outbox_accepted.iter().filter_map(|(_, dispatch_id)| self.shared.outbox.get(dispatch_id))
    }

    /// A dispatch.
    pub fn dispatch(&self, dispatch_id: &str) -> Option<&OutboxRow> {
        self.shared.outbox.get(dispatch_id)
    }

    /// The dispatch of a task.
    pub fn dispatch_of(&self, task: &TaskRef) -> Option<&OutboxRow> {
        let run = self.runs.get(&task.run_id)?;
        let dispatch_id = run.task(run.number(&task.task_key)?).dispatch.as_ref()?;
        self.shared.outbox.get(dispatch_id)
    }

    /// Timers that were not accepted yet, earliest first.
    pub fn requested_timers(&self) -> impl Iterator<Item = &TimerRow> {
        self.shared.timers_requested.iter().filter_map(|(_, timer_id)| self.shared.timers.get(timer_id))
    }

    /// All timers, earliest first.
    pub fn timers(&self) -> impl Iterator<Item = &TimerRow> {
        self.shared.timers_by_time.iter().filter_map(|(_, timer_id)| self.shared.timers.get(timer_id))
    }

    /// A run key.
    pub fn run_key(&self, run_key: &str) -> Option<&RunKeyRow> {
        self.shared.run_keys.get(run_key)
    }

    /// Run keys whose run does not exist yet, earliest first.
    pub fn requested_runs(&self) -> impl Iterator<Item = &RunKeyRow> {
        self.shared.unbridged.iter().filter_map(|(_, run_key)| self.shared.run_keys.get(run_key))
    }

    /// Runs that ended, with their ends, earliest first.
    pub fn finished_runs(&self) -> impl Iterator<Item = &(i64, Arc<str>)> {
        self.shared.finished_runs.iter()
    }

    /// How many runs ended.
    pub fn finished_run_count(&self) -> usize {
        self.shared.finished_runs.len()
    }

    /// Backfills that have not ended.
    pub fn open_backfills(&self) -> impl Iterator<Item = &BackfillRow> {
        self.shared.open_backfills.iter().filter_map(|backfill_id| self.shared.backfills.get(backfill_id))
    }

    /// A backfill.
    pub fn backfill(&self, backfill_id: &str) -> Option<&BackfillRow> {
        self.shared.backfills.get(backfill_id)
    }

    /// All backfills, in no order.
    pub fn backfills(&self) -> impl Iterator<Item = &BackfillRow> {
        self.shared.backfills.iter()
    }

    /// Backfills with chunks that have not ended, and those chunks.
    pub fn open_chunks(&self, backfill_id: &str) -> impl Iterator<Item = &BackfillChunkRow> {
        let open = self.shared.open_chunks.get(backfill_id).into_iter().flatten();
        open.filter_map(|chunk_id| self.shared.backfill_chunks.get(chunk_id))
    }

    /// Backfills that were cancelled and still have open chunks.
    pub fn backfills_with_open_chunks(&self) -> impl Iterator<Item = &BackfillRow> {
        self.shared.open_chunks.keys().filter_map(|backfill_id| self.shared.backfills.get(backfill_id))
    }

    /// A chunk.
    pub fn chunk(&self, chunk_id: &str) -> Option<&BackfillChunkRow> {
        self.shared.backfill_chunks.get(chunk_id)
    }

    /// All schedules, in no order.
    pub fn schedules(&self) -> impl Iterator<Item = &ScheduleDefinitionRow> {
        self.shared.schedule_definitions.iter()
    }

    /// How far a schedule is.
    pub fn schedule_state(&self, schedule_id: &str) -> Option<&ScheduleStateRow> {
        self.shared.schedule_state.get(schedule_id)
    }

    /// A tick.
    pub fn schedule_tick(&self, tick_id: &str) -> Option<&ScheduleTickRow> {
        self.shared.schedule_ticks.get(tick_id)
    }

    /// How far a sensor is.
    pub fn sensor_state(&self, sensor_id: &str) -> Option<&SensorStateRow> {
        self.shared.sensor_state.get(sensor_id)
    }

    /// What is known of a partition.
    pub fn partition(&self, asset_key: &str, partition_key: &str) -> Option<&PartitionRow> {
        self.shared.partitions.get(&(asset_key.into(), partition_key.into()))
    }

    /// A pool, if it was defined.
    pub fn pool(&self, pool: &str) -> Option<&PoolRow> {
        self.shared.pools.get(pool)
    }
}
