//! What folds of the ledger changed in runs of DAGs, summarized: one event for each run and fold.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno_actions::functions::Scope;
use segno_ledger::drive::RunAnnouncer;
use segno_ledger::tables::{RunRow, RunState, TaskRow, TaskState};
use serde::{Deserialize, Serialize};

use super::batches::MAX_ROWS;
use super::hub::Hub;

/// What a fold changed in a run. Stored, when nodes relay changes to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedRun {
    /// What ids of the tenant begin with.
    pub scope: String,
    /// Id of the run.
    pub run: String,
    /// Name of its DAG, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// State of the run.
    pub run_state: RunState,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// When a node noticed that it was published.
    pub at_ms: u64,
    /// The first tasks.
    pub tasks: Vec<ObservedTask>,
    /// How many further ones, by state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<TaskState, u64>,
}

/// The new state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedTask {
    /// Its key.
    pub key: String,
    /// Its state.
    pub state: TaskState,
    /// Its attempt.
    pub attempt: u32,
}

impl ObservedRun {
    /// Summarizes the rows of a run that a fold changed.
    pub fn of(scope: &Scope, run: &RunRow, tasks: &[TaskRow], at_ms: u64) -> Self {
        let mut left_out: BTreeMap<TaskState, u64> = BTreeMap::new();
        for task in tasks.iter().skip(MAX_ROWS) {
            *left_out.entry(task.state).or_default() += 1;
        }
        let task = |task: &TaskRow| ObservedTask {
            key: task.task_key.to_string(),
            state: task.state,
            attempt: task.attempt,
        };
        ObservedRun {
            scope: scope.id_prefix(),
            run: run.run_id.to_string(),
            dag: run.dag.as_deref().map(str::to_owned),
            run_state: run.state,
            is_paused: run.paused,
            at_ms,
            tasks: tasks.iter().take(MAX_ROWS).map(task).collect(),
            left_out,
        }
    }
}

/// Announces what the driver of DAG runs publishes to the listeners of the hub.
pub struct HubAnnouncer(pub Arc<Hub>);

impl RunAnnouncer for HubAnnouncer {
    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    fn changed(&self, scope: &Scope, run: &RunRow, tasks: &[TaskRow]) {
        self.0.run_changed(|at_ms| ObservedRun::of(scope, run, tasks, at_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_run_is_stored_in_a_form_that_does_not_change() {
        let stored = concat!(
            r#"{"scope":"eu/acme/","run":"run_1","dag":"daily","run_state":"RUNNING","is_paused":true,"at_ms":5,"#,
            r#""tasks":[{"key":"load","state":"SUCCEEDED","attempt":2}],"left_out":{"READY":7}}"#
        );
        let run: ObservedRun = serde_json::from_str(stored).unwrap();
        assert_eq!((run.run_state, run.tasks[0].state), (RunState::Running, TaskState::Succeeded));
        assert_eq!(serde_json::to_string(&run).unwrap(), stored);
    }
}
