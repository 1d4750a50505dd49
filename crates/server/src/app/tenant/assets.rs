//! Assets of a tenant.

use segno_api::asset::{Asset, AssetLineage, AssetTask, LineageAsset, LineagePartition};
use segno_ledger::drive::{self, AssetDetail, EdgeSource, TraceQuery, TracedAsset};
use segno_ledger::plan::definition::PartitionMapping;
use segno_ledger::tables::PartitionRow;

use super::{Tenant, run_rows};
use crate::problem::Refusal;

impl Tenant {
    /// Assets after a key, and whether the assets of all DAGs were looked at.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn assets(&self, after: Option<&str>, limit: usize) -> Result<(Vec<Asset>, bool), Refusal> {
        let found = self.ledger()?.assets().list(&self.owner(), after, limit).await;
        let page = found.map_err(|error| self.refused(error))?;
        Ok((page.assets.into_iter().map(asset).collect(), page.is_complete))
    }

    /// An asset.
    ///
    /// # Errors
    /// `unknown-asset`.
    pub async fn asset(&self, key: &str) -> Result<Asset, Refusal> {
        let found = self.ledger()?.assets().show(&self.owner(), key).await;
        found.map(asset).map_err(|error| self.refused(error))
    }

    /// What an asset is made of, and what is made of it.
    ///
    /// # Errors
    /// `unknown-asset`, `invalid-run` when the partition is none of the asset.
    pub async fn asset_lineage(&self, key: &str, query: &TraceQuery) -> Result<AssetLineage, Refusal> {
        let found = self.ledger()?.assets().trace(&self.owner(), key, query).await;
        let trace = found.map_err(|error| self.refused(error))?;
        let state = trace.partition.as_ref().map(run_rows::judged_partition);
        Ok(AssetLineage {
            asset: key.to_owned(),
            partition: query.partition.clone().map(|partition| LineagePartition { partition, state }),
            upstream: trace.upstream.into_iter().map(traced).collect(),
            downstream: trace.downstream.into_iter().map(traced).collect(),
            is_complete: trace.is_complete,
        })
    }
}

fn asset(detail: AssetDetail) -> Asset {
    let AssetDetail { asset, node, upstream, downstream, state } = detail;
    Asset {
        asset,
        description: node.description,
        partitioned_by: node.partitions,
        freshness: node.freshness.map(|freshness| freshness.to_string()),
        producers: node.producers.into_iter().map(task).collect(),
        consumers: node.consumers.into_iter().map(task).collect(),
        upstream,
        downstream,
        partitions_known: state.known,
        partitions_materialized: state.materialized,
        partitions_failed: state.failed,
        last_materialization: state.last.as_ref().map(run_rows::asset_partition),
    }
}

fn task(task: drive::AssetTask) -> AssetTask {
    AssetTask { dag: task.dag, task: task.task }
}

fn traced(traced: TracedAsset) -> LineageAsset {
    let mapping = match traced.mapping {
        PartitionMapping::Same => "same",
        PartitionMapping::Window => "window",
        PartitionMapping::All => "all",
    };
    LineageAsset {
        asset: traced.asset,
        distance: traced.distance,
        via: traced.via,
        mapping: mapping.to_owned(),
        is_declared: traced.source == EdgeSource::Declared,
        producers: traced.producers.into_iter().map(task).collect(),
        partitions: traced.partitions.into_iter().map(partition).collect(),
    }
}

fn partition((key, state): (String, Option<PartitionRow>)) -> LineagePartition {
    LineagePartition { partition: key, state: state.as_ref().map(run_rows::asset_partition) }
}
