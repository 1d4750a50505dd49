//! Staleness of partitions, computed when they are read. The first rule that holds is the reason: the partition was never made; an
//! earlier version of its DAG has made it; what it is made of was never made, or was made later; it is older than the `freshness` of
//! its asset.
//!
//! A window of time does not grow old: nothing is added to a day that has passed. So the last rule is for other partitions, and
//! for assets that are made as a whole.

use std::collections::HashMap;

use jiff::Timestamp;
use segno_actions::functions::{HumanDuration, Scope};

use super::assets::{Assets, rows};
use super::graph::{AssetGraph, AssetNode, Edge};
use crate::drive::error::LedgerError;
use crate::drive::limits::MAX_PAGE;
use crate::plan::definition::PartitionMapping;
use crate::plan::partition::{PartitionSet, map_partition};
use crate::snapshot::Snapshot;
use crate::tables::PartitionRow;

/// Why a partition is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// It was attempted, and never made.
    NeverMaterialized,
    /// An earlier version of its DAG has made it.
    CodeChanged,
    /// An asset that it is made of was never made for it.
    UpstreamNeverMaterialized,
    /// An asset that it is made of was made later.
    UpstreamNewer,
    /// It is older than its asset may be.
    TooOld,
}

impl StaleReason {
    /// Its name in the API.
    pub const fn code(self) -> &'static str {
        match self {
            StaleReason::NeverMaterialized => "never_materialized",
            StaleReason::CodeChanged => "code_changed",
            StaleReason::UpstreamNeverMaterialized => "upstream_never_materialized",
            StaleReason::UpstreamNewer => "upstream_newer",
            StaleReason::TooOld => "too_old",
        }
    }
}

/// That a partition is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// Why.
    pub reason: StaleReason,
    /// Since when, where a time is known.
    pub since_ms: Option<i64>,
}

/// A partition, and whether it is stale.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPartition {
    /// What the tables know of it.
    pub row: PartitionRow,
    /// Nothing while it is fresh.
    pub stale: Option<Stale>,
}

/// When an upstream asset was made last for the partitions of an asset.
enum Made<'a> {
    /// By partition of the asset.
    ByKey {
        newest: HashMap<String, i64>,
        mapping: PartitionMapping,
        sets: (&'a PartitionSet, &'a PartitionSet),
    },
    /// For all of them.
    ForAll(Option<i64>),
}

/// What decides whether the partitions of an asset are stale.
pub(super) struct Rules<'a> {
    /// The active version of the one DAG that makes it.
    version: Option<u32>,
    /// How old it may be.
    freshness: Option<HumanDuration>,
    upstream: Vec<Made<'a>>,
    now: Timestamp,
}

impl Assets {
    /// Partitions of an asset after a key, by key.
    ///
    /// # Errors
    /// `ledger-unavailable`, `stored-data-unreadable`, `store`.
    pub async fn partitions(
        &self,
        scope: &Scope,
        asset: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<JudgedPartition>, LedgerError> {
        let snapshot = self.ledger.snapshot(scope).await?;
        let mut found = rows(snapshot.as_ref(), asset).await?;
        found.retain(|row| after.is_none_or(|after| &*row.partition_key > after));
        found.sort_by(|a, b| a.partition_key.cmp(&b.partition_key));
        found.truncate(limit.clamp(1, MAX_PAGE));
        let graph = match self.graph(scope).await {
            Ok((graph, _)) => graph,
            // The partitions themselves can be listed without it.
            Err(LedgerError::LineageTooLarge { .. }) => Default::default(),
            Err(error) => return Err(error),
        };
        let rules = Rules::read(&graph, snapshot.as_ref(), asset, self.ledger.now().await?).await?;
        Ok(found.into_iter().map(|row| rules.judged(row)).collect())
    }
}

impl<'a> Rules<'a> {
    /// Reads when the upstream assets of an asset were made.
    pub(super) async fn read(
        graph: &'a AssetGraph,
        snapshot: Option<&Snapshot>,
        asset: &str,
        now: Timestamp,
    ) -> Result<Self, LedgerError> {
        let edges: Vec<&Edge> = graph.upstream_of(asset).collect();
        let mut upstream = Vec::with_capacity(edges.len());
        for edge in edges {
            let known = rows(snapshot, &edge.upstream).await?;
            upstream.extend(made(graph, edge, &known, now));
        }
        Ok(Rules::new(graph, asset, upstream, now))
    }

    fn new(graph: &AssetGraph, asset: &str, upstream: Vec<Made<'a>>, now: Timestamp) -> Self {
        let node = graph.assets.get(asset);
        let is_window = |node: &&AssetNode| node.partition_set().is_some_and(PartitionSet::has_windows_only);
        let freshness = node.filter(|node| !is_window(node)).and_then(|node| node.freshness);
        Rules { version: node.and_then(|node| graph.version_of_producer(node)), freshness, upstream, now }
    }

    /// Whether a partition is stale.
    pub(super) fn judged(&self, row: PartitionRow) -> JudgedPartition {
        JudgedPartition { stale: self.stale(&row), row }
    }

    fn stale(&self, row: &PartitionRow) -> Option<Stale> {
        let because = |reason, since_ms| Some(Stale { reason, since_ms });
        let Some(made_at) = row.last_materialization_at else {
            return because(StaleReason::NeverMaterialized, None);
        };
        let version: Option<u32> =
            row.last_materialization_code_version.as_deref().and_then(|text| text.parse().ok());
        if let (Some(version), Some(active)) = (version, self.version)
            && version < active
        {
            return because(StaleReason::CodeChanged, None);
        }
        let upstream: Vec<Option<i64>> =
            self.upstream.iter().filter_map(|made| made.newest(&row.partition_key, self.now)).collect();
        if upstream.contains(&None) {
            return because(StaleReason::UpstreamNeverMaterialized, None);
        }
        if let Some(newer) = upstream.into_iter().flatten().filter(|at| *at > made_at).min() {
            return because(StaleReason::UpstreamNewer, Some(newer));
        }
        let age_ms = i64::try_from(self.freshness?.as_ms()).unwrap_or(i64::MAX);
        let old_at = made_at.saturating_add(age_ms);
        (old_at <= self.now.as_millisecond())
            .then_some(Stale { reason: StaleReason::TooOld, since_ms: Some(old_at) })
    }
}

impl Made<'_> {
    /// When the upstream asset was made last for a partition, or that it never was; nothing if it has no partition that belongs to
    /// this one.
    fn newest(&self, key: &str, now: Timestamp) -> Option<Option<i64>> {
        let (newest, mapping, (own, upstream)) = match self {
            Made::ForAll(newest) => return Some(*newest),
            Made::ByKey { newest, mapping, sets } => (newest, *mapping, *sets),
        };
        if let Some(at) = newest.get(key) {
            return Some(Some(*at));
        }
        let counterparts = map_partition(mapping, (own, key), upstream, now).unwrap_or_default();
        (!counterparts.is_empty()).then_some(None)
    }
}

/// When an upstream asset was made; nothing for one that no DAG makes and no run has made.
fn made<'a>(graph: &'a AssetGraph, edge: &Edge, known: &[PartitionRow], now: Timestamp) -> Option<Made<'a>> {
    let set = |asset: &str| graph.assets.get(asset).and_then(AssetNode::partition_set);
    let made = known.iter().filter_map(|row| Some((row, row.last_materialization_at?)));
    let is_made_here = graph.assets.get(&edge.upstream).is_some_and(|node| !node.producers.is_empty());
    let newest_of_all = made.clone().map(|(_, at)| at).max();
    if newest_of_all.is_none() && !is_made_here {
        return None;
    }
    let (Some(own), Some(upstream)) = (set(&edge.downstream), set(&edge.upstream)) else {
        return Some(Made::ForAll(newest_of_all));
    };
    if edge.mapping == PartitionMapping::All {
        return Some(Made::ForAll(newest_of_all));
    }
    let mut newest: HashMap<String, i64> = HashMap::new();
    for (row, at) in made {
        // A mapping is the same in both directions, so each upstream partition is mapped once.
        for key in map_partition(edge.mapping, (upstream, &*row.partition_key), own, now).unwrap_or_default()
        {
            let newest = newest.entry(key).or_insert(at);
            *newest = at.max(*newest);
        }
    }
    Some(Made::ByKey { newest, mapping: edge.mapping, sets: (own, upstream) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use segno_actions::schedule::Zones;

    use super::*;
    use crate::ids::Ulid;
    use crate::plan::parse;

    const DAGS: [&str; 2] = [
        "
name: raw
partitions: {day: {window: daily, first: 2026-01-01}}
partitioned_by: day
assets: {raw/sales: {partitions: day, freshness: 1h}}
tasks: [{key: load, function: f, asset: raw/sales}]
",
        "
name: report
partitions: {day: {window: daily, first: 2026-01-01}, month: {window: monthly, first: 2025-12}}
partitioned_by: month
assets:
  raw/sales: {partitions: day}
  report: {partitions: month, upstream: [{asset: raw/sales, mapping: window}, {asset: outside, mapping: all}]}
  outside: {partitions: none}
  board: {freshness: 1h, partitions: none, upstream: [{asset: report, mapping: all}]}
tasks:
  - {key: write, function: f, asset: report}
  - {key: draw, function: f, asset: board}
",
    ];

    fn row(asset: &str, key: &str, made_at: Option<&str>, version: &str) -> PartitionRow {
        let made_at = made_at.map(|at| at.parse::<Timestamp>().unwrap().as_millisecond());
        PartitionRow {
            tenant_id: "acme".into(),
            workspace_id: "eu".into(),
            asset_key: asset.into(),
            partition_key: key.into(),
            last_materialization_run_id: made_at.map(|_| "run1".into()),
            last_materialization_at: made_at,
            last_materialization_code_version: made_at.map(|_| version.into()),
            last_attempt_run_id: Some("run1".into()),
            last_attempt_at: Some(0),
            last_attempt_outcome: None,
            stale_since: None,
            stale_reason_code: None,
            partition_values: None,
            delta_table: None,
            delta_version: None,
            delta_partition: None,
            execution_lineage_ref: None,
            row_version: Ulid::MIN,
        }
    }

    /// The reason and the time since which the last of the rows is stale; the others are of upstream assets.
    fn stale(versions: [u32; 2], known: &[PartitionRow]) -> Option<(&'static str, Option<String>)> {
        let parsed = DAGS.map(|text| Arc::new(parse(text.as_bytes(), &Zones::bundled()).unwrap()));
        let mut graph = AssetGraph::of(&parsed).unwrap();
        graph.versions = [("raw".to_owned(), versions[0]), ("report".to_owned(), versions[1])].into();
        let now = "2026-02-01T12:00:00Z".parse().unwrap();
        let last = known.last().unwrap().clone();
        let upstream = graph.upstream_of(&last.asset_key).filter_map(|edge| {
            let rows: Vec<PartitionRow> =
                known.iter().filter(|row| *row.asset_key == *edge.upstream).cloned().collect();
            made(&graph, edge, &rows, now)
        });
        let upstream = upstream.collect();
        let stale = Rules::new(&graph, &last.asset_key, upstream, now).judged(last).stale?;
        let since = stale.since_ms.map(|at| Timestamp::from_millisecond(at).unwrap().to_string());
        Some((stale.reason.code(), since))
    }

    #[test]
    fn parity_m3_a_partition_is_stale_for_the_first_reason_that_holds() {
        let day = |made_at| row("raw/sales", "2026-01-05", made_at, "1");
        let month = |key: &str, made_at| row("report", key, made_at, "1");
        let (early, late) = (Some("2026-02-01T08:00:00Z"), Some("2026-02-01T09:00:00Z"));
        let never = |reason| Some((reason, None));
        let since = |reason, at: &str| Some((reason, Some(at.to_owned())));
        // parity_m3_staleness_never_materialized_is_stale_with_reason_code
        assert_eq!(stale([1, 1], &[day(None)]), never("never_materialized"));
        // parity_m3_staleness_code_version_change_is_stale
        assert_eq!(stale([2, 1], &[day(early)]), never("code_changed"));
        assert_eq!(stale([1, 2], &[day(early)]), None, "a window of time does not grow old");
        // parity_m3_staleness_upstream_newer_marks_downstream_stale
        assert_eq!(
            stale([1, 1], &[day(late), month("2026-01", early)]),
            since("upstream_newer", "2026-02-01T09:00:00Z")
        );
        assert_eq!(stale([1, 1], &[day(early), month("2026-01", late)]), None);
        assert_eq!(stale([1, 1], &[month("2026-01", late)]), never("upstream_never_materialized"));
        assert_eq!(stale([1, 1], &[day(None), month("2026-01", late)]), never("upstream_never_materialized"));
        assert_eq!(
            stale([1, 1], &[day(late), month("2026-02", late)]),
            never("upstream_never_materialized"),
            "it was made for another month"
        );
        assert_eq!(stale([1, 1], &[month("2025-12", late)]), None, "the days begin later");
        // An asset that is made as a whole, of all partitions of another.
        let board = |made_at| row("board", "", made_at, "1");
        assert_eq!(stale([1, 1], &[month("2026-01", early), board(Some("2026-02-01T11:30:00Z"))]), None);
        assert_eq!(
            stale([1, 1], &[month("2026-01", early), board(late)]),
            since("too_old", "2026-02-01T10:00:00Z")
        );
        assert_eq!(
            stale([1, 1], &[month("2026-01", late), board(early)]),
            since("upstream_newer", "2026-02-01T09:00:00Z")
        );
    }
}
