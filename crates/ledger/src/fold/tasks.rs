//! `tasks`: attempts, from dispatched to their end.
//!
//! | event | from | to |
//! |---|---|---|
//! | `DispatchRequested` n | READY, RETRY_WAIT with n next | DISPATCHED |
//! | `TaskStarted` n | DISPATCHED n; READY, RETRY_WAIT with n next | RUNNING |
//! | `TaskHeartbeat` n | RUNNING n | RUNNING |
//! | `TaskFinished` n succeeded, skipped, cancelled | DISPATCHED n, RUNNING n | SUCCEEDED, SKIPPED, CANCELLED |
//! | `TaskFinished` n failed | DISPATCHED n, RUNNING n | RETRY_WAIT; FAILED if it is final |
//!
//! Everything else is ignored. So an event that is appended twice changes nothing the second time:
//! the row shows it.

use std::sync::Arc;

use super::live_run::{LiveRun, TaskNo};
use super::moment::Moment;
use super::shared::Shared;
use crate::event::{
    Attempt, Backoff, Outcome, OutputVisibility, TaskCompletionRecorded, TaskError, TaskFinished,
    TaskHeartbeat, TaskOutputVisibilityChanged, TaskStarted, VisibilityState,
};
use crate::tables::{TaskRow, TaskState};

impl TaskRow {
    /// The attempt that may be dispatched next, if one may.
    pub fn next_attempt(&self) -> Option<u32> {
        match self.state {
            TaskState::Ready => Some(self.attempt.max(1)),
            TaskState::RetryWait => self.attempt.checked_add(1),
            _ => None,
        }
    }

    /// Whether an attempt is over or under way, so that a dispatch of it has nothing left to do.
    pub(super) fn has_consumed(&self, attempt: u32) -> bool {
        self.attempt > attempt
            || self.state.is_final()
            || (self.attempt == attempt && matches!(self.state, TaskState::Running | TaskState::RetryWait))
    }

    /// Whether this is the attempt that is under way.
    fn is_at(&self, attempt: &Attempt) -> bool {
        self.attempt == attempt.attempt && self.attempt_id.as_ref() == Some(&attempt.attempt_id)
    }
}

impl LiveRun {
    /// `TaskStarted`.
    pub(super) fn start(&mut self, event: &TaskStarted, shared: &mut Shared, at: Moment) -> bool {
        let Some(number) = self.number(&event.attempt.task_key) else { return false };
        let row = &self.task(number).row;
        let may = match row.state {
            TaskState::Dispatched => row.is_at(&event.attempt),
            _ => self.row.is_some() && row.next_attempt() == Some(event.attempt.attempt),
        };
        if !may || row.for_each.is_some() {
            return false;
        }
        let row = self.task_mut(number, at);
        if row.state != TaskState::Dispatched {
            row.dispatched_at = Some(at.at);
        }
        row.state = TaskState::Running;
        row.attempt = event.attempt.attempt;
        row.attempt_id = Some(Arc::clone(&event.attempt.attempt_id));
        row.started_at = Some(at.at);
        row.last_heartbeat_at = None;
        row.progress_pct = None;
        row.retry_not_before = None;
        row.worker_id = Some(Arc::clone(&event.worker_id));
        self.release(number, shared);
        true
    }

    /// `TaskHeartbeat`.
    pub(super) fn beat(&mut self, event: &TaskHeartbeat, at: Moment) -> bool {
        let Some(number) = self.number(&event.attempt.task_key) else { return false };
        let row = &self.task(number).row;
        let beat_at = event.heartbeat_at.map_or(at.at, |at| at.as_millisecond());
        let is_new = row.last_heartbeat_at.is_none_or(|last| beat_at > last);
        if row.state != TaskState::Running || !row.is_at(&event.attempt) || !is_new {
            return false;
        }
        let row = self.task_mut(number, at);
        row.last_heartbeat_at = Some(beat_at);
        row.progress_pct = event.progress_pct.or(row.progress_pct);
        true
    }

    /// `TaskFinished`.
    pub(super) fn finish(&mut self, event: &TaskFinished, shared: &mut Shared, at: Moment) -> bool {
        self.finish_attempt(event, None, shared, at)
    }

    /// `TaskCompletionRecorded`: end and visibility in one step, so that no reader sees one without
    /// the other.
    pub(super) fn complete(
        &mut self,
        event: &TaskCompletionRecorded,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        self.finish_attempt(&event.finished, event.output_visibility.as_ref(), shared, at)
    }

    fn finish_attempt(
        &mut self,
        event: &TaskFinished,
        visibility: Option<&OutputVisibility>,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        let Some(number) = self.number(&event.attempt.task_key) else { return false };
        let row = &self.task(number).row;
        let is_under_way = matches!(row.state, TaskState::Dispatched | TaskState::Running);
        if !is_under_way || !row.is_at(&event.attempt) {
            return false;
        }
        let row = self.task_mut(number, at);
        note_end(row, event);
        if event.outcome == Outcome::Succeeded {
            let pending = OutputVisibility {
                visibility_state: VisibilityState::Pending,
                published_at: None,
                publish_error: None,
            };
            match visibility {
                Some(visibility) => set_visibility(row, visibility),
                None if row.requires_visible_output => set_visibility(row, &pending),
                None => {}
            }
        }
        let code_version = event.code_version.as_ref();
        let code_version =
            code_version.or(self.row.as_ref().and_then(|run| run.code_version.as_ref())).cloned();
        shared.note_partition(&self.task(number).row, event, code_version, at);
        let state = match event.outcome {
            Outcome::Succeeded => TaskState::Succeeded,
            Outcome::Skipped => TaskState::Skipped,
            Outcome::Cancelled => TaskState::Cancelled,
            Outcome::Failed if self.may_retry(number, event.error.as_ref()) => {
                self.wait_for_retry(number, shared, at);
                return true;
            }
            Outcome::Failed => TaskState::Failed,
        };
        self.end_task(number, state, shared, at);
        self.propagate(vec![number], shared, at);
        true
    }

    /// Whether a failed attempt is followed by another: never once the run is cancelled.
    fn may_retry(&self, number: TaskNo, error: Option<&TaskError>) -> bool {
        let row = &self.task(number).row;
        let is_cancelled = self.row.as_ref().is_some_and(|run| run.cancel_requested);
        !is_cancelled
            && error.is_none_or(TaskError::is_retryable)
            && row.attempt.saturating_sub(row.attempt_base) < row.max_attempts
    }

    fn wait_for_retry(&mut self, number: TaskNo, shared: &mut Shared, at: Moment) {
        let row = self.task_mut(number, at);
        let backoff = row.backoff.as_deref().and_then(|json| serde_json::from_str::<Backoff>(json).ok());
        let failed = row.attempt.saturating_sub(row.attempt_base);
        row.state = TaskState::RetryWait;
        row.retry_not_before = at.at.checked_add(wait_ms(backoff.unwrap_or_default(), failed));
        self.release(number, shared);
    }

    /// `TaskOutputVisibilityChanged`: from pending to visible or failed, once.
    pub(super) fn show_output(
        &mut self,
        event: &TaskOutputVisibilityChanged,
        shared: &mut Shared,
        at: Moment,
    ) -> bool {
        let Some(number) = self.number(&event.attempt.task_key) else { return false };
        let row = &self.task(number).row;
        let pending = VisibilityState::Pending.text();
        let is_open = row.output_visibility_state.as_deref().is_none_or(|state| state == pending);
        let is_news =
            row.output_visibility_state.as_deref() != Some(event.visibility.visibility_state.text());
        if row.state != TaskState::Succeeded || !row.is_at(&event.attempt) || !is_open || !is_news {
            return false;
        }
        set_visibility(self.task_mut(number, at), &event.visibility);
        self.propagate(vec![number], shared, at);
        true
    }

    /// Puts a task into a final state. Its edges are resolved by [`LiveRun::propagate`].
    pub(super) fn end_task(&mut self, number: TaskNo, state: TaskState, shared: &mut Shared, at: Moment) {
        let row = self.task_mut(number, at);
        row.state = state;
        row.completed_at = Some(at.at);
        row.retry_not_before = None;
        self.count_end(state, at);
        self.release(number, shared);
    }

    /// Removes the dispatch and the timers of an attempt that no longer needs them.
    pub(super) fn release(&mut self, number: TaskNo, shared: &mut Shared) {
        let task = self.task_memory(number);
        if let Some(dispatch_id) = task.dispatch.take() {
            shared.remove_dispatch(&dispatch_id);
        }
        for timer_id in std::mem::take(&mut task.timers) {
            shared.remove_timer(&timer_id);
        }
    }
}

/// The wait after so many failed attempts.
fn wait_ms(backoff: Backoff, failed: u32) -> i64 {
    let factor = u64::from(backoff.factor.max(1)).saturating_pow(failed.saturating_sub(1));
    let seconds = u64::from(backoff.initial_seconds).saturating_mul(factor);
    i64::try_from(seconds.min(u64::from(backoff.max_seconds))).unwrap_or(i64::MAX).saturating_mul(1_000)
}

fn set_visibility(row: &mut TaskRow, visibility: &OutputVisibility) {
    row.output_visibility_state = Some(visibility.visibility_state.text().into());
    row.published_at = visibility.published_at.map(|at| at.as_millisecond());
    row.publish_error = visibility.publish_error.clone();
}

/// What an end says, whatever state follows.
fn note_end(row: &mut TaskRow, event: &TaskFinished) {
    let error = event.error.as_ref();
    row.worker_id = Some(Arc::clone(&event.worker_id));
    row.error_message = event.error_message.clone().or_else(|| error.map(|error| Arc::clone(&error.message)));
    row.error_category = error.and_then(|error| error.category.clone());
    if event.outcome != Outcome::Succeeded {
        return;
    }
    row.materialization_id = event.materialization_id.clone();
    row.asset_key = event.asset_key.clone().or(row.asset_key.take());
    row.partition_key = event.partition_key.clone().or(row.partition_key.take());
    if let Some(output) = &event.output {
        row.output = output.value.as_ref().map(|value| value.as_str().into());
        row.output_ref = output.reference.clone();
        row.delta_table = output.delta_table.clone();
        row.delta_version = output.delta_version;
        row.delta_partition = output.delta_partition.clone();
        row.execution_lineage_ref = output.execution_lineage_ref.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_between_attempts_double_up_to_a_limit_and_never_overflow() {
        let waits: Vec<i64> = (1..=7).map(|failed| wait_ms(Backoff::default(), failed) / 1_000).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(wait_ms(Backoff::default(), u32::MAX), 900_000);
        let longest = Backoff { initial_seconds: u32::MAX, factor: u32::MAX, max_seconds: u32::MAX };
        assert_eq!(wait_ms(longest, u32::MAX), i64::from(u32::MAX) * 1_000);
        let constant = Backoff { initial_seconds: 5, factor: 0, max_seconds: 60 };
        assert_eq!(wait_ms(constant, 4), 5_000, "a factor of 0 counts as 1");
    }
}
