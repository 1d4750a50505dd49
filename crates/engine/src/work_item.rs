//! The messages that flow through the two queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::codec;
use crate::event::{ActivityOptions, CarriedMessage, Channel, ParentLink};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::store::{
    OrchestratorMessage, ScheduledActivityIdentifier, StartGuard, TimerIdentifier, WorkerMessage,
};

/// Why a message was parked that was sent just before the end of its instance.
pub(crate) const HAD_ENDED: &str = "the instance had ended when the message reached it";

/// As the attempt of a failure: the open one, because the body with its number is unreadable.
pub(crate) const ANY_ATTEMPT: u32 = 0;

/// A queued message. `ActivityExecute` goes to the worker queue, all others to the orchestrator queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum WorkItem {
    /// Start an instance.
    StartOrchestration(Box<StartOrchestration>),
    /// Run an activity.
    ActivityExecute(#[serde(deserialize_with = "shared")] Arc<ActivityExecute>),
    /// An activity succeeded.
    ActivityCompleted {
        /// Execution that scheduled it.
        execution_id: u64,
        /// The scheduling event.
        id: u64,
        /// Its result.
        result: Payload,
    },
    /// An attempt of an activity failed.
    ActivityFailed {
        /// Execution that scheduled it.
        execution_id: u64,
        /// The scheduling event.
        id: u64,
        /// Which attempt.
        attempt: u32,
        /// Why.
        details: Failure,
    },
    /// The time of a timer or of an activity's deadline has come.
    TimerFired {
        /// Execution that created it.
        execution_id: u64,
        /// The creating event.
        id: u64,
        /// When it was due.
        fire_at_ms: u64,
    },
    /// A signal (seed: one-shot external event).
    ExternalRaised {
        /// Signal name.
        name: String,
        /// What was sent.
        data: Payload,
        /// The sender's id; repeats are dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A mailbox message.
    QueueMessage {
        /// Mailbox name.
        name: String,
        /// What was sent.
        data: Payload,
        /// The sender's id; repeats are dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A child completed.
    SubOrchCompleted {
        /// Execution of the parent.
        parent_execution_id: u64,
        /// The parent's scheduling event.
        parent_id: u64,
        /// The result.
        result: Payload,
    },
    /// A child failed.
    SubOrchFailed {
        /// Execution of the parent.
        parent_execution_id: u64,
        /// The parent's scheduling event.
        parent_id: u64,
        /// Why.
        details: Failure,
    },
    /// Cancel the instance.
    CancelInstance {
        /// Why.
        reason: String,
    },
    /// Cancel a child, if it is still the one that this parent started.
    CancelChild {
        /// Why.
        reason: String,
        /// Who started it.
        parent: ParentLink,
    },
    /// Hold the instance.
    PauseInstance {
        /// Why.
        reason: String,
    },
    /// Resume the instance.
    ResumeInstance,
    /// There are inline steps to be run: sent by a turn to its own instance, so that they are run after a crash, or
    /// after other messages were let in between.
    StepsLeft {
        /// Execution that has them.
        execution_id: u64,
    },
    /// Begin the next execution.
    ContinueAsNew(Box<ContinueAsNew>),
}

/// Reads a value into shared memory. By itself serde would read it into memory of its own first.
fn shared<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Arc<T>, D::Error> {
    T::deserialize(deserializer).map(Arc::new)
}

/// What a start carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartOrchestration {
    /// Orchestration name.
    pub orchestration: String,
    /// Input.
    pub input: Payload,
    /// Version, if chosen; else the registry's policy decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where to report the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// Labels of the instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Not before this time, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_ms: Option<u64>,
    /// W3C traceparent of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// For whom the end of the instance is settled: data for the settler of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Payload>,
    /// The pending execution that this begins: the instance is known already. `None` is the first start of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<u64>,
    /// Seed of the execution, if it was drawn with the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether messages before it were meant for the execution before. Not so any more once a turn has seen it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_another: bool,
}

/// What an activity needs; nothing else is read to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityExecute {
    /// Instance that scheduled it.
    pub instance: String,
    /// Its execution.
    pub execution_id: u64,
    /// The scheduling event.
    pub id: u64,
    /// Activity name.
    pub name: String,
    /// Input.
    pub input: Payload,
    /// Attempt by the retry policy, from 1.
    pub attempt: u32,
    /// The same for every attempt, and for no other activity.
    pub idempotency_key: String,
    /// How to run it.
    #[serde(default)]
    pub options: ActivityOptions,
    /// Orchestration that scheduled it.
    pub orchestration: String,
    /// Its version.
    pub version: String,
    /// W3C traceparent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// What one execution hands to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContinueAsNew {
    /// Id of the execution to begin.
    pub execution_id: u64,
    /// Orchestration name.
    pub orchestration: String,
    /// Input.
    pub input: Payload,
    /// Version, if chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where to report the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    /// Unread messages, in order within each signal and mailbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedMessage>,
    /// Ids of messages taken so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_message_ids: Vec<String>,
    /// Custom status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<Payload>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// W3C traceparent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// For whom the end of the instance is settled: data for the settler of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Payload>,
    /// The execution that the instance was last started with; see [`Started::first_execution_id`](crate::event::Started).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_execution_id: Option<u64>,
}

impl WorkItem {
    /// Reads a queued body.
    ///
    /// # Errors
    /// Says why it cannot be read.
    pub fn decode(body: &[u8]) -> Result<Self, String> {
        codec::decode(body)
    }

    /// A message for an instance's orchestrator queue.
    pub fn for_orchestrator(&self, instance: impl Into<String>) -> OrchestratorMessage {
        let mut message = OrchestratorMessage::new(instance, codec::encode(self));
        match self {
            WorkItem::TimerFired { execution_id, id, fire_at_ms } => {
                message.visible_at_ms = Some(*fire_at_ms);
                message.timer = Some(TimerIdentifier { execution_id: *execution_id, timer_id: *id });
            }
            WorkItem::StepsLeft { execution_id } => message.timer = Some(steps_left(*execution_id)),
            WorkItem::StartOrchestration(start) if start.parent.is_none() && start.execution_id.is_none() => {
                message.guard = StartGuard::IfAbsent;
            }
            _ => {}
        }
        message
    }

    /// Whether a client sent it and got an acknowledgement.
    pub(crate) fn is_from_a_sender(&self) -> bool {
        matches!(self, WorkItem::ExternalRaised { .. } | WorkItem::QueueMessage { .. })
    }

    /// A signal or mailbox message.
    pub(crate) fn message(channel: Channel, name: String, data: Payload, id: Option<String>) -> Self {
        match channel {
            Channel::Signal => WorkItem::ExternalRaised { name, data, id },
            Channel::Mailbox => WorkItem::QueueMessage { name, data, id },
        }
    }
}

/// What [`WorkItem::StepsLeft`] is cancelled by. Events are counted from 1, so no timer has this id.
pub(crate) fn steps_left(execution_id: u64) -> TimerIdentifier {
    TimerIdentifier { execution_id, timer_id: 0 }
}

/// What is written as an [`ActivityExecute`], borrowed, because the caller does not keep it.
#[derive(Serialize)]
pub(crate) struct QueuedActivity<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    pub(crate) input: &'a Payload,
    pub(crate) attempt: u32,
    pub(crate) idempotency_key: &'a str,
    pub(crate) options: &'a ActivityOptions,
    pub(crate) orchestration: &'a str,
    pub(crate) version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<&'a str>,
}

impl QueuedActivity<'_> {
    /// The message for the worker queue, not before a time if given.
    pub(crate) fn for_worker(&self, visible_at_ms: Option<u64>) -> WorkerMessage {
        /// Has the name of the variant.
        #[derive(Serialize)]
        enum Item<'a> {
            ActivityExecute(&'a QueuedActivity<'a>),
        }
        WorkerMessage {
            activity: ScheduledActivityIdentifier {
                instance: self.instance.to_owned(),
                execution_id: self.execution_id,
                activity_id: self.id,
            },
            session_id: self.options.session.clone(),
            tag: self.options.tag.clone(),
            visible_at_ms,
            body: codec::encode(&Item::ActivityExecute(self)),
        }
    }
}

impl ActivityExecute {
    /// Which activity it is.
    pub fn identifier(&self) -> ScheduledActivityIdentifier {
        ScheduledActivityIdentifier {
            instance: self.instance.clone(),
            execution_id: self.execution_id,
            activity_id: self.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_is_queued_as_what_workers_read() {
        let read = ActivityExecute {
            instance: "order-1".to_owned(),
            execution_id: 2,
            id: 7,
            name: "charge".to_owned(),
            input: Payload::from_json(r#"{"cents":100}"#).expect("JSON"),
            attempt: 3,
            idempotency_key: "a-key".to_owned(),
            options: ActivityOptions { tag: Some("gpu".to_owned()), ..ActivityOptions::default() },
            orchestration: "Order".to_owned(),
            version: "1.0.0".to_owned(),
            traceparent: Some("00-1-2-01".to_owned()),
        };
        let queued = QueuedActivity {
            instance: &read.instance,
            execution_id: read.execution_id,
            id: read.id,
            name: &read.name,
            input: &read.input,
            attempt: read.attempt,
            idempotency_key: &read.idempotency_key,
            options: &read.options,
            orchestration: &read.orchestration,
            version: &read.version,
            traceparent: read.traceparent.as_deref(),
        };
        let message = queued.for_worker(Some(5));
        assert_eq!(message.activity, read.identifier());
        assert_eq!((message.visible_at_ms, message.tag.as_deref()), (Some(5), Some("gpu")));
        let item = WorkItem::ActivityExecute(Arc::new(read));
        assert_eq!(message.body, codec::encode(&item), "byte for byte");
        assert_eq!(WorkItem::decode(&message.body), Ok(item));
    }
}
