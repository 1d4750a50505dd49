//! Names of metrics, in one place. `docs/guide/observability.md` describes each.

use std::time::Duration;

/// Counter: turns committed.
pub const TURNS: &str = "segno_turns_total";
/// Counter: instances started (their first execution).
pub const INSTANCES_STARTED: &str = "segno_instances_started_total";
/// Counter with label `outcome` (completed, failed, cancelled): instances ended.
pub const INSTANCES_ENDED: &str = "segno_instances_ended_total";
/// Counter: executions that continued as new.
pub const CONTINUED_AS_NEW: &str = "segno_continued_as_new_total";
/// Counter: attempts of activities put into the worker queue, retries included.
pub const ATTEMPTS_QUEUED: &str = "segno_activity_attempts_queued_total";
/// Counter with label `outcome` (completed, failed, cancelled, lock_lost): attempts of activities that ended.
pub const ACTIVITY_ATTEMPTS: &str = "segno_activity_attempts_total";
/// Histogram: seconds that an attempt of an activity took.
pub const ACTIVITY_SECONDS: &str = "segno_activity_duration_seconds";
/// Histogram: seconds from fetch to commit of a turn.
pub const TURN_SECONDS: &str = "segno_turn_duration_seconds";
/// Counter with label `path` (resident, replayed): how turns got at their execution.
pub const EXECUTIONS_LOADED: &str = "segno_executions_loaded_total";
/// Counter with label `operation`: errors of the store, retried by the engine.
pub const STORE_ERRORS: &str = "segno_store_errors_total";
/// Counter with label `what` (turn, activity): locks that were lost before the commit.
pub const LOCKS_LOST: &str = "segno_locks_lost_total";
/// Counter with label `queue` (orchestrator, worker): messages parked as dead letters.
pub const DEAD_LETTERS: &str = "segno_dead_letters_total";
/// Counter with label `what` (turn, activity): work that was given up after too many deliveries.
pub const POISONED: &str = "segno_poisoned_total";
/// Counter: instances that retention deleted.
pub const RETENTION_INSTANCES: &str = "segno_retention_instances_deleted_total";
/// Counter: executions that retention deleted, alone or with their instances.
pub const RETENTION_EXECUTIONS: &str = "segno_retention_executions_deleted_total";
/// Counter: inline steps run.
pub const STEPS_RUN: &str = "segno_steps_run_total";
/// Histogram: seconds by which timers fired late.
pub const TIMER_LATENESS_SECONDS: &str = "segno_timer_lateness_seconds";
/// Histogram: seconds that a store needed to make a batch durable.
pub const STORE_COMMIT_SECONDS: &str = "segno_store_commit_duration_seconds";
/// Histogram: operations that shared one durable write of a store.
pub const STORE_COMMIT_OPERATIONS: &str = "segno_store_commit_operations";

/// Stores call this when a batch of operations is durable.
pub fn store_committed(took: Duration, operations: usize) {
    metrics::histogram!(STORE_COMMIT_SECONDS).record(took.as_secs_f64());
    metrics::histogram!(STORE_COMMIT_OPERATIONS).record(operations as f64);
}
