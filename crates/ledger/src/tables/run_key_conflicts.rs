//! `run_key_conflicts`: requests that reused a run key for something else.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A conflict.
    RunKeyConflictRow in "run_key_conflicts"
    key 4 [tenant_id, workspace_id, run_key, conflicting_fingerprint]
    version conflicting_event_id
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The key.
        run_key: Arc<str>,
        /// The fingerprint of the first request.
        existing_fingerprint: Arc<str>,
        /// The fingerprint of this one.
        conflicting_fingerprint: Arc<str>,
        /// The event of this one.
        conflicting_event_id: Ulid,
        /// When.
        detected_at: i64,
    }
}
