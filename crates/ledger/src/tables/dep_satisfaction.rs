//! `dep_satisfaction`: one fact for each edge between two tasks of a run.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// How the upstream task of an edge ended.
    Resolution {
        /// It succeeded.
        Succeeded = "SUCCEEDED",
        /// It failed.
        Failed = "FAILED",
        /// It was skipped.
        Skipped = "SKIPPED",
        /// It was cancelled.
        Cancelled = "CANCELLED",
    }
}

row! {
    /// An edge.
    DepRow in "dep_satisfaction"
    key 5 [tenant_id, workspace_id, run_id, upstream_task_key, downstream_task_key]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The run.
        run_id: Arc<str>,
        /// The task that comes first.
        upstream_task_key: Arc<str>,
        /// The task that waits.
        downstream_task_key: Arc<str>,
        /// Whether the upstream task succeeded.
        satisfied: bool,
        /// How the upstream task ended.
        resolution: Option<Resolution>,
        /// When it was satisfied.
        satisfied_at: Option<i64>,
        /// The attempt that satisfied it.
        satisfying_attempt: Option<u32>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
