//! `dep_satisfaction`: edges are resolved by the ends of their upstream tasks, and decide about
//! their downstream tasks. Ends propagate by a work list, so the depth of a plan costs no stack.

use super::live_run::{LiveRun, TaskNo};
use super::moment::Moment;
use super::shared::Shared;
use super::trigger_rule::{Verdict, decide};
use crate::event::VisibilityState;
use crate::tables::{Resolution, TaskRow, TaskState};

impl LiveRun {
    /// Resolves the edges behind tasks that ended, and what follows from them.
    pub(super) fn propagate(&mut self, ended: Vec<TaskNo>, shared: &mut Shared, at: Moment) {
        let mut open = ended;
        while let Some(number) = open.pop() {
            if self.task(number).row.for_each.is_some() {
                self.leave_out_former_items(number, &mut open, shared, at);
            }
            let Some(resolution) = resolution(&self.task(number).row) else { continue };
            for place in 0..self.task(number).downstream.len() {
                let edge = self.task(number).downstream[place];
                if self.edges[edge as usize].row.resolution.is_some() {
                    continue;
                }
                self.resolve_edge(edge, resolution, at);
                let downstream = self.edges[edge as usize].downstream;
                self.place_or_end(downstream, &mut open, shared, at);
            }
        }
    }

    /// Places a blocked task if its upstream tasks allow it; adds it to `ended` if they end it.
    pub(super) fn place_or_end(
        &mut self,
        number: TaskNo,
        ended: &mut Vec<TaskNo>,
        shared: &mut Shared,
        at: Moment,
    ) {
        let task = self.task(number);
        if task.row.state != TaskState::Blocked {
            return;
        }
        if task.row.added_count.is_some() {
            return self.join_or_wait(number, ended, shared, at);
        }
        let is_added = |edge: &&u32| self.edges[**edge as usize].is_added;
        let total = match task.row.for_each {
            Some(_) => task.upstream.iter().filter(|edge| !is_added(edge)).count() as u32,
            None => task.upstream.len() as u32,
        };
        let (state, why) = match decide(task.row.trigger_rule, task.ends, total) {
            Verdict::Wait => return,
            Verdict::Ready => {
                let row = self.task_mut(number, at);
                row.state = TaskState::Ready;
                row.ready_at = Some(at.at);
                return;
            }
            Verdict::Skip => (TaskState::Skipped, "left out because of its upstream tasks"),
            Verdict::Cancel => (TaskState::Cancelled, "cancelled because of its upstream tasks"),
        };
        self.task_mut(number, at).error_message = Some(why.into());
        self.end_task(number, state, shared, at);
        ended.push(number);
    }

    /// Ends a task with a list once all tasks that it added have ended.
    fn join_or_wait(&mut self, number: TaskNo, ended: &mut Vec<TaskNo>, shared: &mut Shared, at: Moment) {
        let ends = self.task(number).added_ends;
        if ends.total() < self.items_of(number).len() as u32 {
            return;
        }
        let state = match (ends.cancelled, ends.failed) {
            (0, 0) => TaskState::Succeeded,
            (0, failed) => {
                let why = format!("{failed} of {} items failed", ends.total());
                self.task_mut(number, at).error_message = Some(why.into());
                TaskState::Failed
            }
            _ => TaskState::Cancelled,
        };
        self.end_task(number, state, shared, at);
        ended.push(number);
    }
}

/// How a task ended, as its edges see it: one whose output has to be visible has succeeded only
/// when it is.
fn resolution(row: &TaskRow) -> Option<Resolution> {
    match row.state {
        TaskState::Succeeded if row.requires_visible_output => match row.output_visibility_state.as_deref() {
            Some(state) if state == VisibilityState::Visible.text() => Some(Resolution::Succeeded),
            Some(state) if state == VisibilityState::Failed.text() => Some(Resolution::Failed),
            _ => None,
        },
        TaskState::Succeeded => Some(Resolution::Succeeded),
        TaskState::Failed => Some(Resolution::Failed),
        TaskState::Skipped => Some(Resolution::Skipped),
        TaskState::Cancelled => Some(Resolution::Cancelled),
        _ => None,
    }
}
