//! Controllers: stateless reconcilers. Each compares the tables with what should be and returns
//! intents and acknowledgements; what follows from those is the fold's. Any number of controllers
//! at once converge, because intents have deterministic ids and the fold admits each of them once.
//!
//! | file | controller | lag limit | rule |
//! |---|---|---|---|
//! | `ready_dispatch.rs` | `ready_dispatch` | 5 min | a ready task of a run that is not paused or cancelled, with a free slot → `DispatchRequested` |
//! | `dispatcher.rs` | `dispatcher` | 5 min | a pending dispatch → enqueue it → `DispatchEnqueued` |
//! | `timers.rs` | `timers` | 30 s | a requested timer → create it → `TimerEnqueued`; one that is due → `TimerFired` |
//! | `retry.rs` | `retry` | 30 s | a wait that is over → `DispatchRequested` of the next attempt |
//! | `heartbeat.rs` | `heartbeat` | 30 s | an attempt that is silent or over its time → `TaskFinished` of that attempt |
//! | `anti_entropy.rs` | `anti_entropy` | 5 min | what the others should have done and have not |
//! | `expansion.rs` | `expansion` | 5 min | a ready task with a list → make the list → `TasksAdded` |
//! | `run_bridge.rs` | `run_bridge` | 30 s | a run key without a run → plan it → `RunTriggered`, `PlanCreated` |
//! | `schedules.rs` | `schedules` | none | a due tick → `ScheduleTicked`, `RunRequested` |
//! | `sensors.rs` | `sensors` | none | a sensor that is due → evaluate it → `SensorEvaluated` |
//! | `backfills.rs` | `backfills` | 30 s | room for a chunk → `BackfillChunkPlanned`, `RunRequested` |
//!
//! `controller.rs` has the trait, `freshness.rs` the lag guard, `action.rs` what controllers want,
//! `lost.rs` the end of a lost attempt, `limits.rs` every limit.

mod action;
mod anti_entropy;
mod backfills;
mod controller;
mod dispatcher;
mod expansion;
mod freshness;
mod heartbeat;
mod limits;
mod lost;
mod ready_dispatch;
mod retry;
mod run_bridge;
mod schedules;
mod sensors;
#[cfg(test)]
mod tests;
mod timers;

pub use action::{Action, Enqueue, Execution, Outside, Report, TimerCreation};
pub use anti_entropy::AntiEntropy;
pub use backfills::{Backfills, Partitions};
pub use controller::{OrchestrationController, Snapshot};
pub use dispatcher::Dispatcher;
pub use expansion::Expansion;
pub use freshness::Freshness;
pub use heartbeat::Heartbeat;
pub use limits::MAX_ACTIONS;
pub use ready_dispatch::ReadyDispatch;
pub use retry::Retry;
pub use run_bridge::{RunBridge, bridged};
pub use schedules::Schedules;
pub use sensors::{Poll, SensorDefinition, Sensors};
pub use timers::Timers;
