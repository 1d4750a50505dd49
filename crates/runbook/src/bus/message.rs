//! What is sent over a bus, and what is received.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::BusError;

/// Content type of all messages of runbooks.
pub const JSON: &str = "application/json";

/// Longest id of a message in bytes.
pub const MAX_MESSAGE_ID_BYTES: usize = 256;
/// Largest body in bytes: as large as the smallest bus that jobs may go to takes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Most properties of a message.
pub const MAX_PROPERTIES: usize = 64;
/// Most bytes of all names and values of properties.
pub const MAX_PROPERTIES_BYTES: usize = 32 * 1024;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id, by which sending it twice is found out.
    pub message_id: String,
    /// Type of the body.
    pub content_type: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Properties that subscriptions filter by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// The body.
    pub body: String,
    /// How long it is delivered; the subscription's time to live by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<Duration>,
    /// Not delivered before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
}

impl Message {
    /// A JSON message.
    pub fn json(message_id: impl Into<String>, body: impl Into<String>) -> Self {
        Message {
            message_id: message_id.into(),
            content_type: JSON.to_owned(),
            subject: None,
            properties: BTreeMap::new(),
            body: body.into(),
            time_to_live: None,
            scheduled_at: None,
        }
    }

    /// With a property.
    #[must_use]
    pub fn property(mut self, name: &str, value: impl Into<String>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Whether it may be sent.
    ///
    /// # Errors
    /// [`BusError::InvalidMessage`] says what is wrong.
    pub fn check(&self) -> Result<(), BusError> {
        let refuse = |problem: String| {
            Err(BusError::InvalidMessage { message_id: self.message_id.chars().take(64).collect(), problem })
        };
        if self.message_id.is_empty() || self.message_id.len() > MAX_MESSAGE_ID_BYTES {
            return refuse(format!(
                "the id has {} bytes; write 1 to {MAX_MESSAGE_ID_BYTES}",
                self.message_id.len()
            ));
        }
        // Ids of messages stand in ids of records, which not every store takes with such characters.
        if self.message_id.chars().any(char::is_control) {
            return refuse("the id has control characters".to_owned());
        }
        if self.body.len() > MAX_BODY_BYTES {
            return refuse(format!("the body has {} bytes, the limit is {MAX_BODY_BYTES}", self.body.len()));
        }
        if self.properties.len() > MAX_PROPERTIES {
            return refuse(format!(
                "there are {} properties, the limit is {MAX_PROPERTIES}",
                self.properties.len()
            ));
        }
        let bytes: usize = self.properties.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_PROPERTIES_BYTES {
            return refuse(format!("the properties have {bytes} bytes, the limit is {MAX_PROPERTIES_BYTES}"));
        }
        Ok(())
    }
}

/// A delivery: a message that its receiver has locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// Token by which the lock is renewed and the message settled.
    pub lock: String,
    /// End of the lock.
    pub locked_until: Timestamp,
    /// How often it was delivered, this time included.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
}

/// How a delivery ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The message was processed and is deleted.
    Complete,
    /// The message is redelivered at once.
    Abandon,
    /// The message cannot be processed.
    DeadLetter(DeadLetterReason),
}

/// Why a message is a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterReason {
    /// A short code such as `MissingCorrelationData`.
    pub reason: String,
    /// What happened, for people.
    pub description: String,
}

impl DeadLetterReason {
    /// It was older than its time to live.
    pub const EXPIRED: &str = "TTLExpiredException";
    /// It was delivered too often.
    pub const TOO_MANY_DELIVERIES: &str = "MaxDeliveryCountExceeded";

    /// A reason with its description.
    pub fn new(reason: &str, description: impl Into<String>) -> Self {
        DeadLetterReason { reason: reason.to_owned(), description: description.into() }
    }
}

/// What a message of a subscription waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredState {
    /// A receiver.
    Waiting,
    /// Its scheduled time.
    Scheduled,
    /// Its receiver to settle it.
    Locked,
}

/// A message that is neither completed nor dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// Its number in the subscription.
    pub id: String,
    /// The message.
    pub message: Message,
    /// What it waits for.
    pub state: StoredState,
    /// From when it can be received: its scheduled time, or the end of its lock.
    pub visible_at: Timestamp,
    /// How often it was delivered.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
    /// When it becomes a dead letter.
    pub expires_at: Timestamp,
}

/// A message that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Id by which it is resubmitted or deleted.
    pub id: String,
    /// The message.
    pub message: Message,
    /// Why it could not be processed.
    pub reason: DeadLetterReason,
    /// How often it was delivered.
    pub delivery_count: u32,
    /// When it was sent.
    pub enqueued_at: Timestamp,
    /// When it became a dead letter.
    pub dead_at: Timestamp,
}
