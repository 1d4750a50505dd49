//! What is valid and would surprise its author: assets and partition definitions that nothing uses, and calls that nothing
//! ends.

use std::collections::BTreeSet;

use segno_actions::document::{Field, Fields, PartReader, Problem, Tree, shown};

use super::reader::{ReadTask, Reader};
use crate::event::Target;
use crate::plan::definition::{Dag, Partitions, Task};
use crate::tables::Completion;

impl Reader<'_> {
    /// Warns of what is doubtful in a DAG without errors.
    pub(super) fn doubts(&mut self, fields: &Fields<'_>, tasks: &[ReadTask], dag: &Dag) {
        if self.problems.has_errors() {
            return;
        }
        for read in tasks {
            let Some((problem, advice)) = endless(&read.task) else { continue };
            self.push(Problem::warning(read.at, read.path.clone(), problem).advice(advice));
        }
        let made = tasks.iter().filter_map(|read| read.task.asset.as_deref());
        let upstream =
            dag.assets.values().flat_map(|asset| &asset.upstream).map(|other| other.asset.as_str());
        let connected: BTreeSet<&str> = made.chain(upstream).collect();
        for value in values(fields.get("assets")) {
            let is_connected = |key: &str| {
                connected.contains(key) || dag.assets.get(key).is_some_and(|asset| !asset.upstream.is_empty())
            };
            if !is_connected(value.key) {
                let problem = format!(
                    "no task makes the asset {:?}, and no asset is connected with it",
                    shown(value.key)
                );
                let advice =
                    format!("write asset: {} at the task that makes it, or remove it", shown(value.key));
                self.push(value.field.warning(problem).advice(advice));
            }
        }
        let of_assets = dag.assets.values().filter_map(|asset| asset.partitions.as_deref());
        let dimensions = dag.partitions.values().flat_map(|definition| match definition {
            Partitions::Grid { dimensions } => dimensions.as_slice(),
            Partitions::Windows { .. } | Partitions::Keys { .. } => &[],
        });
        let used: BTreeSet<&str> =
            of_assets.chain(dag.partitioned_by.as_deref()).chain(dimensions.map(String::as_str)).collect();
        for value in values(fields.get("partitions")).into_iter().filter(|value| !used.contains(value.key)) {
            let problem = format!("no run and no asset has the partitions {:?}", shown(value.key));
            let advice = format!("write partitioned_by: {}, or remove the definition", shown(value.key));
            self.push(value.field.warning(problem).advice(advice));
        }
    }
}

/// An entry of a map.
struct Value<'n> {
    key: &'n str,
    field: Field<'n>,
}

fn values(map: Option<Field<'_>>) -> Vec<Value<'_>> {
    let Some(map) = map else { return Vec::new() };
    match &map.node.tree {
        Tree::Map(entries) => {
            entries.iter().map(|entry| Value { key: &entry.key, field: map.value(entry) }).collect()
        }
        _ => Vec::new(),
    }
}

/// Why nothing may end an attempt of a task, and what would. An orchestration may wait for as long as it likes.
fn endless(task: &Task) -> Option<(&'static str, &'static str)> {
    let is_call = matches!(task.target, Target::Function(_)) && task.completion == Completion::Return;
    if !is_call || task.timeout.is_some() {
        return None;
    }
    if task.heartbeat_timeout.as_ms() == 0 {
        let problem =
            "it has neither a timeout nor a heartbeat_timeout, so a call that is lost is never ended";
        return Some((problem, "write timeout: 15m, or a heartbeat_timeout that is not 0s"));
    }
    (task.retry.attempts == 1).then_some((
        "it has no timeout and one attempt, so a call that hangs keeps its run open",
        "write timeout: 15m, or more attempts",
    ))
}
