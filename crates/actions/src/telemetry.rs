//! Names of metrics, in one place, and where traces come from. `docs/guide/observability.md` describes each.

use segno::telemetry::{Metric, MetricLabel, SECONDS};

/// Gives the W3C traceparent of the current span, if it is part of a trace.
pub type CurrentTrace = fn() -> Option<String>;

/// The traceparent of a span, for what is started in its name.
pub(crate) fn trace_of(span: &tracing::Span, current: Option<CurrentTrace>) -> Option<String> {
    current.and_then(|current| span.in_scope(current))
}

/// Counter: actions fired.
pub const ACTIONS_DISPATCHED: &str = "segno_actions_dispatched_total";
/// Counter with label `outcome` (completed, failed): actions that ended.
pub const ACTIONS_ENDED: &str = "segno_actions_ended_total";
/// Histogram with label `kind` (action, recurring): seconds from the time something was due to the commit that fired it.
pub const LATENESS_SECONDS: &str = "segno_actions_lateness_seconds";
/// Gauge with label `kind` (action, check, recurring, recurring_end): what is due for longer than
/// it should be and not fired; zero when all is well.
pub const OVERDUE: &str = "segno_actions_overdue";
/// Counter with label `kind` (action, check, recurring, recurring_end): what could not be fired for
/// the moment, and is tried again.
pub const FIRING_ERRORS: &str = "segno_actions_firing_errors_total";
/// Counter with label `kind` (action, recurring): what was due and was postponed because too many inputs of its tenant wait to be
/// checked.
pub const POSTPONED: &str = "segno_actions_postponed_total";
/// Counter: schemas of stored functions that were compiled, because they were new or had been evicted.
pub const SCHEMAS_COMPILED: &str = "segno_schemas_compiled_total";
/// Counter: checks of inputs and schemas that were refused because too many of their tenant wait.
pub const SCHEMA_CHECKS_REFUSED: &str = "segno_schema_checks_refused_total";
/// Counter: occurrences of recurring actions that were fired.
pub const RECURRING_DISPATCHED: &str = "segno_recurring_dispatched_total";
/// Counter: occurrences of recurring actions whose call could not be made, or failed.
pub const RECURRING_ERRORS: &str = "segno_recurring_errors_total";
/// Counter with label `reason` (overlap, paused, calendar, dedup, missed, coalesced): occurrences that were not run.
pub const RECURRING_SKIPPED: &str = "segno_recurring_skipped_total";
/// Gauge: recurring actions that are enabled, as of the last look at all of them.
pub const RECURRING_ACTIVE: &str = "segno_recurring_active";

const OUTCOMES: MetricLabel = MetricLabel::new("outcome", &["completed", "failed"]);
const FIRED: MetricLabel = MetricLabel::new("kind", &["action", "recurring"]);
const LANES: MetricLabel = MetricLabel::new("kind", &["action", "check", "recurring", "recurring_end"]);
const REASONS: MetricLabel =
    MetricLabel::new("reason", &["overlap", "paused", "calendar", "dedup", "missed", "coalesced"]);

/// All metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(ACTIONS_DISPATCHED, &[], "Actions fired."),
    Metric::counter(ACTIONS_ENDED, &[OUTCOMES], "Actions that ended."),
    Metric::histogram(
        LATENESS_SECONDS,
        SECONDS,
        "Seconds from the time something was due to the commit that fired it.",
    )
    .labelled(&[FIRED]),
    Metric::gauge(OVERDUE, &[LANES], "What is due for more than 10 s and not fired; zero when all is well."),
    Metric::counter(FIRING_ERRORS, &[LANES], "What could not be fired for the moment, and is tried again."),
    Metric::counter(
        POSTPONED,
        &[FIRED],
        "What was postponed because too many inputs of its tenant wait to be checked.",
    ),
    Metric::counter(SCHEMAS_COMPILED, &[], "Schemas of stored functions that were compiled."),
    Metric::counter(
        SCHEMA_CHECKS_REFUSED,
        &[],
        "Checks of inputs and schemas refused because too many of their tenant wait.",
    ),
    Metric::counter(RECURRING_DISPATCHED, &[], "Occurrences of recurring actions fired."),
    Metric::counter(RECURRING_ERRORS, &[], "Occurrences whose call could not be made, or failed."),
    Metric::counter(RECURRING_SKIPPED, &[REASONS], "Occurrences that were not run."),
    Metric::gauge(
        RECURRING_ACTIVE,
        &[],
        "Recurring actions that are enabled, as of the last look at all of them.",
    ),
];
