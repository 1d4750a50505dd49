//! The bus that is built in: subscriptions, messages, dead letters and ids that were sent are records.
//!
//! | kind | id after the tenant's prefix | due | life |
//! |---|---|---|---|
//! | `bus_subscriptions` | `topic/subscription` | | |
//! | `bus_messages` | `topic/subscription/number` | when the message is visible | until it is settled |
//! | `bus_dead_letters` | `topic/subscription/number` | | 90 days |
//! | `bus_sent` | `topic/message id` | | 10 minutes |
//!
//! Numbers grow with time. A lock is a token in the body and a later due time. Settling replaces the
//! record at the version that was read (compare and swap), so of two concurrent calls one fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use segno::clock::{Clock, duration_ms};
use segno::ids::IdSource;
use segno::store::{
    DueRecords, ErrorKind, Expect, ListRecords, ProviderError, Record, RecordBatch, RecordWrite, Store,
};
use segno_actions::Listed;
use segno_actions::functions::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Bus;
use super::error::BusError;
use super::message::{Message, Received, Settlement};
use super::names::{SubscriptionName, TopicName};
use super::stored::{Delivery, StoredMessage, SubscriptionSettings};
use crate::telemetry::{self, MessageEvent};

pub(super) const SUBSCRIPTIONS: &str = "bus_subscriptions";
pub(super) const MESSAGES: &str = "bus_messages";
pub(super) const DEAD_LETTERS: &str = "bus_dead_letters";
const SENT: &str = "bus_sent";

/// How long an id is remembered, so that a message that is sent again is not delivered again.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(10);
/// How long dead letters are kept.
const DEAD_LETTER_LIFE: Duration = Duration::from_hours(90 * 24);
/// Most subscriptions of a topic.
pub const MAX_SUBSCRIPTIONS: usize = 1_000;
/// Most messages of one send.
pub const MAX_SENT_AT_ONCE: usize = 1_000;
/// Most messages of one receive.
pub const MAX_RECEIVED_AT_ONCE: usize = 256;
/// Ids of messages that are looked up at the same time.
const LOOKED_UP_AT_ONCE: usize = 32;
/// Subscriptions that are read at once.
const SUBSCRIPTIONS_PER_PAGE: usize = 100;
/// Most messages of a subscription that are looked at for their expiry at a time.
const EXPIRED_AT_ONCE: usize = 32;
/// Attempts of a send that conflicts with other sends.
const TRIES: usize = 20;

/// The bus of one tenant. Cheap to clone.
#[derive(Clone)]
pub struct RecordBus {
    pub(super) store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    pub(super) scope: Scope,
}

impl RecordBus {
    /// The bus of a tenant.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, scope: Scope) -> Self {
        RecordBus { store, clock, ids, scope }
    }

    /// Makes a subscription, or changes how one delivers. It gets what is sent from now on.
    ///
    /// # Errors
    /// When the topic has too many.
    pub async fn subscribe(
        &self,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
    ) -> Result<(), BusError> {
        let id = self.subscription_id(name);
        let subscriptions = self.subscriptions(&name.topic).await?;
        if subscriptions.len() >= MAX_SUBSCRIPTIONS && !subscriptions.iter().any(|(other, _)| *other == id) {
            let problem = format!("the topic {} has {MAX_SUBSCRIPTIONS} subscriptions", name.topic);
            return Err(BusError::InvalidMessage { message_id: name.to_string(), problem });
        }
        let put = put(SUBSCRIPTIONS, id, Expect::Anything, Timing::default(), settings)?;
        self.commit(vec![put]).await
    }

    /// Makes a subscription unless there is one, which stays as it is.
    ///
    /// # Errors
    /// As [`RecordBus::subscribe`].
    pub async fn ensure(
        &self,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
    ) -> Result<(), BusError> {
        match self.settings(name).await {
            Err(BusError::UnknownSubscription(_)) => self.subscribe(name, settings).await,
            found => found.map(drop),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX))
            .unwrap_or(Timestamp::MAX)
    }

    pub(super) fn subscription_id(&self, name: &SubscriptionName) -> String {
        format!("{}{}/{}", self.scope.id_prefix(), name.topic, name.as_str())
    }

    /// What ids of the messages of a subscription begin with.
    pub(super) fn folder(&self, name: &SubscriptionName) -> String {
        format!("{}/", self.subscription_id(name))
    }

    pub(super) fn new_message_id(&self, name: &SubscriptionName) -> String {
        format!("{}{}", self.folder(name), self.ids.new_uuid().simple())
    }

    fn sent_id(&self, topic: &TopicName, message: &Message) -> String {
        format!("{}{topic}/{}", self.scope.id_prefix(), message.message_id)
    }

    pub(super) async fn commit(&self, writes: Vec<RecordWrite>) -> Result<(), BusError> {
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        Ok(())
    }

    /// Ids and settings of all subscriptions of a topic.
    pub(super) async fn subscriptions(
        &self,
        topic: &TopicName,
    ) -> Result<Vec<(String, SubscriptionSettings)>, BusError> {
        let prefix = format!("{}{topic}/", self.scope.id_prefix());
        let request =
            ListRecords { kind: SUBSCRIPTIONS, id_prefix: &prefix, after_id: None, limit: MAX_SUBSCRIPTIONS };
        let records = self.store.list_records(request).await?;
        records.into_iter().map(|record| Ok((record.id.clone(), decode(&record)?))).collect()
    }

    pub(super) async fn settings(&self, name: &SubscriptionName) -> Result<SubscriptionSettings, BusError> {
        let record = self.store.get_record(SUBSCRIPTIONS, &self.subscription_id(name)).await?;
        record.map_or_else(|| Err(BusError::UnknownSubscription(name.to_string())), |record| decode(&record))
    }

    /// Writes for messages that were not sent before, and how many these are.
    async fn to_send(
        &self,
        topic: &TopicName,
        messages: &[Message],
    ) -> Result<(Vec<RecordWrite>, usize), BusError> {
        let subscriptions = self.subscriptions(topic).await?;
        let now = self.now();
        let ids: Vec<String> = messages.iter().map(|message| self.sent_id(topic, message)).collect();
        let sent_before = stream::iter(ids.clone())
            .map(|id| async move { Ok::<_, BusError>(self.store.get_record(SENT, &id).await?.is_some()) });
        let sent_before: Vec<bool> = sent_before.buffered(LOOKED_UP_AT_ONCE).try_collect().await?;
        let (mut writes, mut new) = (Vec::new(), 0);
        for ((message, sent_id), is_sent) in messages.iter().zip(ids).zip(sent_before) {
            if is_sent {
                continue;
            }
            new += 1;
            writes.push(put(SENT, sent_id, Expect::Absent, Timing::life(DUPLICATE_WINDOW), &())?);
            for (id, settings) in subscriptions.iter().filter(|(_, settings)| settings.wants(message)) {
                let stored = StoredMessage::new(message.clone(), settings, now);
                let visible = message.scheduled_at.map_or(now, |at| at.max(now));
                let id = format!("{id}/{}", self.ids.new_uuid().simple());
                writes.push(put(MESSAGES, id, Expect::Absent, Timing::due(visible), &stored)?);
            }
        }
        Ok((writes, new))
    }

    /// Locks visible messages in one commit; one by one if other receivers lock some of them.
    async fn deliver_all(
        &self,
        from: &SubscriptionName,
        due: &[Record],
        settings: &SubscriptionSettings,
    ) -> Result<Vec<Received>, BusError> {
        let deliveries: Result<Vec<_>, _> =
            due.iter().map(|record| self.delivery(record, settings)).collect();
        let deliveries = deliveries?;
        let all: Vec<RecordWrite> = deliveries.iter().flat_map(|(writes, _)| writes.clone()).collect();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut made = Vec::new();
        match self.commit(all).await {
            Ok(()) => made.extend(deliveries.into_iter().map(|(_, locked)| locked)),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                for (writes, locked) in deliveries {
                    match self.commit(writes).await {
                        Ok(()) => made.push(locked),
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        let dead = made.iter().filter(|locked| locked.is_none()).count();
        let received: Vec<Received> = made.into_iter().flatten().collect();
        telemetry::count_messages(from.topic.as_str(), MessageEvent::DeadLettered, dead);
        telemetry::count_messages(from.topic.as_str(), MessageEvent::Received, received.len());
        Ok(received)
    }

    /// Locks a visible message, or makes it a dead letter.
    fn delivery(
        &self,
        record: &Record,
        settings: &SubscriptionSettings,
    ) -> Result<(Vec<RecordWrite>, Option<Received>), BusError> {
        let stored: StoredMessage = match serde_json::from_slice(&record.body) {
            Ok(stored) => stored,
            Err(error) => {
                // It would be visible for ever, before all others.
                tracing::warn!(id = %record.id, %error, "a message cannot be read; it becomes a dead letter");
                return Ok((bury(record, record.body.clone()), None));
            }
        };
        let now = self.now();
        let token = format!("{}.{}", number_of(&record.id), self.ids.new_uuid().simple());
        let expect = Expect::Version(record.version);
        let locked_until = now.checked_add(settings.lock).unwrap_or(Timestamp::MAX);
        Ok(match stored.deliver(settings, token.clone(), now) {
            Delivery::Locked(stored) => {
                let put = put(MESSAGES, record.id.clone(), expect, Timing::due(locked_until), &stored)?;
                let StoredMessage { message, enqueued_at, delivery_count, .. } = stored;
                let received = Received { message, lock: token, locked_until, delivery_count, enqueued_at };
                (vec![put], Some(received))
            }
            Delivery::Dead(dead) => (bury(record, encode(&dead)?), None),
        })
    }

    /// Makes dead letters of the expired messages of a subscription that nothing receives from.
    /// Numbers grow with time, so the oldest messages are the first. Returns how many there were.
    async fn expire_some(&self, of: &SubscriptionName) -> Result<usize, BusError> {
        let folder = self.folder(of);
        let oldest =
            ListRecords { kind: MESSAGES, id_prefix: &folder, after_id: None, limit: EXPIRED_AT_ONCE };
        let now = self.now();
        let mut expired = 0;
        for record in self.store.list_records(oldest).await? {
            let Ok(stored) = serde_json::from_slice::<StoredMessage>(&record.body) else { continue };
            let is_locked = stored.lock.is_some()
                && record.due_at_ms.is_some_and(|due_at_ms| due_at_ms > self.clock.now_ms());
            if is_locked || stored.expires_at > now {
                continue;
            }
            let dead = stored.expired(now);
            match self.commit(bury(&record, encode(&dead)?)).await {
                Ok(()) => expired += 1,
                // A receiver was first.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        telemetry::count_messages(of.topic.as_str(), MessageEvent::DeadLettered, expired);
        Ok(expired)
    }

    /// The message of a lock that holds.
    async fn locked(&self, from: &SubscriptionName, lock: &str) -> Result<(Record, StoredMessage), BusError> {
        let lost = || BusError::LockLost(lock.chars().take(100).collect());
        let (number, _) = lock.split_once('.').ok_or_else(lost)?;
        let id = format!("{}{number}", self.folder(from));
        let record = self.store.get_record(MESSAGES, &id).await?.ok_or_else(lost)?;
        let stored: StoredMessage = decode(&record)?;
        let holds = stored.lock.as_deref() == Some(lock)
            && record.due_at_ms.is_some_and(|due| due > self.clock.now_ms());
        if holds { Ok((record, stored)) } else { Err(lost()) }
    }
}

#[async_trait]
impl Bus for RecordBus {
    async fn send(&self, topic: &TopicName, messages: Vec<Message>) -> Result<(), BusError> {
        messages.iter().try_for_each(Message::check)?;
        for part in messages.chunks(MAX_SENT_AT_ONCE) {
            for tries_left in (0..TRIES).rev() {
                let (writes, new) = self.to_send(topic, &unique(part)).await?;
                match self.commit(writes).await {
                    // Another sender has sent one of the messages since they were looked up.
                    Err(error) if error.kind() == ErrorKind::Conflict && tries_left > 0 => {}
                    outcome => {
                        outcome?;
                        telemetry::count_messages(topic.as_str(), MessageEvent::Sent, new);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    async fn receive(
        &self,
        from: &SubscriptionName,
        max_messages: usize,
        wait: Duration,
    ) -> Result<Vec<Received>, BusError> {
        let settings = self.settings(from).await?;
        let folder = self.folder(from);
        let limit = max_messages.clamp(1, MAX_RECEIVED_AT_ONCE);
        let until_ms = self.clock.now_ms().saturating_add(duration_ms(wait));
        loop {
            let left = Duration::from_millis(until_ms.saturating_sub(self.clock.now_ms()));
            let request =
                DueRecords { kind: MESSAGES, id_prefix: &folder, now_ms: None, limit, poll_timeout: left };
            let due = self.store.due_records(request).await?;
            let is_over = due.is_empty();
            let received = self.deliver_all(from, &due, &settings).await?;
            if is_over || !received.is_empty() {
                return Ok(received);
            }
        }
    }

    async fn renew(&self, from: &SubscriptionName, lock: &str) -> Result<Timestamp, BusError> {
        let settings = self.settings(from).await?;
        let (record, stored) = self.locked(from, lock).await?;
        let until = self.now().checked_add(settings.lock).unwrap_or(Timestamp::MAX);
        let expect = Expect::Version(record.version);
        let written = self.commit(vec![put(MESSAGES, record.id, expect, Timing::due(until), &stored)?]).await;
        written.map_err(|error| lost_if_conflict(lock, error))?;
        Ok(until)
    }

    async fn settle(&self, from: &SubscriptionName, lock: &str, how: Settlement) -> Result<(), BusError> {
        let (record, stored) = self.locked(from, lock).await?;
        let expect = Expect::Version(record.version);
        let (writes, event) = match how {
            Settlement::Complete => {
                let gone = RecordWrite::Delete { kind: MESSAGES.to_owned(), id: record.id, expect };
                (vec![gone], MessageEvent::Completed)
            }
            Settlement::Abandon => {
                let again = put(MESSAGES, record.id, expect, Timing::due(self.now()), &stored)?;
                (vec![again], MessageEvent::Abandoned)
            }
            Settlement::DeadLetter(reason) => {
                let dead = encode(&stored.into_dead_letter(reason, self.now()))?;
                (bury(&record, dead), MessageEvent::DeadLettered)
            }
        };
        self.commit(writes).await.map_err(|error| lost_if_conflict(lock, error))?;
        telemetry::count_messages(from.topic.as_str(), event, 1);
        Ok(())
    }

    async fn oldest(&self, of: &SubscriptionName) -> Result<Option<Timestamp>, BusError> {
        Ok(self.subscription(of).await?.oldest_enqueued_at)
    }

    async fn expire(&self) -> Result<usize, BusError> {
        let (mut expired, mut after) = (0, None);
        loop {
            let page = self.all_subscriptions(after.as_ref(), SUBSCRIPTIONS_PER_PAGE).await?;
            let is_last = page.len() < SUBSCRIPTIONS_PER_PAGE;
            let (page, _) = Listed::split(page);
            for subscription in page.iter().filter(|one| one.oldest_enqueued_at.is_some()) {
                expired += self.expire_some(&subscription.name).await?;
            }
            match page.into_iter().next_back() {
                Some(last) if !is_last => after = Some(last.name),
                _ => return Ok(expired),
            }
        }
    }
}

/// Of messages with the same id, the first.
fn unique(messages: &[Message]) -> Vec<Message> {
    let mut seen = std::collections::BTreeSet::new();
    messages.iter().filter(|message| seen.insert(&message.message_id)).cloned().collect()
}

/// Makes a dead letter of a message.
fn bury(record: &Record, dead: Bytes) -> Vec<RecordWrite> {
    let expect = Expect::Version(record.version);
    let gone = RecordWrite::Delete { kind: MESSAGES.to_owned(), id: record.id.clone(), expect };
    let kept = RecordWrite::Put {
        kind: DEAD_LETTERS.to_owned(),
        id: record.id.clone(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: Some(DEAD_LETTER_LIFE),
        body: dead,
    };
    vec![gone, kept]
}

/// The last part of the id of a message.
fn number_of(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(_, number)| number)
}

fn lost_if_conflict(lock: &str, error: BusError) -> BusError {
    if error.kind() == ErrorKind::Conflict {
        BusError::LockLost(lock.chars().take(100).collect())
    } else {
        error
    }
}

/// When a record is due, and how long it lives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    due_at: Option<Timestamp>,
    time_to_live: Option<Duration>,
}

impl Timing {
    pub(super) fn due(at: Timestamp) -> Self {
        Timing { due_at: Some(at), time_to_live: None }
    }

    fn life(time_to_live: Duration) -> Self {
        Timing { due_at: None, time_to_live: Some(time_to_live) }
    }
}

pub(super) fn put(
    kind: &str,
    id: String,
    expect: Expect,
    timing: Timing,
    body: &impl Serialize,
) -> Result<RecordWrite, BusError> {
    let body = encode(body)?;
    let due_at_ms = timing.due_at.map(|at| u64::try_from(at.as_millisecond()).unwrap_or(0));
    let time_to_live = timing.time_to_live;
    Ok(RecordWrite::Put { kind: kind.to_owned(), id, expect, due_at_ms, time_to_live, body })
}

fn encode(body: &impl Serialize) -> Result<Bytes, BusError> {
    let body = serde_json::to_vec(body);
    let body = body.map_err(|error| ProviderError::new(ErrorKind::Internal, "bus", error.to_string()))?;
    Ok(Bytes::from(body))
}

pub(super) fn decode<T: DeserializeOwned>(record: &Record) -> Result<T, BusError> {
    serde_json::from_slice(&record.body).map_err(|error| {
        let text = format!("the record {} {} cannot be read: {error}", record.kind, record.id);
        ProviderError::new(ErrorKind::Corrupt, "bus", text).into()
    })
}
