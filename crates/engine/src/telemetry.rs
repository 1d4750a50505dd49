//! Names of metrics, in one place, with what exporters need to know. `docs/guide/observability.md` describes each.

use std::time::Duration;

pub use crate::metric::{Metric, MetricKind, MetricLabel};

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
/// Counter: commits that end an instance, repeated because a record of the same commit had changed.
pub const END_CONFLICTS: &str = "segno_end_conflicts_total";
/// Counter with label `queue` (orchestrator, worker): messages parked as dead letters.
pub const DEAD_LETTERS: &str = "segno_dead_letters_total";
/// Counter with label `what` (turn, activity): work that failed after too many deliveries.
pub const POISONED: &str = "segno_poisoned_total";
/// Counter: instances that retention deleted.
pub const RETENTION_INSTANCES: &str = "segno_retention_instances_deleted_total";
/// Counter: instances whose copies an archive has stored.
pub const ARCHIVED_INSTANCES: &str = "segno_retention_instances_archived_total";
/// Counter, by reason: trees that retention keeps because they are not archived.
pub const ARCHIVE_KEPT: &str = "segno_retention_trees_kept_total";
/// Counter: times at which the archive did not take a batch, so that nothing of it was deleted.
pub const ARCHIVE_FAILURES: &str = "segno_retention_archive_failures_total";
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

/// Upper bounds for waits and short work, in seconds.
pub const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];
/// Upper bounds for work that may take long, in seconds.
const LONG_SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0];
/// Upper bounds for numbers of operations.
const OPERATIONS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

const OUTCOMES: MetricLabel = MetricLabel::new("outcome", &["completed", "failed", "cancelled"]);
const ATTEMPT_OUTCOMES: MetricLabel =
    MetricLabel::new("outcome", &["completed", "failed", "cancelled", "lock_lost"]);
const PATHS: MetricLabel = MetricLabel::new("path", &["resident", "replayed"]);
const OPERATION: MetricLabel = MetricLabel::new("operation", &[]);
const KEPT_REASONS: MetricLabel = MetricLabel::new("reason", &["no_place", "unreadable", "changed"]);
const WHAT: MetricLabel = MetricLabel::new("what", &["turn", "activity"]);
const QUEUES: MetricLabel = MetricLabel::new("queue", &["orchestrator", "worker"]);

/// All metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(TURNS, &[], "Turns committed."),
    Metric::counter(INSTANCES_STARTED, &[], "First executions of instances that began."),
    Metric::counter(INSTANCES_ENDED, &[OUTCOMES], "Instances that ended."),
    Metric::counter(CONTINUED_AS_NEW, &[], "Executions that continued as new."),
    Metric::counter(
        ATTEMPTS_QUEUED,
        &[],
        "Attempts of activities put into the worker queue, retries included.",
    ),
    Metric::counter(ACTIVITY_ATTEMPTS, &[ATTEMPT_OUTCOMES], "Attempts of activities that ended."),
    Metric::histogram(ACTIVITY_SECONDS, LONG_SECONDS, "Seconds that an attempt of an activity took."),
    Metric::histogram(TURN_SECONDS, SECONDS, "Seconds from fetch to commit of a turn."),
    Metric::counter(
        EXECUTIONS_LOADED,
        &[PATHS],
        "How turns got at their execution; first turns are neither.",
    ),
    Metric::counter(STORE_ERRORS, &[OPERATION], "Passing errors of the store, which the engine retries."),
    Metric::counter(LOCKS_LOST, &[WHAT], "Locks that were gone at the commit."),
    Metric::counter(
        END_CONFLICTS,
        &[],
        "Commits that end an instance, repeated because a record of the same commit had changed.",
    ),
    Metric::counter(DEAD_LETTERS, &[QUEUES], "Messages parked as dead letters."),
    Metric::counter(POISONED, &[WHAT], "Work given up after too many deliveries."),
    Metric::counter(RETENTION_INSTANCES, &[], "Instances that retention deleted."),
    Metric::counter(ARCHIVED_INSTANCES, &[], "Instances whose copies the archive has stored."),
    Metric::counter(
        ARCHIVE_KEPT,
        &[KEPT_REASONS],
        "Trees that retention keeps because they are not archived.",
    ),
    Metric::counter(ARCHIVE_FAILURES, &[], "Batches that the archive did not take."),
    Metric::counter(
        RETENTION_EXECUTIONS,
        &[],
        "Executions that retention deleted, alone or with their instances.",
    ),
    Metric::counter(STEPS_RUN, &[], "Inline steps run."),
    Metric::histogram(TIMER_LATENESS_SECONDS, SECONDS, "Seconds by which due timers were taken up late."),
    Metric::histogram(STORE_COMMIT_SECONDS, SECONDS, "Seconds that a store needed to make a batch durable."),
    Metric::histogram(
        STORE_COMMIT_OPERATIONS,
        OPERATIONS,
        "Operations that shared one durable write of a store.",
    ),
];
