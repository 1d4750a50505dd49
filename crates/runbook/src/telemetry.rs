//! Names of metrics, in one place. `docs/guide/observability.md` describes each.

use segno::telemetry::{Metric, MetricLabel, SECONDS};

use crate::bus;
use crate::rows::RowState;

/// Counter with labels `kind` (step, init, rollback, removal) and `status`: steps that got into a
/// state.
pub const STEPS: &str = "segno_runbook_steps_total";
/// Counter with label `kind` (attempt, poll): jobs dispatched.
pub const DISPATCHES: &str = "segno_runbook_dispatches_total";
/// Counter with label `outcome` (completed, failed, cancelled): batches that ended.
pub const BATCHES_ENDED: &str = "segno_runbook_batches_ended_total";
/// Histogram: seconds from the time a row was due to the commit that took it up.
pub const LATENESS_SECONDS: &str = "segno_runbook_lateness_seconds";
/// Counter: calls that were looked after because their results had not arrived.
pub const CALL_CHECKS: &str = "segno_runbook_call_checks_total";
/// Counter: messages of batches that could not be read and were put off.
pub const UNREADABLE_MESSAGES: &str = "segno_runbook_unreadable_messages_total";
/// Gauge: messages that waited for batches of this node at the last look, up to 1,000 each.
pub const INBOX_DEPTH: &str = "segno_runbook_inbox_depth";
/// Gauge: batches that this node holds.
pub const BATCHES_HELD: &str = "segno_runbook_batches_held";

/// Gauge: rows that wait without a wake-up, by the last audit; zero when all is well.
pub const UNATTENDED_ROWS: &str = "segno_runbook_unattended_rows";
/// Counter: batches that were deleted with all their rows.
pub const BATCHES_DELETED: &str = "segno_runbook_batches_deleted_total";
/// Counter: sets of members whose removal by a query was left waiting for approval.
pub const REMOVALS_HELD: &str = "segno_runbook_removals_held_total";

/// Counter with labels `topic` and `event` (sent, received, completed, abandoned, dead_lettered):
/// messages of the bus.
pub const BUS_MESSAGES: &str = "segno_bus_messages_total";
/// Gauge with label `topic`: age of the oldest message that waits to be sent or received.
pub const BUS_OLDEST_SECONDS: &str = "segno_bus_oldest_waiting_seconds";

const STATES: MetricLabel = MetricLabel::new(
    "status",
    &[
        "pending",
        "dispatched",
        "succeeded",
        "failed",
        "polling",
        "poll_timeout",
        "rolled_back",
        "cancelled",
        "skipped",
    ],
);
const KINDS: MetricLabel = MetricLabel::new("kind", &["step", "init", "rollback", "removal"]);
const JOBS: MetricLabel = MetricLabel::new("kind", &["attempt", "poll"]);
const OUTCOMES: MetricLabel = MetricLabel::new("outcome", &["completed", "failed", "cancelled"]);
const TOPICS: MetricLabel = MetricLabel::new("topic", &["orchestrator-events", "jobs", "results", "other"]);
const BUS_TOPICS: MetricLabel = MetricLabel::new("topic", &["orchestrator-events", "jobs", "results"]);
const MESSAGE_EVENTS: MetricLabel =
    MetricLabel::new("event", &["sent", "received", "completed", "abandoned", "dead_lettered"]);

/// All metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(STEPS, &[KINDS, STATES], "Steps of batches that got into a state."),
    Metric::counter(DISPATCHES, &[JOBS], "Jobs of batches dispatched."),
    Metric::counter(BATCHES_ENDED, &[OUTCOMES], "Batches that ended."),
    Metric::histogram(
        LATENESS_SECONDS,
        SECONDS,
        "Seconds from the time a row of a batch was due to the commit that took it up.",
    ),
    Metric::counter(CALL_CHECKS, &[], "Calls looked after because their results had not arrived."),
    Metric::counter(
        UNREADABLE_MESSAGES,
        &[],
        "Messages of batches that could not be read, each time they were put off.",
    ),
    Metric::gauge(INBOX_DEPTH, &[], "Messages that waited for batches of this node at the last look."),
    Metric::gauge(BATCHES_HELD, &[], "Batches that this node holds."),
    Metric::gauge(
        UNATTENDED_ROWS,
        &[],
        "Rows that wait without a wake-up, by the last audit; zero when all is well.",
    ),
    Metric::counter(BATCHES_DELETED, &[], "Batches that were deleted with all their rows."),
    Metric::counter(REMOVALS_HELD, &[], "Sets of members whose removal by a query waits for approval."),
    Metric::counter(BUS_MESSAGES, &[TOPICS, MESSAGE_EVENTS], "Messages of the bus."),
    Metric::gauge(
        BUS_OLDEST_SECONDS,
        &[BUS_TOPICS],
        "Age of the oldest message of the bus that waits to be sent or received.",
    ),
];

/// What happens to a message of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEvent {
    /// It was sent.
    Sent,
    /// It was received and locked.
    Received,
    /// It was completed.
    Completed,
    /// Its lock was given up.
    Abandoned,
    /// It became a dead letter.
    DeadLettered,
}

/// Counts messages of the bus. Topics that are none of the program share a label: senders choose
/// their names.
pub fn count_messages(topic: &str, event: MessageEvent, count: usize) {
    let topic = match topic {
        bus::ORCHESTRATOR_EVENTS => bus::ORCHESTRATOR_EVENTS,
        bus::JOBS => bus::JOBS,
        bus::RESULTS => bus::RESULTS,
        _ => "other",
    };
    let event = match event {
        MessageEvent::Sent => "sent",
        MessageEvent::Received => "received",
        MessageEvent::Completed => "completed",
        MessageEvent::Abandoned => "abandoned",
        MessageEvent::DeadLettered => "dead_lettered",
    };
    if count > 0 {
        metrics::counter!(BUS_MESSAGES, "topic" => topic, "event" => event).increment(count as u64);
    }
}

/// Shows gauges of a node that has no batch yet: zero is not the same as unknown.
pub(crate) fn show(gauges: &[&'static str]) {
    gauges.iter().for_each(|gauge| metrics::gauge!(*gauge).increment(0.0));
}

/// Counts what a commit changed.
pub(crate) fn count_states(states: &[RowState]) {
    for state in states {
        let (kind, status) = match *state {
            RowState::Step { status, .. } => ("step", status),
            RowState::Init { status, .. } => ("init", status),
            RowState::Rollback { status, .. } => ("rollback", status),
            RowState::Removal { status, .. } => ("removal", status),
            RowState::Batch { status, .. } => {
                if status.is_terminal() {
                    metrics::counter!(BATCHES_ENDED, "outcome" => status.name()).increment(1);
                }
                continue;
            }
            RowState::Phase { .. } | RowState::Member { .. } => continue,
        };
        metrics::counter!(STEPS, "kind" => kind, "status" => status.name()).increment(1);
    }
}

/// Counts a job that was dispatched.
pub(crate) fn count_dispatch(job_id: &str) {
    let is_poll = job_id.rsplit_once("-poll-").is_some_and(|(_, number)| number.parse::<u32>().is_ok());
    metrics::counter!(DISPATCHES, "kind" => if is_poll { "poll" } else { "attempt" }).increment(1);
}

/// A share of a gauge, which goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    gauge: &'static str,
    value: usize,
}

impl Share {
    /// A share with a value.
    pub(crate) fn new(gauge: &'static str, value: usize) -> Self {
        let mut share = Share { gauge, value: 0 };
        share.set(value);
        share
    }

    /// Changes the value.
    #[expect(clippy::cast_precision_loss, reason = "gauges are doubles, and counts here are small")]
    pub(crate) fn set(&mut self, value: usize) {
        if value != self.value {
            metrics::gauge!(self.gauge).increment(value as f64 - self.value as f64);
            self.value = value;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
