//! The metrics of the server: names, what exporters need to know, and the recorder behind `/metrics`.

use std::time::Duration;

use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use segno::clock::{self, Clock};
use segno::telemetry::{Metric, MetricKind, MetricLabel, SECONDS};
use tokio_util::sync::CancellationToken;

/// Counter: requests that senders posted to webhooks.
pub const HOOKS_RECEIVED: &str = "segno_hooks_received_total";
/// Counter with label `outcome`: requests to webhooks that were taken.
pub const HOOKS_ACCEPTED: &str = "segno_hooks_accepted_total";
/// Counter with label `reason`: requests to webhooks that were refused.
pub const HOOKS_REFUSED: &str = "segno_hooks_refused_total";
/// Counter with labels `kind` and `outcome`: reports of workers with task tokens.
pub const CALLBACKS: &str = "segno_callbacks_total";
/// Histogram: bytes of webhook bodies that were taken.
pub const HOOKS_BODY_BYTES: &str = "segno_hooks_body_bytes";
/// Counter: idle connections that gave way to new ones.
pub const CONNECTIONS_DISPLACED: &str = "segno_connections_displaced_total";
/// Counter: commits of audit entries that failed.
pub const AUDIT_FAILURES: &str = "segno_audit_write_failures_total";
/// Counter: audit entries that were dropped.
pub const AUDIT_DROPPED: &str = "segno_audit_dropped_total";
/// Counter: refused requests without an audit entry, because their key had all that it has in a minute.
pub const AUDIT_SKIPPED: &str = "segno_audit_refusals_skipped_total";
/// Counter: requests without a valid key.
pub const UNAUTHENTICATED: &str = "segno_unauthenticated_requests_total";
/// Gauge with label `queue`: messages in the store's queues.
pub const QUEUE_DEPTH: &str = "segno_queue_depth";
/// Gauge: dead letters of all tenants, up to [`MAX_COUNTED_LETTERS`].
pub const DEAD_LETTERS: &str = "segno_dead_letters";
/// Most dead letters that are counted; there may be more then.
pub const MAX_COUNTED_LETTERS: usize = 1_000;
/// Counter with labels `method`, `route` and `status`: HTTP requests that were answered or given up.
pub const HTTP_REQUESTS: &str = "segno_http_requests_total";
/// Histogram with labels `method` and `route`: seconds until the answer to an HTTP request began.
pub const HTTP_SECONDS: &str = "segno_http_request_duration_seconds";
/// Gauge: HTTP requests whose answer has not begun.
pub const HTTP_IN_FLIGHT: &str = "segno_http_requests_in_flight";

/// Counter with label `outcome`: SQL queries.
pub const SQL_QUERIES: &str = "segno_sql_queries_total";
/// Histogram: seconds of an SQL query, with its wait for a place.
pub const SQL_SECONDS: &str = "segno_sql_query_duration_seconds";
/// Counter: rows that answered SQL queries read from tables.
pub const SQL_ROWS_READ: &str = "segno_sql_rows_read_total";

/// How often samples of histograms are folded into their buckets where nothing reads `/metrics`: until then each takes
/// memory.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Upper bounds for bodies, in bytes.
const BYTES: &[f64] = &[256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

const OUTCOMES: MetricLabel =
    MetricLabel::new("outcome", &["routed", "stored", "filtered", "deduplicated", "dispatch_error"]);
const REASONS: MetricLabel = MetricLabel::new(
    "reason",
    &[
        "no_route",
        "disabled",
        "missing_signature",
        "malformed_signature",
        "wrong_signature",
        "wrong_secret",
        "outside_window",
        "secret_unavailable",
        "too_large",
        "wrong_type",
        "rate_limited",
        "unreadable",
        "invalid",
        "error",
    ],
);
const QUEUES: MetricLabel = MetricLabel::new("queue", &["orchestrator", "worker", "delayed", "locked"]);
const SQL_OUTCOMES: MetricLabel =
    MetricLabel::new("outcome", &["answered", "refused", "failed", "too-large", "timeout", "error"]);
/// Of an HTTP request. Routes are those of the router, so that their number is that of the API.
const METHOD: MetricLabel = MetricLabel::new("method", &[]);
const ROUTE: MetricLabel = MetricLabel::new("route", &[]);
const STATUS: MetricLabel = MetricLabel::new("status", &["1xx", "2xx", "3xx", "4xx", "5xx", "aborted"]);

/// All metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(HTTP_REQUESTS, &[METHOD, ROUTE, STATUS], "HTTP requests that were answered or given up."),
    Metric::histogram(HTTP_SECONDS, SECONDS, "Seconds until the answer to an HTTP request began.")
        .labelled(&[METHOD, ROUTE]),
    Metric::gauge(HTTP_IN_FLIGHT, &[], "HTTP requests whose answer has not begun."),
    Metric::gauge(QUEUE_DEPTH, &[QUEUES], "Messages in the queues of the store, all nodes together."),
    Metric::gauge(
        DEAD_LETTERS,
        &[],
        "Dead letters in the store, all tenants together; 1000 is 1000 or more.",
    ),
    Metric::counter(HOOKS_RECEIVED, &[], "Requests that senders posted to webhooks."),
    Metric::counter(HOOKS_ACCEPTED, &[OUTCOMES], "Requests to webhooks that were taken."),
    Metric::counter(HOOKS_REFUSED, &[REASONS], "Requests to webhooks that were refused."),
    Metric::counter(
        CALLBACKS,
        &[
            MetricLabel::new("kind", &["started", "heartbeat", "completed"]),
            MetricLabel::new("outcome", &["accepted", "refused"]),
        ],
        "Reports of workers with task tokens.",
    ),
    Metric::histogram(HOOKS_BODY_BYTES, BYTES, "Bytes of webhook bodies that were taken."),
    Metric::counter(CONNECTIONS_DISPLACED, &[], "Idle connections that gave way to new ones."),
    Metric::counter(AUDIT_FAILURES, &[], "Commits of audit entries that failed."),
    Metric::counter(AUDIT_DROPPED, &[], "Audit entries that were dropped."),
    Metric::counter(
        AUDIT_SKIPPED,
        &[],
        "Refused requests beyond the audit entries of their key in a minute.",
    ),
    Metric::counter(SQL_QUERIES, &[SQL_OUTCOMES], "SQL queries, by what became of them."),
    Metric::histogram(SQL_SECONDS, SECONDS, "Seconds of an SQL query, with its wait for a place."),
    Metric::counter(SQL_ROWS_READ, &[], "Rows that answered SQL queries read from tables."),
    Metric::counter(UNAUTHENTICATED, &[], "Requests without a valid key."),
];

/// Everything that a node measures.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    let rooms = segno_actions::telemetry::METRICS
        .iter()
        .chain(segno_runbook::telemetry::METRICS)
        .chain(segno_ledger::telemetry::METRICS);
    METRICS.iter().chain(segno::telemetry::METRICS).chain(rooms)
}

/// A recorder whose histograms have buckets: quantiles, which are its default, cannot be added up over nodes.
///
/// # Errors
/// Buckets of a metric are missing.
pub fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let builder = all().try_fold(PrometheusBuilder::new(), |builder, metric| match metric.kind {
        MetricKind::Histogram { buckets } => {
            builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)
        }
        MetricKind::Counter | MetricKind::Gauge => Ok(builder),
    })?;
    Ok(builder.build_recorder())
}

/// Makes such a recorder that of the process.
///
/// # Errors
/// The process has another one.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let recorder = recorder()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    all().for_each(Metric::announce);
    Ok(handle)
}

/// Keeps the memory of a recorder bounded for as long as the server runs.
pub(crate) async fn keep_up(
    metrics: PrometheusHandle,
    clock: std::sync::Arc<dyn Clock>,
    stopping: CancellationToken,
) {
    while stopping.run_until_cancelled(clock::sleep(&*clock, UPKEEP_INTERVAL)).await.is_some() {
        metrics.run_upkeep();
    }
}
