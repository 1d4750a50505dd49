//! Messages of the bus: received, stored, completed. What cannot be taken becomes a dead letter.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use segno::store::{ErrorKind, ProviderError};

use super::read::{self, STORED_DATA_UNREADABLE, UNKNOWN_ROW};
use super::{Backoff, BusEdge};
use crate::bus::{
    BusError, DeadLetterReason, Message, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, Received, Settlement,
    SubscriptionName,
};
use crate::drive::{Arrival, BusInbox};

/// Most messages that are locked at once.
const RECEIVED_AT_ONCE: usize = 64;

/// Longest wait for a message.
const WAIT: Duration = Duration::from_secs(20);

/// What a subscription carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    Events,
    Results,
}

impl BusEdge {
    /// Takes messages of the topic `orchestrator-events`.
    pub(super) async fn receive_events(&self) {
        self.receive(ORCHESTRATOR_EVENTS, Carries::Events).await;
    }

    /// Takes results of workers.
    pub(super) async fn receive_results(&self) {
        self.receive(RESULTS, Carries::Results).await;
    }

    async fn receive(&self, topic: &str, carries: Carries) {
        let from = SubscriptionName::new(topic, ORCHESTRATOR).expect("names of the program are valid");
        let mut backoff = Backoff::new();
        loop {
            match self.bus.receive(&from, RECEIVED_AT_ONCE, WAIT).await {
                Ok(received) => {
                    backoff.reset();
                    let take = |one: Received| self.take(&from, carries, one);
                    stream::iter(received).for_each_concurrent(RECEIVED_AT_ONCE, take).await;
                    self.until_store_answers(&mut backoff).await;
                }
                Err(error) => {
                    let pause = backoff.pause();
                    tracing::warn!(subscription = %from, %error, ?pause, "messages cannot be received; trying again");
                    self.sleep(pause).await;
                }
            }
        }
    }

    /// Receives nothing while the store is away: each delivery counts, and after ten of them a
    /// message would be a dead letter.
    async fn until_store_answers(&self, backoff: &mut Backoff) {
        while let Err(error) = self.store.now_ms().await {
            let pause = backoff.pause();
            tracing::warn!(%error, ?pause, "the store is away; messages wait on the bus");
            self.sleep(pause).await;
        }
    }

    /// Stores one message and settles it. A message whose lock was lost is delivered again.
    async fn take(&self, from: &SubscriptionName, carries: Carries, received: Received) {
        let Some(how) = self.store_while_locked(from, carries, &received).await else { return };
        let id = &received.message.message_id;
        if let Settlement::DeadLetter(DeadLetterReason { reason, description }) = &how {
            tracing::warn!(subscription = %from, message = %id, %reason, %description, "a message became a dead letter");
        }
        match self.bus.settle(from, &received.lock, how).await {
            Ok(()) => {}
            Err(error) => {
                tracing::info!(subscription = %from, message = %id, %error, "a message was not settled; it is delivered again");
            }
        }
    }

    /// Stores a message, with as many attempts as it takes, and renews its lock meanwhile: a store
    /// that is slow or away makes no dead letters. `None` when the lock is lost.
    async fn store_while_locked(
        &self,
        from: &SubscriptionName,
        carries: Carries,
        received: &Received,
    ) -> Option<Settlement> {
        tokio::select! {
            biased;
            settlement = self.store_at_last(from, carries, &received.message) => Some(settlement),
            error = self.keep_lock(from, received) => {
                tracing::info!(subscription = %from, %error, "a message is delivered again");
                None
            }
        }
    }

    async fn store_at_last(
        &self,
        from: &SubscriptionName,
        carries: Carries,
        message: &Message,
    ) -> Settlement {
        let mut backoff = Backoff::new();
        loop {
            match self.store(carries, message).await {
                Ok(settlement) => return settlement,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let reason = DeadLetterReason::new(STORED_DATA_UNREADABLE, error.to_string());
                    return Settlement::DeadLetter(reason);
                }
                Err(error) => {
                    let pause = backoff.pause();
                    tracing::warn!(subscription = %from, %error, ?pause, "a message cannot be stored; trying again");
                    self.sleep(pause).await;
                }
            }
        }
    }

    /// Renews the lock of a message when half of it is over, until it is lost.
    async fn keep_lock(&self, from: &SubscriptionName, received: &Received) -> BusError {
        let mut until = received.locked_until;
        loop {
            self.sleep(half_of_the_time_to(until, self.clock.now_ms())).await;
            match self.bus.renew(from, &received.lock).await {
                Ok(renewed) => until = renewed,
                Err(error @ BusError::LockLost(_)) => return error,
                // It can be renewed as long as it has not ended.
                Err(error) => tracing::warn!(subscription = %from, %error, "a lock cannot be renewed yet"),
            }
        }
    }

    async fn store(&self, carries: Carries, message: &Message) -> Result<Settlement, ProviderError> {
        let inbox = BusInbox::new(self.store.clone(), self.scope.clone());
        let arrival = match carries {
            Carries::Events => match read::event(message) {
                Ok(Some(event)) => inbox.event(message, &event).await?,
                Ok(None) => Arrival::Stored,
                Err(reason) => return Ok(Settlement::DeadLetter(reason)),
            },
            Carries::Results => match read::result(message) {
                Ok((batch, result)) => inbox.result(message, batch, result).await?,
                Err(reason) => return Ok(Settlement::DeadLetter(reason)),
            },
        };
        Ok(match arrival {
            Arrival::Stored => Settlement::Complete,
            Arrival::Unknown(text) => Settlement::DeadLetter(DeadLetterReason::new(UNKNOWN_ROW, text)),
        })
    }
}

/// When a lock is renewed: after half of its time, but not more often than every second.
fn half_of_the_time_to(until: Timestamp, now_ms: u64) -> Duration {
    let until_ms = u64::try_from(until.as_millisecond()).unwrap_or_default();
    Duration::from_millis(until_ms.saturating_sub(now_ms) / 2).max(Duration::from_secs(1))
}
