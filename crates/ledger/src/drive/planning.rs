//! From a request for a run to its first events: which version of the DAG, which tasks, and what each of them is called with.

use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::functions::Scope;
use serde_json::{Map, Value};

use super::error::LedgerError;
use super::ledger::Ledger;
use super::limits::MAX_RUN_TASKS;
use crate::controllers::bridged;
use crate::event::{EventData, PlannedTask, RunCancelRequested, RunRequested, RunSource};
use crate::plan::{OtherOutputs, Parsed, Plan, RunRequest, Selection};

/// Between the key of a task and its partition, in a run of several partitions. Keys that users write do not have it.
const OF_PARTITION: char = '@';

/// The plan of a run that could not be planned.
const NO_PLAN: &str = "none";

/// The key of a task without its partition.
pub(super) fn split_key(task_key: &str) -> (&str, Option<&str>) {
    match task_key.split_once(OF_PARTITION) {
        Some((key, partition)) => (key, Some(partition)),
        None => (task_key, None),
    }
}

/// The key of an upstream task for a task of a run of several partitions.
pub(super) fn upstream_key(task_key: &str, upstream: &str) -> String {
    match split_key(task_key).1 {
        Some(partition) => format!("{upstream}{OF_PARTITION}{partition}"),
        None => upstream.to_owned(),
    }
}

/// The key of a task in a run of several partitions.
pub(super) fn key_of_partition(key: &str, partition: &str) -> String {
    format!("{key}{OF_PARTITION}{partition}")
}

/// The id of a plan that is made of those of its partitions.
pub(super) fn plan_id_of(plan_ids: &[Arc<str>]) -> Arc<str> {
    match plan_ids {
        [only] => Arc::clone(only),
        several => format!("plan_{}", &crate::ids::fingerprint(&several.join(","))[..32]).into(),
    }
}

/// The plan of a run of all tasks for one partition, or without one.
pub(super) fn plan(
    parsed: &Parsed,
    params: &Map<String, Value>,
    partition: Option<&str>,
) -> Result<Plan, LedgerError> {
    let selection = Selection::all(&parsed.dag);
    plan_selected(parsed, params, partition, (&selection, OtherOutputs::None))
}

/// The plan of a run of some tasks.
pub(super) fn plan_selected(
    parsed: &Parsed,
    params: &Map<String, Value>,
    partition: Option<&str>,
    (selection, other_outputs): (&Selection, OtherOutputs),
) -> Result<Plan, LedgerError> {
    let request = RunRequest { params, partition, selection, other_outputs };
    let mut plan = parsed.plan(&request)?;
    for task in &mut plan.tasks {
        // Templates that are resolved at dispatch may ask for the partition.
        task.partition_key = task.partition_key.take().or_else(|| partition.map(Arc::from));
    }
    Ok(plan)
}

/// The first events of a run that was requested by a schedule, a sensor or a backfill. One that cannot be planned begins
/// and ends as cancelled, with the reason: the request must not wait for ever.
///
/// # Errors
/// When the store cannot be read for now.
pub(super) async fn plan_requested(
    ledger: &Ledger,
    scope: &Scope,
    request: &RunRequested,
) -> Result<Vec<EventData>, LedgerError> {
    use segno::store::ErrorKind::{Corrupt, Invalid, NotFound};
    match try_plan_requested(ledger, scope, request).await {
        Err(error) if matches!(error.kind(), Corrupt | Invalid | NotFound) => {
            let mut events = bridged(request, &NO_PLAN.into(), Vec::new());
            events.truncate(1);
            let cancel = RunCancelRequested {
                run_id: Arc::clone(&request.run_id),
                reason: Some(error.to_string().into()),
                requested_by: "segno".into(),
                generation: 0,
            };
            events.push(cancel.into());
            Ok(events)
        }
        planned => planned,
    }
}

async fn try_plan_requested(
    ledger: &Ledger,
    scope: &Scope,
    request: &RunRequested,
) -> Result<Vec<EventData>, LedgerError> {
    let dag = match (&request.dag, &request.trigger_source_ref) {
        (Some(dag), _) => Arc::clone(dag),
        (None, RunSource::Schedule { schedule_id, .. }) => Arc::clone(schedule_id),
        (None, _) => return Err(LedgerError::invalid("dag", "the request names no DAG")),
    };
    let version = request.code_version.as_deref().and_then(|version| version.parse().ok());
    let (version, parsed) = ledger.definitions().parsed(scope, &dag, version).await?;
    let params = match (&request.params, &parsed.dag.schedule) {
        (Some(Value::Object(params)), _) => params.clone(),
        (None, Some(schedule)) if matches!(request.trigger_source_ref, RunSource::Schedule { .. }) => {
            schedule.params.clone()
        }
        _ => Map::new(),
    };
    let partitions = match &request.partition_selection {
        Some(partitions) => partitions.clone(),
        None => scheduled_partition(&parsed, &request.trigger_source_ref).into_iter().collect(),
    };
    let (plan_id, params, tasks) = match partitions.as_slice() {
        [] => {
            let plan = plan(&parsed, &params, None)?;
            (plan.plan_id, plan.params, plan.tasks)
        }
        [partition] => {
            let plan = plan(&parsed, &params, Some(partition))?;
            (plan.plan_id, plan.params, plan.tasks)
        }
        several => plan_several(&parsed, &params, several)?,
    };
    let request = RunRequested {
        dag: Some(dag),
        params: Some(Value::Object(params)),
        code_version: Some(version.to_string().into()),
        ..request.clone()
    };
    Ok(bridged(&request, &plan_id, tasks))
}

/// Id, parameters and tasks of a plan.
type Planned = (Arc<str>, Map<String, Value>, Vec<PlannedTask>);

/// One run for several partitions: the tasks of each, side by side.
fn plan_several(
    parsed: &Parsed,
    params: &Map<String, Value>,
    partitions: &[Arc<str>],
) -> Result<Planned, LedgerError> {
    let (mut all, mut ids, mut values) = (Vec::new(), Vec::new(), Map::new());
    for partition in partitions {
        let Plan { plan_id, params, tasks, .. } = plan(parsed, params, Some(partition))?;
        if all.len() + tasks.len() > MAX_RUN_TASKS {
            let problem = format!(
                "a run of {} partitions would have more than {MAX_RUN_TASKS} tasks",
                partitions.len()
            );
            return Err(LedgerError::invalid("partitions", problem));
        }
        let of_partition = |key: &Arc<str>| -> Arc<str> { key_of_partition(key, partition).into() };
        all.extend(tasks.into_iter().map(|task| PlannedTask {
            key: of_partition(&task.key),
            depends_on: task.depends_on.iter().map(of_partition).collect(),
            ..task
        }));
        ids.push(plan_id);
        values = params;
    }
    Ok((plan_id_of(&ids), values, all))
}

/// The partition of a scheduled run: the last window that had ended at its time.
fn scheduled_partition(parsed: &Parsed, source: &RunSource) -> Option<Arc<str>> {
    let RunSource::Schedule { tick_id, .. } = source else { return None };
    let (_, epoch) = tick_id.rsplit_once(':')?;
    let time = Timestamp::from_second(epoch.parse().ok()?).ok()?;
    Some(parsed.run_partitions()?.latest_complete(time)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_task_of_one_partition_gives_that_of_its_upstream_tasks() {
        assert_eq!(split_key("load@2026-01-01"), ("load", Some("2026-01-01")));
        assert_eq!(split_key("load[3]"), ("load[3]", None));
        assert_eq!(upstream_key("load@2026-01-01", "extract"), "extract@2026-01-01");
        assert_eq!(upstream_key("load", "extract"), "extract");
    }
}
