//! Bodies of the records of a bus, and what a delivery makes of a message.
//!
//! | a message is | and becomes | when |
//! |---|---|---|
//! | waiting, visible | locked, delivery counted | it is received |
//! | waiting, visible | dead letter | its time to live has passed, or it was delivered as often as allowed |
//! | locked | gone | its receiver completes it |
//! | locked | waiting, visible at once | its receiver abandons it |
//! | locked | dead letter | its receiver dead-letters it |
//! | locked | waiting, visible | its lock expires |
//!
//! A message is visible from the due time of its record: the end of its lock, its scheduled time, or
//! the time of sending.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::message::{DeadLetterReason, Message};

/// Duration of a lock.
pub const DEFAULT_LOCK: Duration = Duration::from_mins(1);
/// How often a message is delivered before it becomes a dead letter.
pub const DEFAULT_MAX_DELIVERIES: u32 = 10;
/// Time to live of a message.
pub const DEFAULT_TIME_TO_LIVE: Duration = Duration::from_hours(14 * 24);

/// How a subscription delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriptionSettings {
    /// Which messages it wants.
    pub filter: Filter,
    /// Which of them it does not want.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub except: Option<Filter>,
    /// Duration of a lock.
    pub lock: Duration,
    /// How often a message is delivered before it becomes a dead letter.
    pub max_deliveries: u32,
    /// Longest time to live of a message, and the default.
    pub time_to_live: Duration,
}

impl SubscriptionSettings {
    /// Whether a message is delivered to the subscription.
    pub fn wants(&self, message: &Message) -> bool {
        let is_excepted = self.except.as_ref().is_some_and(|except| except.matches(message));
        self.filter.matches(message) && !is_excepted
    }
}

impl Default for SubscriptionSettings {
    fn default() -> Self {
        SubscriptionSettings {
            filter: Filter::default(),
            except: None,
            lock: DEFAULT_LOCK,
            max_deliveries: DEFAULT_MAX_DELIVERIES,
            time_to_live: DEFAULT_TIME_TO_LIVE,
        }
    }
}

/// A message in a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredMessage {
    pub(super) message: Message,
    pub(super) enqueued_at: Timestamp,
    pub(super) expires_at: Timestamp,
    #[serde(default)]
    pub(super) delivery_count: u32,
    /// The token of the lock that it has, or had last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lock: Option<String>,
}

/// A dead letter in a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredDeadLetter {
    pub(super) message: Message,
    pub(super) enqueued_at: Timestamp,
    pub(super) delivery_count: u32,
    pub(super) reason: DeadLetterReason,
    pub(super) dead_at: Timestamp,
}

/// What is made of a message that is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is locked with this body.
    Locked(StoredMessage),
    /// It is a dead letter.
    Dead(StoredDeadLetter),
}

impl StoredMessage {
    pub(super) fn new(message: Message, settings: &SubscriptionSettings, now: Timestamp) -> Self {
        let begin = message.scheduled_at.map_or(now, |at| at.max(now));
        let lives = message.time_to_live.unwrap_or(settings.time_to_live).min(settings.time_to_live);
        let expires_at = begin.checked_add(lives).unwrap_or(Timestamp::MAX);
        StoredMessage { message, enqueued_at: now, expires_at, delivery_count: 0, lock: None }
    }

    /// Delivers a message that is visible.
    pub(super) fn deliver(
        mut self,
        settings: &SubscriptionSettings,
        lock: String,
        now: Timestamp,
    ) -> Delivery {
        if self.expires_at <= now {
            return Delivery::Dead(self.expired(now));
        }
        if self.delivery_count >= settings.max_deliveries {
            let description = format!("it was delivered {} times and not completed", self.delivery_count);
            return Delivery::Dead(self.into_dead_letter(
                DeadLetterReason::new(DeadLetterReason::TOO_MANY_DELIVERIES, description),
                now,
            ));
        }
        self.delivery_count += 1;
        self.lock = Some(lock);
        Delivery::Locked(self)
    }

    /// The dead letter of a message whose time to live has passed.
    pub(super) fn expired(self, now: Timestamp) -> StoredDeadLetter {
        let description = format!("it was to be delivered until {}", self.expires_at);
        self.into_dead_letter(DeadLetterReason::new(DeadLetterReason::EXPIRED, description), now)
    }

    pub(super) fn into_dead_letter(self, reason: DeadLetterReason, now: Timestamp) -> StoredDeadLetter {
        let StoredMessage { message, enqueued_at, delivery_count, .. } = self;
        StoredDeadLetter { message, enqueued_at, delivery_count, reason, dead_at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_delivery_is_counted_and_ends_as_a_dead_letter() {
        let settings = SubscriptionSettings { max_deliveries: 2, ..SubscriptionSettings::default() };
        let mut message = StoredMessage::new(Message::json("m", "{}"), &settings, at(0));
        for count in 1..=2 {
            let Delivery::Locked(next) = message.deliver(&settings, format!("l{count}"), at(count.into()))
            else {
                panic!("delivery {count}");
            };
            assert_eq!((next.delivery_count, next.lock.as_deref()), (count, Some(&*format!("l{count}"))));
            message = next;
        }
        let Delivery::Dead(dead) = message.deliver(&settings, "l3".to_owned(), at(3)) else {
            panic!("alive")
        };
        assert_eq!((&*dead.reason.reason, dead.delivery_count), (DeadLetterReason::TOO_MANY_DELIVERIES, 2));
    }

    #[test]
    fn a_message_lives_no_longer_than_its_subscription_allows() {
        let settings = SubscriptionSettings { time_to_live: Duration::from_secs(100), ..Default::default() };
        for (own, scheduled, expires) in [
            (None, None, 100),
            (Some(10), None, 10),
            (Some(1_000), None, 100),
            (None, Some(50), 150),
            (Some(10), Some(50), 60),
        ] {
            let message = Message {
                time_to_live: own.map(Duration::from_secs),
                scheduled_at: scheduled.map(at),
                ..Message::json("m", "{}")
            };
            let stored = StoredMessage::new(message, &settings, at(0));
            assert_eq!(stored.expires_at, at(expires));
            let delivered = stored.deliver(&settings, "l".to_owned(), at(expires));
            assert!(
                matches!(delivered, Delivery::Dead(dead) if dead.reason.reason == DeadLetterReason::EXPIRED)
            );
        }
    }
}
