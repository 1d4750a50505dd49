//! The graph of a run: tasks and edges from a plan, and tasks that a list adds to it. A plan that
//! cannot be run ends its run instead of leaving it open for ever.

use std::sync::Arc;

use hashbrown::HashMap;

use super::live_run::{LiveRun, TaskNo};
use super::moment::Moment;
use super::shared::{Scope, Shared, json};
use crate::event::{PlanCreated, PlannedTask, Target, TasksAdded};
use crate::tables::{Completion, RunState, TaskRow, TaskState};

/// Tasks of a run.
pub(super) const MAX_TASKS: usize = 100_000;
/// Edges of a run.
pub(super) const MAX_EDGES: usize = 2_000_000;

impl LiveRun {
    /// `PlanCreated`: no effect on a run that has tasks or has ended.
    pub(super) fn plan(&mut self, event: &PlanCreated, shared: &mut Shared, at: Moment) -> bool {
        let has_ended = self.row.as_ref().is_some_and(|row| row.state.is_final());
        if !self.tasks.is_empty() || has_ended {
            return false;
        }
        if let Err(problem) = check(&event.tasks) {
            let Some(row) = self.run_mut(at) else { return false };
            row.state = RunState::Failed;
            row.completed_at = Some(at.at);
            row.reason = Some(problem.into());
            return true;
        }
        for planned in &event.tasks {
            self.add_task(task_row(planned, &shared.scope, &self.run_id, at));
        }
        for planned in &event.tasks {
            for upstream in &planned.depends_on {
                let (Some(upstream), Some(downstream)) = (self.number(upstream), self.number(&planned.key))
                else {
                    continue;
                };
                self.add_edge(upstream, downstream, at);
                self.task_mut(downstream, at).deps_total += 1;
            }
        }
        let total = self.tasks.len() as u32;
        if let Some(row) = self.run_mut(at) {
            row.state = RunState::Running;
            row.tasks_total = total;
        }
        for number in 0..total {
            self.place_or_end(number, &mut Vec::new(), shared, at);
        }
        true
    }

    /// `TasksAdded`: once per attempt of the task that has the list.
    pub(super) fn expand(&mut self, event: &TasksAdded, shared: &mut Shared, at: Moment) -> bool {
        let Some(group) = self.number(&event.task_key) else { return false };
        let row = &self.task(group).row;
        let is_due = row.state == TaskState::Ready && row.for_each.is_some() && row.added_count.is_none();
        let may = self.row.as_ref().is_some_and(|run| !run.cancel_requested);
        if !may || !is_due || row.attempt.max(1) != event.attempt {
            return false;
        }
        let problem = event.error.clone().or_else(|| self.refusal(&event.task_key, &event.tasks));
        let count = if problem.is_some() { 0 } else { event.tasks.len() as u32 };
        let row = self.task_mut(group, at);
        row.attempt = event.attempt;
        row.started_at = Some(at.at);
        row.added_count = Some(count);
        row.state = TaskState::Blocked;
        let mut ended = Vec::new();
        if let Some(problem) = problem {
            self.task_mut(group, at).error_message = Some(problem);
            self.end_task(group, TaskState::Failed, shared, at);
            ended.push(group);
        } else {
            self.add_items(group, &event.tasks, shared, at);
            self.leave_out_former_items(group, &mut ended, shared, at);
            self.place_or_end(group, &mut ended, shared, at);
        }
        self.propagate(ended, shared, at);
        true
    }

    /// Why tasks cannot be added.
    fn refusal(&self, group: &Arc<str>, tasks: &[PlannedTask]) -> Option<Arc<str>> {
        if self.tasks.len() + tasks.len() > MAX_TASKS {
            return Some(
                format!("{} more tasks are too many: a run has at most {MAX_TASKS}", tasks.len()).into(),
            );
        }
        let mut seen = HashMap::new();
        for task in tasks {
            let existing = self.number(&task.key).map(|number| &self.task(number).row);
            if existing.is_some_and(|row| row.expanded_from.as_ref() != Some(group))
                || seen.insert(&task.key, ()).is_some()
            {
                return Some(format!("the run has a task {:?} already", task.key).into());
            }
        }
        None
    }

    fn add_items(&mut self, group: TaskNo, tasks: &[PlannedTask], shared: &mut Shared, at: Moment) {
        let group_key = Arc::clone(&self.task(group).row.task_key);
        let mut new = 0;
        for planned in tasks {
            if let Some(number) = self.number(&planned.key) {
                // It was added before the task with the list was cleared.
                if self.task(number).row.state == TaskState::Planned {
                    let row = self.task_mut(number, at);
                    row.input = planned.input.as_ref().map(json);
                    row.partition_key = planned.partition_key.clone();
                    row.state = TaskState::Ready;
                    row.ready_at = Some(at.at);
                }
                continue;
            }
            let mut row = task_row(planned, &shared.scope, &self.run_id, at);
            row.expanded_from = Some(Arc::clone(&group_key));
            row.for_each = None;
            row.state = TaskState::Ready;
            row.ready_at = Some(at.at);
            let number = self.add_task(row);
            self.add_edge(number, group, at);
            new += 1;
        }
        self.task_mut(group, at).deps_total += new;
        if let Some(run) = self.run_mut(at) {
            run.tasks_total += new;
        }
    }

    /// Items of an earlier list that are not in the new one.
    pub(super) fn leave_out_former_items(
        &mut self,
        group: TaskNo,
        ended: &mut Vec<TaskNo>,
        shared: &mut Shared,
        at: Moment,
    ) {
        for number in self.items_of(group) {
            if self.task(number).row.state == TaskState::Planned {
                self.task_mut(number, at).error_message = Some("not in the list".into());
                self.end_task(number, TaskState::Skipped, shared, at);
                ended.push(number);
            }
        }
    }

    /// The tasks that a task with a list added.
    pub(super) fn items_of(&self, group: TaskNo) -> Vec<TaskNo> {
        let edges = self.task(group).upstream.iter().map(|edge| &self.edges[*edge as usize]);
        edges.filter(|edge| edge.is_added).map(|edge| edge.upstream).collect()
    }
}

/// The row of a planned task, blocked until it is placed.
fn task_row(planned: &PlannedTask, scope: &Scope, run_id: &Arc<str>, at: Moment) -> TaskRow {
    let (function, orchestration) = match &planned.target {
        Some(Target::Function(name)) => (Some(Arc::clone(name)), None),
        Some(Target::Orchestration(name)) => (None, Some(Arc::clone(name))),
        None => (None, None),
    };
    TaskRow {
        tenant_id: Arc::clone(&scope.tenant_id),
        workspace_id: Arc::clone(&scope.workspace_id),
        run_id: Arc::clone(run_id),
        task_key: Arc::clone(&planned.key),
        state: TaskState::Blocked,
        attempt: 0,
        attempt_id: None,
        started_at: None,
        completed_at: None,
        error_message: None,
        deps_total: 0,
        deps_satisfied_count: 0,
        max_attempts: planned.max_attempts,
        heartbeat_timeout_sec: planned.heartbeat_timeout_sec,
        last_heartbeat_at: None,
        ready_at: None,
        asset_key: planned.asset_key.clone(),
        partition_key: planned.partition_key.clone(),
        // A list has no attempt whose output could become visible; its items have.
        requires_visible_output: planned.requires_visible_output && planned.for_each.is_none(),
        materialization_id: None,
        output_visibility_state: None,
        published_at: None,
        publish_error: None,
        retry_not_before: None,
        delta_table: None,
        delta_version: None,
        delta_partition: None,
        execution_lineage_ref: None,
        function,
        orchestration,
        input: planned.input.as_ref().map(json),
        tag: planned.tag.clone(),
        pool: planned.pool.clone(),
        trigger_rule: planned.trigger_rule,
        timeout_seconds: planned.timeout_seconds,
        backoff: planned.backoff.as_ref().map(json),
        for_each: planned.for_each.as_ref().map(json),
        expanded_from: None,
        added_count: None,
        attempt_base: 0,
        deps_resolved_count: 0,
        dispatched_at: None,
        worker_id: None,
        error_category: None,
        output: None,
        output_ref: None,
        progress_pct: None,
        marked_by: None,
        worker_pool: planned.worker_pool.clone(),
        completion: Some(planned.completion).filter(|completion| *completion != Completion::Return),
        row_version: at.id,
    }
}

/// Why a plan cannot be run: writers check plans, and the log may have other writers.
fn check(tasks: &[PlannedTask]) -> Result<(), String> {
    let edges: usize = tasks.iter().map(|task| task.depends_on.len()).sum();
    if tasks.len() > MAX_TASKS || edges > MAX_EDGES {
        return Err(format!(
            "the plan has {} tasks and {edges} edges; at most {MAX_TASKS} and {MAX_EDGES} are allowed",
            tasks.len()
        ));
    }
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        if places.insert(&task.key, place).is_some() {
            return Err(format!("the plan has two tasks {:?}", task.key));
        }
    }
    let mut downstream = vec![Vec::new(); tasks.len()];
    let mut open = vec![0usize; tasks.len()];
    for (place, task) in tasks.iter().enumerate() {
        for (at, upstream) in task.depends_on.iter().enumerate() {
            let Some(&first) = places.get(&**upstream) else {
                return Err(format!(
                    "task {:?} depends on {upstream:?}, which the plan does not have",
                    task.key
                ));
            };
            if task.depends_on[..at].contains(upstream) {
                return Err(format!("task {:?} depends on {upstream:?} twice", task.key));
            }
            downstream[first].push(place);
            open[place] += 1;
        }
    }
    // Kahn's algorithm: what is never free of upstream tasks is on a cycle or behind one.
    let mut free: Vec<usize> = (0..tasks.len()).filter(|place| open[*place] == 0).collect();
    let mut freed = 0;
    while let Some(place) = free.pop() {
        freed += 1;
        for &next in &downstream[place] {
            open[next] -= 1;
            if open[next] == 0 {
                free.push(next);
            }
        }
    }
    match open.iter().position(|open| *open > 0) {
        Some(place) if freed < tasks.len() => {
            Err(format!("the plan has a cycle through or before task {:?}", tasks[place].key))
        }
        _ => Ok(()),
    }
}
