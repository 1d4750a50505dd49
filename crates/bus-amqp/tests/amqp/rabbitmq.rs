//! The bus at a RabbitMQ of version 3, as Debian has it: `scripts/with-rabbitmq.sh` starts one. Tests
//! pass without it, and say so.

use std::collections::BTreeSet;
use std::time::Duration;

use segno::clock::SystemClock;
use segno_bus_amqp::{AmqpBus, Broker};
use segno_runbook::bus::{
    BrokerNames, Bus, DeadLetterReason, JOBS, Message, ORCHESTRATOR, RESULTS, Received, Settlement,
    SubscriptionName, TopicName,
};

/// Where the server is.
const URL: &str = "SEGNO_TEST_RABBITMQ";

const PATIENCE: Duration = Duration::from_secs(20);

fn bus(subscription: &str) -> Option<AmqpBus> {
    let Ok(url) = std::env::var(URL) else {
        eprintln!("skipped: {URL} is not set; run scripts/with-rabbitmq.sh");
        return None;
    };
    let names = BrokerNames {
        events: "orchestrator-events".to_owned(),
        jobs: "worker-jobs".to_owned(),
        results: "worker-results".to_owned(),
        subscription: subscription.to_owned(),
    };
    Some(AmqpBus::new(Broker::new(&url, names).unwrap(), SystemClock::shared()))
}

/// Takes what an earlier process has left: its last completions may not have reached the broker.
async fn drain(bus: &AmqpBus, from: &SubscriptionName) {
    loop {
        let left = bus.receive(from, 50, Duration::from_millis(200)).await.unwrap();
        if left.is_empty() {
            return;
        }
        for one in left {
            bus.settle(from, &one.lock, Settlement::Complete).await.unwrap();
        }
    }
}

async fn receive_one(bus: &AmqpBus, from: &SubscriptionName) -> Received {
    let mut received = bus.receive(from, 10, PATIENCE).await.unwrap();
    assert_eq!(received.len(), 1, "{received:?}");
    received.remove(0)
}

#[tokio::test]
async fn messages_are_sent_received_abandoned_completed_and_dead_lettered() {
    let Some(bus) = bus("segno") else { return };
    let (topic, from) =
        (TopicName::new(RESULTS).unwrap(), SubscriptionName::new(RESULTS, ORCHESTRATOR).unwrap());
    let mut message = Message::json("result-1", r#"{"jobId":"step-1"}"#).property("Status", "success");
    message.subject = Some("New-EntraUser".to_owned());
    bus.send(&topic, vec![message.clone()]).await.unwrap();
    let first = receive_one(&bus, &from).await;
    assert_eq!((&first.message, first.delivery_count), (&message, 1));
    bus.settle(&from, &first.lock, Settlement::Abandon).await.unwrap();
    let again = receive_one(&bus, &from).await;
    assert_eq!(again.message, message);
    bus.settle(&from, &again.lock, Settlement::Complete).await.unwrap();

    bus.send(&topic, vec![Message::json("result-2", "no")]).await.unwrap();
    let bad = receive_one(&bus, &from).await;
    let reason = DeadLetterReason::new("DeserializationFailed", "it is no JSON");
    bus.settle(&from, &bad.lock, Settlement::DeadLetter(reason)).await.unwrap();
    let letters = SubscriptionName::new("dead", "letters").unwrap();
    let letter = receive_one(&bus, &letters).await;
    assert_eq!(letter.message.message_id, "result-2");
    bus.settle(&letters, &letter.lock, Settlement::Complete).await.unwrap();
    assert!(bus.receive(&from, 10, Duration::from_millis(200)).await.unwrap().is_empty());
}

#[tokio::test]
async fn many_jobs_arrive_in_order_and_those_that_were_not_completed_come_again() {
    let Some(first) = bus("segno") else { return };
    let (topic, from) = (TopicName::new(JOBS).unwrap(), SubscriptionName::new(JOBS, "cloud-01").unwrap());
    drain(&first, &from).await;
    let jobs: Vec<Message> = (0..300)
        .map(|number| Message::json(format!("step-{number:03}"), "{}").property("WorkerId", "cloud-01"))
        .collect();
    first.send(&topic, jobs.clone()).await.unwrap();
    let mut completed = 0;
    while completed < 100 {
        for one in first.receive(&from, 50, PATIENCE).await.unwrap() {
            assert_eq!(one.message, jobs[completed]);
            first.settle(&from, &one.lock, Settlement::Complete).await.unwrap();
            completed += 1;
        }
    }
    // The connection goes. What was on its way to it is delivered to the next one, perhaps together
    // with some whose completion was still on its way to the broker.
    drop(first);
    let second = bus("segno").expect("it was there before");
    let mut missing: BTreeSet<&str> = jobs[completed..].iter().map(|job| job.message_id.as_str()).collect();
    while !missing.is_empty() {
        let received = second.receive(&from, 50, PATIENCE).await.unwrap();
        assert!(!received.is_empty(), "jobs are lost: {missing:?}");
        for one in received {
            second.settle(&from, &one.lock, Settlement::Complete).await.unwrap();
            missing.remove(one.message.message_id.as_str());
        }
    }
}
