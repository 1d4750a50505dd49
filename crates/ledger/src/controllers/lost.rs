//! The end of a lost attempt: written for exactly that attempt, so an attempt that is alive after
//! all keeps its end.

use std::sync::Arc;

use crate::event::{Attempt, Outcome, TaskError, TaskFinished};
use crate::fold::{State, TaskRef, lost_at};

/// The category of errors of attempts that took too long.
const TIMEOUT: &str = "TIMEOUT";

/// The end of the attempt of a running task that counts as lost at this time.
pub(super) fn end_of_lost(state: &State, name: &TaskRef, by: i64, ended_by: &str) -> Option<TaskFinished> {
    let task = state.task(&name.run_id, &name.task_key)?;
    if lost_at(task)? > by {
        return None;
    }
    let since = task.last_heartbeat_at.or(task.started_at).unwrap_or(by);
    let message: Arc<str> = format!(
        "the attempt counts as lost: last sign of life {} s before; heartbeat time-out {} s, time-out {}",
        by.saturating_sub(since) / 1_000,
        task.heartbeat_timeout_sec,
        task.timeout_seconds.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s")),
    )
    .into();
    Some(TaskFinished {
        attempt: Attempt {
            run_id: Arc::clone(&name.run_id),
            task_key: Arc::clone(&name.task_key),
            attempt: task.attempt,
            attempt_id: task.attempt_id.clone()?,
        },
        worker_id: ended_by.into(),
        outcome: Outcome::Failed,
        materialization_id: None,
        error_message: None,
        output: None,
        error: Some(TaskError {
            category: Some(TIMEOUT.into()),
            message,
            stack_trace: None,
            retryable: None,
        }),
        metrics: None,
        cancelled_during_phase: None,
        partial_progress_json: None,
        asset_key: None,
        partition_key: None,
        code_version: None,
    })
}
