//! What people request of runs: cancel, pause, resume, clear, mark, rerun.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use segno::Payload;
use segno_actions::functions::Scope;
use serde_json::{Map, Value};

use super::error::LedgerError;
use super::limits::{MAX_INLINE_OUTPUT_BYTES, MAX_NAMED_TASKS, MAX_REASON_BYTES};
use super::lists::items;
use super::outbox::WaitingEvent;
use super::planning::{key_of_partition, plan_id_of, plan_selected, split_key};
use super::reading::RunDetail;
use super::request::{Accepted, Request};
use super::runs::{NewRun, Runs, StartedRun};
use crate::event::{
    MarkedState, PlanCreated, PlannedTask, RunCancelRequested, RunPaused, RunResumed, RunTriggered,
    TaskCleared, TaskMarked, Trigger,
};
use crate::ids::fingerprint;
use crate::plan::{OtherOutputs, Parsed, Selection};
use crate::tables::{RunRow, TaskRow, TaskState};

/// Tasks that run again, in the same run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClearTasks {
    /// Which.
    pub tasks: Vec<String>,
    /// Whether all that comes after them runs again as well; otherwise only what was left out because of them.
    pub downstream: bool,
}

/// A task whose state is set by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkTask {
    /// Which.
    pub task: String,
    /// Its state.
    pub state: MarkedState,
    /// What it is taken to have returned.
    pub output: Option<Payload>,
}

/// Which tasks of an earlier run a new one has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rerun {
    /// Those that failed or were cancelled, and all that comes after them.
    FromFailure,
    /// These.
    Tasks {
        /// Which.
        tasks: Vec<String>,
        /// Whether all that comes after them is run as well.
        downstream: bool,
    },
}

impl Runs {
    /// Cancels a run. Tasks that run are cancelled too.
    ///
    /// # Errors
    /// `unknown-run`, `run-request-refused` when it has ended, and those of the store.
    pub async fn cancel(&self, scope: &Scope, run_id: &str, by: Request) -> Result<Accepted, LedgerError> {
        let run = self.open_run(scope, run_id, "cancelled").await?;
        if run.cancel_requested {
            return Ok(Accepted { visible: true });
        }
        check_reason(&by)?;
        let event = RunCancelRequested {
            run_id: run.run_id,
            reason: by.reason.as_deref().map(Arc::from),
            requested_by: by.requester().into(),
            generation: run.generation,
        };
        self.ledger.request(scope, event).await
    }

    /// Keeps a run from starting further tasks.
    ///
    /// # Errors
    /// As [`Runs::cancel`].
    pub async fn pause(&self, scope: &Scope, run_id: &str, by: Request) -> Result<Accepted, LedgerError> {
        let run = self.open_run(scope, run_id, "paused").await?;
        if run.paused {
            return Ok(Accepted { visible: true });
        }
        let (request_id, requested_by) = (self.request_id(&by), by.requester().into());
        self.ledger.request(scope, RunPaused { run_id: run.run_id, request_id, requested_by }).await
    }

    /// Lets a run start tasks again.
    ///
    /// # Errors
    /// As [`Runs::cancel`].
    pub async fn resume(&self, scope: &Scope, run_id: &str, by: Request) -> Result<Accepted, LedgerError> {
        let run = self.open_run(scope, run_id, "resumed").await?;
        if !run.paused {
            return Ok(Accepted { visible: true });
        }
        let (request_id, requested_by) = (self.request_id(&by), by.requester().into());
        self.ledger.request(scope, RunResumed { run_id: run.run_id, request_id, requested_by }).await
    }

    /// Runs tasks that ended again, in the same run.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `run-request-refused` when none of them has ended, and those of the store.
    pub async fn clear(
        &self,
        scope: &Scope,
        run_id: &str,
        clear: ClearTasks,
        by: Request,
    ) -> Result<Accepted, LedgerError> {
        let detail = self.rows_of(scope, run_id).await?;
        let mut has_ended = false;
        for key in &check_tasks(&clear.tasks)? {
            let task = find(&detail.tasks, run_id, key)?;
            has_ended |= task.state.is_final();
        }
        if !has_ended {
            let reason = "none of these tasks has ended; wait for their ends, or cancel the run";
            return Err(LedgerError::refused(format!("run {run_id:?}"), "cleared", reason));
        }
        let event = TaskCleared {
            run_id: run_id.into(),
            task_keys: clear.tasks.iter().map(|key| key.as_str().into()).collect(),
            downstream: clear.downstream,
            request_id: self.request_id(&by),
            requested_by: by.requester().into(),
        };
        self.ledger.request(scope, event).await
    }

    /// Sets the state of a task by hand.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-task`, `invalid-run` when the output is too large, `run-request-refused` when it is in that
    /// state, and those of the store.
    pub async fn mark(
        &self,
        scope: &Scope,
        run_id: &str,
        mark: MarkTask,
        by: Request,
    ) -> Result<Accepted, LedgerError> {
        check_reason(&by)?;
        let detail = self.rows_of(scope, run_id).await?;
        let task = find(&detail.tasks, run_id, &mark.task)?;
        let state = match mark.state {
            MarkedState::Succeeded => TaskState::Succeeded,
            MarkedState::Failed => TaskState::Failed,
            MarkedState::Skipped => TaskState::Skipped,
        };
        if task.state == state {
            let what = format!("task {:?} of run {run_id:?}", mark.task);
            let reason = format!("it is {} already; nothing has to be done", state.text().to_lowercase());
            return Err(LedgerError::refused(what, "marked", reason));
        }
        if mark.output.as_ref().is_some_and(|output| output.as_str().len() > MAX_INLINE_OUTPUT_BYTES) {
            let problem =
                format!("it has more than {MAX_INLINE_OUTPUT_BYTES} bytes; pass a reference instead");
            return Err(LedgerError::invalid("output", problem));
        }
        let event = TaskMarked {
            run_id: run_id.into(),
            task_key: mark.task.into(),
            state: mark.state,
            output: mark.output,
            reason: by.reason.as_deref().map(Arc::from),
            request_id: self.request_id(&by),
            requested_by: by.requester().into(),
        };
        self.ledger.request(scope, event).await
    }

    /// Starts a new run of some tasks of an earlier one, with its parameters. Outputs of the others are those of the earlier
    /// run.
    ///
    /// # Errors
    /// `unknown-run`, `unknown-dag`, `invalid-run`, `run-request-refused` when the earlier run has not ended or nothing of it
    /// failed, and those of the store.
    pub async fn rerun(
        &self,
        scope: &Scope,
        run_id: &str,
        rerun: Rerun,
        by: Request,
    ) -> Result<StartedRun, LedgerError> {
        let before = self.rows_of(scope, run_id).await?;
        let what = || format!("run {run_id:?}");
        if !before.run.state.is_final() {
            let reason = "it has not ended; wait for its end, or clear tasks of it";
            return Err(LedgerError::refused(what(), "rerun", reason));
        }
        let dag = before.run.dag.clone().ok_or_else(|| {
            LedgerError::refused(what(), "rerun", "it is no run of a published DAG; start a new one")
        })?;
        let version = before.run.code_version.as_deref().and_then(|version| version.parse().ok());
        let (version, parsed) = self.ledger.definitions().parsed(scope, &dag, version).await?;
        let Repeated { plan_ids, params, tasks, more } = repeated(&parsed, &before, &rerun, &by)?;
        if plan_ids.is_empty() {
            let reason = "no task of it failed or was cancelled; name the tasks to run again";
            return Err(LedgerError::refused(what(), "rerun", reason));
        }
        let plan_id = plan_id_of(&plan_ids);
        let requester: Arc<str> = by.requester().into();
        let triggered = RunTriggered {
            run_id: "".into(),
            plan_id: Arc::clone(&plan_id),
            trigger: Trigger::Manual { user_id: requester },
            root_assets: Vec::new(),
            run_key: None,
            labels: labels_of(&before.run),
            code_version: Some(version.to_string().into()),
            dag: Some(dag),
            params: Some(Value::Object(params)),
            parent_run_id: Some(run_id.into()),
        };
        let key = by.request_id.as_ref().map(|request| format!("request:{request}"));
        let fingerprint = fingerprint(&format!("rerun:{run_id}:{rerun:?}"));
        let plan = PlanCreated { run_id: "".into(), plan_id, tasks };
        self.begin(scope, NewRun { triggered, plan, more, key, fingerprint }).await
    }

    fn request_id(&self, by: &Request) -> Arc<str> {
        by.request_id.clone().unwrap_or_else(|| self.ledger.fresh()).into()
    }

    /// A run that has not ended.
    async fn open_run(&self, scope: &Scope, run_id: &str, verb: &'static str) -> Result<RunRow, LedgerError> {
        let run = self.run_row(scope, run_id).await?;
        if run.state.is_final() {
            let reason = format!("it has ended as {}", run.state.text().to_lowercase());
            return Err(LedgerError::refused(format!("run {run_id:?}"), verb, reason));
        }
        Ok(run)
    }
}

/// What a new run has of an earlier one.
#[derive(Default)]
struct Repeated {
    /// Ids of the plans of its partitions.
    plan_ids: Vec<Arc<str>>,
    params: Map<String, Value>,
    tasks: Vec<PlannedTask>,
    /// Marks of tasks that are done already.
    more: Vec<WaitingEvent>,
}

/// The tasks of an earlier run that run again: in a run of several partitions, those of each.
fn repeated(
    parsed: &Parsed,
    before: &RunDetail,
    rerun: &Rerun,
    by: &Request,
) -> Result<Repeated, LedgerError> {
    let rows: BTreeMap<&str, &TaskRow> = before.tasks.iter().map(|task| (&*task.task_key, task)).collect();
    if let Rerun::Tasks { tasks, .. } = rerun {
        for key in check_tasks(tasks)?.iter().filter(|key| split_key(key).1.is_some()) {
            find(&before.tasks, &before.run.run_id, key)?;
        }
    }
    let planned = before.tasks.iter().filter(|task| task.expanded_from.is_none());
    let partitions: BTreeSet<Option<&str>> = planned.map(|task| split_key(&task.task_key).1).collect();
    let only = before.tasks.iter().find_map(|task| task.partition_key.as_deref());
    let mut all = Repeated { params: params_of(&before.run), ..Repeated::default() };
    for of_partition in partitions {
        let name = |key: &str| of_partition.map_or_else(|| key.to_owned(), |of| key_of_partition(key, of));
        let selection = match rerun {
            Rerun::FromFailure => {
                let state = |key: &str| rows.get(name(key).as_str()).map(|task| task.state);
                Selection::from_failure(&parsed.dag, &parsed.graph, state)
            }
            Rerun::Tasks { tasks, downstream } => {
                let of_this = tasks.iter().map(|task| split_key(task));
                let of_this = of_this.filter(|(_, of)| of.is_none() || *of == of_partition);
                let terms: Vec<String> = of_this
                    .map(|(key, _)| if *downstream { format!("{key}+") } else { key.to_owned() })
                    .collect();
                Selection::named(&parsed.dag, &parsed.graph, terms.iter().map(String::as_str))
                    .map_err(|problem| LedgerError::invalid("tasks", problem))?
            }
        };
        if selection.count() == 0 {
            continue;
        }
        let others = (&selection, OtherOutputs::EarlierRun);
        let plan = plan_selected(parsed, &all.params, of_partition.or(only), others)?;
        for key in &plan.needs_outputs_of {
            // A task without a target that is done at once, with the output of the earlier run.
            let key = name(key);
            all.tasks.push(PlannedTask::new(key.as_str()));
            all.more.push(done_before(&key, rows.get(key.as_str()).copied(), &before.tasks, by)?);
        }
        all.tasks.extend(plan.tasks.into_iter().map(|task| PlannedTask {
            key: name(&task.key).into(),
            depends_on: task.depends_on.iter().map(|key| name(key).into()).collect(),
            ..task
        }));
        all.params = plan.params;
        all.plan_ids.push(plan.plan_id);
    }
    Ok(all)
}

/// The mark of a task that a new run does not run.
fn done_before(
    key: &str,
    task: Option<&TaskRow>,
    tasks: &[TaskRow],
    by: &Request,
) -> Result<WaitingEvent, LedgerError> {
    let task = task.filter(|task| task.state == TaskState::Succeeded);
    let unusable = |problem: &str| {
        LedgerError::invalid(
            "tasks",
            format!("the output of {key:?} is needed, and {problem}; select it too"),
        )
    };
    let task = task.ok_or_else(|| unusable("it did not succeed"))?;
    let too_large = || unusable("it is too large to be copied");
    let output = if task.added_count.is_none() {
        inline(task).ok_or_else(too_large)?.map(str::to_owned)
    } else {
        let outputs: Option<Vec<&str>> =
            items(tasks, task).map(|item| inline(item).map(|json| json.unwrap_or("null"))).collect();
        let output = format!("[{}]", outputs.ok_or_else(too_large)?.join(","));
        if output.len() > MAX_INLINE_OUTPUT_BYTES {
            return Err(too_large());
        }
        Some(output)
    };
    // The text of the earlier run, with all digits. What is not JSON was damaged, and counts as none.
    let output = output.and_then(|json| Payload::from_json(json).ok());
    let marked = TaskMarked {
        run_id: "".into(),
        task_key: key.into(),
        state: MarkedState::Succeeded,
        output,
        reason: Some("done by the run that this one repeats".into()),
        request_id: format!("rerun:{key}").into(),
        requested_by: by.requester().into(),
    };
    Ok(marked.into())
}

/// What a task has returned, if it has; `None` when it is too large for the tables.
fn inline(task: &TaskRow) -> Option<Option<&str>> {
    task.output_ref.is_none().then_some(task.output.as_deref())
}

fn find<'t>(tasks: &'t [TaskRow], run_id: &str, key: &str) -> Result<&'t TaskRow, LedgerError> {
    let unknown = || LedgerError::UnknownTask { run: run_id.to_owned(), task: key.to_owned() };
    tasks.iter().find(|task| &*task.task_key == key).ok_or_else(unknown)
}

fn check_tasks(tasks: &[String]) -> Result<Vec<String>, LedgerError> {
    if tasks.is_empty() || tasks.len() > MAX_NAMED_TASKS {
        let problem = format!("there are {}; name 1 to {MAX_NAMED_TASKS}", tasks.len());
        return Err(LedgerError::invalid("tasks", problem));
    }
    Ok(tasks.to_vec())
}

fn check_reason(by: &Request) -> Result<(), LedgerError> {
    match &by.reason {
        Some(reason) if reason.len() > MAX_REASON_BYTES => {
            let problem = format!("it has {} bytes, the limit is {MAX_REASON_BYTES}", reason.len());
            Err(LedgerError::invalid("reason", problem))
        }
        _ => Ok(()),
    }
}

/// The parameters of a run.
pub(super) fn params_of(run: &RunRow) -> Map<String, Value> {
    run.params.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The labels of a run.
pub(super) fn labels_of(run: &RunRow) -> BTreeMap<Arc<str>, Arc<str>> {
    run.labels.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}
