//! The built-in message bus: messages of topics and subscriptions, and its dead letters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::unreadable::Unreadable;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BusMessage {
    /// Its id. A message whose id was sent to the topic within 10 minutes is dropped.
    pub message_id: String,
    /// Type of the body; `application/json` without it.
    #[serde(default = "json")]
    pub content_type: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Properties that subscriptions filter by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// The body, as text.
    pub body: String,
    /// How long it is delivered, in milliseconds; the subscription's time to live without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_live_ms: Option<u64>,
    /// Not delivered before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
}

impl BusMessage {
    /// A JSON message.
    pub fn json(message_id: impl Into<String>, body: impl Into<String>) -> Self {
        BusMessage {
            message_id: message_id.into(),
            content_type: json(),
            subject: None,
            properties: BTreeMap::new(),
            body: body.into(),
            time_to_live_ms: None,
            scheduled_at: None,
        }
    }
}

fn json() -> String {
    "application/json".to_owned()
}

/// Messages to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessages {
    /// 1 to 100 messages.
    pub messages: Vec<BusMessage>,
}

/// How many messages were taken. Duplicates are taken and dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessagesSent {
    /// Their number.
    pub sent: usize,
}

/// What a receiver wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiveMessages {
    /// At most this many, 1 to 100; 1 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<usize>,
    /// How long to wait for the first, up to 60,000; not at all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// A message that the receiver has locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockedMessage {
    /// The message.
    #[serde(flatten)]
    pub message: BusMessage,
    /// Token by which the lock is renewed and the message settled.
    pub lock: String,
    /// End of the lock.
    pub locked_until: Timestamp,
    /// How often it was delivered, this time included.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
}

/// Messages that the receiver has locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceivedMessages {
    /// The messages, oldest first.
    pub messages: Vec<LockedMessage>,
}

/// How a delivery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettleOutcome {
    /// The message was processed and is deleted.
    Complete,
    /// The message is redelivered at once.
    Abandon,
    /// The message cannot be processed.
    DeadLetter,
}

/// The end of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleMessage {
    /// The lock.
    pub lock: String,
    /// How it ends.
    pub outcome: SettleOutcome,
    /// Of a dead letter: a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a dead letter: what happened, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A lock to extend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewLock {
    /// The lock.
    pub lock: String,
}

/// A lock that was extended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockRenewed {
    /// Its new end.
    pub locked_until: Timestamp,
}

/// A message that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BusDeadLetter {
    /// Id by which it is resubmitted or deleted.
    pub id: String,
    /// The message.
    pub message: BusMessage,
    /// A short code.
    pub reason: String,
    /// What happened.
    pub description: String,
    /// How often it was delivered.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
    /// When it became a dead letter.
    pub dead_at: Timestamp,
}

/// A page of dead letters, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BusDeadLetterList {
    /// The letters.
    pub dead_letters: Vec<BusDeadLetter>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A subscription, and how it delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BusSubscription {
    /// Its topic.
    pub topic: String,
    /// Its name.
    pub subscription: String,
    /// Properties that messages must have to be delivered to it; all messages without any.
    pub filter: BTreeMap<String, String>,
    /// Messages with these properties are not delivered to it; absent when there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub except: BTreeMap<String, String>,
    /// Duration of a lock, in milliseconds.
    pub lock_ms: u64,
    /// How often a message is delivered before it becomes a dead letter.
    pub max_deliveries: u32,
    /// Longest time to live of a message, in milliseconds.
    pub time_to_live_ms: u64,
    /// When the oldest message was sent that is neither completed nor dead; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_enqueued_at: Option<Timestamp>,
    /// When the oldest dead letter became one; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_dead_at: Option<Timestamp>,
}

/// A page of subscriptions, by topic and name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BusSubscriptionList {
    /// The subscriptions.
    pub subscriptions: Vec<BusSubscription>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What a message of a subscription waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BusMessageState {
    /// A receiver.
    Waiting,
    /// Its scheduled time.
    Scheduled,
    /// Its receiver to settle it.
    Locked,
}

/// A message of a subscription that is neither completed nor dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredBusMessage {
    /// Its number in the subscription.
    pub id: String,
    /// The message.
    pub message: BusMessage,
    /// What it waits for.
    pub state: BusMessageState,
    /// From when it can be received: its scheduled time, or the end of its lock.
    pub visible_at: Timestamp,
    /// How often it was delivered.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
    /// When it becomes a dead letter.
    pub expires_at: Timestamp,
}

/// A page of messages, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BusMessageList {
    /// The messages.
    pub messages: Vec<StoredBusMessage>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
