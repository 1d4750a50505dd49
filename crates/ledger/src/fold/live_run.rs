//! A run in memory: its row, its tasks and its edges as a graph of numbers, with dirty flags. Every
//! rule about runs and tasks changes rows through `run_mut`, `task_mut` and `edge_mut`, which set
//! `row_version`: a row cannot change without it.

use std::sync::Arc;

use hashbrown::HashMap;

use super::index::{Place, TaskRef, place};
use super::moment::Moment;
use super::run_slots::Slot;
use super::shared::Shared;
use super::table::Mark;
use super::trigger_rule::Ends;
use crate::tables::{DepRow, Resolution, RunRow, RunState, TaskRow, TaskState};

/// The number of a task within its run.
pub(super) type TaskNo = u32;
/// The number of an edge within its run.
pub(super) type EdgeNo = u32;

/// A task in memory.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) row: TaskRow,
    pub(super) mark: Mark,
    /// Edges from upstream tasks.
    pub(super) upstream: Vec<EdgeNo>,
    /// Edges to downstream tasks.
    pub(super) downstream: Vec<EdgeNo>,
    /// How its upstream tasks ended.
    pub(super) ends: Ends,
    /// How the tasks that it added ended.
    pub(super) added_ends: Ends,
    /// Its row in the outbox.
    pub(super) dispatch: Option<Arc<str>>,
    /// Its timers.
    pub(super) timers: Vec<Arc<str>>,
    /// Where it stands in the indexes.
    place: Place,
    /// Whether it holds a slot of its pool.
    holds_slot: bool,
}

/// An edge in memory.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) row: DepRow,
    pub(super) mark: Mark,
    pub(super) upstream: TaskNo,
    pub(super) downstream: TaskNo,
    /// Whether the downstream task added the upstream task.
    pub(super) is_added: bool,
}

/// A run in memory.
#[derive(Clone, Debug)]
pub(super) struct LiveRun {
    pub(super) run_id: Arc<str>,
    pub(super) row: Option<RunRow>,
    pub(super) mark: Mark,
    pub(super) tasks: Vec<Task>,
    pub(super) by_key: HashMap<Arc<str>, TaskNo>,
    pub(super) edges: Vec<Edge>,
    pub(super) changed_tasks: Vec<TaskNo>,
    pub(super) changed_edges: Vec<EdgeNo>,
    /// Tasks whose place may have changed since the last call of `settle_places`.
    moved: Vec<TaskNo>,
    /// Whether the state lists it among the changed runs.
    pub(super) is_listed: bool,
    /// The state of the run that indexes outside of it know.
    pub(super) known_state: Option<RunState>,
    /// The end by which it is listed among the runs that ended.
    pub(super) listed_end: Option<i64>,
    /// What it has of the slots of its DAG.
    pub(super) slot: Slot,
    /// Whether one of its tasks has had an attempt, as far as that was looked at.
    pub(super) has_begun: bool,
    /// Whether it waits for a slot of its DAG.
    pub(super) is_held: bool,
}

impl LiveRun {
    pub(super) fn new(run_id: Arc<str>) -> Self {
        LiveRun {
            run_id,
            row: None,
            mark: Mark::default(),
            tasks: Vec::new(),
            by_key: HashMap::new(),
            edges: Vec::new(),
            changed_tasks: Vec::new(),
            changed_edges: Vec::new(),
            moved: Vec::new(),
            is_listed: false,
            known_state: None,
            listed_end: None,
            slot: Slot::None,
            has_begun: false,
            is_held: false,
        }
    }

    /// The number of a task.
    pub(super) fn number(&self, task_key: &str) -> Option<TaskNo> {
        self.by_key.get(task_key).copied()
    }

    /// A task.
    pub(super) fn task(&self, number: TaskNo) -> &Task {
        &self.tasks[number as usize]
    }

    /// What is known of a task besides its row.
    pub(super) fn task_memory(&mut self, number: TaskNo) -> &mut Task {
        &mut self.tasks[number as usize]
    }

    /// The row of the run, about to change.
    pub(super) fn run_mut(&mut self, at: Moment) -> Option<&mut RunRow> {
        let row = self.row.as_mut()?;
        self.mark.change();
        row.row_version = at.id;
        Some(row)
    }

    /// The row of a task, about to change.
    pub(super) fn task_mut(&mut self, number: TaskNo, at: Moment) -> &mut TaskRow {
        let task = &mut self.tasks[number as usize];
        if task.mark.change() {
            self.changed_tasks.push(number);
        }
        self.moved.push(number);
        task.row.row_version = at.id;
        &mut task.row
    }

    /// The row of an edge, about to change.
    fn edge_mut(&mut self, number: EdgeNo, at: Moment) -> &mut DepRow {
        let edge = &mut self.edges[number as usize];
        if edge.mark.change() {
            self.changed_edges.push(number);
        }
        edge.row.row_version = at.id;
        &mut edge.row
    }

    /// A new task. Its key must be new.
    pub(super) fn add_task(&mut self, row: TaskRow) -> TaskNo {
        let number = self.insert_task(row, Mark::NEW);
        self.changed_tasks.push(number);
        number
    }

    /// A new edge between two tasks.
    pub(super) fn add_edge(&mut self, upstream: TaskNo, downstream: TaskNo, at: Moment) {
        let down = &self.task(downstream).row;
        let row = DepRow {
            tenant_id: Arc::clone(&down.tenant_id),
            workspace_id: Arc::clone(&down.workspace_id),
            run_id: Arc::clone(&self.run_id),
            upstream_task_key: Arc::clone(&self.task(upstream).row.task_key),
            downstream_task_key: Arc::clone(&down.task_key),
            satisfied: false,
            resolution: None,
            satisfied_at: None,
            satisfying_attempt: None,
            row_version: at.id,
        };
        let number = self.insert_edge(row, upstream, downstream, Mark::NEW);
        self.changed_edges.push(number);
    }

    fn insert_task(&mut self, row: TaskRow, mark: Mark) -> TaskNo {
        let number = TaskNo::try_from(self.tasks.len()).expect("plans have far fewer tasks");
        self.by_key.insert(Arc::clone(&row.task_key), number);
        self.tasks.push(Task {
            row,
            mark,
            upstream: Vec::new(),
            downstream: Vec::new(),
            ends: Ends::default(),
            added_ends: Ends::default(),
            dispatch: None,
            timers: Vec::new(),
            place: Place::None,
            holds_slot: false,
        });
        self.moved.push(number);
        number
    }

    fn insert_edge(&mut self, row: DepRow, upstream: TaskNo, downstream: TaskNo, mark: Mark) -> EdgeNo {
        let number = EdgeNo::try_from(self.edges.len()).expect("plans have far fewer edges");
        let added_by = self.task(upstream).row.expanded_from.as_ref();
        let is_added = added_by == Some(&self.task(downstream).row.task_key);
        if let Some(resolution) = row.resolution {
            self.ends_of(downstream, is_added).add(resolution);
        }
        self.tasks[upstream as usize].downstream.push(number);
        self.tasks[downstream as usize].upstream.push(number);
        self.edges.push(Edge { row, mark, upstream, downstream, is_added });
        number
    }

    /// The row of a run that came from a file.
    pub(super) fn load_row(&mut self, row: RunRow) {
        self.row = Some(row);
        self.mark = Mark::LOADED;
    }

    /// A task that came from a file.
    pub(super) fn load_task(&mut self, row: TaskRow) {
        if self.number(&row.task_key).is_none() {
            self.insert_task(row, Mark::LOADED);
        }
    }

    /// An edge that came from a file, after the tasks; one whose tasks are missing is left out.
    pub(super) fn load_edge(&mut self, row: DepRow) {
        let tasks = (self.number(&row.upstream_task_key), self.number(&row.downstream_task_key));
        if let (Some(upstream), Some(downstream)) = tasks {
            self.insert_edge(row, upstream, downstream, Mark::LOADED);
        }
    }

    /// The ends of the upstream tasks of a task, or of the tasks that it added.
    fn ends_of(&mut self, number: TaskNo, is_added: bool) -> &mut Ends {
        let task = &mut self.tasks[number as usize];
        if is_added { &mut task.added_ends } else { &mut task.ends }
    }

    /// Notes that the upstream task of an edge ended, in the edge and in the counters of the
    /// downstream task.
    pub(super) fn resolve_edge(&mut self, number: EdgeNo, resolution: Resolution, at: Moment) {
        let Edge { upstream, downstream, is_added, .. } = self.edges[number as usize];
        let is_satisfied = resolution == Resolution::Succeeded;
        let attempt = self.task(upstream).row.attempt;
        let row = self.edge_mut(number, at);
        row.resolution = Some(resolution);
        if is_satisfied {
            row.satisfied = true;
            row.satisfied_at = Some(at.at);
            row.satisfying_attempt = Some(attempt);
        }
        self.ends_of(downstream, is_added).add(resolution);
        let task = self.task_mut(downstream, at);
        task.deps_resolved_count += 1;
        task.deps_satisfied_count += u32::from(is_satisfied);
    }

    /// Takes back that the upstream task of an edge ended.
    pub(super) fn reopen_edge(&mut self, number: EdgeNo, at: Moment) {
        let Edge { downstream, is_added, .. } = self.edges[number as usize];
        let Some(resolution) = self.edges[number as usize].row.resolution else { return };
        let row = self.edge_mut(number, at);
        let was_satisfied = row.satisfied;
        row.resolution = None;
        row.satisfied = false;
        row.satisfied_at = None;
        row.satisfying_attempt = None;
        self.ends_of(downstream, is_added).remove(resolution);
        let task = self.task_mut(downstream, at);
        task.deps_resolved_count -= 1;
        task.deps_satisfied_count -= u32::from(was_satisfied);
    }

    /// All tasks may have to move: the run was paused, resumed, cancelled or reopened.
    pub(super) fn move_all(&mut self) {
        self.moved = (0..self.tasks.len() as TaskNo).collect();
    }

    /// Brings the indexes up to date with the tasks that changed.
    pub(super) fn settle_places(&mut self, shared: &mut Shared) {
        let mut moved = std::mem::take(&mut self.moved);
        for number in moved.drain(..) {
            let to = match place(self.row.as_ref(), &self.tasks[number as usize].row) {
                Place::Ready(_) | Place::Expansion(_) | Place::Retry(_) if self.is_held => Place::None,
                to => to,
            };
            self.put_in_place(number, to, shared);
        }
        // The allocation is kept for the next event.
        self.moved = moved;
    }

    /// Takes all tasks out of the indexes.
    pub(super) fn leave_places(&mut self, shared: &mut Shared) {
        for number in 0..self.tasks.len() as TaskNo {
            self.put_in_place(number, Place::None, shared);
            let task = &mut self.tasks[number as usize];
            if std::mem::take(&mut task.holds_slot)
                && let Some(pool) = &task.row.pool
            {
                shared.indexes.return_slot(pool);
            }
        }
    }

    fn put_in_place(&mut self, number: TaskNo, to: Place, shared: &mut Shared) {
        let task = &mut self.tasks[number as usize];
        let pool = task.row.pool.as_ref();
        if task.place != to {
            let name = TaskRef { run_id: Arc::clone(&self.run_id), task_key: Arc::clone(&task.row.task_key) };
            shared.indexes.shift(name, pool, task.place, to);
            task.place = to;
        }
        let Some(pool) = pool else { return };
        let holds_slot = matches!(task.row.state, TaskState::Dispatched | TaskState::Running);
        match (task.holds_slot, holds_slot) {
            (false, true) => shared.indexes.take_slot(pool),
            (true, false) => shared.indexes.return_slot(pool),
            _ => {}
        }
        task.holds_slot = holds_slot;
    }
}
