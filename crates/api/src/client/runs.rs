//! Runs of DAGs and their tasks.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use serde::Serialize;

use super::retry::IDEMPOTENCY_KEY;
use super::{Client, ClientError, PageRequest};
use crate::function::FunctionLogList;
use crate::json::Json;
use crate::run::{
    CancelRun, ClearTasks, MarkTask, RerunRun, RunChanged, RunDetails, RunList, RunStatus, RunTaskDetails,
    RunTaskList, StartRun, StartedRun, TaskStatus,
};

/// Which runs to list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListRuns {
    /// Only runs of this DAG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// Only runs in one of these states.
    #[serde(skip)]
    pub status: Vec<RunStatus>,
    /// Only runs with this label, `key=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only runs that were triggered at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_from: Option<Timestamp>,
    /// Only runs that were triggered before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_before: Option<Timestamp>,
    /// Which page.
    #[serde(flatten)]
    pub page: PageRequest,
}

/// Which tasks of a run to list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListTasks {
    /// Only tasks in one of these states.
    #[serde(skip)]
    pub status: Vec<TaskStatus>,
    /// Which page.
    #[serde(flatten)]
    pub page: PageRequest,
}

impl Client {
    /// Starts a run. The key makes the call safe to repeat.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run` when a parameter or the partition is wrong, `idempotency-mismatch` when the run key
    /// was used with another payload.
    pub async fn start_run(
        &self,
        request: &StartRun,
        idempotency_key: Option<&str>,
    ) -> Result<StartedRun, ClientError> {
        let mut call = self.request(Method::POST, &["v1", "runs"], Duration::ZERO).json(request);
        if let Some(key) = idempotency_key {
            call = call.header(IDEMPOTENCY_KEY, key);
        }
        self.read(call).await
    }

    /// A page of runs, newest first.
    ///
    /// # Errors
    /// `invalid-request` when a filter is wrong.
    pub async fn runs(&self, list: &ListRuns) -> Result<RunList, ClientError> {
        let call = self.request(Method::GET, &["v1", "runs"], Duration::ZERO).query(list);
        let statuses: Vec<_> = list.status.iter().map(|status| ("status", status)).collect();
        self.read(call.query(&statuses)).await
    }

    /// A run with its first tasks, and why it waits.
    ///
    /// # Errors
    /// `unknown-run`.
    pub async fn run(&self, id: &str) -> Result<RunDetails, ClientError> {
        self.get(&["v1", "runs", id]).await
    }

    /// A page of the tasks of a run, upstream before downstream.
    ///
    /// # Errors
    /// `unknown-run`.
    pub async fn run_tasks(&self, id: &str, list: &ListTasks) -> Result<RunTaskList, ClientError> {
        let call = self.request(Method::GET, &["v1", "runs", id, "tasks"], Duration::ZERO).query(list);
        let statuses: Vec<_> = list.status.iter().map(|status| ("status", status)).collect();
        self.read(call.query(&statuses)).await
    }

    /// A task of a run with its input and output.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`.
    pub async fn run_task(&self, id: &str, task: &str) -> Result<RunTaskDetails, ClientError> {
        self.get(&["v1", "runs", id, "tasks", task]).await
    }

    /// What a task returned, whatever its size.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `not-found` when it has returned nothing or its instance was deleted.
    pub async fn run_task_output(&self, id: &str, task: &str) -> Result<Json, ClientError> {
        self.get(&["v1", "runs", id, "tasks", task, "output"]).await
    }

    /// A page of what the tools of a task's attempts wrote to stderr.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`.
    pub async fn run_task_logs(
        &self,
        id: &str,
        task: &str,
        page: impl Into<PageRequest>,
    ) -> Result<FunctionLogList, ClientError> {
        self.get_with(&["v1", "runs", id, "tasks", task, "logs"], &page.into()).await
    }

    /// Cancels a run: tasks that have not started end at once, running ones are cancelled.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused` when it has ended.
    pub async fn cancel_run(&self, id: &str, request: &CancelRun) -> Result<RunChanged, ClientError> {
        self.post(&["v1", "runs", id, "cancel"], request).await
    }

    /// Pauses a run: no further attempts are dispatched.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused` when it has ended.
    pub async fn pause_run(&self, id: &str) -> Result<RunChanged, ClientError> {
        self.read(self.request(Method::POST, &["v1", "runs", id, "pause"], Duration::ZERO)).await
    }

    /// Resumes a paused run.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused` when it has ended.
    pub async fn resume_run(&self, id: &str) -> Result<RunChanged, ClientError> {
        self.read(self.request(Method::POST, &["v1", "runs", id, "resume"], Duration::ZERO)).await
    }

    /// Repeats a run that has ended, as a new run.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused` when it has not ended or nothing would run.
    pub async fn rerun_run(&self, id: &str, request: &RerunRun) -> Result<StartedRun, ClientError> {
        self.post(&["v1", "runs", id, "rerun"], request).await
    }

    /// Clears tasks that have ended, so that they run again in the same run.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `run-request-refused`.
    pub async fn clear_tasks(&self, id: &str, request: &ClearTasks) -> Result<RunChanged, ClientError> {
        self.post(&["v1", "runs", id, "clear"], request).await
    }

    /// Sets the state of a task by hand.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `run-request-refused`.
    pub async fn mark_task(
        &self,
        id: &str,
        task: &str,
        request: &MarkTask,
    ) -> Result<RunChanged, ClientError> {
        self.post(&["v1", "runs", id, "tasks", task, "mark"], request).await
    }
}
