//! Messages of a batch: what the bus carries, what ends a call, and what people and sources request.
//!
//! | file | what |
//! |---|---|
//! | `event.rs` | the seed's five messages, `retry-check` and `dispatch-timeout`: JSON to the letter |
//! | `job.rs` | what a worker gets |
//! | `result.rs` | what a worker returns, and which row it is for |
//! | `outcome.rs` | what a result means |
//! | `request.rs` | what people, sources and publishers request |
//! | `letter_case.rs` | reading names in either letter case |
//!
//! A message waits in the inbox of its batch as the JSON of [`Message`].

mod event;
mod job;
mod letter_case;
mod outcome;
mod request;
mod result;

pub use event::{EventMessage, EventProblem};
pub use job::{CorrelationData, JobMessage};
pub(crate) use outcome::result_field;
pub use outcome::{CallSeen, Outcome};
pub use request::{Action, MemberEntry, OverdueBehavior, Request};
pub use result::{ResultError, ResultMessage, ResultProblem, WorkReference};

use serde::{Deserialize, Serialize};

/// A message of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// From the bus: an event of the seed.
    Event(EventMessage),
    /// A call has ended.
    Result(CallResult),
    /// A call was looked after.
    Call(CallReport),
    /// A pool takes jobs that could not be sent to it before.
    Pool(PoolReport),
    /// Requested by a person, a source or a publisher.
    Request(Request),
}

/// A pool that takes jobs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReport {
    /// The pool.
    pub worker_id: String,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The job.
    pub job_id: String,
    /// The row that it was sent for.
    pub work: WorkReference,
    /// How it ended.
    pub outcome: Outcome,
    /// The pool of a job that was sent over the bus: its outbox row is removed with the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// What was found when a call was looked after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallReport {
    /// The job.
    pub job_id: String,
    /// The row that it was sent for.
    pub work: WorkReference,
    /// What was found.
    pub seen: CallSeen,
}

#[cfg(test)]
mod golden_tests;
