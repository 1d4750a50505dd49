//! What an instance waits for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::instance::Status;

/// What an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceExplanation {
    /// The instance.
    pub id: String,
    /// Its state.
    pub status: Status,
    /// The execution that waits.
    pub execution: u64,
    /// What it waits for, oldest first; at most 200.
    pub waits: Vec<InstanceWait>,
    /// The next time at which something happens by itself: a timer, a retry, the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_wake_up: Option<Timestamp>,
    /// All of it in a sentence for people. Times are in fields of their own.
    #[schema(example = "Waits for the signal `approved` or a timer.")]
    pub in_words: String,
    /// Whether that is all: the history was read to its end, and `waits` was not cut.
    pub complete: bool,
}

/// Something that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceWait {
    /// What it is.
    pub kind: WaitKind,
    /// Its name: of the activity or function, signal or mailbox, or of the child's orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// Until when, if that is known: when a timer fires, the next attempt may start, or a lease
    /// ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The event that began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// Number of the attempt that runs or comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The worker that holds it, by the name that it announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Where an activity is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<WaitState>,
    /// Only workers with this tag take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// The same in words, which complete "it waits for".
    pub detail: String,
}

/// What an instance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// The time of its start.
    Start,
    /// It is paused.
    Resume,
    /// A timer.
    Timer,
    /// A signal.
    Signal,
    /// A message of a mailbox.
    Mailbox,
    /// An activity, or the call of a function.
    Activity,
    /// A child.
    Child,
    /// A turn: nothing is open, so its code runs, or no node is up that has it.
    Turn,
}

/// Where an activity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitState {
    /// In the queue; a worker may take it.
    Ready,
    /// In the queue until a time: it is retried or was given back.
    Delayed,
    /// A worker has it.
    Held,
    /// Its attempts are used up; they begin anew when the instance is resumed.
    Exhausted,
    /// It has ended, and that is about to be recorded.
    Settling,
}
