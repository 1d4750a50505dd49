//! What workers report, within limits. Long messages are cut; everything else that is too long is refused.

use std::sync::Arc;

use jiff::Timestamp;
use segno::Payload;
use serde_json::Value;

use super::error::CallbackError;
use crate::drive::limits::{
    MAX_CALLBACK_METRICS_BYTES, MAX_CALLBACK_TEXT_BYTES, MAX_ERROR_BYTES, MAX_INLINE_OUTPUT_BYTES,
};
use crate::drive::settler;
use crate::event::{
    Attempt, EventData, Outcome, OutputVisibility, TaskCompletionRecorded, TaskError, TaskFinished,
    TaskOutput, VisibilityState,
};

/// Which attempt, and which worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptName {
    /// Its number.
    pub attempt: u32,
    /// Its id.
    pub attempt_id: String,
    /// The worker.
    pub worker_id: String,
}

/// A worker has started the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedReport {
    /// Which.
    pub name: AttemptName,
}

/// The attempt is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// Which.
    pub name: AttemptName,
    /// How far it is, in percent.
    pub progress_pct: Option<u32>,
    /// What the worker adds.
    pub message: Option<String>,
}

/// The attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedReport {
    /// Which.
    pub name: AttemptName,
    /// How.
    pub outcome: Outcome,
    /// What it made.
    pub output: Option<ReportedOutput>,
    /// Why it failed.
    pub error: Option<ReportedError>,
    /// What it used, an object.
    pub metrics: Option<Value>,
    /// Where it was when it was cancelled.
    pub cancelled_during_phase: Option<String>,
    /// What it had done by then.
    pub partial_progress: Option<Payload>,
}

/// What an attempt made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedOutput {
    /// What downstream tasks read as its output.
    pub value: Option<Payload>,
    /// The id of what it made.
    pub materialization_id: Option<String>,
    /// Rows that it wrote.
    pub row_count: Option<i64>,
    /// Bytes that it wrote.
    pub byte_size: Option<i64>,
    /// Where it wrote.
    pub output_path: Option<String>,
    /// The table that it wrote.
    pub delta_table: Option<String>,
    /// The version of that table.
    pub delta_version: Option<i64>,
    /// The partition of that table.
    pub delta_partition: Option<String>,
    /// Whether readers see it.
    pub visibility: Option<VisibilityState>,
    /// Since when.
    pub published_at: Option<Timestamp>,
    /// Why they do not.
    pub publish_error: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedError {
    /// `USER_CODE`, `INFRASTRUCTURE`, `TIMEOUT`, `DATA_QUALITY`, `CONFIGURATION`, `CANCELLED` or one of the worker's own.
    pub category: Option<String>,
    /// What happened.
    pub message: String,
    /// Where it happened.
    pub stack_trace: Option<String>,
    /// Whether another attempt may succeed; by the category without it.
    pub retryable: Option<bool>,
}

impl AttemptName {
    /// Checks what the worker wrote itself. The rest is compared with the token.
    pub(super) fn check(&self) -> Result<(), CallbackError> {
        if self.worker_id.is_empty() {
            return Err(CallbackError::invalid("workerId", "is empty; write a name for the worker"));
        }
        check_text("workerId", Some(&self.worker_id))
    }
}

impl HeartbeatReport {
    pub(super) fn check(&self) -> Result<(), CallbackError> {
        self.name.check()?;
        if self.progress_pct.is_some_and(|percent| percent > 100) {
            return Err(CallbackError::invalid("progressPct", "is more than 100"));
        }
        Ok(())
    }
}

impl CompletedReport {
    pub(super) fn check(&self) -> Result<(), CallbackError> {
        self.name.check()?;
        if self.error.is_some() && self.outcome == Outcome::Succeeded {
            return Err(CallbackError::invalid(
                "error",
                "belongs to another outcome than SUCCEEDED; leave it out",
            ));
        }
        if self.outcome == Outcome::Failed && self.error.is_none() {
            return Err(CallbackError::invalid(
                "error",
                "is missing; a failure has a category and a message",
            ));
        }
        if let Some(error) = &self.error {
            check_text("error.category", error.category.as_deref())?;
        }
        check_text("cancelledDuringPhase", self.cancelled_during_phase.as_deref())?;
        let bytes = self.metrics.as_ref().map_or(0, |metrics| metrics.to_string().len());
        check_size("metrics", bytes, MAX_CALLBACK_METRICS_BYTES)?;
        let metrics = self.metrics.as_ref().and_then(Value::as_object).into_iter().flatten();
        for (name, value) in metrics {
            check_count(&format!("metrics.{name}"), value.as_i64())?;
        }
        check_json("partialProgress", self.partial_progress.as_ref(), MAX_CALLBACK_METRICS_BYTES)?;
        let Some(output) = &self.output else { return Ok(()) };
        check_json("output.value", output.value.as_ref(), MAX_INLINE_OUTPUT_BYTES)?;
        for (field, text) in [
            ("output.materializationId", &output.materialization_id),
            ("output.outputPath", &output.output_path),
            ("output.deltaTable", &output.delta_table),
            ("output.deltaPartition", &output.delta_partition),
        ] {
            check_text(field, text.as_deref())?;
        }
        for (field, count) in [
            ("output.rowCount", output.row_count),
            ("output.byteSize", output.byte_size),
            ("output.deltaVersion", output.delta_version),
        ] {
            check_count(field, count)?;
        }
        Ok(())
    }

    /// The event.
    pub(super) fn event(self, attempt: Attempt) -> EventData {
        let output = self.output.unwrap_or_default();
        let mut finished = TaskFinished {
            worker_id: self.name.worker_id.into(),
            outcome: self.outcome,
            materialization_id: text(output.materialization_id),
            metrics: self.metrics,
            cancelled_during_phase: text(self.cancelled_during_phase),
            partial_progress_json: self.partial_progress.map(|value| value.as_str().into()),
            ..settler::ended(attempt)
        };
        if let Some(error) = self.error {
            let message: Arc<str> = settler::cut(&error.message).into();
            finished.error_message = Some(Arc::clone(&message));
            let stack_trace = error.stack_trace.map(|trace| settler::cut(&trace).into());
            let (category, retryable) = (text(error.category), error.retryable);
            finished.error = Some(TaskError { category, message, stack_trace, retryable });
        }
        let visibility = output.visibility.map(|visibility_state| OutputVisibility {
            visibility_state,
            published_at: output.published_at,
            publish_error: output.publish_error.map(|reason| settler::cut(&reason).into()),
        });
        let made = TaskOutput {
            value: output.value,
            reference: None,
            row_count: output.row_count,
            byte_size: output.byte_size,
            output_path: text(output.output_path),
            delta_table: text(output.delta_table),
            delta_version: output.delta_version,
            delta_partition: text(output.delta_partition),
            execution_lineage_ref: None,
        };
        finished.output = (made != TaskOutput::default()).then_some(made);
        match visibility {
            None => finished.into(),
            Some(_) => {
                let recorded = TaskCompletionRecorded { finished, output_visibility: visibility };
                recorded.into()
            }
        }
    }
}

fn text(text: Option<String>) -> Option<Arc<str>> {
    text.map(Arc::from)
}

fn check_text(field: &'static str, text: Option<&str>) -> Result<(), CallbackError> {
    let text = text.unwrap_or_default();
    if text.len() > MAX_CALLBACK_TEXT_BYTES || text.chars().any(char::is_control) {
        let problem = format!("use at most {MAX_CALLBACK_TEXT_BYTES} bytes without control characters");
        return Err(CallbackError::invalid(field, problem));
    }
    Ok(())
}

fn check_count(field: &str, count: Option<i64>) -> Result<(), CallbackError> {
    match count.filter(|count| *count < 0) {
        Some(count) => Err(CallbackError::Invalid {
            field: field.to_owned().into(),
            problem: format!("is {count}; write a number that is not negative, or leave it out"),
        }),
        None => Ok(()),
    }
}

/// JSON that is kept as it was written. It keeps the rule of every door, so that every reader can show it.
fn check_json(field: &'static str, value: Option<&Payload>, limit: usize) -> Result<(), CallbackError> {
    let Some(value) = value else { return Ok(()) };
    check_size(field, value.as_str().len(), limit)?;
    value.check().map_err(|error| CallbackError::invalid(field, error.to_string()))
}

fn check_size(field: &'static str, bytes: usize, limit: usize) -> Result<(), CallbackError> {
    if bytes > limit {
        let problem = format!(
            "has {bytes} bytes of JSON text, the limit is {limit}; store it elsewhere and return a reference"
        );
        return Err(CallbackError::invalid(field, problem));
    }
    Ok(())
}

/// A message as heartbeats keep it.
pub(super) fn message(message: Option<String>) -> Option<Arc<str>> {
    message
        .map(|message| if message.len() > MAX_ERROR_BYTES { settler::cut(&message) } else { message }.into())
}
