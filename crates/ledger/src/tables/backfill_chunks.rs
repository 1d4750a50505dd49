//! `backfill_chunks`: the parts of a backfill.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// The states of a chunk.
    ChunkState {
        /// Its run was requested.
        Planned = "PLANNED",
        /// Its run exists.
        Running = "RUNNING",
        /// Its run succeeded.
        Succeeded = "SUCCEEDED",
        /// Its run failed or was cancelled.
        Failed = "FAILED",
    }
}

row! {
    /// A chunk.
    BackfillChunkRow in "backfill_chunks"
    key 3 [tenant_id, workspace_id, chunk_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The chunk.
        chunk_id: Arc<str>,
        /// The backfill.
        backfill_id: Arc<str>,
        /// Its place.
        chunk_index: u32,
        /// Its partitions, a JSON list.
        partition_keys: Arc<str>,
        /// The key of its run.
        run_key: Arc<str>,
        /// Its run.
        run_id: Option<Arc<str>>,
        /// Its state.
        state: ChunkState,
        /// The fingerprint of the request. An addition.
        request_fingerprint: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
