//! What people see of the built-in bus: subscriptions, messages that wait, dead letters, and the way
//! back for these. Looking at a message neither locks nor counts it.

use jiff::Timestamp;
use segno::store::{Expect, ListRecords, Record, RecordWrite};
use segno_actions::{Listed, Unreadable};

use super::error::BusError;
use super::message::{DeadLetter, Message, StoredState, WaitingMessage};
use super::names::{SubscriptionName, TopicName};
use super::records::{DEAD_LETTERS, MESSAGES, RecordBus, SUBSCRIPTIONS, Timing, decode, put};
use super::stored::{StoredDeadLetter, StoredMessage, SubscriptionSettings};

/// A subscription, and how it delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name and topic.
    pub name: SubscriptionName,
    /// How it delivers.
    pub settings: SubscriptionSettings,
    /// When the oldest message was sent that is neither completed nor dead.
    pub oldest_enqueued_at: Option<Timestamp>,
    /// When the oldest dead letter became one.
    pub oldest_dead_at: Option<Timestamp>,
}

impl RecordBus {
    /// Subscriptions by topic and name, after one of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn all_subscriptions(
        &self,
        after: Option<&SubscriptionName>,
        limit: usize,
    ) -> Result<Vec<Listed<Subscription>>, BusError> {
        let prefix = self.scope.id_prefix();
        let after_id = after.map(|name| self.subscription_id(name));
        let request =
            ListRecords { kind: SUBSCRIPTIONS, id_prefix: &prefix, after_id: after_id.as_deref(), limit };
        let mut found = Vec::new();
        for record in self.store.list_records(request).await? {
            let id = record.id.strip_prefix(&prefix).unwrap_or(&record.id).to_owned();
            let name = id.split_once('/').map(|(topic, name)| SubscriptionName::new(topic, name));
            found.push(match (name, serde_json::from_slice(&record.body)) {
                (Some(Ok(name)), Ok(settings)) => Listed::Readable(self.shown(name, settings).await?),
                (_, Err(error)) => Listed::Unreadable(Unreadable { id, reason: error.to_string() }),
                _ => Listed::Unreadable(Unreadable { id, reason: "the id is no name".to_owned() }),
            });
        }
        Ok(found)
    }

    /// One subscription.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn subscription(&self, name: &SubscriptionName) -> Result<Subscription, BusError> {
        let settings = self.settings(name).await?;
        self.shown(name.clone(), settings).await
    }

    /// Checks that a topic has a subscription: `Bus::send` drops what no subscription receives.
    ///
    /// # Errors
    /// `unknown-subscription`.
    pub async fn check_subscribed(&self, topic: &TopicName) -> Result<(), BusError> {
        if self.subscriptions(topic).await?.is_empty() {
            return Err(BusError::NoSubscription(topic.to_string()));
        }
        Ok(())
    }

    async fn shown(
        &self,
        name: SubscriptionName,
        settings: SubscriptionSettings,
    ) -> Result<Subscription, BusError> {
        let oldest_enqueued_at = match self.messages(&name, None, 1).await?.pop() {
            Some(Listed::Readable(message)) => Some(message.enqueued_at),
            _ => None,
        };
        let oldest_dead_at = match self.dead_letters(&name, None, 1).await?.pop() {
            Some(Listed::Readable(letter)) => Some(letter.dead_at),
            _ => None,
        };
        Ok(Subscription { name, settings, oldest_enqueued_at, oldest_dead_at })
    }

    /// Messages of a subscription that are neither completed nor dead, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn messages(
        &self,
        of: &SubscriptionName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<WaitingMessage>>, BusError> {
        let prefix = self.folder(of);
        let records = self.below(MESSAGES, &prefix, after, limit).await?;
        let now = self.now();
        Ok(records.iter().map(|record| waiting(&prefix, record, now)).collect())
    }

    /// Dead letters of a subscription, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn dead_letters(
        &self,
        from: &SubscriptionName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed<DeadLetter>>, BusError> {
        let prefix = self.folder(from);
        let records = self.below(DEAD_LETTERS, &prefix, after, limit).await?;
        Ok(records.iter().map(|record| dead_letter(&prefix, record)).collect())
    }

    async fn below(
        &self,
        kind: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Record>, BusError> {
        let after_id = after.map(|id| format!("{prefix}{id}"));
        let request = ListRecords { kind, id_prefix: prefix, after_id: after_id.as_deref(), limit };
        Ok(self.store.list_records(request).await?)
    }

    /// Sends a dead letter to its subscription again, as if it had just come. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// When the store could not do it.
    pub async fn resubmit(&self, to: &SubscriptionName, id: &str) -> Result<bool, BusError> {
        let settings = self.settings(to).await?;
        let key = format!("{}{id}", self.folder(to));
        let Some(record) = self.store.get_record(DEAD_LETTERS, &key).await? else { return Ok(false) };
        let dead: StoredDeadLetter = decode(&record)?;
        let now = self.now();
        let message = Message { scheduled_at: None, ..dead.message };
        let stored = StoredMessage::new(message, &settings, now);
        let gone = RecordWrite::Delete {
            kind: DEAD_LETTERS.to_owned(),
            id: key,
            expect: Expect::Version(record.version),
        };
        let again = put(MESSAGES, self.new_message_id(to), Expect::Absent, Timing::due(now), &stored)?;
        self.commit(vec![gone, again]).await?;
        Ok(true)
    }

    /// Deletes a dead letter. Returns whether there was one.
    ///
    /// # Errors
    /// When the store could not do it.
    pub async fn discard(&self, of: &SubscriptionName, id: &str) -> Result<bool, BusError> {
        let key = format!("{}{id}", self.folder(of));
        let Some(record) = self.store.get_record(DEAD_LETTERS, &key).await? else { return Ok(false) };
        let expect = Expect::Version(record.version);
        let gone = RecordWrite::Delete { kind: DEAD_LETTERS.to_owned(), id: key, expect };
        self.commit(vec![gone]).await?;
        Ok(true)
    }
}

fn waiting(prefix: &str, record: &Record, now: Timestamp) -> Listed<WaitingMessage> {
    let id = record.id.strip_prefix(prefix).unwrap_or(&record.id).to_owned();
    let stored: StoredMessage = match serde_json::from_slice(&record.body) {
        Ok(stored) => stored,
        Err(error) => return Listed::Unreadable(Unreadable { id, reason: error.to_string() }),
    };
    let visible_at = crate::drive::timestamp(record.due_at_ms.unwrap_or_default());
    let state = match (visible_at <= now, &stored.lock) {
        (true, _) => StoredState::Waiting,
        (false, Some(_)) => StoredState::Locked,
        (false, None) => StoredState::Scheduled,
    };
    let StoredMessage { message, enqueued_at, expires_at, delivery_count, .. } = stored;
    Listed::Readable(WaitingMessage {
        id,
        message,
        state,
        visible_at,
        delivery_count,
        enqueued_at,
        expires_at,
    })
}

fn dead_letter(prefix: &str, record: &Record) -> Listed<DeadLetter> {
    let id = record.id.strip_prefix(prefix).unwrap_or(&record.id).to_owned();
    match serde_json::from_slice::<StoredDeadLetter>(&record.body) {
        Ok(StoredDeadLetter { message, enqueued_at, delivery_count, reason, dead_at }) => {
            Listed::Readable(DeadLetter { id, message, reason, delivery_count, enqueued_at, dead_at })
        }
        Err(error) => Listed::Unreadable(Unreadable { id, reason: error.to_string() }),
    }
}
