//! `partition_status`: what is known of each partition of an asset.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A partition.
    PartitionRow in "partition_status"
    key 4 [tenant_id, workspace_id, asset_key, partition_key]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The asset.
        asset_key: Arc<str>,
        /// The partition; empty if the asset has none.
        partition_key: Arc<str>,
        /// The run that last made it.
        last_materialization_run_id: Option<Arc<str>>,
        /// When.
        last_materialization_at: Option<i64>,
        /// With which version of the code.
        last_materialization_code_version: Option<Arc<str>>,
        /// The run that last tried.
        last_attempt_run_id: Option<Arc<str>>,
        /// When.
        last_attempt_at: Option<i64>,
        /// With which outcome.
        last_attempt_outcome: Option<Arc<str>>,
        /// Since when it is stale.
        stale_since: Option<i64>,
        /// Why.
        stale_reason_code: Option<Arc<str>>,
        /// Its dimensions, a JSON object.
        partition_values: Option<Arc<str>>,
        /// The table that was written.
        delta_table: Option<Arc<str>>,
        /// The version of that table.
        delta_version: Option<i64>,
        /// The partition of that table.
        delta_partition: Option<Arc<str>>,
        /// Where its lineage is described.
        execution_lineage_ref: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
