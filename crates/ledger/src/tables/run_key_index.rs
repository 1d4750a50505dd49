//! `run_key_index`: the run of each run key.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A run key.
    RunKeyRow in "run_key_index"
    key 3 [tenant_id, workspace_id, run_key]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The key.
        run_key: Arc<str>,
        /// Its run.
        run_id: Arc<str>,
        /// The fingerprint of the request.
        request_fingerprint: Option<Arc<str>>,
        /// The version of the code.
        code_version: Option<Arc<str>>,
        /// When it was first requested.
        created_at: i64,
        /// What was requested, a JSON object. An addition.
        request: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
