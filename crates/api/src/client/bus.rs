//! The built-in message bus.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::bus::{
    BusDeadLetterList, BusMessageList, BusSubscription, BusSubscriptionList, LockRenewed, MessagesSent,
    ReceiveMessages, ReceivedMessages, RenewLock, SendMessages, SettleMessage,
};

impl Client {
    /// A page of subscriptions, by topic and name.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn bus_subscriptions(
        &self,
        page: impl Into<PageRequest>,
    ) -> Result<BusSubscriptionList, ClientError> {
        self.get_with(&["v1", "bus"], &page.into()).await
    }

    /// One subscription.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn bus_subscription(
        &self,
        (topic, subscription): (&str, &str),
    ) -> Result<BusSubscription, ClientError> {
        self.get(&["v1", "bus", topic, subscription]).await
    }

    /// A page of messages of a subscription, oldest first. They are not locked.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn bus_messages(
        &self,
        (topic, subscription): (&str, &str),
        page: impl Into<PageRequest>,
    ) -> Result<BusMessageList, ClientError> {
        self.get_with(&["v1", "bus", topic, subscription, "messages"], &page.into()).await
    }

    /// Sends messages to a topic. Sending again is safe: their ids are remembered for 10 minutes.
    ///
    /// # Errors
    /// `invalid-bus-message`, `invalid-bus-name`.
    pub async fn send_messages(
        &self,
        topic: &str,
        messages: &SendMessages,
    ) -> Result<MessagesSent, ClientError> {
        self.post(&["v1", "bus", topic, "messages"], messages).await
    }

    /// Locks messages of a subscription, or waits for them.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn receive_messages(
        &self,
        (topic, subscription): (&str, &str),
        request: &ReceiveMessages,
    ) -> Result<ReceivedMessages, ClientError> {
        let patience = super::ANSWER_TIMEOUT + Duration::from_millis(request.wait_ms.unwrap_or(0));
        let path = ["v1", "bus", topic, subscription, "receive"];
        let call = self.request(Method::POST, &path, Duration::ZERO).timeout(patience);
        self.read(call.json(request)).await
    }

    /// Ends a delivery.
    ///
    /// # Errors
    /// `lock-lost`.
    pub async fn settle_message(
        &self,
        (topic, subscription): (&str, &str),
        request: &SettleMessage,
    ) -> Result<(), ClientError> {
        let path = ["v1", "bus", topic, subscription, "settle"];
        self.done(self.request(Method::POST, &path, Duration::ZERO).json(request)).await
    }

    /// Extends a lock.
    ///
    /// # Errors
    /// `lock-lost`.
    pub async fn renew_lock(
        &self,
        (topic, subscription): (&str, &str),
        lock: &str,
    ) -> Result<LockRenewed, ClientError> {
        let request = RenewLock { lock: lock.to_owned() };
        self.post(&["v1", "bus", topic, subscription, "renew"], &request).await
    }

    /// A page of dead letters of a subscription, oldest first.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn bus_dead_letters(
        &self,
        (topic, subscription): (&str, &str),
        page: impl Into<PageRequest>,
    ) -> Result<BusDeadLetterList, ClientError> {
        self.get_with(&["v1", "bus", topic, subscription, "dead-letters"], &page.into()).await
    }

    /// Sends a dead letter to its subscription again.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn resubmit_message(
        &self,
        (topic, subscription): (&str, &str),
        id: &str,
    ) -> Result<(), ClientError> {
        let path = ["v1", "bus", topic, subscription, "dead-letters", id, "resubmit"];
        self.done(self.request(Method::POST, &path, Duration::ZERO).json(&serde_json::json!({}))).await
    }

    /// Deletes a dead letter of the bus.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn discard_message(
        &self,
        (topic, subscription): (&str, &str),
        id: &str,
    ) -> Result<(), ClientError> {
        let path = ["v1", "bus", topic, subscription, "dead-letters", id];
        self.done(self.request(Method::DELETE, &path, Duration::ZERO)).await
    }
}
