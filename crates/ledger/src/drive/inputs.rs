//! Inputs of tasks that are ready, and the tasks of lists: templates are resolved with the outputs of upstream tasks. An
//! output that is kept by reference is read from the instance that returned it.

use std::collections::HashMap;
use std::sync::Arc;

use segno::store::ErrorKind;
use segno_actions::functions::Scope;
use segno_actions::pools::CallState;
use serde_json::{Map, Value};

use super::corrections::params_of;
use super::decide::read;
use super::error::DriveError;
use super::holder::Services;
use super::limits::MAX_RUN_TASKS;
use super::lists::item_keys;
use super::planning::{split_key, upstream_key};
use crate::event::{ForEach, PlannedTask, Target};
use crate::fold::{State, TaskRef};
use crate::ids::dispatch_id;
use crate::plan::limits::MAX_RESOLVED_INPUT_BYTES;
use crate::plan::{self, PlannedInput, RunNames};
use crate::tables::{RunRow, TaskRow, TaskState};

/// What templates of a task may ask for.
struct Known {
    params: Map<String, Value>,
    partition: Option<Value>,
    outputs: HashMap<String, Value>,
}

/// The input that a task is called with; the problem if it cannot be resolved.
pub(super) async fn resolve(
    services: &Services,
    scope: &Scope,
    state: &State,
    task: &TaskRow,
) -> Result<Result<Value, String>, DriveError> {
    let Some(input) = read(task.input.as_ref()) else { return Ok(Ok(Value::Null)) };
    let planned = match PlannedInput::from_value(&input) {
        Ok(planned) if planned.templates.is_empty() => return Ok(Ok(planned.value)),
        Ok(planned) => planned,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let Some(run) = state.run(&task.run_id) else { return Ok(Err("the run is gone".to_owned())) };
    let known = match known(services, scope, (state, run, task), &[&planned]).await? {
        Ok(known) => known,
        Err(problem) => return Ok(Err(problem)),
    };
    let mut wanted = PlannedTask::new(Arc::clone(&task.task_key));
    wanted.input = Some(input);
    let resolved = plan::resolve_input(&wanted, &known.names(run), |key| known.outputs.get(key).cloned());
    Ok(resolved.map_err(|error| error.to_string()))
}

/// The tasks that the list of a task adds; the problem if there is no list.
pub(super) async fn expand(
    services: &Services,
    scope: &Scope,
    state: &State,
    name: &TaskRef,
) -> Result<Result<Vec<PlannedTask>, String>, DriveError> {
    let found = state.task(&name.run_id, &name.task_key).zip(state.run(&name.run_id));
    let Some((task, run)) = found else { return Ok(Err("the run is gone".to_owned())) };
    let planned = planned(task);
    let values = planned.for_each.iter().map(|for_each| &for_each.items).chain(&planned.input);
    let inputs: Result<Vec<PlannedInput>, _> = values.map(PlannedInput::from_value).collect();
    let inputs = match inputs {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let inputs: Vec<&PlannedInput> = inputs.iter().collect();
    let known = match known(services, scope, (state, run, task), &inputs).await? {
        Ok(known) => known,
        Err(problem) => return Ok(Err(problem)),
    };
    let expanded = plan::expand(&planned, &known.names(run), |key| known.outputs.get(key).cloned());
    Ok(match expanded {
        Err(error) => Err(error.to_string()),
        Ok(added) => check_size(state.tasks_of(&name.run_id).count(), added.len()).map(|()| added),
    })
}

/// Whether a run of so many tasks may get so many more.
fn check_size(tasks: usize, added: usize) -> Result<(), String> {
    if tasks + added <= MAX_RUN_TASKS {
        return Ok(());
    }
    Err(format!(
        "for_each: with {added} more items the run would have more than {MAX_RUN_TASKS} tasks; split the list over several runs"
    ))
}

impl Known {
    fn names<'n>(&'n self, run: &'n RunRow) -> RunNames<'n> {
        RunNames { run_id: &run.run_id, params: &self.params, partition: self.partition.as_ref() }
    }
}

/// What inputs ask for, as far as it exists; the problem if it is too large.
async fn known(
    services: &Services,
    scope: &Scope,
    (state, run, task): (&State, &RunRow, &TaskRow),
    inputs: &[&PlannedInput],
) -> Result<Result<Known, String>, DriveError> {
    let mut outputs = HashMap::new();
    for input in inputs {
        for key in input.wanted_outputs().unwrap_or_default() {
            let upstream = state.task(&run.run_id, &upstream_key(key_in_plan(task), &key));
            let Some(upstream) = upstream.filter(|upstream| upstream.state == TaskState::Succeeded) else {
                continue;
            };
            let output = match upstream.added_count {
                None => output(services, scope, upstream).await?,
                Some(_) => match outputs_of_items(services, scope, state, upstream).await? {
                    Ok(outputs) => outputs,
                    Err(problem) => return Ok(Err(problem)),
                },
            };
            outputs.extend(output.map(|output| (key, output)));
        }
    }
    let partition = partition(services, scope, run, task).await?;
    Ok(Ok(Known { params: params_of(run), partition, outputs }))
}

/// What the items of a list have returned; `null` stands for an item that was marked as skipped. The problem if it does not fit
/// into an input.
async fn outputs_of_items(
    services: &Services,
    scope: &Scope,
    state: &State,
    list: &TaskRow,
) -> Result<Result<Option<Value>, String>, DriveError> {
    let (mut outputs, mut bytes) = (Vec::new(), 0);
    for key in item_keys(list) {
        let item = state.task(&list.run_id, &key).filter(|item| item.state == TaskState::Succeeded);
        let value = match item {
            None => Value::Null,
            Some(item) => match output(services, scope, item).await? {
                Some(value) => value,
                None => return Ok(Ok(None)),
            },
        };
        bytes += value.to_string().len();
        if bytes > MAX_RESOLVED_INPUT_BYTES {
            let task = &list.task_key;
            return Ok(Err(format!(
                "the outputs of the items of {task:?} have more than {MAX_RESOLVED_INPUT_BYTES} bytes, which is the limit of an input; return references to large values"
            )));
        }
        outputs.push(value);
    }
    Ok(Ok(Some(outputs.into())))
}

/// What a task has returned.
async fn output(services: &Services, scope: &Scope, task: &TaskRow) -> Result<Option<Value>, DriveError> {
    if task.output_ref.is_none() {
        return Ok(Some(read(task.output.as_ref()).unwrap_or(Value::Null)));
    }
    let job = dispatch_id(&task.run_id, &task.task_key, task.attempt);
    match services.calls.state(scope, &job).await? {
        CallState::Ended(Ok(payload)) => Ok(payload.decode().ok()),
        // Its instance was deleted: the template names what is not there, and says so.
        _ => Ok(None),
    }
}

/// The key that the plan has: an item of a list has that of the list, and a number.
fn key_in_plan(task: &TaskRow) -> &str {
    task.expanded_from.as_deref().unwrap_or(&task.task_key)
}

/// What templates know of the partition of a task. It follows from the definition of the DAG.
async fn partition(
    services: &Services,
    scope: &Scope,
    run: &RunRow,
    task: &TaskRow,
) -> Result<Option<Value>, DriveError> {
    let key = split_key(key_in_plan(task)).1.or(task.partition_key.as_deref());
    let version = run.code_version.as_deref().and_then(|version| version.parse().ok());
    let (Some(key), Some(version), Some(dag)) = (key, version, run.dag.as_deref()) else { return Ok(None) };
    match services.ledger.definitions().parsed(scope, dag, Some(version)).await {
        Ok((_, parsed)) => Ok(parsed.run_partitions().and_then(|set| set.names(key).ok())),
        // It is there, and cannot be read at the moment.
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// A task as its plan had it.
fn planned(task: &TaskRow) -> PlannedTask {
    let mut planned = PlannedTask::new(Arc::clone(&task.task_key));
    planned.target = match (&task.function, &task.orchestration) {
        (Some(function), _) => Some(Target::Function(Arc::clone(function))),
        (_, Some(orchestration)) => Some(Target::Orchestration(Arc::clone(orchestration))),
        _ => None,
    };
    planned.input = read(task.input.as_ref());
    planned.max_attempts = task.max_attempts;
    planned.heartbeat_timeout_sec = task.heartbeat_timeout_sec;
    planned.timeout_seconds = task.timeout_seconds;
    planned.tag.clone_from(&task.tag);
    planned.pool.clone_from(&task.pool);
    planned.worker_pool.clone_from(&task.worker_pool);
    planned.completion = task.completion.unwrap_or_default();
    planned.partition_key.clone_from(&task.partition_key);
    planned.backoff = task.backoff.as_deref().and_then(|json| serde_json::from_str(json).ok());
    planned.for_each = task.for_each.as_deref().and_then(|json| serde_json::from_str::<ForEach>(json).ok());
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_limit_of_tasks() {
        assert_eq!(check_size(15_000, 10_000), Ok(()));
        let refused = check_size(15_001, 10_000).unwrap_err();
        assert!(
            refused.contains("with 10000 more items the run would have more than 25000 tasks"),
            "{refused}"
        );
    }
}
