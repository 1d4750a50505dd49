//! From a DAG to the plan of one run: parameters checked, the partition known, tasks selected, and inputs resolved as far as
//! they can be before the first task has run. The same request gives the same plan with the same id.

use std::collections::BTreeSet;
use std::sync::Arc;

use segno_actions::document::{did_you_mean, shown};
use segno_actions::functions::HumanDuration;
use serde_json::{Map, Value, json};

use super::definition::{Items, Task};
use super::error::PlanError;
use super::input::PlannedInput;
use super::limits::{MAX_PARAMS_BYTES, MAX_PLAN_INPUT_BYTES};
use super::selection::Selection;
use super::yaml::{Parsed, mismatch};
use crate::event::{Backoff, ForEach, PlannedTask};
use crate::ids::fingerprint;
use crate::tables::TriggerRule;

/// Characters of the content hash in a plan id.
const PLAN_ID_DIGITS: usize = 32;

/// What a run is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct RunRequest<'r> {
    /// Values of parameters; the others have their defaults.
    pub params: &'r Map<String, Value>,
    /// The key of its partition.
    pub partition: Option<&'r str>,
    /// Which tasks it has.
    pub selection: &'r Selection,
    /// Where outputs of tasks are from that it does not have.
    pub other_outputs: OtherOutputs,
}

/// Where outputs of tasks are from that a run does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherOutputs {
    /// There are none.
    None,
    /// An earlier run of the same DAG.
    EarlierRun,
}

/// The plan of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Follows from all else.
    pub plan_id: Arc<str>,
    /// The values of all parameters.
    pub params: Map<String, Value>,
    /// What templates know of the partition.
    pub partition: Option<Value>,
    /// The tasks of [`PlanCreated`](crate::event::PlanCreated), each after those that it depends on.
    pub tasks: Vec<PlannedTask>,
    /// Keys of tasks that the run does not have, and whose outputs its templates name.
    pub needs_outputs_of: Vec<String>,
}

impl Parsed {
    /// The plan of a run.
    ///
    /// # Errors
    /// `invalid-run` with all that is wrong with the request.
    pub fn plan(&self, request: &RunRequest<'_>) -> Result<Plan, PlanError> {
        let mut problems = Vec::new();
        let params = self.param_values(request.params, &mut problems);
        let partition = self.partition_names(request.partition, &mut problems);
        if request.selection.count() == 0 {
            problems.push("no task is selected".to_owned());
        }
        if !problems.is_empty() {
            return Err(PlanError::new(problems));
        }
        let mut known = json!({ "params": params });
        if let Some(partition) = &partition {
            known["partition"] = partition.clone();
        }
        let mut tasks = Vec::with_capacity(request.selection.count());
        let mut needs_outputs_of = BTreeSet::new();
        let mut input_bytes = 0;
        for &index in self.graph.order().iter().filter(|&&index| request.selection.contains(index)) {
            let compiled = self.compile_task(index, request, &known);
            let (mut task, wanted) = compiled.map_err(|problem| {
                PlanError::new(vec![format!("task {:?}: {problem}", self.dag.tasks[index].key)])
            })?;
            let is_asset_partitioned =
                |key: &Arc<str>| self.dag.assets.get(&**key).is_some_and(|asset| asset.partitions.is_some());
            if task.asset_key.as_ref().is_some_and(is_asset_partitioned) {
                task.partition_key = request.partition.map(Arc::from);
            }
            input_bytes += task.input.as_ref().map_or(0, |input| input.to_string().len());
            needs_outputs_of.extend(wanted);
            tasks.push(task);
        }
        if input_bytes > MAX_PLAN_INPUT_BYTES {
            let problem = format!("the inputs have {input_bytes} bytes, the limit is {MAX_PLAN_INPUT_BYTES}");
            return Err(PlanError::new(vec![format!("{problem}; pass references to large values instead")]));
        }
        let needs_outputs_of = self.not_in_run(needs_outputs_of, request)?;
        let content = json!({
            "dag": self.dag.name, "params": params, "partition": partition, "tasks": tasks,
        });
        let hash = fingerprint(&content.to_string());
        let plan_id = format!("plan_{}", hash.get(..PLAN_ID_DIGITS).unwrap_or(&hash)).into();
        Ok(Plan { plan_id, params, partition, tasks, needs_outputs_of })
    }

    fn param_values(&self, given: &Map<String, Value>, problems: &mut Vec<String>) -> Map<String, Value> {
        let declared = &self.dag.params;
        for name in given.keys().filter(|name| !declared.contains_key(*name)) {
            let advice = did_you_mean(name, declared.keys().map(String::as_str));
            let advice =
                advice.unwrap_or_else(|| format!("{:?} has {}", self.dag.name, listed(declared.keys())));
            problems.push(format!("there is no parameter {:?}; {advice}", shown(name)));
        }
        let mut values = Map::new();
        for (name, param) in declared {
            match (given.get(name), &param.default) {
                (Some(value), _) => {
                    if let Some(problem) = param.schema.as_ref().and_then(|schema| mismatch(schema, value)) {
                        problems.push(format!("the parameter {name:?} does not fit its schema: {problem}"));
                    }
                    values.insert(name.clone(), value.clone());
                }
                (None, Some(default)) => {
                    values.insert(name.clone(), default.clone());
                }
                (None, None) => problems.push(format!("the parameter {name:?} has no value; set it")),
            }
        }
        let bytes = Value::Object(values.clone()).to_string().len();
        if bytes > MAX_PARAMS_BYTES {
            problems.push(format!(
                "the parameters have {bytes} bytes of JSON text, the limit is {MAX_PARAMS_BYTES}"
            ));
        }
        values
    }

    fn partition_names(&self, key: Option<&str>, problems: &mut Vec<String>) -> Option<Value> {
        match (self.run_partitions(), key) {
            (None, None) => None,
            (None, Some(key)) => {
                problems.push(format!(
                    "the DAG {:?} has no partitions; leave out {:?}",
                    self.dag.name,
                    shown(key)
                ));
                None
            }
            (Some(_), None) => {
                let name = self.dag.partitioned_by.as_deref().unwrap_or_default();
                problems.push(format!("the run has no partition; give a key of {name:?}"));
                None
            }
            (Some(set), Some(key)) => match set.names(key) {
                Ok(names) => Some(names),
                Err(error) => {
                    problems.push(error.problem().to_owned());
                    None
                }
            },
        }
    }

    /// A task, and the tasks whose outputs its templates name.
    fn compile_task(
        &self,
        index: usize,
        request: &RunRequest<'_>,
        known: &Value,
    ) -> Result<(PlannedTask, BTreeSet<String>), String> {
        let text = |error: super::input::InputError| error.to_string();
        let task = &self.dag.tasks[index];
        let mut planned = planned(task);
        let upstream =
            self.graph.upstream(index).iter().filter(|&&before| request.selection.contains(before));
        planned.depends_on = upstream.map(|&before| self.dag.tasks[before].key.as_str().into()).collect();
        if planned.depends_on.is_empty() {
            // What it waited for is not in this run.
            planned.trigger_rule = TriggerRule::AllSuccess;
        }
        let input = PlannedInput::resolve_known(&task.input, known).map_err(text)?;
        let mut wanted = input.wanted_outputs().map_err(text)?;
        planned.input = (!task.input.is_null()).then(|| input.to_value());
        if let Some(for_each) = &task.for_each {
            let items = match &for_each.items {
                Items::List(items) => PlannedInput { value: items.clone().into(), templates: Vec::new() },
                Items::Template(text) => PlannedInput::resolve_known(&text.as_str().into(), known)
                    .map_err(|error| error.to_string())?,
            };
            wanted.extend(items.wanted_outputs().map_err(text)?);
            planned.for_each = Some(ForEach { items: items.to_value(), max_items: Some(for_each.max_items) });
        }
        Ok((planned, wanted))
    }

    /// The tasks among these that the run does not have.
    fn not_in_run(
        &self,
        wanted: BTreeSet<String>,
        request: &RunRequest<'_>,
    ) -> Result<Vec<String>, PlanError> {
        let is_selected: BTreeSet<&str> = self
            .dag
            .tasks
            .iter()
            .enumerate()
            .filter(|(index, _)| request.selection.contains(*index))
            .map(|(_, task)| task.key.as_str())
            .collect();
        let missing: Vec<String> =
            wanted.into_iter().filter(|key| !is_selected.contains(key.as_str())).collect();
        if request.other_outputs == OtherOutputs::None && !missing.is_empty() {
            let problem = format!("the selected tasks need outputs of {}", listed(&missing));
            let advice = "select these too, as in +load, or rerun tasks of an earlier run";
            return Err(PlanError::new(vec![format!("{problem}, which are not selected; {advice}")]));
        }
        Ok(missing)
    }
}

/// A task without its edges and templates.
fn planned(task: &Task) -> PlannedTask {
    let seconds = |duration: HumanDuration| u32::try_from(duration.as_ms() / 1_000).unwrap_or(u32::MAX);
    let mut planned = PlannedTask::new(task.key.as_str());
    planned.target = Some(task.target.clone());
    planned.asset_key = task.asset.as_deref().map(Arc::from);
    planned.max_attempts = task.retry.attempts;
    planned.backoff = Some(Backoff {
        initial_seconds: seconds(task.retry.initial_delay),
        factor: task.retry.factor,
        max_seconds: seconds(task.retry.max_delay),
    });
    planned.heartbeat_timeout_sec = seconds(task.heartbeat_timeout);
    planned.timeout_seconds = task.timeout.map(seconds);
    planned.tag = task.tag.as_deref().map(Arc::from);
    planned.pool = task.pool.as_deref().map(Arc::from);
    planned.worker_pool = task.worker_pool.as_deref().map(Arc::from);
    planned.completion = task.completion;
    planned.trigger_rule = task.trigger_rule;
    planned
}

fn listed<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    let names: Vec<String> = names.into_iter().take(10).map(|name| format!("{name:?}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
