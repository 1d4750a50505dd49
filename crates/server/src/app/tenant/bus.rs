//! The built-in bus of a tenant.

use std::time::Duration;

use jiff::Timestamp;
use segno::clock::duration_ms;
use segno_actions::Listed;
use segno_api::bus::{
    BusDeadLetter, BusMessage, BusMessageState, BusSubscription, LockedMessage, SettleMessage, SettleOutcome,
    StoredBusMessage,
};
use segno_runbook::bus::{
    Bus, BusError, DeadLetter, DeadLetterReason, Message, Received, RecordBus, Settlement, StoredState,
    Subscription, SubscriptionName, TopicName, WaitingMessage,
};

use super::{Rejected, Tenant};
use crate::listen::until_stopped;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// Longest reason and description of a dead letter in bytes.
const MAX_REASON_BYTES: usize = 256;
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// Reason of a dead letter whose receiver named none.
const REJECTED: &str = "Rejected";

impl Tenant {
    fn bus(&self) -> RecordBus {
        let (clock, ids) = (self.app.clock.clone(), self.app.ids.clone());
        RecordBus::new(self.resources().store.clone(), clock, ids, self.owner())
    }

    /// Subscriptions after one of them, by topic and name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bus_subscriptions(
        &self,
        after: Option<&SubscriptionName>,
        limit: usize,
    ) -> Result<Vec<Listed<BusSubscription>>, Refusal> {
        let page = self.bus().all_subscriptions(after, limit).await;
        Ok(all(page.map_err(|error| self.refused(error))?, subscription))
    }

    /// One subscription.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn bus_subscription(&self, name: &SubscriptionName) -> Result<BusSubscription, Refusal> {
        let found = self.bus().subscription(name).await.map_err(|error| self.refused(error))?;
        Ok(subscription(found))
    }

    /// Messages of a subscription after one of them, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bus_messages(
        &self,
        of: &SubscriptionName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<StoredBusMessage>>, Refusal> {
        let page = self.bus().messages(of, after, limit).await;
        Ok(all(page.map_err(|error| self.refused(error))?, waiting))
    }

    /// Sends messages to a topic.
    ///
    /// # Errors
    /// `invalid-bus-message`, `unknown-subscription` if the topic has none.
    pub async fn send_messages(&self, topic: &TopicName, messages: Vec<BusMessage>) -> Result<(), Refusal> {
        let (bus, messages) = (self.bus(), messages.into_iter().map(message).collect());
        bus.check_subscribed(topic).await.map_err(|error| self.refused(error))?;
        bus.send(topic, messages).await.map_err(|error| self.refused(error))
    }

    /// Locks messages of a subscription, or waits for them.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn receive_messages(
        &self,
        from: &SubscriptionName,
        max_messages: usize,
        wait: Duration,
    ) -> Result<Vec<LockedMessage>, Refusal> {
        let bus = self.bus();
        let received = until_stopped(&self.app.stopping, bus.receive(from, max_messages, wait)).await;
        let received = received.unwrap_or_else(|| Ok(Vec::new())).map_err(|error| self.refused(error))?;
        Ok(received.into_iter().map(locked).collect())
    }

    /// Ends a delivery.
    ///
    /// # Errors
    /// `lock-lost`.
    pub async fn settle_message(
        &self,
        from: &SubscriptionName,
        request: SettleMessage,
    ) -> Result<(), Refusal> {
        let how = match request.outcome {
            SettleOutcome::Complete => Settlement::Complete,
            SettleOutcome::Abandon => Settlement::Abandon,
            SettleOutcome::DeadLetter => {
                let reason = request.reason.unwrap_or_else(|| REJECTED.to_owned());
                let description = request.description.unwrap_or_default();
                for (field, text, most) in [
                    ("reason", &reason, MAX_REASON_BYTES),
                    ("description", &description, MAX_DESCRIPTION_BYTES),
                ] {
                    if text.len() > most {
                        return Err(Refusal::field(field, format!("must have at most {most} bytes")));
                    }
                }
                Settlement::DeadLetter(DeadLetterReason { reason, description })
            }
        };
        self.bus().settle(from, &request.lock, how).await.map_err(|error| self.refused(error))
    }

    /// Extends a lock.
    ///
    /// # Errors
    /// `lock-lost`.
    pub async fn renew_lock(&self, from: &SubscriptionName, lock: &str) -> Result<Timestamp, Refusal> {
        self.bus().renew(from, lock).await.map_err(|error| self.refused(error))
    }

    /// Dead letters of a subscription after one of them, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bus_dead_letters(
        &self,
        from: &SubscriptionName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<BusDeadLetter>>, Refusal> {
        let page = self.bus().dead_letters(from, after, limit).await;
        Ok(all(page.map_err(|error| self.refused(error))?, dead_letter))
    }

    /// Sends a dead letter again.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn resubmit_message(&self, to: &SubscriptionName, id: &str) -> Result<(), Refusal> {
        let found = self.bus().resubmit(to, id).await.map_err(|error| self.refused(error))?;
        if found { Ok(()) } else { Err(no_letter(to, id)) }
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn discard_message(&self, of: &SubscriptionName, id: &str) -> Result<(), Refusal> {
        let found = self.bus().discard(of, id).await.map_err(|error| self.refused(error))?;
        if found { Ok(()) } else { Err(no_letter(of, id)) }
    }
}

fn no_letter(of: &SubscriptionName, id: &str) -> Refusal {
    Refusal::new(Code::NotFound, format!("subscription {of} has no dead letter {id:?}"))
}

impl Rejected for BusError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_bus(self, scope)
    }
}

fn all<T, W>(rows: Vec<Listed<T>>, show: impl Fn(T) -> W) -> Vec<Listed<W>> {
    let shown = rows.into_iter().map(|row| match row {
        Listed::Readable(row) => Listed::Readable(show(row)),
        Listed::Unreadable(row) => Listed::Unreadable(row),
    });
    shown.collect()
}

fn message(message: BusMessage) -> Message {
    let BusMessage { message_id, content_type, subject, properties, body, time_to_live_ms, scheduled_at } =
        message;
    let time_to_live = time_to_live_ms.map(Duration::from_millis);
    Message { message_id, content_type, subject, properties, body, time_to_live, scheduled_at }
}

fn shown(message: Message) -> BusMessage {
    let Message { message_id, content_type, subject, properties, body, time_to_live, scheduled_at } = message;
    let time_to_live_ms = time_to_live.map(duration_ms);
    BusMessage { message_id, content_type, subject, properties, body, time_to_live_ms, scheduled_at }
}

fn subscription(found: Subscription) -> BusSubscription {
    let Subscription { name, settings, oldest_enqueued_at, oldest_dead_at } = found;
    BusSubscription {
        topic: name.topic.to_string(),
        subscription: name.as_str().to_owned(),
        filter: settings.filter.properties,
        except: settings.except.map(|except| except.properties).unwrap_or_default(),
        lock_ms: duration_ms(settings.lock),
        max_deliveries: settings.max_deliveries,
        time_to_live_ms: duration_ms(settings.time_to_live),
        oldest_enqueued_at,
        oldest_dead_at,
    }
}

fn waiting(found: WaitingMessage) -> StoredBusMessage {
    StoredBusMessage {
        id: found.id,
        message: shown(found.message),
        state: match found.state {
            StoredState::Waiting => BusMessageState::Waiting,
            StoredState::Scheduled => BusMessageState::Scheduled,
            StoredState::Locked => BusMessageState::Locked,
        },
        visible_at: found.visible_at,
        delivery_count: found.delivery_count,
        enqueued_at: found.enqueued_at,
        expires_at: found.expires_at,
    }
}

fn locked(received: Received) -> LockedMessage {
    LockedMessage {
        message: shown(received.message),
        lock: received.lock,
        locked_until: received.locked_until,
        delivery_count: received.delivery_count,
        enqueued_at: received.enqueued_at,
    }
}

fn dead_letter(letter: DeadLetter) -> BusDeadLetter {
    BusDeadLetter {
        id: letter.id,
        message: shown(letter.message),
        reason: letter.reason.reason,
        description: letter.reason.description,
        delivery_count: letter.delivery_count,
        enqueued_at: letter.enqueued_at,
        dead_at: letter.dead_at,
    }
}
