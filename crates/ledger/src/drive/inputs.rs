//! Inputs of tasks that are ready, and the tasks of lists: templates are resolved with the outputs of upstream tasks. An
//! output that is kept by reference is read from the instance that returned it.

use std::collections::HashMap;
use std::sync::Arc;

use segno_actions::functions::Scope;
use segno_actions::pools::CallState;
use serde_json::{Map, Value};

use super::corrections::params_of;
use super::decide::read;
use super::error::DriveError;
use super::holder::Services;
use super::planning::{split_key, upstream_key};
use crate::event::{ForEach, PlannedTask, Target};
use crate::fold::{State, TaskRef};
use crate::ids::dispatch_id;
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
    let known = known(services, scope, (state, run, task), &[&planned]).await?;
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
    let known = known(services, scope, (state, run, task), &inputs).await?;
    let expanded = plan::expand(&planned, &known.names(run), |key| known.outputs.get(key).cloned());
    Ok(expanded.map_err(|error| error.to_string()))
}

impl Known {
    fn names<'n>(&'n self, run: &'n RunRow) -> RunNames<'n> {
        RunNames { run_id: &run.run_id, params: &self.params, partition: self.partition.as_ref() }
    }
}

/// What inputs ask for, as far as it exists.
async fn known(
    services: &Services,
    scope: &Scope,
    (state, run, task): (&State, &RunRow, &TaskRow),
    inputs: &[&PlannedInput],
) -> Result<Known, DriveError> {
    let mut outputs = HashMap::new();
    for input in inputs {
        for key in input.wanted_outputs().unwrap_or_default() {
            let upstream = state.task(&run.run_id, &upstream_key(&task.task_key, &key));
            let succeeded = upstream.filter(|upstream| upstream.state == TaskState::Succeeded);
            if let Some(upstream) = succeeded
                && let Some(output) = output(services, scope, upstream).await?
            {
                outputs.insert(key, output);
            }
        }
    }
    Ok(Known { params: params_of(run), partition: partition(services, scope, run, task).await, outputs })
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

/// What templates know of the partition of a task. It follows from the definition of the DAG.
async fn partition(services: &Services, scope: &Scope, run: &RunRow, task: &TaskRow) -> Option<Value> {
    let key = split_key(&task.task_key).1.or(task.partition_key.as_deref())?;
    let version = run.code_version.as_deref()?.parse().ok()?;
    let definitions = services.ledger.definitions();
    let (_, parsed) = definitions.parsed(scope, run.dag.as_deref()?, Some(version)).await.ok()?;
    parsed.run_partitions()?.names(key).ok()
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
    planned.partition_key.clone_from(&task.partition_key);
    planned.backoff = task.backoff.as_deref().and_then(|json| serde_json::from_str(json).ok());
    planned.for_each = task.for_each.as_deref().and_then(|json| serde_json::from_str::<ForEach>(json).ok());
    planned
}
