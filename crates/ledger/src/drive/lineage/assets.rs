//! Assets with what the tables know of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use segno_actions::Listed;
use segno_actions::functions::{Scope, compute};

use super::graph::{AssetGraph, AssetNode};
use crate::drive::definitions::DagHead;
use crate::drive::error::LedgerError;
use crate::drive::ledger::Ledger;
use crate::drive::limits::{MAX_CACHED_GRAPHS, MAX_LINEAGE_DAGS, MAX_PAGE};
use crate::plan::Parsed;
use crate::snapshot::{Days, Filter, Snapshot};
use crate::tables::PartitionRow;

/// DAGs that are read at once.
const HEADS_PER_PAGE: usize = 500;

/// A graph of more tasks and assets is not built by the threads that serve.
const MAX_INLINE_PARTS: usize = 500;

/// Assets whose partitions are read at the same time.
const ASSETS_AT_ONCE: usize = 8;

/// Assets of a store. Cheap to clone.
#[derive(Clone)]
pub struct Assets {
    pub(super) ledger: Ledger,
}

/// What the tables know of the partitions of an asset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssetState {
    /// Partitions that were made or attempted.
    pub known: u64,
    /// Those that were made.
    pub materialized: u64,
    /// Those whose last attempt has failed.
    pub failed: u64,
    /// The one that was made last.
    pub last: Option<PartitionRow>,
}

/// An asset of published DAGs, or one that runs have made before its DAG was deleted.
#[derive(Debug, Clone)]
pub struct AssetDetail {
    /// Its key.
    pub asset: String,
    /// What its DAGs declare.
    pub node: AssetNode,
    /// The assets that it is made of.
    pub upstream: Vec<String>,
    /// The assets that are made of it.
    pub downstream: Vec<String>,
    /// What the tables know.
    pub state: AssetState,
}

/// Assets, by key.
#[derive(Debug, Clone, Default)]
pub struct LineagePage {
    /// The assets.
    pub assets: Vec<AssetDetail>,
    /// Whether all DAGs of the tenant are in the graph.
    pub is_complete: bool,
}

/// A graph, and the versions that it is of.
pub(in crate::drive) struct CachedGraph {
    versions: Vec<(String, u32)>,
    graph: Arc<AssetGraph>,
}

/// Graphs by scope.
pub(in crate::drive) type Graphs = Mutex<HashMap<Scope, CachedGraph>>;

impl Ledger {
    /// Assets.
    pub fn assets(&self) -> Assets {
        Assets { ledger: self.clone() }
    }
}

impl Assets {
    /// Assets after a key, by key.
    ///
    /// # Errors
    /// `ledger-unavailable`, `stored-data-unreadable`, `store`.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&str>,
        limit: usize,
    ) -> Result<LineagePage, LedgerError> {
        let (graph, is_complete) = self.graph(scope).await?;
        let snapshot = self.ledger.snapshot(scope).await?;
        let later = graph.assets.keys().filter(|key| after.is_none_or(|after| key.as_str() > after));
        let keys: Vec<&String> = later.take(limit.clamp(1, MAX_PAGE)).collect();
        // Collected first: a stream of borrowing closures is not known to be `Send`.
        let details: Vec<_> = keys.iter().map(|key| detail(&graph, snapshot.as_ref(), key)).collect();
        let assets = stream::iter(details).buffered(ASSETS_AT_ONCE).try_collect().await?;
        Ok(LineagePage { assets, is_complete })
    }

    /// An asset.
    ///
    /// # Errors
    /// `unknown-asset`, `ledger-unavailable`, `stored-data-unreadable`, `store`.
    pub async fn show(&self, scope: &Scope, asset: &str) -> Result<AssetDetail, LedgerError> {
        let (graph, _) = self.graph(scope).await?;
        let snapshot = self.ledger.snapshot(scope).await?;
        let found = detail(&graph, snapshot.as_ref(), asset).await?;
        if found.state.known == 0 && !graph.assets.contains_key(asset) {
            return Err(LedgerError::UnknownAsset(asset.to_owned()));
        }
        Ok(found)
    }

    /// The graph of the active versions, and whether all DAGs are in it. It is made anew when a DAG has another version.
    pub(super) async fn graph(&self, scope: &Scope) -> Result<(Arc<AssetGraph>, bool), LedgerError> {
        let (versions, is_complete) = self.versions(scope).await?;
        let graphs = self.ledger.graphs();
        let lock = || graphs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = lock().get(scope).filter(|cached| cached.versions == versions) {
            return Ok((Arc::clone(&cached.graph), is_complete));
        }
        let dags = self.ledger.dags();
        let mut parsed: Vec<Arc<Parsed>> = Vec::with_capacity(versions.len());
        for (name, version) in &versions {
            // One that this version of Segno cannot read, or that was just deleted, has no part in the graph.
            match dags.parsed(scope, name, Some(*version)).await {
                Ok(found) => parsed.push(found),
                Err(LedgerError::Dag(_) | LedgerError::UnknownDag { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let parts: usize = parsed.iter().map(|parsed| parsed.dag.tasks.len() + parsed.dag.assets.len()).sum();
        let graph = match parts {
            0..=MAX_INLINE_PARTS => AssetGraph::of(&parsed),
            // A large one takes a while, on the threads that tenants share fairly.
            _ => compute(scope, move || AssetGraph::of(&parsed)).await.map_err(|_| LedgerError::Busy)?,
        };
        let mut graph = graph?;
        graph.versions = versions.iter().cloned().collect();
        let graph = Arc::new(graph);
        let mut cached = lock();
        if cached.len() >= MAX_CACHED_GRAPHS {
            cached.clear();
        }
        cached.insert(scope.clone(), CachedGraph { versions, graph: Arc::clone(&graph) });
        Ok((graph, is_complete))
    }

    /// The active version of each DAG, and whether these are all.
    async fn versions(&self, scope: &Scope) -> Result<(Vec<(String, u32)>, bool), LedgerError> {
        let dags = self.ledger.dags();
        let mut versions: Vec<(String, u32)> = Vec::new();
        loop {
            let after = versions.last().map(|(name, _)| name.clone());
            let heads = dags.list(scope, after.as_deref(), HEADS_PER_PAGE).await?;
            let is_last = heads.len() < HEADS_PER_PAGE;
            let readable = heads.into_iter().filter_map(Listed::readable);
            let before = versions.len();
            versions.extend(readable.map(|DagHead { name, active_version, .. }| (name, active_version)));
            if is_last || versions.len() == before {
                return Ok((versions, true));
            }
            if versions.len() >= MAX_LINEAGE_DAGS {
                return Ok((versions, false));
            }
        }
    }
}

async fn detail(
    graph: &AssetGraph,
    snapshot: Option<&Snapshot>,
    asset: &str,
) -> Result<AssetDetail, LedgerError> {
    let rows = rows(snapshot, asset).await?;
    let is = |row: &PartitionRow, outcome: &str| row.last_attempt_outcome.as_deref() == Some(outcome);
    let state = AssetState {
        known: rows.len() as u64,
        materialized: rows.iter().filter(|row| row.last_materialization_at.is_some()).count() as u64,
        failed: rows.iter().filter(|row| is(row, "failed")).count() as u64,
        last: rows
            .into_iter()
            .filter(|row| row.last_materialization_at.is_some())
            .max_by_key(|row| row.last_materialization_at),
    };
    Ok(AssetDetail {
        asset: asset.to_owned(),
        node: graph.assets.get(asset).cloned().unwrap_or_default(),
        upstream: graph.upstream_of(asset).map(|edge| edge.upstream.clone()).collect(),
        downstream: graph.downstream_of(asset).map(|edge| edge.downstream.clone()).collect(),
        state,
    })
}

/// What is known of the partitions of an asset.
pub(super) async fn rows(snapshot: Option<&Snapshot>, asset: &str) -> Result<Vec<PartitionRow>, LedgerError> {
    let Some(snapshot) = snapshot else { return Ok(Vec::new()) };
    let filter = Filter { days: Days::None, key: vec![asset.into()] };
    Ok(snapshot.rows::<PartitionRow>(&filter).await?)
}
