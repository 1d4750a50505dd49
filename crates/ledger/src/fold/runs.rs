//! `runs`: from triggered to its final state. Counters follow the tasks; the run ends when all of
//! them have ended.

use std::sync::Arc;

use super::live_run::{LiveRun, TaskNo};
use super::moment::Moment;
use super::shared::{Scope, Shared, json};
use super::table::Mark;
use crate::event::{RunCancelRequested, RunTriggered};
use crate::tables::{RunRow, RunState, TaskState};

impl RunState {
    /// Whether nothing follows, unless tasks of it are cleared.
    pub const fn is_final(self) -> bool {
        matches!(self, RunState::Succeeded | RunState::Failed | RunState::Cancelled)
    }
}

impl LiveRun {
    /// `RunTriggered`: no effect on a run that exists; its plan may have come first.
    pub(super) fn trigger(&mut self, event: &RunTriggered, scope: &Scope, at: Moment) -> bool {
        if self.row.is_some() {
            return false;
        }
        let mut row = RunRow {
            tenant_id: Arc::clone(&scope.tenant_id),
            workspace_id: Arc::clone(&scope.workspace_id),
            run_id: Arc::clone(&self.run_id),
            plan_id: Arc::clone(&event.plan_id),
            state: if self.tasks.is_empty() { RunState::Triggered } else { RunState::Running },
            run_key: event.run_key.clone(),
            cancel_requested: false,
            tasks_total: self.tasks.len() as u32,
            tasks_completed: 0,
            tasks_succeeded: 0,
            tasks_failed: 0,
            tasks_skipped: 0,
            tasks_cancelled: 0,
            triggered_at: at.at,
            completed_at: None,
            labels: (!event.labels.is_empty()).then(|| json(&event.labels)),
            code_version: event.code_version.clone(),
            dag: event.dag.clone(),
            trigger: Some(json(&event.trigger)),
            params: event.params.as_ref().map(json),
            parent_run_id: event.parent_run_id.clone(),
            paused: false,
            reason: None,
            generation: 0,
            row_version: at.id,
        };
        for task in &self.tasks {
            count(&mut row, task.row.state, |counter| *counter += 1);
        }
        self.row = Some(row);
        self.mark = Mark::NEW;
        self.move_all();
        true
    }

    /// `RunCancelRequested`: every task that is not running ends at once; running ones are told
    /// with their next heartbeat.
    pub(super) fn cancel(&mut self, event: &RunCancelRequested, shared: &mut Shared, at: Moment) -> bool {
        let Some(row) = &self.row else { return false };
        if row.state.is_final() || row.cancel_requested || event.generation != row.generation {
            return false;
        }
        let by = &event.requested_by;
        let reason: Arc<str> = match &event.reason {
            Some(reason) => format!("cancelled by {by}: {reason}").into(),
            None => format!("cancelled by {by}").into(),
        };
        let is_without_plan = row.state == RunState::Triggered;
        if let Some(row) = self.run_mut(at) {
            row.cancel_requested = true;
            row.reason = Some(reason);
            if is_without_plan {
                row.state = RunState::Cancelled;
                row.completed_at = Some(at.at);
            }
        }
        let is_open = |state: TaskState| !state.is_final() && state != TaskState::Running;
        let open: Vec<TaskNo> =
            (0..self.tasks.len() as TaskNo).filter(|number| is_open(self.task(*number).row.state)).collect();
        for number in &open {
            self.end_task(*number, TaskState::Cancelled, shared, at);
        }
        self.propagate(open, shared, at);
        self.move_all();
        true
    }

    /// `RunPaused` and `RunResumed`.
    pub(super) fn set_paused(&mut self, paused: Paused, at: Moment) -> bool {
        let paused = paused == Paused::Yes;
        let may = self.row.as_ref().is_some_and(|row| row.paused != paused && !row.state.is_final());
        if may && let Some(row) = self.run_mut(at) {
            row.paused = paused;
            self.move_all();
        }
        may
    }

    /// Counts a task that reached a final state.
    pub(super) fn count_end(&mut self, state: TaskState, at: Moment) {
        if let Some(row) = self.run_mut(at) {
            count(row, state, |counter| *counter += 1);
        }
    }

    /// Takes a task out of the counts, because it runs again.
    pub(super) fn uncount_end(&mut self, state: TaskState, at: Moment) {
        if let Some(row) = self.run_mut(at) {
            count(row, state, |counter| *counter -= 1);
        }
    }

    /// Ends the run once all of its tasks have ended.
    pub(super) fn settle(&mut self, at: Moment) {
        let is_over = |row: &RunRow| row.state == RunState::Running && row.tasks_completed == row.tasks_total;
        if self.row.as_ref().is_some_and(is_over)
            && let Some(row) = self.run_mut(at)
        {
            row.state = match (row.tasks_cancelled, row.tasks_failed) {
                (0, 0) => RunState::Succeeded,
                (0, _) => RunState::Failed,
                _ => RunState::Cancelled,
            };
            row.completed_at = Some(at.at);
        }
    }
}

/// Whether a run dispatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paused {
    Yes,
    No,
}

/// Applies a change to the counters of a final state; other states have none.
fn count(row: &mut RunRow, state: TaskState, change: impl Fn(&mut u32)) {
    let counter = match state {
        TaskState::Succeeded => &mut row.tasks_succeeded,
        TaskState::Failed => &mut row.tasks_failed,
        TaskState::Skipped => &mut row.tasks_skipped,
        TaskState::Cancelled => &mut row.tasks_cancelled,
        _ => return,
    };
    change(counter);
    change(&mut row.tasks_completed);
}
