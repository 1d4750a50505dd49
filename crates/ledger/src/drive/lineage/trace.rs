//! Upstream and downstream of one asset, breadth first; with a partition, which partitions of the other assets it is made of, or
//! is part of, and which runs have made them.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;
use segno_actions::functions::Scope;

use super::assets::{Assets, rows};
use super::graph::{AssetGraph, AssetNode, AssetTask, Edge, EdgeSource};
use super::staleness::{JudgedPartition, Rules};
use crate::drive::error::LedgerError;
use crate::drive::limits::{MAX_LINEAGE_ASSETS, MAX_LINEAGE_PARTITIONS};
use crate::plan::definition::PartitionMapping;
use crate::plan::partition::map_partition;
use crate::snapshot::Snapshot;
use crate::tables::PartitionRow;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What it is made of.
    Upstream,
    /// What is made of it.
    Downstream,
}

/// What is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceQuery {
    /// The partition; the asset as a whole without it.
    pub partition: Option<String>,
    /// At most so many edges away; any number without it.
    pub depth: Option<u32>,
}

/// An asset upstream or downstream.
#[derive(Debug, Clone)]
pub struct TracedAsset {
    /// Its key.
    pub asset: String,
    /// How many edges away.
    pub distance: u32,
    /// The asset by which it was found.
    pub via: String,
    /// The mapping of the edge between the two.
    pub mapping: PartitionMapping,
    /// Where that edge is from.
    pub source: EdgeSource,
    /// The tasks that make it.
    pub producers: BTreeSet<AssetTask>,
    /// Its partitions that belong to the one in question, with what is known of them; the first ones.
    pub partitions: Vec<(String, Option<PartitionRow>)>,
    /// How many belong to it, up to a limit.
    pub partitions_total: usize,
}

/// Lineage of an asset.
#[derive(Debug, Clone)]
pub struct Trace {
    /// What is known of the partition in question.
    pub partition: Option<JudgedPartition>,
    /// What it is made of, the nearest first.
    pub upstream: Vec<TracedAsset>,
    /// What is made of it, the nearest first.
    pub downstream: Vec<TracedAsset>,
    /// Whether nothing was left out because of a limit.
    pub is_complete: bool,
}

/// A walk through the graph.
struct Walk<'a> {
    graph: &'a AssetGraph,
    snapshot: Option<&'a Snapshot>,
    now: Timestamp,
    has_partition: bool,
    depth: u32,
    is_complete: bool,
}

impl Assets {
    /// Upstream and downstream of an asset.
    ///
    /// # Errors
    /// `unknown-asset`, `invalid-run` when the partition is none of it, `ledger-unavailable`, `stored-data-unreadable`,
    /// `store`.
    pub async fn trace(&self, scope: &Scope, asset: &str, query: &TraceQuery) -> Result<Trace, LedgerError> {
        let (graph, is_complete) = self.graph(scope).await?;
        let node = graph.assets.get(asset).ok_or_else(|| LedgerError::UnknownAsset(asset.to_owned()))?;
        if let Some(key) = &query.partition {
            check_partition(node, key)?;
        }
        let snapshot = self.ledger.snapshot(scope).await?;
        let now = self.ledger.now().await?;
        let mut partition = None;
        if let Some(key) = &query.partition {
            let rows = rows(snapshot.as_ref(), asset).await?;
            let rules = Rules::read(&graph, snapshot.as_ref(), asset, now).await?;
            let row = rows.into_iter().find(|row| *row.partition_key == **key);
            partition = row.map(|row| rules.judged(row));
        }
        let mut walk = Walk {
            graph: &graph,
            snapshot: snapshot.as_ref(),
            now,
            has_partition: query.partition.is_some(),
            depth: query.depth.unwrap_or(u32::MAX),
            is_complete,
        };
        let from = || query.partition.iter().cloned().collect::<Vec<String>>();
        let upstream = walk.run(asset, from(), Direction::Upstream).await?;
        let downstream = walk.run(asset, from(), Direction::Downstream).await?;
        Ok(Trace { partition, upstream, downstream, is_complete: walk.is_complete })
    }
}

/// Whether a partition is one of an asset.
fn check_partition(node: &AssetNode, key: &str) -> Result<(), LedgerError> {
    match node.partition_set() {
        Some(set) => set.check(key).map_err(|error| LedgerError::invalid("partition", error.problem())),
        None if key.is_empty() => Ok(()),
        None => Err(LedgerError::invalid("partition", "the asset has no partitions; leave it out")),
    }
}

impl<'a> Walk<'a> {
    async fn run(
        &mut self,
        asset: &str,
        keys: Vec<String>,
        direction: Direction,
    ) -> Result<Vec<TracedAsset>, LedgerError> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::from([asset.to_owned()]));
        let mut open = VecDeque::from([(asset.to_owned(), keys, 0)]);
        while let Some((via, keys, distance)) = open.pop_front() {
            if distance >= self.depth {
                continue;
            }
            for edge in self.edges(&via, direction) {
                let next = match direction {
                    Direction::Upstream => &edge.upstream,
                    Direction::Downstream => &edge.downstream,
                };
                if !seen.insert(next.clone()) {
                    continue;
                }
                if found.len() >= MAX_LINEAGE_ASSETS {
                    self.is_complete = false;
                    return Ok(found);
                }
                let mapped = self.mapped(&via, &keys, next, edge.mapping);
                let traced = self.traced(next, edge, mapped.clone()).await?;
                found.push(TracedAsset { distance: distance + 1, via: via.clone(), ..traced });
                open.push_back((next.clone(), mapped, distance + 1));
            }
        }
        Ok(found)
    }

    fn edges(&self, asset: &str, direction: Direction) -> Vec<&'a Edge> {
        let graph: &'a AssetGraph = self.graph;
        match direction {
            Direction::Upstream => graph.upstream_of(asset).collect(),
            Direction::Downstream => graph.downstream_of(asset).collect(),
        }
    }

    /// The partitions of an asset that belong to partitions of another. A mapping is the same in both directions.
    fn mapped(&mut self, from: &str, keys: &[String], to: &str, mapping: PartitionMapping) -> Vec<String> {
        if !self.has_partition {
            return Vec::new();
        }
        let set = |asset: &str| self.graph.assets.get(asset).and_then(AssetNode::partition_set);
        let mut mapped = BTreeSet::new();
        match (set(from), set(to)) {
            (_, None) => drop(mapped.insert(String::new())),
            (None, Some(to)) => mapped.extend(to.keys_until(self.now).unwrap_or_default()),
            (Some(from), Some(to)) => {
                for key in keys {
                    // A partition may have no counterpart: the other asset begins later.
                    mapped.extend(map_partition(mapping, (from, key), to, self.now).unwrap_or_default());
                    if mapped.len() > MAX_LINEAGE_PARTITIONS {
                        break;
                    }
                }
            }
        }
        if mapped.len() > MAX_LINEAGE_PARTITIONS {
            self.is_complete = false;
        }
        mapped.into_iter().take(MAX_LINEAGE_PARTITIONS).collect()
    }

    async fn traced(&self, asset: &str, edge: &Edge, keys: Vec<String>) -> Result<TracedAsset, LedgerError> {
        let known = if keys.is_empty() { Vec::new() } else { rows(self.snapshot, asset).await? };
        let total = keys.len();
        let partitions = keys.into_iter().map(|key| {
            let row = known.iter().find(|row| *row.partition_key == *key).cloned();
            (key, row)
        });
        let partitions = partitions.collect();
        Ok(TracedAsset {
            asset: asset.to_owned(),
            distance: 0,
            via: String::new(),
            mapping: edge.mapping,
            source: edge.source,
            producers: self.graph.assets.get(asset).map(|node| node.producers.clone()).unwrap_or_default(),
            partitions,
            partitions_total: total,
        })
    }
}
