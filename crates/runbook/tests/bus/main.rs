//! The built-in bus, in virtual time: what a receiver of Service Bus expects.

#![expect(clippy::unwrap_used, reason = "tests and their helpers")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::clock::Clock;
use segno::ids::SystemIds;
use segno::store::memory::MemoryStore;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite, Store};
use segno_actions::Listed;
use segno_actions::functions::Scope;
use segno_runbook::bus::{
    Bus, DeadLetter, DeadLetterReason, Filter, Message, Received, RecordBus, Settlement, StoredState,
    SubscriptionName, SubscriptionSettings, TopicName,
};
use segno_testkit::clock::VirtualClock;

const NOW: Duration = Duration::ZERO;

struct World {
    clock: Arc<VirtualClock>,
    store: Arc<dyn Store>,
    bus: RecordBus,
}

impl World {
    fn new() -> World {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let bus = Self::bus(&store, &clock, "acme");
        World { clock, store, bus }
    }

    fn bus(store: &Arc<dyn Store>, clock: &Arc<VirtualClock>, tenant: &str) -> RecordBus {
        let scope = Scope::new("eu", tenant).unwrap();
        RecordBus::new(store.clone(), clock.clone(), Arc::new(SystemIds), scope)
    }

    async fn subscribe(&self, topic: &str, name: &str, filter: Filter) -> SubscriptionName {
        let name = SubscriptionName::new(topic, name).unwrap();
        let settings = SubscriptionSettings { filter, ..SubscriptionSettings::default() };
        self.bus.subscribe(&name, &settings).await.unwrap();
        name
    }

    async fn send(&self, topic: &str, messages: Vec<Message>) {
        self.bus.send(&TopicName::new(topic).unwrap(), messages).await.unwrap();
    }

    async fn receive(&self, from: &SubscriptionName) -> Vec<Received> {
        self.bus.receive(from, 10, NOW).await.unwrap()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.clock.now_ms().try_into().unwrap()).unwrap()
    }

    async fn letters(&self, from: &SubscriptionName) -> Vec<DeadLetter> {
        let (letters, unreadable) = Listed::split(self.bus.dead_letters(from, None, 100).await.unwrap());
        assert!(unreadable.is_empty());
        letters
    }

    async fn dead(&self, from: &SubscriptionName) -> Vec<(String, String)> {
        self.letters(from)
            .await
            .into_iter()
            .map(|letter| (letter.message.message_id, letter.reason.reason))
            .collect()
    }
}

fn ids(received: &[Received]) -> Vec<&str> {
    received.iter().map(|one| one.message.message_id.as_str()).collect()
}

#[tokio::test]
async fn a_message_goes_to_every_subscription_whose_filter_matches() {
    let world = World::new();
    let all = world.subscribe("jobs", "all", Filter::default()).await;
    let cloud = world.subscribe("jobs", "cloud", Filter::property("WorkerId", "cloud-01")).await;
    let job = |id: &str, worker: &str| Message::json(id, "{}").property("WorkerId", worker);
    world.send("worker-jobs", vec![job("step-1", "cloud-01"), job("step-2", "cloud-02")]).await;
    assert_eq!(ids(&world.receive(&all).await), ["step-1", "step-2"]);
    assert_eq!(ids(&world.receive(&cloud).await), ["step-1"]);
    let unknown = SubscriptionName::new("jobs", "none").unwrap();
    assert_eq!(world.bus.receive(&unknown, 1, NOW).await.unwrap_err().code(), "unknown-subscription");
}

#[tokio::test]
async fn a_locked_message_is_hidden_until_its_lock_expires() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    let first = world.receive(&from).await.remove(0);
    assert_eq!((first.delivery_count, first.locked_until), (1, world.now() + Duration::from_mins(1)));
    assert!(world.receive(&from).await.is_empty());
    world.clock.advance(Duration::from_secs(59));
    let renewed = world.bus.renew(&from, &first.lock).await.unwrap();
    assert_eq!(renewed, world.now() + Duration::from_mins(1));
    world.clock.advance(Duration::from_secs(59));
    assert!(world.receive(&from).await.is_empty());
    world.clock.advance(Duration::from_secs(1));
    // The lock has expired, whether or not another receiver has taken the message.
    assert_eq!(world.bus.renew(&from, &first.lock).await.unwrap_err().code(), "lock-lost");
    let second = world.receive(&from).await.remove(0);
    assert_eq!(second.delivery_count, 2);
    let stale = world.bus.settle(&from, &first.lock, Settlement::Complete).await;
    assert_eq!(stale.unwrap_err().code(), "lock-lost");
    world.bus.settle(&from, &second.lock, Settlement::Complete).await.unwrap();
    let again = world.bus.settle(&from, &second.lock, Settlement::Complete).await;
    assert_eq!(again.unwrap_err().code(), "lock-lost");
    world.clock.advance(Duration::from_hours(1));
    assert!(world.receive(&from).await.is_empty());
}

#[tokio::test]
async fn an_abandoned_message_is_redelivered_ten_times_and_then_dead() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    for count in 1..=10 {
        let received = world.receive(&from).await.remove(0);
        assert_eq!(received.delivery_count, count);
        world.bus.settle(&from, &received.lock, Settlement::Abandon).await.unwrap();
    }
    assert!(world.receive(&from).await.is_empty());
    let reason = "MaxDeliveryCountExceeded".to_owned();
    assert_eq!(world.dead(&from).await, [("m".to_owned(), reason)]);
    let id = world.letters(&from).await.remove(0).id;
    assert!(world.bus.resubmit(&from, &id).await.unwrap());
    assert!(!world.bus.resubmit(&from, &id).await.unwrap());
    assert_eq!(world.receive(&from).await.remove(0).delivery_count, 1);
    assert!(world.dead(&from).await.is_empty());
}

#[tokio::test]
async fn a_receiver_dead_letters_with_a_reason() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    let received = world.receive(&from).await.remove(0);
    let reason = DeadLetterReason::new("MissingCorrelationData", "the result names no step");
    world.bus.settle(&from, &received.lock, Settlement::DeadLetter(reason.clone())).await.unwrap();
    let dead = world.letters(&from).await;
    assert_eq!((dead.len(), &dead[0].reason, dead[0].delivery_count), (1, &reason, 1));
}

#[tokio::test]
async fn a_message_expires_after_fourteen_days_and_waits_for_its_scheduled_time() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let later =
        Message { scheduled_at: Some(world.now() + Duration::from_mins(5)), ..Message::json("later", "{}") };
    let short = Message { time_to_live: Some(Duration::from_secs(30)), ..Message::json("short", "{}") };
    world.send("results", vec![later, short]).await;
    world.clock.advance(Duration::from_secs(30));
    assert!(world.receive(&from).await.is_empty());
    assert_eq!(world.dead(&from).await, [("short".to_owned(), "TTLExpiredException".to_owned())]);
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(ids(&world.receive(&from).await), ["later"]);
    world.clock.advance(Duration::from_hours(14 * 24));
    assert!(world.receive(&from).await.is_empty());
    assert_eq!(world.dead(&from).await.len(), 2);
}

#[tokio::test]
async fn a_message_id_is_sent_once_within_ten_minutes() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let message = || Message::json("step-1", "{}");
    world.send("results", vec![message(), message()]).await;
    world.send("results", vec![message(), Message::json("step-2", "{}")]).await;
    assert_eq!(ids(&world.receive(&from).await), ["step-1", "step-2"]);
    world.clock.advance(Duration::from_mins(10));
    world.send("results", vec![message()]).await;
    let received = world.receive(&from).await;
    assert_eq!(ids(&received).iter().filter(|id| **id == "step-1").count(), 2, "redelivered and sent anew");
}

#[tokio::test]
async fn a_waiting_receiver_gets_what_is_sent() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let waiting = {
        let (bus, from) = (world.bus.clone(), from.clone());
        tokio::spawn(async move { bus.receive(&from, 1, Duration::from_hours(1)).await.unwrap() })
    };
    tokio::task::yield_now().await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    assert_eq!(ids(&waiting.await.unwrap()), ["m"]);
}

#[tokio::test]
async fn receivers_share_messages_and_none_gets_another_ones() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let messages = (0..100).map(|number| Message::json(format!("m{number:03}"), "{}")).collect();
    world.send("results", messages).await;
    let receivers = (0..8).map(|_| {
        let (bus, from) = (world.bus.clone(), from.clone());
        tokio::spawn(async move { bus.receive(&from, 50, NOW).await.unwrap() })
    });
    let mut seen: Vec<String> = Vec::new();
    for receiver in receivers.collect::<Vec<_>>() {
        seen.extend(receiver.await.unwrap().into_iter().map(|one| one.message.message_id));
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((seen.len(), count >= 50), (count, true));
}

#[tokio::test]
async fn tenants_do_not_share_a_bus() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let other = World::bus(&world.store, &world.clock, "other");
    world.send("results", vec![Message::json("m", "{}")]).await;
    assert_eq!(other.receive(&from, 1, NOW).await.unwrap_err().code(), "unknown-subscription");
    world.bus.check_subscribed(&from.topic).await.unwrap();
    assert_eq!(other.check_subscribed(&from.topic).await.unwrap_err().code(), "unknown-subscription");
    other.subscribe(&from, &SubscriptionSettings::default()).await.unwrap();
    assert!(other.receive(&from, 1, NOW).await.unwrap().is_empty());
    let mine = world.receive(&from).await.remove(0);
    let foreign = other.settle(&from, &mine.lock, Settlement::Complete).await;
    assert_eq!(foreign.unwrap_err().code(), "lock-lost");
}

#[tokio::test]
async fn a_message_beyond_a_limit_is_refused_and_nothing_is_sent() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    let topic = TopicName::new("results").unwrap();
    for bad in [
        Message::json("", "{}"),
        Message::json("x".repeat(257), "{}"),
        Message::json("a\0b", "{}"),
        Message::json("m", "x".repeat(256 * 1024 + 1)),
        Message::json("m", "{}").property("p", "x".repeat(32 * 1024)),
    ] {
        let error = world.bus.send(&topic, vec![Message::json("good", "{}"), bad]).await.unwrap_err();
        assert_eq!(error.code(), "invalid-bus-message");
    }
    assert!(world.receive(&from).await.is_empty());
}

#[tokio::test]
async fn a_lock_that_is_renewed_in_time_is_kept_for_as_long_as_the_work_takes() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    let received = world.receive(&from).await.remove(0);
    for _ in 0..30 {
        world.clock.advance(Duration::from_secs(50));
        let until = world.bus.renew(&from, &received.lock).await.unwrap();
        assert_eq!(until, world.now() + Duration::from_mins(1));
        assert!(world.receive(&from).await.is_empty());
    }
    world.bus.settle(&from, &received.lock, Settlement::Complete).await.unwrap();
    assert!(world.dead(&from).await.is_empty());
}

#[tokio::test]
async fn expired_locks_are_deliveries_and_the_eleventh_makes_a_dead_letter() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("m", "{}")]).await;
    for count in 1..=10 {
        assert_eq!(world.receive(&from).await.remove(0).delivery_count, count);
        world.clock.advance(Duration::from_mins(1));
    }
    assert!(world.receive(&from).await.is_empty());
    let letter = world.letters(&from).await.remove(0);
    assert_eq!((letter.reason.reason.as_str(), letter.delivery_count), ("MaxDeliveryCountExceeded", 10));
    assert!(letter.reason.description.contains("10 times"), "{}", letter.reason.description);
}

#[tokio::test]
async fn messages_that_nothing_receives_expire_all_the_same() {
    let world = World::new();
    let from = world.subscribe("jobs", "idle", Filter::default()).await;
    let later = world.now() + Duration::from_hours(24);
    let scheduled = Message { scheduled_at: Some(later), ..Message::json("later", "{}") };
    let short = Message { time_to_live: Some(Duration::from_mins(1)), ..Message::json("short", "{}") };
    world.send("jobs", vec![Message::json("m", "{}"), scheduled, short]).await;
    assert_eq!(world.bus.expire().await.unwrap(), 0);
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.bus.expire().await.unwrap(), 1);
    world.clock.advance(Duration::from_hours(14 * 24) - Duration::from_mins(1));
    assert_eq!(world.bus.expire().await.unwrap(), 1, "the scheduled one has another day");
    world.clock.advance(Duration::from_hours(24));
    assert_eq!((world.bus.expire().await.unwrap(), world.bus.expire().await.unwrap()), (1, 0));
    let dead = world.dead(&from).await;
    let mut ids: Vec<&str> = dead.iter().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["later", "m", "short"]);
    assert!(dead.iter().all(|(_, reason)| reason == "TTLExpiredException"), "{dead:?}");
    assert_eq!(world.bus.oldest(&from).await.unwrap(), None);
}

#[tokio::test]
async fn a_locked_message_does_not_expire_under_its_receiver() {
    let world = World::new();
    let from = world.subscribe("jobs", "w", Filter::default()).await;
    let short = Message { time_to_live: Some(Duration::from_secs(30)), ..Message::json("short", "{}") };
    world.send("jobs", vec![short]).await;
    let received = world.receive(&from).await.remove(0);
    world.clock.advance(Duration::from_secs(40));
    assert_eq!(world.bus.expire().await.unwrap(), 0);
    world.bus.settle(&from, &received.lock, Settlement::Complete).await.unwrap();
    assert!(world.dead(&from).await.is_empty());
}

#[tokio::test]
async fn a_scheduled_message_is_delivered_at_its_time_and_wakes_a_waiting_receiver() {
    let world = World::new();
    let from = world.subscribe("jobs", "w", Filter::default()).await;
    let at = world.now() + Duration::from_mins(5);
    world.send("jobs", vec![Message { scheduled_at: Some(at), ..Message::json("later", "{}") }]).await;
    let waiting = {
        let (bus, from) = (world.bus.clone(), from.clone());
        tokio::spawn(async move { bus.receive(&from, 1, Duration::from_hours(1)).await.unwrap() })
    };
    tokio::task::yield_now().await;
    world.clock.advance(Duration::from_secs(299));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "it was delivered too early");
    let (shown, _) = Listed::split(world.bus.messages(&from, None, 10).await.unwrap());
    assert_eq!((shown[0].state, shown[0].visible_at), (StoredState::Scheduled, at));
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(ids(&waiting.await.unwrap()), ["later"]);
    let (shown, _) = Listed::split(world.bus.messages(&from, None, 10).await.unwrap());
    assert_eq!((shown[0].state, shown[0].delivery_count), (StoredState::Locked, 1));
}

#[tokio::test]
async fn a_stored_message_that_cannot_be_read_blocks_no_other_and_can_be_discarded() {
    let world = World::new();
    let from = world.subscribe("results", "s", Filter::default()).await;
    world.send("results", vec![Message::json("first", "{}"), Message::json("second", "{}")]).await;
    let all = ListRecords { kind: "bus_messages", limit: 10, ..ListRecords::default() };
    let broken = world.store.list_records(all).await.unwrap().remove(0);
    let writes = vec![RecordWrite::Put {
        kind: broken.kind,
        id: broken.id,
        expect: Expect::Anything,
        due_at_ms: broken.due_at_ms,
        time_to_live: None,
        body: (&b"no message"[..]).into(),
    }];
    world.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    assert_eq!(ids(&world.receive(&from).await), ["second"]);
    let (letters, unreadable) = Listed::split(world.bus.dead_letters(&from, None, 10).await.unwrap());
    assert_eq!((letters.len(), unreadable.len()), (0, 1));
    assert!(world.bus.discard(&from, &unreadable[0].id).await.unwrap());
    assert!(world.bus.dead_letters(&from, None, 10).await.unwrap().is_empty());
}
