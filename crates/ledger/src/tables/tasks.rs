//! `tasks`: the state machine of a task within a run.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// The states of a task.
    TaskState {
        /// Known, not placed yet.
        Planned = "PLANNED",
        /// Waits for upstream tasks.
        Blocked = "BLOCKED",
        /// May be dispatched.
        Ready = "READY",
        /// An attempt was dispatched.
        Dispatched = "DISPATCHED",
        /// A worker started the attempt.
        Running = "RUNNING",
        /// An attempt failed; the next one has to wait.
        RetryWait = "RETRY_WAIT",
        /// Left out.
        Skipped = "SKIPPED",
        /// Cancelled.
        Cancelled = "CANCELLED",
        /// Failed for good.
        Failed = "FAILED",
        /// Succeeded.
        Succeeded = "SUCCEEDED",
    }
}

text_enum! {
    /// Which ends of its upstream tasks a task needs. It is decided at the first moment at which it
    /// can be.
    #[derive(Default)]
    TriggerRule {
        /// All succeeded.
        #[default]
        AllSuccess = "all_success",
        /// All ended, however.
        AllDone = "all_done",
        /// All failed.
        AllFailed = "all_failed",
        /// At least one succeeded; it does not wait for the others.
        OneSuccess = "one_success",
        /// At least one failed; it does not wait for the others.
        OneFailed = "one_failed",
        /// At least one succeeded or failed; it does not wait for the others.
        OneDone = "one_done",
        /// All ended and none failed; skipped ones do not matter.
        NoneFailed = "none_failed",
        /// All ended and none was skipped.
        NoneSkipped = "none_skipped",
        /// All ended, none failed, and at least one succeeded.
        NoneFailedMinOneSuccess = "none_failed_min_one_success",
    }
}

text_enum! {
    /// What ends an attempt.
    #[derive(Default)]
    Completion {
        /// Its function returns.
        #[default]
        Return = "return",
        /// Its worker reports the end to the callback routes.
        Callback = "callback",
    }
}

impl TaskState {
    /// The rank that decides between two rows with the same `row_version`: final states are
    /// preferred.
    pub const fn rank(self) -> u32 {
        match self {
            TaskState::Planned => 0,
            TaskState::Blocked => 1,
            TaskState::Ready => 2,
            TaskState::Dispatched => 3,
            TaskState::Running => 4,
            TaskState::RetryWait => 5,
            TaskState::Skipped => 10,
            TaskState::Cancelled => 11,
            TaskState::Failed => 12,
            TaskState::Succeeded => 13,
        }
    }

    /// Whether nothing follows, unless the task is cleared.
    pub const fn is_final(self) -> bool {
        self.rank() >= TaskState::Skipped.rank()
    }
}

row! {
    /// A task of a run.
    TaskRow in "tasks"
    key 4 [tenant_id, workspace_id, run_id, task_key]
    version row_version
    rank |row| row.state.rank();
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The run.
        run_id: Arc<str>,
        /// The task.
        task_key: Arc<str>,
        /// Its state.
        state: TaskState,
        /// The attempt that is under way or comes next; 0 before the first.
        attempt: u32,
        /// The id of that attempt.
        attempt_id: Option<Arc<str>>,
        /// When the attempt started.
        started_at: Option<i64>,
        /// When the task ended.
        completed_at: Option<i64>,
        /// Why the last attempt failed, or why the task was left out.
        error_message: Option<Arc<str>>,
        /// Edges that lead to it.
        deps_total: u32,
        /// Edges that are satisfied.
        deps_satisfied_count: u32,
        /// Attempts before it fails, counted since it was last cleared.
        max_attempts: u32,
        /// Seconds without a heartbeat until an attempt counts as lost; 0 for never.
        heartbeat_timeout_sec: u32,
        /// The last heartbeat of the attempt.
        last_heartbeat_at: Option<i64>,
        /// When it became ready.
        ready_at: Option<i64>,
        /// The asset that it makes.
        asset_key: Option<Arc<str>>,
        /// The partition of the asset.
        partition_key: Option<Arc<str>>,
        /// Whether downstream tasks wait until its output is visible.
        requires_visible_output: bool,
        /// What the attempt made.
        materialization_id: Option<Arc<str>>,
        /// `pending`, `visible` or `failed`.
        output_visibility_state: Option<Arc<str>>,
        /// When its output became visible.
        published_at: Option<i64>,
        /// Why its output did not become visible.
        publish_error: Option<Arc<str>>,
        /// The earliest time of the next attempt.
        retry_not_before: Option<i64>,
        /// The table that it wrote.
        delta_table: Option<Arc<str>>,
        /// The version of that table.
        delta_version: Option<i64>,
        /// The partition of that table.
        delta_partition: Option<Arc<str>>,
        /// Where its lineage is described.
        execution_lineage_ref: Option<Arc<str>>,
        /// The function that it calls. This and what follows are additions.
        function: Option<Arc<str>>,
        /// The orchestration that it starts.
        orchestration: Option<Arc<str>>,
        /// The template of its input, JSON.
        input: Option<Arc<str>>,
        /// The tag of the workers that run it.
        tag: Option<Arc<str>>,
        /// The concurrency pool that it takes a slot of.
        pool: Option<Arc<str>>,
        /// Which ends of upstream tasks it needs.
        trigger_rule: TriggerRule,
        /// How long an attempt may take.
        timeout_seconds: Option<u32>,
        /// Waits between attempts, a JSON object.
        backoff: Option<Arc<str>>,
        /// Over which list it is expanded, a JSON object.
        for_each: Option<Arc<str>>,
        /// The task that added it for an item of a list.
        expanded_from: Option<Arc<str>>,
        /// How many tasks it added, once it was expanded.
        added_count: Option<u32>,
        /// Attempts before it was last cleared.
        attempt_base: u32,
        /// Edges whose upstream task ended.
        deps_resolved_count: u32,
        /// When the attempt was dispatched.
        dispatched_at: Option<i64>,
        /// The worker that runs the attempt.
        worker_id: Option<Arc<str>>,
        /// The category of that error.
        error_category: Option<Arc<str>>,
        /// What it returned, JSON.
        output: Option<Arc<str>>,
        /// Where what it returned is stored, if it is too large for a row.
        output_ref: Option<Arc<str>>,
        /// How far the attempt says that it is.
        progress_pct: Option<u32>,
        /// Who set its state by hand.
        marked_by: Option<Arc<str>>,
        /// The pool of workers that its function is called through.
        worker_pool: Option<Arc<str>>,
        /// What ends an attempt: `return` or `callback`; nothing in rows from before there were callbacks.
        completion: Option<Completion>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}

impl TaskRow {
    /// Whether attempts are ended by callbacks of their workers.
    pub fn has_callbacks(&self) -> bool {
        self.completion == Some(Completion::Callback)
    }
}
