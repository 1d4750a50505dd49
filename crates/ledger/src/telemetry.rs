//! Names of metrics, in one place. `docs/guide/observability.md` describes each.

use segno::telemetry::{Metric, MetricLabel, SECONDS};

/// Counter: events appended to the log.
pub const EVENTS: &str = "segno_ledger_events_total";
/// Counter: folds, each of which published a manifest.
pub const FOLDS: &str = "segno_ledger_folds_total";
/// Histogram: seconds from the append of a batch to the manifest that shows it.
pub const FOLD_SECONDS: &str = "segno_ledger_fold_duration_seconds";
/// Histogram: seconds from the time at which an event was written to the manifest that shows it.
pub const VISIBILITY_SECONDS: &str = "segno_ledger_visibility_seconds";
/// Counter: attempts of tasks that were started.
pub const DISPATCHES: &str = "segno_ledger_dispatches_total";
/// Histogram: seconds from the request of a dispatch to the commit that starts the call.
pub const DISPATCH_SECONDS: &str = "segno_ledger_dispatch_seconds";
/// Counter: attempts that were checked because their ends had not arrived.
pub const CHECKS: &str = "segno_ledger_call_checks_total";
/// Counter: records of the outbox that could not be read and were put aside.
pub const DEAD_LETTERS: &str = "segno_ledger_dead_letters_total";
/// Counter: calls to the object store that failed after all retries.
pub const OBJECT_ERRORS: &str = "segno_ledger_object_errors_total";
/// Counter: ledgers that no node looked after although events waited, woken by the sweep.
pub const SWEPT: &str = "segno_ledger_swept_total";
/// Counter: repairs of tasks that waited for something that should have happened long ago.
pub const REPAIRS: &str = "segno_ledger_repairs_total";
/// Gauge: events that waited to be appended at the last look, up to 1,000 records for each scope.
pub const OUTBOX_DEPTH: &str = "segno_ledger_outbox_depth";
/// Gauge: scopes that this node holds.
pub const SCOPES_HELD: &str = "segno_ledger_scopes_held";
/// Counter with label `kind`: rows written to the archive, those of merges included.
pub const ARCHIVE_ROWS: &str = "segno_archive_rows_written_total";
/// Counter: bytes of files written to the archive.
pub const ARCHIVE_BYTES: &str = "segno_archive_written_bytes_total";
/// Gauge: 1 while this node cannot write to the archive, so that retention deletes nothing.
pub const ARCHIVE_FAILING: &str = "segno_archive_failing";
/// Counter: files of the archive that were merged into others.
pub const ARCHIVE_FILES_MERGED: &str = "segno_archive_files_merged_total";
/// Counter: files of the archive that its own retention removed.
pub const ARCHIVE_FILES_EXPIRED: &str = "segno_archive_files_expired_total";
/// Counter: times at which records whose time was over could not be archived or removed.
pub const ARCHIVE_RETIRE_FAILURES: &str = "segno_archive_retire_failures_total";
/// Counter: records that stay in the store, because what they have cannot be read.
pub const ARCHIVE_RECORDS_KEPT: &str = "segno_archive_records_kept_total";
/// Counter: times at which files of the archive could not be merged or removed.
pub const ARCHIVE_UPKEEP_FAILURES: &str = "segno_archive_upkeep_failures_total";

const ARCHIVE_KINDS: MetricLabel = MetricLabel::new(
    "kind",
    &[
        "actions",
        "audit",
        "batches",
        "events",
        "instances",
        "members",
        "phases",
        "recurring_history",
        "steps",
    ],
);

/// Gauge: scopes that this node could not drive at its last try.
pub const SCOPES_STUCK: &str = "segno_ledger_scopes_stuck";

/// Gauge: seconds for which the oldest event has waited to be folded, at the last look.
pub const FOLD_LAG_SECONDS: &str = "segno_ledger_fold_lag_seconds";

/// All metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(EVENTS, &[], "Events appended to the ledger."),
    Metric::counter(FOLDS, &[], "Folds of the ledger, each of which published a manifest."),
    Metric::histogram(
        FOLD_SECONDS,
        SECONDS,
        "Seconds from the append of events to the manifest that shows them.",
    ),
    Metric::histogram(
        VISIBILITY_SECONDS,
        SECONDS,
        "Seconds from the time at which an event was written to the manifest that shows it.",
    ),
    Metric::counter(DISPATCHES, &[], "Attempts of tasks of DAG runs started."),
    Metric::histogram(
        DISPATCH_SECONDS,
        SECONDS,
        "Seconds from the request of a dispatch to the commit that starts the call.",
    ),
    Metric::counter(CHECKS, &[], "Attempts of tasks checked because their ends had not arrived."),
    Metric::counter(
        DEAD_LETTERS,
        &[],
        "Records of the ledger's outbox that could not be read and were put aside.",
    ),
    Metric::counter(OBJECT_ERRORS, &[], "Calls to the ledger's object store that failed after all retries."),
    Metric::counter(SWEPT, &[], "Ledgers woken by the sweep: events waited and no node looked after them."),
    Metric::counter(REPAIRS, &[], "Repairs of tasks that waited for something that should have happened."),
    Metric::gauge(OUTBOX_DEPTH, &[], "Events that waited to be appended at the last look."),
    Metric::gauge(SCOPES_HELD, &[], "Ledgers that this node holds."),
    Metric::counter(ARCHIVE_ROWS, &[ARCHIVE_KINDS], "Rows written to the archive, those of merges included."),
    Metric::counter(ARCHIVE_BYTES, &[], "Bytes of files written to the archive."),
    Metric::gauge(ARCHIVE_FAILING, &[], "1 while this node cannot write to the archive."),
    Metric::counter(ARCHIVE_FILES_MERGED, &[], "Files of the archive merged into others."),
    Metric::counter(ARCHIVE_FILES_EXPIRED, &[], "Files of the archive removed by its own retention."),
    Metric::counter(
        ARCHIVE_UPKEEP_FAILURES,
        &[],
        "Times at which files of the archive could not be merged or removed.",
    ),
    Metric::counter(
        ARCHIVE_RETIRE_FAILURES,
        &[],
        "Times at which records whose time was over could not be archived or removed.",
    ),
    Metric::counter(
        ARCHIVE_RECORDS_KEPT,
        &[],
        "Records that stay in the store because what they have cannot be read.",
    ),
    Metric::gauge(FOLD_LAG_SECONDS, &[], "Seconds for which the oldest event has waited to be folded."),
    Metric::gauge(SCOPES_STUCK, &[], "Ledgers that this node could not drive at its last try."),
];

/// Shows the gauges from the start: a series that begins late hides its first value.
pub(crate) fn show() {
    metrics::gauge!(OUTBOX_DEPTH).set(0.0);
    metrics::gauge!(SCOPES_HELD).increment(0.0);
    metrics::gauge!(SCOPES_STUCK).set(0.0);
    metrics::gauge!(FOLD_LAG_SECONDS).set(0.0);
    metrics::gauge!(ARCHIVE_FAILING).increment(0.0);
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

/// The same for those of an archive.
pub(crate) fn show_archive() {
    metrics::gauge!(ARCHIVE_FAILING).set(0.0);
}
