//! The bus over AMQP 1.0, against a broker in process: delivery, settlement, credentials, tokens,
//! reconnection.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests and their helpers")]

mod broker;
mod rabbitmq;

use std::time::Duration;

use segno::clock::SystemClock;
use segno_bus_amqp::{AmqpBus, Broker};
use segno_runbook::bus::{
    BrokerNames, Bus, BusError, DeadLetterReason, Message, Received, Settlement, SubscriptionName, TopicName,
};

use broker::{Access, RENEWED_UNTIL_MS, TestBroker};

const PATIENCE: Duration = Duration::from_secs(20);

fn bus(broker: &TestBroker, user: &str, query: &str) -> AmqpBus {
    let names = BrokerNames {
        events: "orchestrator-events".to_owned(),
        jobs: "worker-jobs".to_owned(),
        results: "worker-results".to_owned(),
        subscription: "segno".to_owned(),
    };
    let url = format!("amqp://{user}@127.0.0.1:{}/{query}", broker.port);
    AmqpBus::new(Broker::new(&url, names).unwrap(), SystemClock::shared())
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn results() -> SubscriptionName {
    SubscriptionName::new("results", "orchestrator").unwrap()
}

async fn receive_one(bus: &AmqpBus) -> Received {
    let mut received = bus.receive(&results(), 10, PATIENCE).await.unwrap();
    assert_eq!(received.len(), 1);
    received.remove(0)
}

#[tokio::test]
async fn a_message_is_sent_locked_abandoned_completed_and_dead_lettered() {
    let broker = TestBroker::start(Access::Plain).await;
    broker.subscribe("worker-results", "segno");
    let bus = bus(&broker, "guest:secret%2F%2B", "");
    let mut message = Message::json("result-1", r#"{"jobId":"step-1"}"#).property("Status", "success");
    message.subject = Some("New-EntraUser".to_owned());
    bus.send(&topic("results"), vec![message.clone()]).await.unwrap();
    let first = receive_one(&bus).await;
    assert_eq!((&first.message, first.delivery_count), (&message, 1));
    bus.settle(&results(), &first.lock, Settlement::Abandon).await.unwrap();
    let again = receive_one(&bus).await;
    assert_eq!((&again.message, again.delivery_count), (&message, 2));
    assert_eq!(bus.renew(&results(), &again.lock).await.unwrap().as_millisecond(), RENEWED_UNTIL_MS);
    bus.settle(&results(), &again.lock, Settlement::Complete).await.unwrap();
    let twice = bus.settle(&results(), &again.lock, Settlement::Complete).await.unwrap_err();
    assert_eq!(twice.code(), "lock-lost");
    assert!(bus.receive(&results(), 10, Duration::from_millis(50)).await.unwrap().is_empty());

    bus.send(&topic("results"), vec![Message::json("result-2", "no")]).await.unwrap();
    let bad = receive_one(&bus).await;
    let reason = DeadLetterReason::new("DeserializationFailed", "it is no JSON");
    bus.settle(&results(), &bad.lock, Settlement::DeadLetter(reason)).await.unwrap();
    for _ in 0..200 {
        if !broker.dead().is_empty() {
            break;
        }
        segno::clock::sleep(&SystemClock, Duration::from_millis(10)).await;
    }
    assert_eq!(broker.dead(), ["DeserializationFailed: it is no JSON"]);
}

#[tokio::test]
async fn a_lock_is_renewed_by_its_token_until_the_broker_has_ended_it() {
    let broker = TestBroker::start(Access::Plain).await;
    broker.subscribe("worker-results", "segno");
    let bus = bus(&broker, "guest:secret%2F%2B", "");
    bus.send(&topic("results"), vec![Message::json("result-1", "{}")]).await.unwrap();
    let received = receive_one(&bus).await;
    for _ in 0..2 {
        let until = bus.renew(&results(), &received.lock).await.unwrap();
        assert_eq!(until.as_millisecond(), RENEWED_UNTIL_MS);
    }
    let ended = bus.renew(&results(), &received.lock).await.unwrap_err();
    assert_eq!(ended.code(), "lock-lost");
    let tokens = broker.renewed();
    assert!(tokens.len() == 3 && tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    let unknown = bus.renew(&results(), "7.7").await.unwrap_err();
    assert_eq!((unknown.code(), broker.renewed().len()), ("lock-lost", 3), "nothing was asked");
}

#[tokio::test]
async fn a_token_is_shown_at_cbs_before_links_are_opened() {
    let broker = TestBroker::start(Access::Token).await;
    broker.subscribe("worker-results", "segno");
    let good = bus(&broker, "Root:key", "?auth=cbs");
    good.send(&topic("results"), vec![Message::json("result-1", "{}")]).await.unwrap();
    assert_eq!(receive_one(&good).await.message.message_id, "result-1");
    assert_eq!(broker.tokens().len(), 2, "one for each link");
    let bad = bus(&broker, "Other:key", "?auth=cbs");
    let refused = bad.send(&topic("results"), vec![Message::json("result-2", "{}")]).await.unwrap_err();
    assert_eq!(refused.code(), "bus-unavailable");
    assert!(refused.to_string().contains("shared access policy"), "{refused}");
}

#[tokio::test]
async fn a_broker_that_is_away_or_refuses_is_unavailable_and_used_again_when_it_is_back() {
    let broker = TestBroker::start(Access::Plain).await;
    broker.subscribe("worker-jobs", "cloud-01");
    broker.subscribe("worker-results", "segno");
    let wrong = bus(&broker, "guest:wrong", "");
    let refused = wrong.send(&topic("jobs"), vec![Message::json("step-1", "{}")]).await.unwrap_err();
    assert!(matches!(refused, BusError::Unavailable(_)), "{refused}");
    assert!(!refused.to_string().contains("wrong"), "{refused}");

    let bus = bus(&broker, "guest:secret%2F%2B", "");
    // No queue takes it.
    let nowhere = bus.send(&topic("orchestrator-events"), vec![Message::json("m", "{}")]).await.unwrap_err();
    assert!(nowhere.to_string().contains("subscription"), "{nowhere}");

    bus.send(&topic("results"), vec![Message::json("result-1", "{}")]).await.unwrap();
    let locked = receive_one(&bus).await;
    broker.disconnect();
    // The lock went with the connection. The message comes again, after as many errors as it takes.
    let mut errors = 0;
    let again = loop {
        match bus.receive(&results(), 10, Duration::from_secs(1)).await {
            Ok(mut received) if !received.is_empty() => break received.remove(0),
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code(), "bus-unavailable");
                errors += 1;
            }
        }
        assert!(errors < 50);
    };
    assert_eq!((again.message.message_id.as_str(), again.delivery_count), ("result-1", 2));
    let stale = bus.settle(&results(), &locked.lock, Settlement::Complete).await.unwrap_err();
    assert_eq!(stale.code(), "lock-lost");
    bus.settle(&results(), &again.lock, Settlement::Complete).await.unwrap();
    let mut sent = bus.send(&topic("jobs"), vec![Message::json("step-1", "{}")]).await;
    if sent.is_err() {
        sent = bus.send(&topic("jobs"), vec![Message::json("step-1", "{}")]).await;
    }
    sent.unwrap();
}
