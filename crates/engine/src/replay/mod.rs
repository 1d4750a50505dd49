//! Replay: history and messages in, events and new work out. The pure middle of the engine.
//!
//! [`Execution`] contains the live future of one orchestration and the state that its history
//! describes. Recorded events and new messages go through the same code: a new message is first
//! turned into an event, and the event is applied. After each trigger the future is polled until it
//! is pending, and the commands that it has issued are recorded (live) or matched with the history
//! (replay), in order.
//!
//! | file | concept |
//! |---|---|
//! | `execution.rs` | one execution: begin, replay, the way of a message, the end of a turn |
//! | `decide.rs` | from a message to the event that it becomes (pure) |
//! | `effects.rs` | from an event to its effects on the store |
//! | `plan.rs` | the events and effects of a turn |
//! | `code.rs` | the future of the code, polled until it is pending |
//! | `journal.rs`, `shared.rs` | the state that code and engine share |
//! | `matching.rs`, `nondeterminism.rs` | recorded commands compared with those of the code |
//! | `position.rs` | fold: the last event, times, sizes |
//! | `operations.rs` | fold: activities, timers and children that have not ended |
//! | `intake.rs`, `seen_messages.rs`, `unread.rs` | fold: messages, deduplicated and limited |
//!
//! **Invariant.** Replay polls user code but never waits: no runtime, clock or randomness in here.

mod code;
mod decide;
mod effects;
mod execution;
mod intake;
mod journal;
mod matching;
mod nondeterminism;
mod operations;
mod plan;
mod position;
mod seen_messages;
mod shared;
mod unread;

pub(crate) use effects::{status_of, withdraw_open};
pub(crate) use execution::{Execution, RecordedStep, RunnableStep, find_started};
pub(crate) use journal::{Mode, NextExecution, Request, StepFuture, TimerAt, Token};
pub use nondeterminism::Nondeterminism;
pub(crate) use plan::TurnPlan;
pub(crate) use shared::{ExecutionId, OrchestrationHandler, Shared};
pub(crate) use unread::Unread;
