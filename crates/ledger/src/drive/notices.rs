//! Notices: the function that a DAG names under `notify` is called when a run of it fails, when a task fails for good, and when
//! an asset is stale. A notice is a call of its own, under an id that follows from what it is about: it is made once.

use std::sync::Arc;

use jiff::Timestamp;
use segno::Payload;
use segno::store::{ErrorKind, RecordBatch};
use segno_actions::functions::{FunctionError, FunctionName, InvokeRequest, Scope, Settle};
use serde_json::{Value, json};

use super::error::{DriveError, LedgerError};
use super::holder::{Held, Services};
use super::limits::MAX_TASK_NOTICES;
use super::settler::SETTLE_KIND;
use crate::fold::FailedRun;
use crate::plan::definition::{Notify, NotifyEvent};
use crate::tables::{RunRow, RunState, TaskRow};

/// What the jobs of notices begin with.
const JOBS: [&str; 2] = ["notify:", "stale:"];

/// Whether a call is a notice: nothing waits for its end.
pub(super) fn is_notice(job: &str) -> bool {
    JOBS.iter().any(|prefix| job.starts_with(prefix))
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// It is part of the commit, or can never be sent.
    Done,
    /// It cannot be sent now: too much waits.
    Later,
}

impl Held {
    /// Adds the notices of what failed to the next commit. Those that cannot be sent now are sent with a later one.
    pub(super) async fn notify(&mut self, failed: Vec<FailedRun>) -> Result<(), DriveError> {
        self.unsent.extend(failed);
        for failed in std::mem::take(&mut self.unsent) {
            if self.send_notices(&failed).await? == Notice::Later {
                self.unsent.push(failed);
            }
        }
        Ok(())
    }

    async fn send_notices(&mut self, failed: &FailedRun) -> Result<Notice, DriveError> {
        let FailedRun { run, tasks, first } = failed;
        let notify = match notify_of(&self.services, &self.scope, run).await {
            Ok(Some(notify)) => notify,
            Ok(None) => return Ok(Notice::Done),
            Err(LedgerError::Busy) => return Ok(Notice::Later),
            Err(error) => return Err(error.into()),
        };
        let mut notices = Vec::new();
        if run.state == RunState::Failed && notify.on.contains(&NotifyEvent::RunFailed) {
            let job = format!("notify:{}:{}", run.run_id, run.generation);
            notices.push((job, about_run(&self.scope, run, first.as_ref())));
        }
        // A run whose tasks fail one after the other says so by its end.
        if notify.on.contains(&NotifyEvent::TaskFailed) && run.tasks_failed <= MAX_TASK_NOTICES {
            notices.extend(tasks.iter().map(|task| {
                let job = format!("notify:{}:{}:{}", run.run_id, task.task_key, task.attempt);
                (job, about_task(&self.scope, run, task))
            }));
        }
        for (job, input) in &notices {
            let about = (job.as_str(), notify.function.as_str(), input);
            if add(&self.services, &mut self.commit, &self.scope, about).await? == Notice::Later {
                return Ok(Notice::Later);
            }
        }
        Ok(Notice::Done)
    }
}

/// Who is told about a run; nothing if its DAG names no function, or cannot be read any more.
async fn notify_of(services: &Services, scope: &Scope, run: &RunRow) -> Result<Option<Notify>, LedgerError> {
    let version = run.code_version.as_deref().and_then(|version| version.parse().ok());
    let (Some(version), Some(dag)) = (version, run.dag.as_deref()) else { return Ok(None) };
    match services.ledger.definitions().parsed(scope, dag, Some(version)).await {
        Ok((_, parsed)) => Ok(parsed.dag.notify.clone()),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        Err(_) => Ok(None),
    }
}

/// Adds the call of a notice to a commit. One whose function is not there is left out: nothing waits for it.
pub(super) async fn add(
    services: &Services,
    batch: &mut RecordBatch,
    scope: &Scope,
    (job, function, input): (&str, &str, &Value),
) -> Result<Notice, DriveError> {
    let added = match (FunctionName::new(function), Payload::encode(input)) {
        (Ok(function), Ok(input)) => {
            let request = InvokeRequest::new(function, input);
            let settle = Settle::new(SETTLE_KIND, job);
            services.calls.add_call(batch, scope, (job, settle), request).await.map(drop)
        }
        (Err(error), _) => Err(error),
        (_, Err(error)) => {
            Err(FunctionError::InvalidInvocation { field: "input", problem: error.to_string() })
        }
    };
    match added {
        Err(FunctionError::Busy) => Ok(Notice::Later),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error.into()),
        Err(error) => {
            tracing::warn!(scope = %scope.id_prefix(), job, function, %error, "a notice cannot be sent");
            Ok(Notice::Done)
        }
        Ok(()) => Ok(Notice::Done),
    }
}

fn about_run(scope: &Scope, run: &RunRow, first: Option<&TaskRow>) -> Value {
    json!({
        "event": "run_failed",
        "namespace": scope.namespace.as_str(),
        "tenant": scope.tenant.as_str(),
        "dag": run.dag.as_deref(),
        "dag_version": dag_version(run),
        "run_id": &*run.run_id,
        "triggered_at": time(run.triggered_at),
        "completed_at": run.completed_at.and_then(time),
        "tasks_failed": run.tasks_failed,
        "reason": reason(run, first),
    })
}

/// The version of the DAG, a number as everywhere else.
fn dag_version(run: &RunRow) -> Option<u32> {
    run.code_version.as_deref()?.parse().ok()
}

/// Why a run has failed: what the run itself knows, or else the failure of its first task that did.
fn reason(run: &RunRow, first: Option<&TaskRow>) -> Option<String> {
    if let Some(reason) = &run.reason {
        return Some(reason.to_string());
    }
    let first = first?;
    let error = first.error_message.as_deref().unwrap_or("it gave no reason");
    let others = match run.tasks_failed.saturating_sub(1) {
        0 => String::new(),
        1 => " (and 1 other task failed)".to_owned(),
        more => format!(" (and {more} other tasks failed)"),
    };
    Some(format!("task {} failed: {error}{others}", first.task_key))
}

fn about_task(scope: &Scope, run: &RunRow, task: &TaskRow) -> Value {
    json!({
        "event": "task_failed",
        "namespace": scope.namespace.as_str(),
        "tenant": scope.tenant.as_str(),
        "dag": run.dag.as_deref(),
        "dag_version": dag_version(run),
        "run_id": &*run.run_id,
        "task": &*task.task_key,
        "attempt": task.attempt,
        "partition": task.partition_key.as_deref(),
        "error": task.error_message.as_deref(),
        "error_category": task.error_category.as_deref(),
    })
}

/// A stored time as callers write it.
pub(super) fn time(at_ms: i64) -> Option<Arc<str>> {
    Timestamp::from_millisecond(at_ms).ok().map(|at| at.to_string().into())
}
