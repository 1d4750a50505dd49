//! Runs of DAGs: their tasks, and requests about them. Columns have the names of the ledger's tables.

mod request;
mod runs;
mod task;

pub use request::{
    CancelRun, ClearTasks, MarkTask, MarkedStatus, RerunFrom, RerunRun, RunChanged, StartRun, StartedRun,
};
pub use runs::{Run, RunDetails, RunList, RunStatus, RunTrigger, RunTriggerKind, RunWait};
pub use task::{RunTask, RunTaskDetails, RunTaskList, TaskStatus};
