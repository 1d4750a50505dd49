//! What workers post that have a task token: the start, the heartbeats and the end of an attempt. They need no key: a token is for one
//! attempt, and expires.
//!
//! The paths are those of the contract that such workers know from elsewhere, under the `callbackBaseUrl` of the envelope.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use segno::Payload;
use segno_api::callback::{
    OutputVisibility, TaskAcknowledged, TaskAlive, TaskCompleted, TaskHeartbeat, TaskOutcome, TaskOutput,
    TaskStarted,
};
use segno_ledger::drive::{
    Acknowledged, AttemptName, CompletedReport, HeartbeatReport, ReportedError, ReportedOutput, StartedReport,
};
use segno_ledger::event::{Outcome, VisibilityState};

use super::instances::view;
use crate::app::{App, AttemptCaller};
use crate::extract::{Body, Path};
use crate::problem::Refusal;
use crate::telemetry::CALLBACKS;

pub use segno_ledger::drive::limits::MAX_CALLBACK_BODY_BYTES;

/// A worker has started the attempt. The same worker may report it again.
#[utoipa::path(post, path = "/api/v1/tasks/{task}/started", tag = "callbacks", security(()), params(
    ("task" = String, Path, description = "`taskId` of the envelope"),
), request_body = TaskStarted, responses((status = 200, body = TaskAcknowledged)))]
pub async fn started(
    State(app): State<App>,
    caller: AttemptCaller,
    Path(task): Path<String>,
    Body(report): Body<TaskStarted>,
) -> Result<Json<TaskAcknowledged>, Refusal> {
    let TaskStarted { attempt, attempt_id, worker_id, started_at: _, traceparent: _ } = report;
    let report = StartedReport { name: AttemptName { attempt, attempt_id, worker_id } };
    let work = async move { caller.started(&task, report).await };
    let done = counted("started", app.detached.run(work).await.and_then(|done| done))?;
    Ok(Json(acknowledged(done)))
}

/// The attempt is alive. The response says whether to go on, and has a token that is valid for longer.
#[utoipa::path(post, path = "/api/v1/tasks/{task}/heartbeat", tag = "callbacks", security(()), params(
    ("task" = String, Path, description = "`taskId` of the envelope"),
), request_body = TaskHeartbeat, responses((status = 200, body = TaskAlive)))]
pub async fn heartbeat(
    State(app): State<App>,
    caller: AttemptCaller,
    Path(task): Path<String>,
    Body(report): Body<TaskHeartbeat>,
) -> Result<Json<TaskAlive>, Refusal> {
    let TaskHeartbeat {
        attempt,
        attempt_id,
        worker_id,
        heartbeat_at: _,
        progress_pct,
        message,
        traceparent: _,
    } = report;
    let name = AttemptName { attempt, attempt_id, worker_id };
    let report = HeartbeatReport { name, progress_pct, message };
    let work = async move { caller.heartbeat(&task, report).await };
    let alive = counted("heartbeat", app.detached.run(work).await.and_then(|done| done))?;
    Ok(Json(TaskAlive {
        acknowledged: true,
        should_cancel: alive.should_cancel,
        cancel_reason: alive.cancel_reason,
        server_time: alive.at,
        task_token: alive.token,
        token_expires_at: alive.token_expires_at,
    }))
}

/// The attempt has ended. The same report again is acknowledged again; another one about the same attempt is refused.
#[utoipa::path(post, path = "/api/v1/tasks/{task}/completed", tag = "callbacks", security(()), params(
    ("task" = String, Path, description = "`taskId` of the envelope"),
), request_body = TaskCompleted, responses(
    (status = 200, body = TaskAcknowledged),
    (status = 202, description = "It is stored, and reads do not show it yet", body = TaskAcknowledged),
))]
pub async fn completed(
    State(app): State<App>,
    caller: AttemptCaller,
    Path(task): Path<String>,
    Body(report): Body<TaskCompleted>,
) -> Result<(StatusCode, Json<TaskAcknowledged>), Refusal> {
    let report = completed_report(report)?;
    let work = async move { caller.completed(&task, report).await };
    let done = counted("completed", app.detached.run(work).await.and_then(|done| done))?;
    let status = if done.visible { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(acknowledged(done))))
}

fn counted<T>(kind: &'static str, outcome: Result<T, Refusal>) -> Result<T, Refusal> {
    let word = if outcome.is_ok() { "accepted" } else { "refused" };
    metrics::counter!(CALLBACKS, "kind" => kind, "outcome" => word).increment(1);
    outcome
}

fn acknowledged(done: Acknowledged) -> TaskAcknowledged {
    TaskAcknowledged { acknowledged: true, is_visible: done.visible, server_time: done.at }
}

fn completed_report(report: TaskCompleted) -> Result<CompletedReport, Refusal> {
    let name =
        AttemptName { attempt: report.attempt, attempt_id: report.attempt_id, worker_id: report.worker_id };
    let outcome = match report.outcome {
        TaskOutcome::Succeeded => Outcome::Succeeded,
        TaskOutcome::Failed => Outcome::Failed,
        TaskOutcome::Skipped => Outcome::Skipped,
        TaskOutcome::Cancelled => Outcome::Cancelled,
    };
    let error = report.error.map(|error| ReportedError {
        category: error.category,
        message: error.message,
        stack_trace: error.stack_trace,
        retryable: error.retryable,
    });
    let metrics = report.metrics.map(serde_json::to_value).transpose();
    Ok(CompletedReport {
        name,
        outcome,
        output: report.output.map(output).transpose()?,
        error,
        metrics: metrics.map_err(|error| Refusal::field("metrics", error.to_string()))?,
        cancelled_during_phase: report.cancelled_during_phase,
        partial_progress: json("partialProgress", report.partial_progress)?,
    })
}

fn output(output: TaskOutput) -> Result<ReportedOutput, Refusal> {
    let visibility = output.output_visibility_state.map(|state| match state {
        OutputVisibility::Pending => VisibilityState::Pending,
        OutputVisibility::Visible => VisibilityState::Visible,
        OutputVisibility::Failed => VisibilityState::Failed,
    });
    Ok(ReportedOutput {
        value: json("output.value", output.value)?,
        materialization_id: output.materialization_id,
        row_count: output.row_count,
        byte_size: output.byte_size,
        output_path: output.output_path,
        delta_table: output.delta_table,
        delta_version: output.delta_version,
        delta_partition: output.delta_partition,
        visibility,
        published_at: output.published_at,
        publish_error: output.publish_error,
    })
}

/// JSON of a worker, under the rule of every other door: what is stored can be handed to the next task and shown.
fn json(field: &'static str, value: Option<segno_api::Json>) -> Result<Option<Payload>, Refusal> {
    value.map(|value| view::checked(field, &value)).transpose()
}
