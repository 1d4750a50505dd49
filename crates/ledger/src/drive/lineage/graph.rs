//! The graph of assets. An edge is declared (`upstream`), or follows from tasks: a task that makes an asset depends, directly or by
//! tasks that make none, on a task that makes another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use segno_actions::functions::HumanDuration;

use crate::plan::Parsed;
use crate::plan::definition::PartitionMapping;
use crate::plan::partition::PartitionSet;

/// A task of a DAG.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssetTask {
    /// The DAG.
    pub dag: String,
    /// The task.
    pub task: String,
}

/// Where an edge is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeSource {
    /// It is declared with the asset.
    Declared,
    /// It follows from the dependencies of tasks.
    Tasks,
}

/// An asset that another one is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The upstream asset.
    pub upstream: String,
    /// The downstream asset.
    pub downstream: String,
    /// Which of its partitions a partition is made of.
    pub mapping: PartitionMapping,
    /// Where the edge is from.
    pub source: EdgeSource,
}

/// An asset of published DAGs.
#[derive(Debug, Clone, Default)]
pub struct AssetNode {
    /// What it is.
    pub description: Option<String>,
    /// How old it may be before it is stale.
    pub freshness: Option<HumanDuration>,
    /// The name of its partition definition; nothing for an asset that is made as a whole.
    pub partitions: Option<String>,
    /// The tasks that make it.
    pub producers: BTreeSet<AssetTask>,
    /// The tasks that read it: those that make an asset downstream, and those that depend on a task that makes it.
    pub consumers: BTreeSet<AssetTask>,
    /// The DAG that declares it; the one that makes it, if several do.
    declared_in: Option<Arc<Parsed>>,
}

impl AssetNode {
    /// Its partition definition.
    pub fn partition_set(&self) -> Option<&PartitionSet> {
        self.declared_in.as_ref()?.partitions.get(self.partitions.as_ref()?)
    }
}

/// The assets of a scope, and what they are made of.
#[derive(Debug, Clone, Default)]
pub struct AssetGraph {
    /// The assets by key.
    pub assets: BTreeMap<String, AssetNode>,
    /// Edges by their downstream and upstream assets.
    edges: BTreeMap<(String, String), Edge>,
    /// The same the other way round.
    downstream: BTreeSet<(String, String)>,
}

impl AssetGraph {
    /// The graph of the active versions of DAGs.
    pub fn of(dags: &[Arc<Parsed>]) -> Self {
        let mut graph = AssetGraph::default();
        for parsed in dags {
            graph.add(parsed);
        }
        graph.note_consumers();
        graph
    }

    /// The edges to an asset.
    pub fn upstream_of(&self, asset: &str) -> impl Iterator<Item = &Edge> {
        let of = asset.to_owned();
        self.edges
            .range((of.clone(), String::new())..)
            .take_while(move |((to, _), _)| *to == of)
            .map(|(_, edge)| edge)
    }

    /// The edges from an asset.
    pub fn downstream_of(&self, asset: &str) -> impl Iterator<Item = &Edge> {
        let of = asset.to_owned();
        let from = self.downstream.range((of.clone(), String::new())..);
        from.take_while(move |(from, _)| *from == of)
            .filter_map(move |(from, to)| self.edges.get(&(to.clone(), from.clone())))
    }

    fn add(&mut self, parsed: &Arc<Parsed>) {
        let dag = &parsed.dag;
        for (key, asset) in &dag.assets {
            let is_made = dag.tasks.iter().any(|task| task.asset.as_ref() == Some(key));
            let node = self.assets.entry(key.clone()).or_default();
            if node.declared_in.is_none() || is_made {
                node.partitions.clone_from(&asset.partitions);
                node.declared_in = Some(Arc::clone(parsed));
            }
            node.description = node.description.take().or_else(|| asset.description.clone());
            node.freshness = node.freshness.or(asset.freshness);
            for upstream in &asset.upstream {
                self.connect(Edge {
                    upstream: upstream.asset.clone(),
                    downstream: key.clone(),
                    mapping: upstream.mapping,
                    source: EdgeSource::Declared,
                });
            }
        }
        for (index, task) in dag.tasks.iter().enumerate() {
            let own = AssetTask { dag: dag.name.clone(), task: task.key.clone() };
            for upstream in upstream_assets(parsed, index) {
                self.assets.entry(upstream.clone()).or_default().consumers.insert(own.clone());
                let Some(downstream) = task.asset.clone().filter(|asset| *asset != upstream) else {
                    continue;
                };
                // Tasks of one run make the same partition.
                let mapping = PartitionMapping::Same;
                self.connect(Edge { upstream, downstream, mapping, source: EdgeSource::Tasks });
            }
            if let Some(asset) = &task.asset {
                self.assets.entry(asset.clone()).or_default().producers.insert(own);
            }
        }
    }

    /// Adds an edge; a declared one counts more than one that follows from tasks.
    fn connect(&mut self, edge: Edge) {
        self.assets.entry(edge.upstream.clone()).or_default();
        let place = (edge.downstream.clone(), edge.upstream.clone());
        self.downstream.insert((edge.upstream.clone(), edge.downstream.clone()));
        match self.edges.get(&place) {
            Some(known) if known.source == EdgeSource::Declared => {}
            _ => drop(self.edges.insert(place, edge)),
        }
    }

    /// A task that makes an asset reads what the asset is made of.
    fn note_consumers(&mut self) {
        let mut consumers: BTreeMap<&str, BTreeSet<AssetTask>> = BTreeMap::new();
        for edge in self.edges.values() {
            let makers = self.assets.get(&edge.downstream).map(|node| node.producers.iter().cloned());
            consumers.entry(&edge.upstream).or_default().extend(makers.into_iter().flatten());
        }
        let consumers: Vec<(String, BTreeSet<AssetTask>)> =
            consumers.into_iter().map(|(asset, tasks)| (asset.to_owned(), tasks)).collect();
        for (asset, tasks) in consumers {
            self.assets.entry(asset).or_default().consumers.extend(tasks);
        }
    }
}

/// The assets of the nearest tasks upstream that make one.
fn upstream_assets(parsed: &Parsed, task: usize) -> BTreeSet<String> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<usize> = parsed.graph.upstream(task).to_vec();
    while let Some(before) = open.pop() {
        if !seen.insert(before) {
            continue;
        }
        match parsed.dag.tasks.get(before).and_then(|task| task.asset.clone()) {
            Some(asset) => drop(found.insert(asset)),
            None => open.extend(parsed.graph.upstream(before)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use segno_actions::schedule::Zones;

    use super::*;
    use crate::plan::parse;

    fn graph(documents: &[&str]) -> AssetGraph {
        let parsed =
            documents.iter().map(|text| Arc::new(parse(text.as_bytes(), &Zones::bundled()).unwrap()));
        AssetGraph::of(&parsed.collect::<Vec<_>>())
    }

    const RAW: &str = "
name: raw
partitions: {day: {window: daily, first: 2026-01-01}}
partitioned_by: day
assets: {raw/sales: {partitions: day, freshness: 26h}}
tasks:
  - {key: load, function: f, asset: raw/sales}
  - {key: check, function: f, depends_on: [load]}
  - {key: clean, function: f, depends_on: [check], asset: clean/sales}
";

    const REPORT: &str = "
name: report
partitions: {day: {window: daily, first: 2026-01-01}, month: {window: monthly, first: 2026-01}}
partitioned_by: month
assets:
  clean/sales: {partitions: day}
  report: {partitions: month, upstream: [{asset: clean/sales, mapping: window}]}
tasks: [{key: write, function: f, asset: report}]
";

    #[test]
    fn edges_are_declared_or_follow_from_tasks_also_across_dags() {
        let graph = graph(&[RAW, REPORT]);
        let keys: Vec<&str> = graph.assets.keys().map(String::as_str).collect();
        assert_eq!(keys, ["clean/sales", "raw/sales", "report"]);
        let up: Vec<(&str, EdgeSource)> =
            graph.upstream_of("clean/sales").map(|edge| (edge.upstream.as_str(), edge.source)).collect();
        assert_eq!(up, [("raw/sales", EdgeSource::Tasks)], "by a task in between");
        let down: Vec<&Edge> = graph.downstream_of("clean/sales").collect();
        assert_eq!((down.len(), down[0].downstream.as_str()), (1, "report"));
        assert_eq!((down[0].mapping, down[0].source), (PartitionMapping::Window, EdgeSource::Declared));
        let names = |tasks: &BTreeSet<AssetTask>| -> Vec<String> {
            tasks.iter().map(|task| format!("{}.{}", task.dag, task.task)).collect()
        };
        let clean = &graph.assets["clean/sales"];
        assert_eq!(
            (names(&clean.producers), names(&clean.consumers)),
            (vec!["raw.clean".into()], vec!["report.write".into()])
        );
        assert_eq!(names(&graph.assets["raw/sales"].consumers), ["raw.check", "raw.clean"]);
        assert!(clean.partition_set().is_some() && graph.assets["report"].partition_set().is_some());
        assert_eq!(graph.upstream_of("raw/sales").count() + graph.downstream_of("report").count(), 0);
    }
}
