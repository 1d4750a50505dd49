//! Names of metrics, in one place. `docs/guide/observability.md` describes each.

/// Counter: actions fired.
pub const ACTIONS_DISPATCHED: &str = "segno_actions_dispatched_total";
/// Counter with label `outcome` (completed, failed): actions that ended.
pub const ACTIONS_ENDED: &str = "segno_actions_ended_total";
/// Histogram with label `kind` (action, recurring): seconds from the time something was due to the commit that fired it.
pub const LATENESS_SECONDS: &str = "segno_actions_lateness_seconds";
/// Gauge with label `kind` (action, recurring): what is due for longer than it should be and not fired; zero when all is well.
pub const OVERDUE: &str = "segno_actions_overdue";
/// Counter with label `kind` (action, recurring): what could not be fired for the moment, and is tried again.
pub const FIRING_ERRORS: &str = "segno_actions_firing_errors_total";
