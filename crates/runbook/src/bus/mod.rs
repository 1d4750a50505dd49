//! The message bus: topics and subscriptions with peek-lock delivery.
//!
//! | file | what |
//! |---|---|
//! | `message.rs` | what is sent and received |
//! | `names.rs` | topics and subscriptions of runbooks |
//! | `filter.rs` | which messages a subscription wants |
//! | `records.rs` | the bus that is built in: messages are records |
//! | `inspect.rs` | what people see of it: subscriptions, messages that wait, dead letters |
//! | `stored.rs` | their bodies, and what a delivery makes of a message; pure |
//! | `broker.rs` | what opens the bus at a broker elsewhere |
//! | `error.rs` | how calls of a bus fail |
//!
//! A sent message goes to every subscription of its topic whose filter matches. Delivery is
//! peek-lock: a receiver locks a message for a minute, then completes, abandons or dead-letters it.
//! An expired lock abandons it. After ten deliveries, or after its time to live, a message becomes
//! a dead letter. Duplicate detection drops a message whose id was sent within ten minutes.

mod broker;
mod error;
mod filter;
mod inspect;
mod message;
mod names;
mod records;
mod stored;

pub use broker::{BrokerNames, Brokers};
pub use error::BusError;
pub use filter::Filter;
pub use inspect::Subscription;
pub use message::{
    DeadLetter, DeadLetterReason, JSON, Message, Received, Settlement, StoredState, WaitingMessage,
};
pub use names::{
    JOBS, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, SubscriptionName, TopicName, WORKER_JOBS,
    WORKER_RESULTS,
};
pub use records::RecordBus;
pub use stored::{DEFAULT_LOCK, SubscriptionSettings};

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// A bus of one namespace and tenant.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Sends messages. Duplicates are dropped.
    ///
    /// # Errors
    /// When a message is invalid, or the outcome is unknown; sending again is safe.
    async fn send(&self, topic: &TopicName, messages: Vec<Message>) -> Result<(), BusError>;

    /// Locks and returns up to `max_messages`; waits for the first if none is available.
    ///
    /// # Errors
    /// When there is no such subscription, or the bus cannot be reached.
    async fn receive(
        &self,
        from: &SubscriptionName,
        max_messages: usize,
        wait: Duration,
    ) -> Result<Vec<Received>, BusError>;

    /// Extends a lock, and returns its new end.
    ///
    /// # Errors
    /// `lock-lost` when the lock has expired or the message was settled.
    async fn renew(&self, from: &SubscriptionName, lock: &str) -> Result<Timestamp, BusError>;

    /// Ends a delivery.
    ///
    /// # Errors
    /// `lock-lost` when the lock has expired or the message was settled.
    async fn settle(&self, from: &SubscriptionName, lock: &str, how: Settlement) -> Result<(), BusError>;

    /// When the oldest message of a subscription was sent that is neither completed nor dead; `None`
    /// if there is none, or the bus does not tell.
    ///
    /// # Errors
    /// When there is no such subscription, or the bus cannot be reached.
    async fn oldest(&self, of: &SubscriptionName) -> Result<Option<Timestamp>, BusError> {
        let _ = of;
        Ok(None)
    }

    /// Makes dead letters of expired messages that nothing receives. Brokers do this themselves.
    /// Returns how many there were.
    ///
    /// # Errors
    /// When the bus cannot be reached.
    async fn expire(&self) -> Result<usize, BusError> {
        Ok(0)
    }
}
