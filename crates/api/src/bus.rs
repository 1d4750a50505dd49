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
