//! The document as a whole.

use std::collections::BTreeMap;

use segno_actions::document::{Field, Fields, PartReader, Problem, Tree, shown};

use super::keys::{DAG, DEFAULTS};
use super::reader::{ReadTask, Reader, TaskDefaults};
use super::references::Known;
use crate::plan::definition::{Asset, Dag};
use crate::plan::graph::Graph;
use crate::plan::limits::{MAX_CONCURRENT_RUNS, MAX_POOL_SLOTS, MAX_POOLS, MAX_TASKS};
use crate::plan::names::NameKind;

impl Reader<'_> {
    /// Reads the document. A DAG is only usable if no error was reported.
    pub fn dag(&mut self, field: Field<'_>) -> Option<(Dag, Graph)> {
        if field.node.tree == Tree::Null {
            let problem = field.error("the document is empty");
            self.push(problem.advice("begin with name and tasks"));
            return None;
        }
        let fields = self.fields(field, &DAG)?;
        let name =
            self.required(&fields, "name", "daily-sales").and_then(|field| self.name(&field, NameKind::Dag));
        let mut dag = Dag { name: name.unwrap_or_default(), ..Dag::default() };
        dag.description = fields.get("description").and_then(|field| self.free_text(&field));
        dag.params = fields.get("params").map(|field| self.params(&field)).unwrap_or_default();
        dag.partitions = fields.get("partitions").map(|field| self.partitions(&field)).unwrap_or_default();
        dag.partitioned_by = fields.get("partitioned_by").and_then(|field| self.known_partitions(&field));
        dag.assets = fields.get("assets").map(|field| self.assets(&field, &dag)).unwrap_or_default();
        dag.pools = fields.get("pools").map(|field| self.pools(&field)).unwrap_or_default();
        dag.schedule = fields.get("schedule").and_then(|field| self.schedule(field, &dag));
        dag.sensors = fields.get("sensors").map(|field| self.sensors(&field)).unwrap_or_default();
        dag.notify = fields.get("notify").and_then(|field| self.notify(field));
        dag.max_concurrent_runs = fields.get("max_concurrent_runs").and_then(|field| {
            let number = self.number(&field, 1, MAX_CONCURRENT_RUNS.into())?;
            u32::try_from(number).ok()
        });
        let defaults = fields.get("defaults").map(|field| self.defaults(field)).unwrap_or_default();
        let (tasks, is_whole) = self.tasks(&fields, &defaults);
        self.check_pools_and_assets(&tasks, &mut dag);
        // An edge to a task that could not be read is not an unknown one.
        let graph = if is_whole { self.edges(&tasks) } else { None };
        let run_partitions = dag.partitioned_by.as_ref().and_then(|name| self.partitions.get(name)).cloned();
        let known = Known { params: &dag.params, partition: run_partitions.as_ref() };
        self.references(&tasks, graph.as_ref(), &known);
        self.doubts(&fields, &tasks, &dag);
        dag.tasks = tasks.into_iter().map(|read| read.task).collect();
        Some((dag, graph?))
    }

    fn tasks(&mut self, fields: &Fields<'_>, defaults: &TaskDefaults) -> (Vec<ReadTask>, bool) {
        let example = "[{key: extract, function: extract}]";
        let Some(field) = self.required(fields, "tasks", example) else { return (Vec::new(), false) };
        let items = self.list(&field, MAX_TASKS);
        if matches!(&field.node.tree, Tree::List(items) if items.is_empty()) {
            self.push(field.error("there is no task").advice("add at least one"));
        }
        let count = items.len();
        let tasks: Vec<ReadTask> = items.into_iter().filter_map(|item| self.task(item, defaults)).collect();
        let is_whole = tasks.len() == count;
        (tasks, is_whole)
    }

    fn pools(&mut self, field: &Field<'_>) -> BTreeMap<String, u32> {
        let Some(entries) = self.map(field) else { return BTreeMap::new() };
        if entries.len() > MAX_POOLS {
            let problem = format!("there are {} pools, the limit is {MAX_POOLS}", entries.len());
            self.push(field.error(problem));
        }
        let mut pools = BTreeMap::new();
        for entry in entries.iter().take(MAX_POOLS) {
            let value = field.value(entry);
            if let Err(problem) = NameKind::Pool.check(&entry.key) {
                self.push(value.error(problem));
            }
            if let Some(slots) = self.number(&value, 1, MAX_POOL_SLOTS.into()) {
                pools.insert(entry.key.clone(), u32::try_from(slots).unwrap_or(MAX_POOL_SLOTS));
            }
        }
        pools
    }

    fn defaults(&mut self, field: Field<'_>) -> TaskDefaults {
        let Some(fields) = self.fields(field, &DEFAULTS) else { return TaskDefaults::default() };
        TaskDefaults {
            retry: fields.get("retry").and_then(|field| self.retry(field)),
            timeout: fields.get("timeout").and_then(|field| self.duration(&field, 1)),
            heartbeat_timeout: fields.get("heartbeat_timeout").and_then(|field| self.duration(&field, 0)),
            tag: fields.get("tag").and_then(|field| self.tag(&field)),
            pool: fields.get("pool").and_then(|field| self.name(&field, NameKind::Pool)),
            worker_pool: fields.get("worker_pool").and_then(|field| self.worker_pool(&field)),
        }
    }

    /// Warns of pools that are not declared, and gives every asset of a task a definition.
    fn check_pools_and_assets(&mut self, tasks: &[ReadTask], dag: &mut Dag) {
        let mut made_by: BTreeMap<&str, &str> = BTreeMap::new();
        for read in tasks {
            let task = &read.task;
            if let Some(pool) = task.pool.as_ref().filter(|pool| !dag.pools.contains_key(*pool)) {
                let problem =
                    format!("the pool {:?} is not declared, so nothing limits it here", shown(pool));
                let advice = self.suggestion(pool, dag.pools.keys().map(String::as_str));
                let advice = advice.unwrap_or_else(|| format!("add pools: {{{}: 4}}", shown(pool)));
                let path = format!("{}.pool", read.path);
                let problem = Problem::warning(read.pool_at, path, problem);
                self.push(problem.advice(advice));
            }
            let Some(key) = task.asset.as_deref() else { continue };
            let error =
                |problem: String| Problem::error(read.asset_at, format!("{}.asset", read.path), problem);
            if let Some(other) = made_by.insert(key, &task.key) {
                let problem = error(format!("the task {:?} makes the asset {:?} too", other, shown(key)));
                self.push(problem.advice("let one task make it, or give the assets different keys"));
            }
            let partitions = dag.partitioned_by.clone();
            let asset =
                dag.assets.entry(key.to_owned()).or_insert_with(|| Asset { partitions, ..Asset::default() });
            if let Some(name) =
                asset.partitions.as_ref().filter(|name| dag.partitioned_by.as_ref() != Some(*name))
            {
                let problem =
                    format!("the asset {:?} has the partitions {name:?}, but runs do not", shown(key));
                let advice = format!("write partitioned_by: {name}, or make the asset in a DAG of its own");
                self.push(error(problem).advice(advice));
            }
        }
    }
}
