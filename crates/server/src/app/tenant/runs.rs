//! Runs of a tenant: started, listed, shown, and what is requested of them.

use segno::Payload;
use segno_api::Json;
use segno_api::asset::AssetPartition;
use segno_api::run::{
    self as wire, ClearTasks, MarkTask, MarkedStatus, RerunFrom, RerunRun, RunChanged, RunDetails, RunTask,
    RunTaskDetails, StartRun, StartedRun,
};
use segno_ledger::drive::{
    self, Accepted, LedgerError, Request, Rerun, RunDetail, RunPage, RunQuery, TaskQuery,
};
use segno_ledger::event::MarkedState;
use segno_ledger::snapshot::{Part, Snapshot};
use segno_ledger::tables::{Cell, Row, TaskRow, TaskState};

use super::dags::MAX_SHOWN_TASKS;
use super::run_rows as rows;
use super::{Requester, Tenant};
use crate::problem::{Code, Refusal};

/// Most bytes of the outputs of the items of a list that one answer has.
const MAX_LIST_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

impl Tenant {
    /// Starts a run.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run`, `idempotency-mismatch`.
    pub async fn start_run(&self, request: StartRun, requester: Requester) -> Result<StartedRun, Refusal> {
        let wanted = drive::StartRun {
            dag: request.dag,
            version: request.version,
            params: request.params,
            partition: request.partition,
            select: request.select,
            run_key: request.run_key,
            labels: request.labels,
            by: requester.by,
            request_id: requester.key,
        };
        let started = self.ledger()?.runs().start(&self.owner(), wanted).await;
        started.map(started_run).map_err(|error| self.refused(error))
    }

    /// Repeats a run.
    ///
    /// # Errors
    /// `unknown-run`, `invalid-run`, `run-request-refused`.
    pub async fn rerun_run(
        &self,
        id: &str,
        request: RerunRun,
        requester: Requester,
    ) -> Result<StartedRun, Refusal> {
        let RerunRun { from, tasks, downstream } = request;
        let rerun = match from {
            RerunFrom::Failure if !tasks.is_empty() || downstream => {
                return Err(Refusal::field("from", "must be subset to name tasks"));
            }
            RerunFrom::Failure => Rerun::FromFailure,
            RerunFrom::Subset => Rerun::Tasks { tasks, downstream },
        };
        let started = self.ledger()?.runs().rerun(&self.owner(), id, rerun, by(requester, None)).await;
        started.map(started_run).map_err(|error| self.refused(error))
    }

    /// Runs that match, newest first.
    ///
    /// # Errors
    /// `invalid-run` for a cursor that is none.
    pub async fn runs(&self, query: &RunQuery) -> Result<RunPage, Refusal> {
        self.ledger()?.runs().list(&self.owner(), query).await.map_err(|error| self.refused(error))
    }

    /// A run as it is shown in lists.
    pub fn shown_run(&self, row: &segno_ledger::tables::RunRow) -> wire::Run {
        rows::run(row)
    }

    /// The newest snapshot of the tables of runs; nothing before the first run, and on a server without a ledger.
    ///
    /// # Errors
    /// `ledger-unavailable`.
    pub async fn run_tables(&self) -> Result<Option<Snapshot>, Refusal> {
        let Some(ledger) = self.resources().ledger.as_ref() else { return Ok(None) };
        ledger.snapshot(&self.owner()).await.map_err(|error| self.refused(error))
    }

    /// Some columns of a part of a table of runs.
    ///
    /// # Errors
    /// `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn run_cells<R: Row>(
        &self,
        snapshot: &Snapshot,
        part: &Part,
        columns: &[&str],
    ) -> Result<Vec<Vec<Cell>>, Refusal> {
        snapshot.scan::<R>(part, columns).await.map_err(|error| self.refused(LedgerError::from(error)))
    }

    /// The rows of a run as the ledger has them.
    ///
    /// # Errors
    /// `unknown-run`.
    pub async fn run_rows(&self, id: &str) -> Result<RunDetail, Refusal> {
        self.run_detail(id).await
    }

    async fn run_detail(&self, id: &str) -> Result<RunDetail, Refusal> {
        self.ledger()?.runs().show(&self.owner(), id).await.map_err(|error| self.refused(error))
    }

    /// A run with its first tasks, and why it waits.
    ///
    /// # Errors
    /// `unknown-run`.
    pub async fn run(&self, id: &str) -> Result<RunDetails, Refusal> {
        let detail = self.run_detail(id).await?;
        Ok(RunDetails {
            run: rows::run(&detail.run),
            params: rows::params(&detail.run),
            partition: rows::partition(&detail.tasks),
            waits: rows::run_wait(&detail),
            tasks: rows::sorted(&detail)
                .take(MAX_SHOWN_TASKS)
                .map(|task| self.shown_task(&detail, task))
                .collect(),
        })
    }

    /// Some tasks of a run, by key.
    ///
    /// # Errors
    /// `unknown-run`.
    pub async fn run_tasks(&self, id: &str, query: &TaskQuery) -> Result<Vec<RunTask>, Refusal> {
        let found = self.ledger()?.runs().tasks(&self.owner(), id, query).await;
        let detail = found.map_err(|error| self.refused(error))?;
        Ok(detail.tasks.iter().map(|task| self.shown_task(&detail, task)).collect())
    }

    /// A task of a run with its input and output.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`.
    pub async fn run_task(&self, id: &str, key: &str) -> Result<RunTaskDetails, Refusal> {
        let detail = self.task_detail(id, key).await?;
        let task = self.find_task(&detail, key)?;
        let json = |text: &Option<std::sync::Arc<str>>| {
            text.as_deref().and_then(|text| Json::from_text(text.to_owned()).ok())
        };
        let output_ref = task.output_ref.as_deref();
        Ok(RunTaskDetails {
            input: rows::input(task),
            output: json(&task.output),
            output_ref: output_ref.map(|stored| self.shown_reference(stored)),
            task: self.shown_task(&detail, task),
        })
    }

    /// What a task returned, whatever its size.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `not-found` when it has returned nothing that is kept.
    pub async fn run_task_output(&self, id: &str, key: &str) -> Result<Json, Refusal> {
        let detail = self.run_detail(id).await?;
        let task = self.find_task(&detail, key)?;
        let broken = |error: serde_json::Error| {
            tracing::error!(%error, "the output of a task cannot be shown");
            Refusal::new(Code::Internal, "the output cannot be shown; the server's log has the reason")
        };
        let nothing = || {
            let detail = format!("task {key:?} of run {id:?} has returned nothing");
            Refusal::new(Code::NotFound, detail)
        };
        let text = if task.added_count.is_none() {
            self.output_text(task).await?.ok_or_else(nothing)?
        } else if task.state == TaskState::Succeeded {
            self.output_text_of_items(&detail.tasks, task).await?
        } else {
            return Err(nothing());
        };
        Json::from_text(text).map_err(broken)
    }

    /// What an attempt has returned, as JSON.
    async fn output_text(&self, task: &TaskRow) -> Result<Option<String>, Refusal> {
        if let Some(output) = &task.output {
            return Ok(Some(output.to_string()));
        }
        let Some(reference) = &task.output_ref else { return Ok(None) };
        let instance = self.instance(&self.shown_reference(reference)).await?;
        match instance.result() {
            Some(payload) => Ok(Some(payload.as_str().to_owned())),
            None => Err(Refusal::not_found("result of instance", &self.shown_reference(reference))),
        }
    }

    /// What the items of a list have returned, as a JSON list.
    async fn output_text_of_items(&self, tasks: &[TaskRow], list: &TaskRow) -> Result<String, Refusal> {
        let mut text = String::from("[");
        for item in drive::items(tasks, list) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(self.output_text(item).await?.as_deref().unwrap_or("null"));
            if text.len() > MAX_LIST_OUTPUT_BYTES {
                let problem = format!(
                    "its items have returned more than {MAX_LIST_OUTPUT_BYTES} bytes; read the output of each, such as {}",
                    item.task_key
                );
                return Err(Refusal::field("task", problem));
            }
        }
        text.push(']');
        Ok(text)
    }

    /// The instance of the last attempt of a task.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`.
    pub async fn instance_of_task(&self, id: &str, key: &str) -> Result<Option<String>, Refusal> {
        let detail = self.task_detail(id, key).await?;
        let task = self.find_task(&detail, key)?;
        Ok(self.attempt_instance(task))
    }

    /// Cancels a run.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused`.
    pub async fn cancel_run(
        &self,
        id: &str,
        reason: Option<String>,
        requester: Requester,
    ) -> Result<RunChanged, Refusal> {
        let done = self.ledger()?.runs().cancel(&self.owner(), id, by(requester, reason)).await;
        done.map(changed(id)).map_err(|error| self.refused(error))
    }

    /// Pauses a run.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused`.
    pub async fn pause_run(&self, id: &str, requester: Requester) -> Result<RunChanged, Refusal> {
        let done = self.ledger()?.runs().pause(&self.owner(), id, by(requester, None)).await;
        done.map(changed(id)).map_err(|error| self.refused(error))
    }

    /// Resumes a paused run.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused`.
    pub async fn resume_run(&self, id: &str, requester: Requester) -> Result<RunChanged, Refusal> {
        let done = self.ledger()?.runs().resume(&self.owner(), id, by(requester, None)).await;
        done.map(changed(id)).map_err(|error| self.refused(error))
    }

    /// Clears tasks of a run.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `run-request-refused`.
    pub async fn clear_tasks(
        &self,
        id: &str,
        request: ClearTasks,
        requester: Requester,
    ) -> Result<RunChanged, Refusal> {
        let clear = drive::ClearTasks { tasks: request.tasks, downstream: request.downstream };
        let done = self.ledger()?.runs().clear(&self.owner(), id, clear, by(requester, None)).await;
        done.map(changed(id)).map_err(|error| self.refused(error))
    }

    /// Sets the state of a task by hand.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `run-request-refused`.
    pub async fn mark_task(
        &self,
        (id, task): (&str, String),
        request: MarkTask,
        requester: Requester,
    ) -> Result<RunChanged, Refusal> {
        let output = request.output.map(|output| Payload::from_json(output.text()));
        let output = output.transpose().map_err(|error| Refusal::payload("output", &error))?;
        if output.is_some() && request.status != MarkedStatus::Succeeded {
            return Err(Refusal::field("output", "is only for the status succeeded; leave it out"));
        }
        let state = match request.status {
            MarkedStatus::Succeeded => MarkedState::Succeeded,
            MarkedStatus::Failed => MarkedState::Failed,
            MarkedStatus::Skipped => MarkedState::Skipped,
        };
        let mark = drive::MarkTask { task, state, output };
        let done = self.ledger()?.runs().mark(&self.owner(), id, mark, by(requester, request.reason)).await;
        done.map(changed(id)).map_err(|error| self.refused(error))
    }

    /// Partitions of an asset after one, by key.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn asset_partitions(
        &self,
        asset: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<AssetPartition>, Refusal> {
        let found = self.ledger()?.assets().partitions(&self.owner(), asset, after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        Ok(found.iter().map(rows::judged_partition).collect())
    }

    /// One task of a run, without the others.
    async fn task_detail(&self, id: &str, key: &str) -> Result<RunDetail, Refusal> {
        let query = TaskQuery { key: Some(key.to_owned()), limit: 1, ..TaskQuery::default() };
        self.ledger()?.runs().tasks(&self.owner(), id, &query).await.map_err(|error| self.refused(error))
    }

    fn find_task<'d>(&self, detail: &'d RunDetail, key: &str) -> Result<&'d TaskRow, Refusal> {
        detail.tasks.iter().find(|task| &*task.task_key == key).ok_or_else(|| {
            let (run, task) = (detail.run.run_id.to_string(), key.to_owned());
            self.refused(drive::LedgerError::UnknownTask { run, task })
        })
    }

    fn shown_task(&self, detail: &RunDetail, task: &TaskRow) -> RunTask {
        RunTask { instance: self.attempt_instance(task), ..rows::task(detail, task) }
    }

    /// The instance of the attempt of a task, if it was dispatched.
    fn attempt_instance(&self, task: &TaskRow) -> Option<String> {
        let stored = rows::instance_of(&self.owner(), task)?;
        self.shown_instance(Some(&stored))
    }

    /// The instance that returned a large output.
    fn shown_reference(&self, stored: &str) -> String {
        self.shown_instance(Some(stored)).unwrap_or_else(|| stored.to_owned())
    }
}

fn by(requester: Requester, reason: Option<String>) -> Request {
    Request { by: requester.by, reason, request_id: requester.key }
}

fn started_run(started: drive::StartedRun) -> StartedRun {
    StartedRun { created: started.is_new, id: started.run_id, is_visible: started.visible }
}

fn changed(id: &str) -> impl FnOnce(Accepted) -> RunChanged {
    let id = id.to_owned();
    |accepted| RunChanged { id, is_visible: accepted.visible }
}
