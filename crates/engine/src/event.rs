//! The recorded facts of an execution. What is stored here must be readable for ever.
//!
//! A history is a strictly linear story: a *trigger* (start, completion, message, cancellation, …) followed by
//! the *commands* that the code gave in answer to it, then the next trigger. Replay walks the same line.
//! Names of kinds and fields are stored; they are never renamed or reused. Golden files hold us to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::failure::Failure;
use crate::ids::derived_uuid;
use crate::payload::Payload;
use crate::retry::Retry;
use crate::store::StoredEvent;

/// One recorded fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Position in the history, from 1, without gaps.
    pub event_id: u64,
    /// When it was recorded, in Unix milliseconds of the store's clock; never decreases.
    pub at_ms: u64,
    /// What happened.
    pub kind: EventKind,
}

#[derive(Serialize)]
struct BodyRef<'a> {
    t: u64,
    k: &'a EventKind,
}

#[derive(Deserialize)]
struct Body {
    t: u64,
    k: EventKind,
}

impl Event {
    /// The stored form.
    pub fn to_stored(&self) -> StoredEvent {
        StoredEvent {
            event_id: self.event_id,
            data: codec::encode(&BodyRef { t: self.at_ms, k: &self.kind }),
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Says which event cannot be read and why.
    pub fn from_stored(stored: &StoredEvent) -> Result<Self, String> {
        let body: Body = codec::decode(&stored.data)
            .map_err(|error| format!("event {} cannot be read: {error}", stored.event_id))?;
        Ok(Event { event_id: stored.event_id, at_ms: body.t, kind: body.k })
    }
}

/// Where a child reports to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// The parent instance.
    pub instance: String,
    /// Its execution.
    pub execution_id: u64,
    /// The event that scheduled the child.
    pub event_id: u64,
}

/// Whether a message is for a signal or for a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// A one-shot external event.
    Signal,
    /// A persistent FIFO mailbox.
    Mailbox,
}

/// A message that was not read before continue-as-new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedMessage {
    /// Signal or mailbox.
    pub channel: Channel,
    /// Its name.
    pub name: String,
    /// What was sent.
    pub data: Payload,
}

/// What to do when an activity has used up its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// Hand the failure to the orchestration.
    #[default]
    Fail,
    /// Pause the instance; resuming gives the activity fresh attempts.
    Pause,
}

/// How an activity is to be run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActivityOptions {
    /// When to try again.
    pub retry: Retry,
    /// Longest time of one attempt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When the activity must have ended, over all attempts and waits, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at_ms: Option<u64>,
    /// Longest silence between two heartbeats, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// Routing tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Session that the work is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What happens when the attempts are used up.
    pub on_exhausted: OnExhausted,
}

/// The beginning of an execution and everything its code may depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Orchestration name.
    pub name: String,
    /// Orchestration version that the execution is pinned to.
    pub version: String,
    /// Input.
    pub input: Payload,
    /// Where to report the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// Seed of the execution's random numbers, ids and idempotency keys.
    pub seed: u64,
    /// Messages that the execution before did not read, in order within each signal and mailbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedMessage>,
    /// Ids of messages that executions before have taken, so that repeats are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_message_ids: Vec<String>,
    /// Custom status of the execution before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<Payload>,
    /// Labels of the instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// W3C traceparent of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// For whom the end of the instance is settled: data for the settler of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Payload>,
    /// Engine version that the execution is pinned to.
    pub engine_version: String,
    /// The execution that the instance was last started with, from which this one came by continuing as new; `None` is the
    /// first. A restart begins again with the input of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_execution_id: Option<u64>,
}

impl Started {
    /// What an activity of this execution hands to whatever must not happen twice: the same for every attempt and delivery,
    /// and for no other activity. `event_id` is the event that scheduled it.
    pub fn idempotency_key(&self, event_id: u64) -> String {
        derived_uuid(self.seed, event_id).to_string()
    }
}

/// What happened. Kinds marked *command* were requested by the code; all others are triggers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EventKind {
    /// The execution began.
    OrchestrationStarted(Arc<Started>),
    /// Command, last: the code returned a result.
    OrchestrationCompleted {
        /// The result.
        output: Payload,
    },
    /// Last: the code returned a failure, was cancelled, or could not continue.
    OrchestrationFailed {
        /// Why.
        failure: Failure,
    },
    /// Command, last: the instance continues with a new execution.
    OrchestrationContinuedAsNew {
        /// Input of the next execution.
        input: Payload,
        /// Version of the next execution, if chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// A caller requested a cancellation.
    OrchestrationCancelRequested {
        /// Why.
        reason: String,
    },
    /// Nothing is delivered to the code from here on.
    OrchestrationPaused {
        /// Why.
        reason: String,
    },
    /// What was held back is delivered now; exhausted activities get fresh attempts.
    OrchestrationResumed,
    /// Command: run an activity.
    ActivityScheduled {
        /// Activity name.
        name: String,
        /// Its input.
        input: Payload,
        /// How to run it.
        #[serde(default)]
        options: Box<ActivityOptions>,
    },
    /// An attempt failed and another one follows.
    ActivityAttemptFailed {
        /// The scheduling event.
        source: u64,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Why.
        failure: Failure,
        /// When the next attempt may start, but not while the instance is paused; `None`: attempts are used up, and
        /// fresh ones start when the instance is resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<u64>,
    },
    /// The activity succeeded.
    ActivityCompleted {
        /// The scheduling event.
        source: u64,
        /// Its result.
        result: Payload,
    },
    /// The activity failed for good.
    ActivityFailed {
        /// The scheduling event.
        source: u64,
        /// Number of the last attempt, from 1.
        attempt: u32,
        /// Why.
        failure: Failure,
    },
    /// Command: the code no longer waits for the activity.
    ActivityCancelRequested {
        /// The scheduling event.
        source: u64,
    },
    /// An inline step ended well.
    StepCompleted {
        /// Number of the step within the execution, from 1.
        step: u64,
        /// Its name.
        name: String,
        /// Its result.
        result: Payload,
    },
    /// An inline step failed.
    StepFailed {
        /// Number of the step within the execution, from 1.
        step: u64,
        /// Its name.
        name: String,
        /// Why.
        failure: Failure,
    },
    /// Command: wait until a time.
    TimerCreated {
        /// When, in Unix milliseconds.
        fire_at_ms: u64,
    },
    /// The time has come.
    TimerFired {
        /// The creating event.
        source: u64,
    },
    /// Command: the code no longer waits for the timer.
    TimerCancelled {
        /// The creating event.
        source: u64,
    },
    /// Command: wait for a signal or a mailbox message.
    MessageSubscribed {
        /// Signal or mailbox.
        channel: Channel,
        /// Its name.
        name: String,
    },
    /// A signal or mailbox message arrived; it goes to the oldest open subscription, or waits for one.
    MessageReceived {
        /// Signal or mailbox.
        channel: Channel,
        /// Its name.
        name: String,
        /// What was sent.
        data: Payload,
        /// The sender's id for it; a second message with the same id is dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Command: the code no longer waits for the message.
    MessageSubscriptionCancelled {
        /// The subscribing event.
        source: u64,
    },
    /// Command: run a child and wait for it.
    SubOrchestrationScheduled {
        /// Orchestration name.
        name: String,
        /// Version, if chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Instance id of the child.
        instance: String,
        /// Its input.
        input: Payload,
    },
    /// The child completed.
    SubOrchestrationCompleted {
        /// The scheduling event.
        source: u64,
        /// Its result.
        result: Payload,
    },
    /// The child failed.
    SubOrchestrationFailed {
        /// The scheduling event.
        source: u64,
        /// Why.
        failure: Failure,
    },
    /// Command: the code no longer waits for the child, which is cancelled.
    SubOrchestrationCancelRequested {
        /// The scheduling event.
        source: u64,
    },
    /// Command: start an instance and do not wait for it.
    OrchestrationChained {
        /// Orchestration name.
        name: String,
        /// Version, if chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Instance id.
        instance: String,
        /// Its input.
        input: Payload,
    },
    /// Command: the custom status changed.
    CustomStatusUpdated {
        /// The new one; `None` removes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<Payload>,
    },
    /// Command: a label changed.
    LabelUpdated {
        /// Which.
        key: String,
        /// The new value; `None` removes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// Command: this execution runs with a change of the code.
    Patched {
        /// The id of the change.
        id: String,
    },
}

impl EventKind {
    /// The bytes of user data in it.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            EventKind::OrchestrationStarted(started) => {
                let carried = started.carried.iter().map(|message| message.data.as_str().len());
                started.input.as_str().len() + carried.sum::<usize>()
            }
            EventKind::OrchestrationCompleted { output: data }
            | EventKind::OrchestrationContinuedAsNew { input: data, .. }
            | EventKind::ActivityScheduled { input: data, .. }
            | EventKind::ActivityCompleted { result: data, .. }
            | EventKind::StepCompleted { result: data, .. }
            | EventKind::MessageReceived { data, .. }
            | EventKind::SubOrchestrationScheduled { input: data, .. }
            | EventKind::SubOrchestrationCompleted { result: data, .. }
            | EventKind::OrchestrationChained { input: data, .. }
            | EventKind::CustomStatusUpdated { status: Some(data), .. } => data.as_str().len(),
            EventKind::ActivityAttemptFailed { failure, .. }
            | EventKind::ActivityFailed { failure, .. }
            | EventKind::StepFailed { failure, .. }
            | EventKind::SubOrchestrationFailed { failure, .. } => {
                failure.message.len() + failure.details.as_ref().map_or(0, |details| details.as_str().len())
            }
            _ => 0,
        }
    }

    /// The stored name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::OrchestrationStarted(_) => "OrchestrationStarted",
            EventKind::OrchestrationCompleted { .. } => "OrchestrationCompleted",
            EventKind::OrchestrationFailed { .. } => "OrchestrationFailed",
            EventKind::OrchestrationContinuedAsNew { .. } => "OrchestrationContinuedAsNew",
            EventKind::OrchestrationCancelRequested { .. } => "OrchestrationCancelRequested",
            EventKind::OrchestrationPaused { .. } => "OrchestrationPaused",
            EventKind::OrchestrationResumed => "OrchestrationResumed",
            EventKind::ActivityScheduled { .. } => "ActivityScheduled",
            EventKind::ActivityAttemptFailed { .. } => "ActivityAttemptFailed",
            EventKind::ActivityCompleted { .. } => "ActivityCompleted",
            EventKind::ActivityFailed { .. } => "ActivityFailed",
            EventKind::ActivityCancelRequested { .. } => "ActivityCancelRequested",
            EventKind::StepCompleted { .. } => "StepCompleted",
            EventKind::StepFailed { .. } => "StepFailed",
            EventKind::TimerCreated { .. } => "TimerCreated",
            EventKind::TimerFired { .. } => "TimerFired",
            EventKind::TimerCancelled { .. } => "TimerCancelled",
            EventKind::MessageSubscribed { .. } => "MessageSubscribed",
            EventKind::MessageReceived { .. } => "MessageReceived",
            EventKind::MessageSubscriptionCancelled { .. } => "MessageSubscriptionCancelled",
            EventKind::SubOrchestrationScheduled { .. } => "SubOrchestrationScheduled",
            EventKind::SubOrchestrationCompleted { .. } => "SubOrchestrationCompleted",
            EventKind::SubOrchestrationFailed { .. } => "SubOrchestrationFailed",
            EventKind::SubOrchestrationCancelRequested { .. } => "SubOrchestrationCancelRequested",
            EventKind::OrchestrationChained { .. } => "OrchestrationChained",
            EventKind::CustomStatusUpdated { .. } => "CustomStatusUpdated",
            EventKind::LabelUpdated { .. } => "LabelUpdated",
            EventKind::Patched { .. } => "Patched",
        }
    }

    /// Whether the execution ends with this event.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
                | EventKind::OrchestrationContinuedAsNew { .. }
        )
    }

    /// Whether the code requested it. All other kinds are triggers.
    pub(crate) fn is_command(&self) -> bool {
        matches!(
            self,
            EventKind::ActivityScheduled { .. }
                | EventKind::ActivityCancelRequested { .. }
                | EventKind::TimerCreated { .. }
                | EventKind::TimerCancelled { .. }
                | EventKind::MessageSubscribed { .. }
                | EventKind::MessageSubscriptionCancelled { .. }
                | EventKind::SubOrchestrationScheduled { .. }
                | EventKind::SubOrchestrationCancelRequested { .. }
                | EventKind::OrchestrationChained { .. }
                | EventKind::CustomStatusUpdated { .. }
                | EventKind::LabelUpdated { .. }
                | EventKind::Patched { .. }
                | EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationContinuedAsNew { .. }
        )
    }

    /// Whether a command of the code is the recorded one: same kind, same names. Inputs may differ: what was recorded
    /// is valid.
    pub(crate) fn is_same_command(&self, recorded: &EventKind) -> bool {
        use EventKind as K;
        match (self, recorded) {
            (K::ActivityScheduled { name: a, .. }, K::ActivityScheduled { name: b, .. }) => a == b,
            (K::ActivityCancelRequested { source: a }, K::ActivityCancelRequested { source: b })
            | (K::TimerCancelled { source: a }, K::TimerCancelled { source: b })
            | (
                K::MessageSubscriptionCancelled { source: a },
                K::MessageSubscriptionCancelled { source: b },
            )
            | (
                K::SubOrchestrationCancelRequested { source: a },
                K::SubOrchestrationCancelRequested { source: b },
            ) => a == b,
            (K::TimerCreated { .. }, K::TimerCreated { .. })
            | (K::CustomStatusUpdated { .. }, K::CustomStatusUpdated { .. })
            | (K::OrchestrationCompleted { .. }, K::OrchestrationCompleted { .. })
            | (K::OrchestrationContinuedAsNew { .. }, K::OrchestrationContinuedAsNew { .. }) => true,
            (
                K::MessageSubscribed { channel: a, name: a_name },
                K::MessageSubscribed { channel: b, name: b_name },
            ) => a == b && a_name == b_name,
            (
                K::SubOrchestrationScheduled { name: a, instance: a_id, .. },
                K::SubOrchestrationScheduled { name: b, instance: b_id, .. },
            )
            | (
                K::OrchestrationChained { name: a, instance: a_id, .. },
                K::OrchestrationChained { name: b, instance: b_id, .. },
            ) => a == b && a_id == b_id,
            (K::LabelUpdated { key: a, .. }, K::LabelUpdated { key: b, .. }) => a == b,
            (K::Patched { id: a }, K::Patched { id: b }) => a == b,
            _ => false,
        }
    }

    /// The kind with the names that identify it, for error messages: `ActivityScheduled("charge")`.
    pub fn describe(&self) -> String {
        let name = self.name();
        match self {
            EventKind::ActivityScheduled { name: what, .. }
            | EventKind::StepCompleted { name: what, .. }
            | EventKind::StepFailed { name: what, .. } => format!("{name}({what:?})"),
            EventKind::SubOrchestrationScheduled { name: what, instance, .. }
            | EventKind::OrchestrationChained { name: what, instance, .. } => {
                format!("{name}({what:?} as {instance:?})")
            }
            EventKind::MessageSubscribed { channel, name: what }
            | EventKind::MessageReceived { channel, name: what, .. } => {
                let channel = if *channel == Channel::Signal { "signal" } else { "mailbox" };
                format!("{name}({channel} {what:?})")
            }
            EventKind::ActivityCompleted { source, .. }
            | EventKind::ActivityFailed { source, .. }
            | EventKind::ActivityAttemptFailed { source, .. }
            | EventKind::ActivityCancelRequested { source }
            | EventKind::TimerFired { source }
            | EventKind::TimerCancelled { source }
            | EventKind::MessageSubscriptionCancelled { source }
            | EventKind::SubOrchestrationCompleted { source, .. }
            | EventKind::SubOrchestrationFailed { source, .. }
            | EventKind::SubOrchestrationCancelRequested { source } => format!("{name}(of event {source})"),
            EventKind::LabelUpdated { key, .. } => format!("{name}({key:?})"),
            EventKind::Patched { id } => format!("{name}({id:?})"),
            _ => name.to_owned(),
        }
    }
}

/// The end of an execution, as kept in the instance row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// It completed.
    Completed(Payload),
    /// It failed or was cancelled.
    Failed(Failure),
    /// It continued as new with this input.
    ContinuedAsNew(Payload),
    /// It is paused for this reason.
    Paused(String),
}

impl Output {
    pub(crate) fn encode(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        codec::decode(bytes)
    }
}
