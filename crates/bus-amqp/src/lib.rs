//! Brokers that speak AMQP 1.0 as the message bus of runbooks: Azure Service Bus, or RabbitMQ.
//!
//! | file | what |
//! |---|---|
//! | `broker.rs` | where the broker is and how it is addressed: URL, credentials, names of topics |
//! | `connect.rs` | TCP, TLS, SASL and tokens (`$cbs`), links |
//! | `renewal.rs` | requests to Service Bus that renew locks |
//! | `token.rs` | shared access signatures for `$cbs` |
//! | `wire.rs` | messages as they go over the wire |
//!
//! Each topic that is sent to and each subscription has a connection of its own, which is opened when
//! it is needed and dropped after an error. The caller tries again after a pause, and gets a new one.
//! The broker has delivery counts, locks, time to live and dead letters: its queues must be set up as
//! the guide says. At RabbitMQ a lock lasts as long as its connection; here it lasts as long as it is
//! renewed, and then the message is given back.

mod broker;
mod connect;
mod renewal;
mod token;
mod wire;

pub use broker::{Broker, InvalidBroker};

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::types::definitions::{Error as AmqpError, ErrorCondition, Fields};
use fe2o3_amqp::types::messaging::{Modified, Outcome};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use fe2o3_amqp::{Receiver, Sender};
use jiff::Timestamp;
use segno::clock::{self, Clock};
use segno_runbook::bus::{
    BrokerNames, Brokers, Bus, BusError, DEFAULT_LOCK, DeadLetterReason, Message, Received, Settlement,
    SubscriptionName, TopicName,
};
use segno_runbook::telemetry::{self, MessageEvent};
use tokio::sync::Mutex;

use connect::Attached;
use renewal::Management;
use wire::{from_wire, to_wire};

/// How long a broker may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// After the first message, how long others that are on their way are waited for.
const LINGER: Duration = Duration::from_millis(5);

/// Opens buses at brokers that speak AMQP 1.0.
pub struct AmqpBrokers;

impl Brokers for AmqpBrokers {
    fn open(&self, url: &str, names: BrokerNames, clock: Arc<dyn Clock>) -> Result<Arc<dyn Bus>, String> {
        let broker = Broker::new(url, names).map_err(|error| error.to_string())?;
        Ok(Arc::new(AmqpBus::new(broker, clock)))
    }
}

/// The bus of one tenant at a broker.
pub struct AmqpBus {
    broker: Broker,
    clock: Arc<dyn Clock>,
    senders: Links<TopicName, Attached<Sender>>,
    receivers: Links<SubscriptionName, Subscribed>,
}

/// Links by what they are for. A link is used by one call at a time.
struct Links<K, L>(StdMutex<HashMap<K, Arc<Mutex<Option<L>>>>>);

impl<K: Clone + Eq + std::hash::Hash, L> Links<K, L> {
    fn new() -> Self {
        Links(StdMutex::new(HashMap::new()))
    }

    fn get(&self, key: &K) -> Arc<Mutex<Option<L>>> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(links.entry(key.clone()).or_default())
    }
}

/// A subscription with the deliveries that are locked.
struct Subscribed {
    attached: Attached<Receiver>,
    locked: HashMap<String, Locked>,
    /// Renews locks; opened when the first one is renewed.
    management: Option<Management>,
}

struct Locked {
    info: DeliveryInfo,
    until_ms: u64,
}

impl AmqpBus {
    /// The bus at a broker. Nothing is connected yet.
    pub fn new(broker: Broker, clock: Arc<dyn Clock>) -> Self {
        AmqpBus { broker, clock, senders: Links::new(), receivers: Links::new() }
    }

    async fn subscribed(&self, from: &SubscriptionName) -> Result<Subscribed, BusError> {
        let attached = connect::receiver(&self.broker, from, &*self.clock).await?;
        Ok(Subscribed { attached, locked: HashMap::new(), management: None })
    }

    async fn send_on(&self, sender: &mut Sender, messages: Vec<Message>) -> Result<(), BusError> {
        let mut outcomes = Vec::with_capacity(messages.len());
        for message in &messages {
            let sent = sender.send_batchable(to_wire(message)).await;
            outcomes.push(sent.map_err(|error| unavailable(&error))?);
        }
        for (message, outcome) in messages.iter().zip(outcomes) {
            let outcome = outcome.await.map_err(|error| unavailable(&error))?;
            accepted(message, &outcome)?;
        }
        Ok(())
    }

    /// Waits for messages. Those that came are locked, whatever happens to the link then.
    async fn receive_on(
        &self,
        link: &mut Subscribed,
        max_messages: usize,
        wait: Duration,
    ) -> Result<Vec<Received>, BusError> {
        let mut received = Vec::new();
        while received.len() < max_messages.max(1) {
            let patience = if received.is_empty() { wait } else { LINGER };
            let next = link.attached.link.recv::<wire::WireBody>();
            let delivery = match clock::timeout(&*self.clock, patience, next).await {
                None => break,
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) if received.is_empty() => return Err(unavailable(&error)),
                // The next call finds the link broken; these deliveries come again.
                Some(Err(_)) => break,
            };
            let now_ms = self.clock.now_ms();
            let (info, message) = delivery.into_parts();
            let lock = format!("{}.{}", link.attached.number, info.delivery_id());
            let read = from_wire(message, now_ms);
            let until_ms = read.locked_until_ms.unwrap_or_else(|| a_lock_from(now_ms));
            received.push(Received {
                message: read.message,
                lock: lock.clone(),
                locked_until: at(until_ms),
                delivery_count: read.delivery_count,
                enqueued_at: read.enqueued_at,
            });
            link.locked.insert(lock, Locked { info, until_ms });
        }
        Ok(received)
    }

    /// Gives back messages whose locks have ended. A broker that has taken them back already does
    /// not mind.
    async fn give_back(&self, link: &mut Subscribed, now_ms: u64) {
        let is_over = |_: &String, locked: &mut Locked| locked.until_ms <= now_ms;
        let over: Vec<Locked> = link.locked.extract_if(is_over).map(|(_, locked)| locked).collect();
        for Locked { info, .. } in over {
            let _ = link.attached.link.release(info).await;
        }
    }

    /// Renews a lock. The caller may be dropped at any moment: then the links for renewals are
    /// opened anew for the next one.
    async fn renew_on(
        &self,
        link: &mut Subscribed,
        from: &SubscriptionName,
        lock: &str,
    ) -> Result<u64, BusError> {
        let now_ms = self.clock.now_ms();
        let locked = link.locked.get_mut(lock).filter(|locked| locked.until_ms > now_ms);
        let Some(locked) = locked else { return Err(lost(lock)) };
        let until_ms = match self.broker.management(from) {
            None => a_lock_from(now_ms),
            Some(address) => {
                let mut management = match link.management.take() {
                    Some(management) => management,
                    None => {
                        let Attached { session, number, .. } = &mut link.attached;
                        Management::attach(session, &address, *number).await?
                    }
                };
                let renewed = management.renew(locked.info.delivery_tag()).await?;
                link.management = Some(management);
                renewed.ok_or_else(|| lost(lock))?
            }
        };
        locked.until_ms = until_ms;
        Ok(until_ms)
    }

    async fn settle_on(&self, link: &mut Subscribed, lock: &str, how: Settlement) -> Result<(), BusError> {
        let Locked { info, .. } = link.locked.remove(lock).ok_or_else(|| lost(lock))?;
        let receiver = &link.attached.link;
        let settled = match how {
            Settlement::Complete => receiver.accept(info).await,
            Settlement::Abandon if !self.broker.counts_failures() => receiver.release(info).await,
            Settlement::Abandon => {
                let again = Modified {
                    delivery_failed: Some(true),
                    undeliverable_here: Some(false),
                    message_annotations: None,
                };
                receiver.modify(info, again).await
            }
            Settlement::DeadLetter(reason) => receiver.reject(info, dead_letter(&reason)).await,
        };
        settled.map_err(|error| unavailable(&error))
    }
}

#[async_trait]
impl Bus for AmqpBus {
    async fn send(&self, topic: &TopicName, messages: Vec<Message>) -> Result<(), BusError> {
        messages.iter().try_for_each(Message::check)?;
        let link = self.senders.get(topic);
        let mut link = link.lock().await;
        let mut attached = match link.take().filter(|attached| attached.is_fresh(self.clock.now_ms())) {
            Some(attached) => attached,
            None => connect::sender(&self.broker, topic, &*self.clock).await?,
        };
        let count = messages.len();
        let sent = clock::timeout(&*self.clock, ANSWER, self.send_on(&mut attached.link, messages)).await;
        let sent = sent.unwrap_or_else(|| Err(BusError::Unavailable("it does not answer".to_owned())));
        // After an error the link is dropped, unless the message was at fault.
        if !matches!(sent, Err(BusError::Unavailable(_))) {
            *link = Some(attached);
        }
        if sent.is_ok() {
            telemetry::count_messages(topic.as_str(), MessageEvent::Sent, count);
        }
        sent
    }

    async fn receive(
        &self,
        from: &SubscriptionName,
        max_messages: usize,
        wait: Duration,
    ) -> Result<Vec<Received>, BusError> {
        let link = self.receivers.get(from);
        let mut link = link.lock().await;
        let now_ms = self.clock.now_ms();
        let is_usable = |link: &Subscribed| !link.locked.is_empty() || link.attached.is_fresh(now_ms);
        let mut subscribed = match link.take().filter(is_usable) {
            Some(subscribed) => subscribed,
            None => self.subscribed(from).await?,
        };
        self.give_back(&mut subscribed, now_ms).await;
        let received = self.receive_on(&mut subscribed, max_messages, wait).await?;
        telemetry::count_messages(from.topic.as_str(), MessageEvent::Received, received.len());
        *link = Some(subscribed);
        Ok(received)
    }

    async fn renew(&self, from: &SubscriptionName, lock: &str) -> Result<Timestamp, BusError> {
        let link = self.receivers.get(from);
        let mut link = link.lock().await;
        let Some(subscribed) = link.as_mut() else { return Err(lost(lock)) };
        let renewed = clock::timeout(&*self.clock, ANSWER, self.renew_on(subscribed, from, lock)).await;
        let late = || Err(BusError::Unavailable("it does not answer".to_owned()));
        renewed.unwrap_or_else(late).map(at)
    }

    async fn settle(&self, from: &SubscriptionName, lock: &str, how: Settlement) -> Result<(), BusError> {
        let link = self.receivers.get(from);
        let mut link = link.lock().await;
        let Some(mut subscribed) = link.take() else { return Err(lost(lock)) };
        let event = match how {
            Settlement::Complete => MessageEvent::Completed,
            Settlement::Abandon => MessageEvent::Abandoned,
            Settlement::DeadLetter(_) => MessageEvent::DeadLettered,
        };
        let settled = self.settle_on(&mut subscribed, lock, how).await;
        if settled.is_ok() {
            telemetry::count_messages(from.topic.as_str(), event, 1);
        }
        if !matches!(settled, Err(BusError::Unavailable(_))) {
            *link = Some(subscribed);
        }
        settled
    }
}

/// Whether a broker has taken a message.
fn accepted(message: &Message, outcome: &Outcome) -> Result<(), BusError> {
    match outcome {
        Outcome::Accepted(_) => Ok(()),
        Outcome::Rejected(rejected) => {
            let problem = match &rejected.error {
                Some(error) => format!("the broker rejected it: {error}"),
                None => "the broker rejected it".to_owned(),
            };
            Err(BusError::InvalidMessage { message_id: message.message_id.clone(), problem })
        }
        // No queue wants it: nothing is bound to the topic yet.
        _ => Err(BusError::Unavailable(format!(
            "no queue takes the message {:?}; check that the topic has a subscription for it",
            message.message_id
        ))),
    }
}

/// What makes a broker move a message to its dead letters. Service Bus reads the reason from it.
fn dead_letter(reason: &DeadLetterReason) -> AmqpError {
    let mut info = Fields::default();
    info.insert(Symbol::from("DeadLetterReason"), Value::String(reason.reason.clone()));
    info.insert(Symbol::from("DeadLetterErrorDescription"), Value::String(reason.description.clone()));
    let condition = ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter"));
    AmqpError::new(condition, reason.description.clone(), info)
}

/// The end of a lock that begins now.
fn a_lock_from(now_ms: u64) -> u64 {
    now_ms.saturating_add(clock::duration_ms(DEFAULT_LOCK))
}

fn unavailable(error: &dyn std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

fn lost(lock: &str) -> BusError {
    BusError::LockLost(lock.chars().take(100).collect())
}

fn at(at_ms: u64) -> Timestamp {
    segno_runbook::drive::timestamp(at_ms)
}
