//! Whether the server is up, whether it can work, and what it has measured.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use segno_api::Problem;
use segno_api::system::Health;
use segno_ledger::telemetry::FOLD_LAG_SECONDS;

use crate::app::{App, System};
use crate::problem::{Code, Refusal};
use crate::telemetry::{DEAD_LETTERS, QUEUE_DEPTH};

/// Whether the process is up.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Health)))]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok".to_owned(), warnings: Vec::new() })
}

/// Whether the server can work: it is not stopping, and its store answers. Warnings name what else fails: an archive that takes no
/// writes; a ledger that cannot be read or written, or whose events are not folded.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Health),
    (status = 503, body = Problem, content_type = "application/problem+json"),
))]
pub async fn readyz(State(app): State<App>) -> Result<Json<Health>, Refusal> {
    if app.stopping.is_cancelled() {
        return Err(Refusal::new(Code::Unavailable, "the server is stopping"));
    }
    app.check_ready().await?;
    Ok(Json(Health { status: "ok".to_owned(), warnings: app.warnings().await }))
}

/// What the server has measured, in Prometheus' format.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, content_type = "text/plain", body = String),
))]
pub async fn metrics(State(app): State<App>, stored: System) -> Result<Response, Refusal> {
    let Some(metrics) = &app.metrics else {
        return Err(Refusal::new(Code::NotFound, "this server does not collect metrics"));
    };
    let depths = stored.queue_depths().await?;
    for (queue, length) in [
        ("orchestrator", depths.orchestrator_queue),
        ("worker", depths.worker_queue),
        ("delayed", depths.delayed()),
        ("locked", depths.locked),
    ] {
        metrics::gauge!(QUEUE_DEPTH, "queue" => queue).set(length as f64);
    }
    metrics::gauge!(DEAD_LETTERS).set(stored.dead_letters().await? as f64);
    if let Some(lag) = stored.fold_lag().await? {
        metrics::gauge!(FOLD_LAG_SECONDS).set(lag.as_secs_f64());
    }
    let text = metrics.render();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
