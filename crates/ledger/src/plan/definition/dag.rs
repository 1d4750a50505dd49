//! The DAG as a whole.

use std::collections::BTreeMap;

use segno_actions::schedule::ScheduleSpec;
use serde::Serialize;
use serde_json::{Map, Value};

use super::asset::Asset;
use super::notify::Notify;
use super::parameter::Parameter;
use super::partitions::Partitions;
use super::sensor::Sensor;
use super::task::Task;

/// A DAG: tasks and what they depend on, and when and for what it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Dag {
    /// Its name, unique within a namespace and tenant.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What each run can set, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Parameter>,
    /// Partition definitions by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<String, Partitions>,
    /// The partition definition of which every run has one key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitioned_by: Option<String>,
    /// Assets by key: those that tasks make, and others that these depend on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub assets: BTreeMap<String, Asset>,
    /// Slots of concurrency pools by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, u32>,
    /// When it runs by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<DagSchedule>,
    /// What else starts runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<Sensor>,
    /// The function that is called when people have to know something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<Notify>,
    /// Most runs at a time; without it as many as are started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs: Option<u32>,
    /// The tasks, in the order in which they were written.
    pub tasks: Vec<Task>,
}

/// When a DAG runs by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DagSchedule {
    /// The moments, in the grammar of recurring actions.
    #[serde(flatten)]
    pub spec: ScheduleSpec,
    /// Parameters of the runs that it starts.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

impl Dag {
    /// The task with a key.
    pub fn task(&self, key: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.key == key)
    }

    /// How many edges there are.
    pub fn edge_count(&self) -> usize {
        self.tasks.iter().map(|task| task.depends_on.len()).sum()
    }
}
