//! Replay: history and messages in, events and new work out. The pure middle of the engine.
//!
//! [`Execution`] holds the live future of one orchestration together with what its history says. Recorded events and
//! new messages go through the same code: a new message is first turned into an event, and the event is applied.
//! After each trigger the future is polled until it rests, and the commands that it gave are recorded (live) or matched
//! with the history (replay), in order.
//!
//! **Invariant.** Replay polls user code but never waits: no runtime, clock or randomness in here.

mod decide;
mod drive;
mod execution;
mod journal;
mod matching;
mod nondeterminism;
mod operations;
mod payloads;
mod plan;
mod seen_messages;
mod unread;

pub(crate) use decide::status_of;
pub(crate) use execution::{
    Execution, ExecutionId, OrchestrationHandler, RecordedStep, RunnableStep, Shared, find_started,
};
pub(crate) use journal::{Mode, NextExecution, Request, StepFuture, TimerAt, Token};
pub use nondeterminism::Nondeterminism;
pub(crate) use plan::TurnPlan;
pub(crate) use unread::Unread;
