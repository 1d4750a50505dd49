//! The events: facts about runs, tasks, schedules, sensors and backfills, in the envelope in which
//! they are stored.
//!
//! | file | what it has |
//! |---|---|
//! | `envelope.rs` | the envelope, batches of envelopes as bytes, events that this version cannot read |
//! | `data.rs` | all events as one tagged enum |
//! | `key.rs` | the idempotency key of each event, and the run that it is about |
//! | `run.rs`, `plan.rs`, `correction.rs` | runs, their tasks, and what people change about them |
//! | `task.rs`, `dispatch.rs`, `timer.rs` | attempts, from dispatch to end |
//! | `schedule.rs`, `sensor.rs`, `request.rs`, `backfill.rs`, `pool.rs` | what runs are requested by, and what limits them |

mod backfill;
mod correction;
mod data;
mod dispatch;
mod envelope;
#[cfg(test)]
mod golden_tests;
mod key;
mod plan;
mod pool;
mod request;
mod run;
mod schedule;
mod sensor;
mod task;
mod timer;

pub use backfill::{BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, PartitionSelector};
pub use correction::{MarkedState, RunPaused, RunResumed, TaskCleared, TaskMarked};
pub use data::EventData;
pub(crate) use dispatch::DEFAULT_QUEUE;
pub use dispatch::{DispatchEnqueued, DispatchRequested};
pub use envelope::{Data, Envelope, Header, InvalidBatch, Unread};
pub use plan::{Backoff, ForEach, PlanCreated, PlannedTask, Target, TasksAdded};
pub use pool::PoolDefined;
pub use request::{RunRequested, RunSource};
pub use run::{RunCancelRequested, RunTriggered, Trigger};
pub use schedule::{ScheduleDefinitionUpserted, ScheduleTicked, TickStatus};
pub use sensor::{EvalSource, EvalStatus, SensorEvaluated, SensorRunRequest};
pub use task::{
    Attempt, Outcome, OutputVisibility, TaskCompletionRecorded, TaskError, TaskFinished, TaskHeartbeat,
    TaskOutput, TaskOutputVisibilityChanged, TaskStarted, VisibilityState,
};
pub use timer::{TimerEnqueued, TimerFired, TimerRequested};
