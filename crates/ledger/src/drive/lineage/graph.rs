//! The graph of assets. An edge is declared (`upstream`), or follows from tasks: a task that makes an asset depends, directly or by
//! tasks that make none, on a task that makes another.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use segno_actions::functions::HumanDuration;

use crate::drive::error::LedgerError;
use crate::drive::limits::{MAX_LINEAGE_EDGES, MAX_LINEAGE_READERS};
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
    /// How many tasks were noted as readers of assets, of all assets.
    readers: usize,
    /// The active versions of the DAGs.
    pub(super) versions: BTreeMap<String, u32>,
}

impl AssetGraph {
    /// The graph of the active versions of DAGs.
    ///
    /// # Errors
    /// `lineage-too-large`.
    pub fn of(dags: &[Arc<Parsed>]) -> Result<Self, LedgerError> {
        let mut graph = AssetGraph::default();
        for parsed in dags {
            graph.add(parsed)?;
        }
        graph.note_consumers()?;
        Ok(graph)
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

    /// The active version of the DAG that makes an asset, if it is the only one.
    pub(super) fn version_of_producer(&self, node: &AssetNode) -> Option<u32> {
        let dags: BTreeSet<&str> = node.producers.iter().map(|task| task.dag.as_str()).collect();
        match (dags.first(), dags.len()) {
            (Some(dag), 1) => self.versions.get(*dag).copied(),
            _ => None,
        }
    }

    fn add(&mut self, parsed: &Arc<Parsed>) -> Result<(), LedgerError> {
        let dag = &parsed.dag;
        let made: HashSet<&str> = dag.tasks.iter().filter_map(|task| task.asset.as_deref()).collect();
        for (key, asset) in &dag.assets {
            let node = self.assets.entry(key.clone()).or_default();
            if node.declared_in.is_none() || made.contains(key.as_str()) {
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
                })?;
            }
        }
        let own = |task: usize| AssetTask { dag: dag.name.clone(), task: dag.tasks[task].key.clone() };
        each_with_upstream(parsed, |task, makers| {
            let downstream = dag.tasks[task].asset.as_ref();
            for &maker in makers {
                let Some(upstream) = &dag.tasks[maker].asset else { continue };
                self.note_reader(upstream, own(task))?;
                let Some(downstream) = downstream.filter(|asset| *asset != upstream) else { continue };
                self.connect(Edge {
                    upstream: upstream.clone(),
                    downstream: downstream.clone(),
                    // Tasks of one run make the same partition.
                    mapping: PartitionMapping::Same,
                    source: EdgeSource::Tasks,
                })?;
            }
            if let Some(asset) = downstream {
                self.assets.entry(asset.clone()).or_default().producers.insert(own(task));
            }
            Ok(())
        })
    }

    /// Adds an edge; a declared one counts more than one that follows from tasks.
    fn connect(&mut self, edge: Edge) -> Result<(), LedgerError> {
        self.assets.entry(edge.upstream.clone()).or_default();
        let place = (edge.downstream.clone(), edge.upstream.clone());
        self.downstream.insert((edge.upstream.clone(), edge.downstream.clone()));
        match self.edges.get(&place) {
            Some(known) if known.source == EdgeSource::Declared => {}
            _ => drop(self.edges.insert(place, edge)),
        }
        if self.edges.len() > MAX_LINEAGE_EDGES {
            return Err(LedgerError::LineageTooLarge { what: "edges", max: MAX_LINEAGE_EDGES });
        }
        Ok(())
    }

    fn note_reader(&mut self, asset: &str, task: AssetTask) -> Result<(), LedgerError> {
        if !self.assets.contains_key(asset) {
            self.assets.insert(asset.to_owned(), AssetNode::default());
        }
        let node = self.assets.get_mut(asset);
        self.readers += usize::from(node.is_some_and(|node| node.consumers.insert(task)));
        if self.readers > MAX_LINEAGE_READERS {
            return Err(LedgerError::LineageTooLarge { what: "readers", max: MAX_LINEAGE_READERS });
        }
        Ok(())
    }

    /// A task that makes an asset reads what the asset is made of.
    fn note_consumers(&mut self) -> Result<(), LedgerError> {
        let edges: Vec<(String, String)> = self.edges.keys().cloned().collect();
        for (downstream, upstream) in edges {
            let makers = self.assets.get(&downstream).map(|node| node.producers.clone());
            for maker in makers.into_iter().flatten() {
                self.note_reader(&upstream, maker)?;
            }
        }
        Ok(())
    }
}

/// Calls a function for each task, in topological order, with the nearest tasks upstream that make an asset. Each of these
/// lists is made of those of the tasks directly upstream, so that all of them together take time in the number of edges and
/// in what the function is called with.
fn each_with_upstream(
    parsed: &Parsed,
    mut visit: impl FnMut(usize, &[usize]) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let (graph, tasks) = (&parsed.graph, &parsed.dag.tasks);
    // What the tasks downstream of a task see of it: the task itself, or what it sees. Tasks that see the same share it.
    let mut seen: Vec<Arc<[usize]>> = vec![Arc::from([]); tasks.len()];
    // The task for which one was found last, so that each is found once for it.
    let mut found_for = vec![usize::MAX; tasks.len()];
    for &task in graph.order() {
        let makers = match graph.upstream(task) {
            [before] => Arc::clone(&seen[*before]),
            all => {
                let mut makers = Vec::new();
                let mut merged: HashSet<*const usize> = HashSet::new();
                for before in all {
                    // Lists that are shared are merged once.
                    if merged.insert(seen[*before].as_ptr()) {
                        let new = seen[*before].iter().copied();
                        makers.extend(new.filter(|&m| std::mem::replace(&mut found_for[m], task) != task));
                    }
                }
                makers.into()
            }
        };
        visit(task, &makers)?;
        seen[task] = if tasks[task].asset.is_some() { Arc::from([task]) } else { makers };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use segno_actions::schedule::Zones;

    use super::*;
    use crate::plan::parse;

    fn graph(documents: &[&str]) -> AssetGraph {
        let parsed =
            documents.iter().map(|text| Arc::new(parse(text.as_bytes(), &Zones::bundled()).unwrap()));
        AssetGraph::of(&parsed.collect::<Vec<_>>()).unwrap()
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
    /// Tasks that make assets, so many that make none behind all of them one after the other, and tasks behind the last of
    /// them that make assets.
    fn hourglass(wide: usize, waist: usize) -> Arc<Parsed> {
        let mut text = "name: hourglass\ntasks:\n".to_owned();
        let all: Vec<String> = (0..wide).map(|n| format!("in{n}")).collect();
        all.iter().for_each(|key| text += &format!("- {{key: {key}, function: f, asset: {key}}}\n"));
        for n in 0..waist {
            let before = if n == 0 { all.join(", ") } else { format!("mid{}", n - 1) };
            text += &format!("- {{key: mid{n}, function: f, depends_on: [{before}]}}\n");
        }
        for n in 0..wide {
            let last = waist - 1;
            text += &format!("- {{key: out{n}, function: f, asset: out{n}, depends_on: [mid{last}]}}\n");
        }
        Arc::new(parse(text.as_bytes(), &Zones::bundled()).unwrap())
    }

    #[test]
    fn assets_behind_tasks_that_make_none_are_found_through_all_of_them() {
        let graph = AssetGraph::of(&[hourglass(20, 30)]).unwrap();
        assert_eq!(graph.upstream_of("out7").count(), 20);
        assert_eq!(graph.downstream_of("in3").count(), 20);
        assert_eq!(graph.assets["in3"].consumers.len(), 30 + 20);
        assert_eq!(graph.assets["out3"].consumers.len(), 0);
    }

    #[test]
    fn a_graph_with_too_many_edges_or_readers_is_refused() {
        for (graph, problem) in [
            (hourglass(450, 1), "more than 200000 edges"),
            (hourglass(300, 1_700), "more than 500000 readers"),
        ] {
            let refused = AssetGraph::of(&[graph]).unwrap_err();
            assert_eq!(refused.code(), "lineage-too-large");
            assert!(refused.to_string().contains(problem), "{refused}");
        }
    }

    #[test]
    fn layers_of_tasks_that_make_nothing_take_time_in_their_edges() {
        // Each of 40 layers of 20 tasks depends on all of the layer before: a walk from each task takes all ways.
        let mut text = "name: layers\ntasks:\n- {key: t0x0, function: f, asset: source}\n".to_owned();
        for layer in 1..=40 {
            let count = if layer == 1 { 1 } else { 20 };
            let before: Vec<String> = (0..count).map(|n| format!("t{}x{n}", layer - 1)).collect();
            for n in 0..20 {
                let before = before.join(", ");
                text += &format!("- {{key: t{layer}x{n}, function: f, depends_on: [{before}]}}\n");
            }
        }
        let parsed = Arc::new(parse(text.as_bytes(), &Zones::bundled()).unwrap());
        let visited = std::cell::Cell::new(0);
        each_with_upstream(&parsed, |_, makers| {
            visited.set(visited.get() + makers.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(visited.get(), 800, "each task has one, however many ways lead to it");
        let graph = AssetGraph::of(&[parsed]).unwrap();
        assert_eq!(graph.assets["source"].consumers.len(), 800);
    }
}
