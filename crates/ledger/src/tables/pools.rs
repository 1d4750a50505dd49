//! `pools`: slots that tasks of all runs share.

use std::sync::Arc;

use super::row::row;
use crate::ids::Ulid;

row! {
    /// A pool. The table is an addition.
    PoolRow in "pools"
    key 3 [tenant_id, workspace_id, pool]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The pool.
        pool: Arc<str>,
        /// How many tasks may be under way at a time.
        slots: u32,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
