//! `timers`: timers that have not fired.

use std::sync::Arc;

use super::row::{row, text_enum};
use crate::ids::Ulid;

text_enum! {
    /// What a timer is for.
    TimerType {
        /// The next attempt.
        Retry = "retry",
        /// A look at the heartbeats.
        HeartbeatCheck = "heartbeat_check",
        /// A tick of a schedule.
        Cron = "cron",
        /// The end of the time that a task may take.
        SlaCheck = "sla_check",
    }
}

text_enum! {
    /// The states of a timer. One that fired has no row.
    TimerState {
        /// Requested, not accepted yet.
        Scheduled = "SCHEDULED",
        /// Accepted.
        Enqueued = "ENQUEUED",
    }
}

row! {
    /// A timer.
    TimerRow in "timers"
    key 3 [tenant_id, workspace_id, timer_id]
    version row_version
    {
        /// The tenant.
        tenant_id: Arc<str>,
        /// The workspace: our namespace.
        workspace_id: Arc<str>,
        /// The timer.
        timer_id: Arc<str>,
        /// Under which name it was accepted.
        cloud_task_id: Option<Arc<str>>,
        /// What it is for.
        timer_type: TimerType,
        /// The run.
        run_id: Option<Arc<str>>,
        /// The task.
        task_key: Option<Arc<str>>,
        /// The attempt.
        attempt: Option<u32>,
        /// When it fires.
        fire_at: i64,
        /// Its state.
        state: TimerState,
        /// What comes with it, JSON.
        payload: Option<Arc<str>>,
        /// The event that last changed the row.
        row_version: Ulid,
    }
}
