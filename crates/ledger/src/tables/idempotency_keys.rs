//! `idempotency_keys`: keys of events that were applied.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A key.
    IdempotencyKeyRow in "idempotency_keys"
    key 3 [tenant_id, workspace_id, idempotency_key]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The key.
        idempotency_key: Arc<str>,
        /// The event that was applied.
        event_id: Ulid,
        /// Its type.
        event_type: Arc<str>,
        /// The time of its id.
        recorded_at: i64,
        /// The run that it is about. An addition.
        run_id: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
