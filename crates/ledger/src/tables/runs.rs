//! `runs`: a run, its state and its counters.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// The states of a run.
    RunState {
        /// Without a plan yet.
        Triggered = "TRIGGERED",
        /// With tasks that have not ended.
        Running = "RUNNING",
        /// All tasks ended, none of them badly.
        Succeeded = "SUCCEEDED",
        /// All tasks ended, at least one failed.
        Failed = "FAILED",
        /// All tasks ended, at least one was cancelled.
        Cancelled = "CANCELLED",
    }
}

row! {
    /// A run.
    RunRow in "runs"
    key 3 [tenant_id, workspace_id, run_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The run.
        run_id: Arc<str>,
        /// The plan: its name and version.
        plan_id: Arc<str>,
        /// Its state.
        state: RunState,
        /// The key under which it was requested once.
        run_key: Option<Arc<str>>,
        /// Whether its cancellation was requested.
        cancel_requested: bool,
        /// Its tasks.
        tasks_total: u32,
        /// Tasks in a final state.
        tasks_completed: u32,
        /// Tasks that succeeded.
        tasks_succeeded: u32,
        /// Tasks that failed.
        tasks_failed: u32,
        /// Tasks that were skipped.
        tasks_skipped: u32,
        /// Tasks that were cancelled.
        tasks_cancelled: u32,
        /// When it was triggered.
        triggered_at: i64,
        /// When its last task ended.
        completed_at: Option<i64>,
        /// Labels, a JSON object.
        labels: Option<Arc<str>>,
        /// The version of the code that it runs.
        code_version: Option<Arc<str>>,
        /// The name of the DAG. This and what follows are additions.
        dag: Option<Arc<str>>,
        /// What triggered it, a JSON object.
        trigger: Option<Arc<str>>,
        /// Its parameters, a JSON object.
        params: Option<Arc<str>>,
        /// The run that this one repeats.
        parent_run_id: Option<Arc<str>>,
        /// Whether no further attempts are dispatched.
        paused: bool,
        /// Why it was cancelled, or why its plan was refused.
        reason: Option<Arc<str>>,
        /// How often tasks of it were cleared or marked.
        generation: u32,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
