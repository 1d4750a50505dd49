//! `backfills`: runs over a range of partitions.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// The states of a backfill.
    BackfillState {
        /// Not begun.
        Pending = "PENDING",
        /// Plans chunks.
        Running = "RUNNING",
        /// Plans no further chunks.
        Paused = "PAUSED",
        /// All chunks succeeded.
        Succeeded = "SUCCEEDED",
        /// All chunks ended, at least one failed.
        Failed = "FAILED",
        /// Cancelled.
        Cancelled = "CANCELLED",
    }
}

row! {
    /// A backfill.
    BackfillRow in "backfills"
    key 3 [tenant_id, workspace_id, backfill_id]
    version row_version
    rank |row| row.state_version;
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The backfill.
        backfill_id: Arc<str>,
        /// What it makes, a JSON list.
        asset_selection: Arc<str>,
        /// The version of the code.
        code_version: Option<Arc<str>>,
        /// For which partitions, a JSON object.
        partition_selector: Arc<str>,
        /// Partitions in a chunk.
        chunk_size: u32,
        /// Chunks at a time.
        max_concurrent_runs: u32,
        /// Its state.
        state: BackfillState,
        /// How often its state changed.
        state_version: u32,
        /// Its partitions.
        total_partitions: u32,
        /// Chunks that were planned, without a gap.
        planned_chunks: u32,
        /// Chunks whose run succeeded.
        completed_chunks: u32,
        /// Chunks whose run failed or was cancelled.
        failed_chunks: u32,
        /// The backfill that this one repeats.
        parent_backfill_id: Option<Arc<str>>,
        /// When it was created.
        created_at: i64,
        /// The DAG of its runs. This and what follows are additions.
        dag: Option<Arc<str>>,
        /// The parameters of its runs, a JSON object.
        params: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
