//! `dispatch_outbox`: dispatches that no worker has taken up yet.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// The states of a dispatch.
    OutboxStatus {
        /// Requested.
        Pending = "PENDING",
        /// Accepted.
        Created = "CREATED",
    }
}

row! {
    /// A dispatch.
    OutboxRow in "dispatch_outbox"
    key 3 [tenant_id, workspace_id, dispatch_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The run.
        run_id: Arc<str>,
        /// The task.
        task_key: Arc<str>,
        /// The attempt.
        attempt: u32,
        /// The dispatch.
        dispatch_id: Arc<str>,
        /// Under which name it was accepted.
        cloud_task_id: Option<Arc<str>>,
        /// Its status.
        status: OutboxStatus,
        /// The id of the attempt; empty while only the acceptance is known.
        attempt_id: Arc<str>,
        /// The queue of the workers.
        worker_queue: Arc<str>,
        /// When it was requested.
        created_at: i64,
        /// When it was last accepted. An addition.
        enqueued_at: Option<i64>,
        /// How often it was queued again. An addition.
        repairs: u32,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
