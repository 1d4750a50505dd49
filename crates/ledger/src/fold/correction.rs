//! What people change: tasks that run again, and tasks whose state is set by hand. An attempt
//! number is never used twice, so what was dispatched before cannot end what is dispatched after.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::live_run::{LiveRun, TaskNo};
use super::moment::Moment;
use super::shared::Shared;
use crate::event::{MarkedState, TaskCleared, TaskMarked, VisibilityState};
use crate::tables::{RunState, TaskRow, TaskState};

/// How a task begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reset {
    /// It has a list, and waits again for the tasks that it added.
    Rejoin,
    /// It waits for its upstream tasks and runs again; if it has a list, that is made again.
    Again,
    /// It was added for an item of a list that is made again.
    Planned,
}

/// Which tasks behind the cleared ones begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follow {
    All,
    /// Those that were left out or cancelled because of them, and those that have not been
    /// dispatched yet.
    LeftOut,
}

impl LiveRun {
    /// `TaskCleared`.
    pub(super) fn clear(&mut self, event: &TaskCleared, shared: &mut Shared, at: Moment) -> bool {
        let is_final = |number: &TaskNo| self.task(*number).row.state.is_final();
        let roots: Vec<TaskNo> =
            event.task_keys.iter().filter_map(|key| self.number(key)).filter(is_final).collect();
        if roots.is_empty() || self.row.is_none() {
            return false;
        }
        let follow = if event.downstream { Follow::All } else { Follow::LeftOut };
        let resets = self.affected(roots.iter().map(|root| (*root, Reset::Again)).collect(), follow);
        self.reopen_run(at);
        self.begin_again(resets, shared, at);
        true
    }

    /// `TaskMarked`.
    pub(super) fn mark_task(&mut self, event: &TaskMarked, shared: &mut Shared, at: Moment) -> bool {
        let Some(number) = self.number(&event.task_key) else { return false };
        let state = match event.state {
            MarkedState::Succeeded => TaskState::Succeeded,
            MarkedState::Failed => TaskState::Failed,
            MarkedState::Skipped => TaskState::Skipped,
        };
        let former = self.task(number).row.state;
        if former == state || self.row.is_none() {
            return false;
        }
        if former.is_final() {
            self.reopen_run(at);
            self.uncount_end(former, at);
            let behind = self.behind(number, Follow::LeftOut);
            let resets = self.affected(behind, Follow::LeftOut);
            self.reopen_edges(number, at);
            self.begin_again(resets, shared, at);
        }
        let row = self.task_mut(number, at);
        row.marked_by = Some(Arc::clone(&event.requested_by));
        row.error_message = event.reason.clone();
        row.error_category = None;
        row.started_at = row.started_at.or(Some(at.at));
        if state == TaskState::Succeeded {
            row.output = event.output.as_ref().map(|output| output.as_str().into()).or(row.output.take());
            if row.requires_visible_output {
                row.output_visibility_state = Some(VisibilityState::Visible.text().into());
            }
        }
        self.end_task(number, state, shared, at);
        self.propagate(vec![number], shared, at);
        true
    }

    /// A run that ended is open again, and one that was to be cancelled no longer is: a later
    /// request to cancel it is about its next generation. A run that is under way keeps its own, so
    /// that a request which is on its way still counts.
    fn reopen_run(&mut self, at: Moment) {
        let is_over = self.row.as_ref().is_some_and(|row| row.state.is_final() || row.cancel_requested);
        if is_over && let Some(row) = self.run_mut(at) {
            row.state = RunState::Running;
            row.completed_at = None;
            row.cancel_requested = false;
            row.reason = None;
            row.generation += 1;
        }
        self.move_all();
    }

    /// The tasks that begin again with these.
    fn affected(&self, roots: Vec<(TaskNo, Reset)>, follow: Follow) -> BTreeMap<TaskNo, Reset> {
        let mut found = BTreeMap::new();
        let mut open = roots;
        while let Some((number, reset)) = open.pop() {
            if found.get(&number).is_some_and(|known| *known >= reset) {
                continue;
            }
            found.insert(number, reset);
            if reset == Reset::Again && self.task(number).row.for_each.is_some() {
                open.extend(self.items_of(number).into_iter().map(|item| (item, Reset::Planned)));
            }
            open.extend(self.behind(number, follow));
        }
        found
    }

    /// The tasks directly behind a task that begin again with it.
    fn behind(&self, number: TaskNo, follow: Follow) -> Vec<(TaskNo, Reset)> {
        let edges = self.task(number).downstream.iter().map(|edge| &self.edges[*edge as usize]);
        let begins_again = |number: TaskNo| match self.task(number).row.state {
            TaskState::Dispatched | TaskState::Running | TaskState::RetryWait => false,
            TaskState::Skipped | TaskState::Cancelled | TaskState::Ready => true,
            _ => follow == Follow::All,
        };
        let mut behind = Vec::new();
        for edge in edges {
            if edge.is_added {
                behind.push((edge.downstream, Reset::Rejoin));
            } else if begins_again(edge.downstream) {
                behind.push((edge.downstream, Reset::Again));
            }
        }
        behind
    }

    fn reopen_edges(&mut self, number: TaskNo, at: Moment) {
        for place in 0..self.task(number).downstream.len() {
            let edge = self.task(number).downstream[place];
            self.reopen_edge(edge, at);
        }
    }

    fn begin_again(&mut self, resets: BTreeMap<TaskNo, Reset>, shared: &mut Shared, at: Moment) {
        for (&number, &reset) in &resets {
            let former = self.task(number).row.state;
            if !matches!(former, TaskState::Blocked | TaskState::Ready | TaskState::Planned)
                && !former.is_final()
            {
                // An attempt is under way; its end counts.
                continue;
            }
            if former.is_final() {
                self.uncount_end(former, at);
                self.reopen_edges(number, at);
            }
            let row = self.task_mut(number, at);
            begin_again(row, former);
            match reset {
                Reset::Rejoin => {}
                Reset::Again => row.added_count = None,
                Reset::Planned => row.state = TaskState::Planned,
            }
        }
        let mut ended = Vec::new();
        for &number in resets.keys() {
            self.place_or_end(number, &mut ended, shared, at);
        }
        self.propagate(ended, shared, at);
    }
}

/// A row without anything of the attempts before. The next attempt has a number of its own.
fn begin_again(row: &mut TaskRow, former: TaskState) {
    row.state = TaskState::Blocked;
    if former.is_final() && row.attempt > 0 {
        row.attempt_base = row.attempt;
        row.attempt += 1;
    }
    row.attempt_id = None;
    row.ready_at = None;
    row.dispatched_at = None;
    row.started_at = None;
    row.completed_at = None;
    row.last_heartbeat_at = None;
    row.retry_not_before = None;
    row.error_message = None;
    row.error_category = None;
    row.worker_id = None;
    row.progress_pct = None;
    row.marked_by = None;
    row.materialization_id = None;
    row.output = None;
    row.output_ref = None;
    row.output_visibility_state = None;
    row.published_at = None;
    row.publish_error = None;
    row.delta_table = None;
    row.delta_version = None;
    row.delta_partition = None;
    row.execution_lineage_ref = None;
}
