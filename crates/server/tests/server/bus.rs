//! The built-in bus over HTTP: a worker of runbooks that receives, answers and completes, and dead
//! letters.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno_api::Client;
use segno_api::batch::BatchStatus;
use segno_api::bus::{
    BusMessage, BusMessageState, ReceiveMessages, SendMessages, SettleMessage, SettleOutcome,
};
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::pool::PoolTransport;
use segno_server::settings::{Authentication, Settings};
use serde_json::{Value, json};

use crate::runbooks::{MOVE, yaml};
use crate::stand::{PATIENCE, Stand, json_of, settings};

const JOBS: (&str, &str) = ("worker-jobs", "cloud-01");
const RESULTS: (&str, &str) = ("results", "orchestrator");

fn with_bus() -> Settings {
    let mut settings = settings(Authentication::None);
    settings.bus = serde_json::from_value(json!({ "url": "built-in" })).unwrap();
    let pools = json!({ "cloud-01": { "transport": "bus", "functions": ["*"] } });
    settings.pools = serde_json::from_value(pools).unwrap();
    settings
}

fn message(id: &str, body: &Value) -> BusMessage {
    BusMessage::json(id, body.to_string())
}

fn settled(lock: &str, outcome: SettleOutcome) -> SettleMessage {
    SettleMessage { lock: lock.to_owned(), outcome, reason: None, description: None }
}

/// Takes one job and answers it.
async fn work(client: &Client) {
    let wanted = ReceiveMessages { max_messages: Some(10), wait_ms: Some(30_000) };
    for one in client.receive_messages(JOBS, &wanted).await.unwrap().messages {
        let renewed = client.renew_lock(JOBS, &one.lock).await.unwrap();
        assert!(renewed.locked_until >= one.locked_until);
        let job: Value = serde_json::from_str(&one.message.body).unwrap();
        assert_eq!((&job["jobId"], one.delivery_count), (&json!(one.message.message_id), 1));
        let result = json!({ "jobId": job["jobId"], "batchId": job["batchId"], "workerId": job["workerId"],
            "status": "success", "result": { "Id": "user-7" }, "correlationData": job["correlationData"] });
        let sent =
            SendMessages { messages: vec![message(&format!("r-{}", one.message.message_id), &result)] };
        assert_eq!(client.send_messages("worker-results", &sent).await.unwrap().sent, 1);
        client.settle_message(JOBS, &settled(&one.lock, SettleOutcome::Complete)).await.unwrap();
        let again = client.settle_message(JOBS, &settled(&one.lock, SettleOutcome::Complete)).await;
        assert_eq!(again.unwrap_err().code(), Some("lock-lost"));
    }
}

#[tokio::test]
async fn a_worker_over_http_takes_a_batch_through_its_phases() {
    let stand = Stand::with(with_bus()).await;
    let client = stand.client();
    assert_eq!(client.pool("cloud-01", None).await.unwrap().pool.transport, PoolTransport::Bus);
    client.publish_runbook(&yaml(&MOVE.replace("worker_id: here", "worker_id: cloud-01"))).await.unwrap();
    let batch =
        json!({ "runbook": "move", "batch_start_time": "2026-01-01T00:00:00Z", "members": [{ "Key": "a" }] });
    let batch = client.create_batch(&serde_json::from_value(batch).unwrap()).await.unwrap().id;
    let ends = async {
        while client.batch(batch).await.unwrap().batch.status != BatchStatus::Completed {
            work(&client).await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, ends).await.expect("the batch does not end");
    let call = Invoke { pool: Some("cloud-01".to_owned()), ..Invoke::new("Create", json_of(&json!(1))) };
    let refused = client.invoke(&call, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.code(), Some("pool-is-bus"));
}

#[tokio::test]
async fn a_message_that_cannot_be_taken_is_inspected_resubmitted_and_discarded() {
    let stand = Stand::with(with_bus()).await;
    let client = stand.client();
    let bad = SendMessages { messages: vec![message("r-1", &json!("no result"))] };
    client.send_messages("results", &bad).await.unwrap();
    let letter = async || loop {
        if let Some(letter) = client.bus_dead_letters(RESULTS, None).await.unwrap().dead_letters.pop() {
            return letter;
        }
        crate::stand::look_again().await;
    };
    let within = async |what| clock::timeout(&SystemClock, PATIENCE, what).await.expect("no dead letter");
    let first = within(letter()).await;
    assert_eq!((first.message.message_id.as_str(), first.reason.as_str()), ("r-1", "DeserializationFailed"));
    client.resubmit_message(RESULTS, &first.id).await.unwrap();
    let again = client.resubmit_message(RESULTS, &first.id).await.unwrap_err();
    assert_eq!(again.code(), Some("not-found"));
    // It is no better than before.
    let second = within(letter()).await;
    assert_ne!(first.id, second.id);
    client.discard_message(RESULTS, &second.id).await.unwrap();
    assert!(client.bus_dead_letters(RESULTS, None).await.unwrap().dead_letters.is_empty());
    let gone = client.discard_message(RESULTS, &second.id).await.unwrap_err();
    assert_eq!(gone.code(), Some("not-found"));
    let lost = client.send_messages("result", &bad).await.unwrap_err();
    assert_eq!(lost.code(), Some("unknown-subscription"), "a topic without a receiver: {lost}");
    for (from, code) in
        [(("results", "none"), "unknown-subscription"), (("re sults", "x"), "invalid-bus-name")]
    {
        let refused = client.receive_messages(from, &ReceiveMessages::default()).await.unwrap_err();
        assert_eq!(refused.code(), Some(code));
    }
}

#[tokio::test]
async fn subscriptions_and_messages_are_looked_at_without_locking_them() {
    let stand = Stand::with(with_bus()).await;
    let client = stand.client();
    let page = client.bus_subscriptions(None).await.unwrap();
    let names: Vec<(&str, &str)> =
        page.subscriptions.iter().map(|one| (&*one.topic, &*one.subscription)).collect();
    let expected =
        [("jobs", "cloud-01"), ("orchestrator-events", "orchestrator"), ("results", "orchestrator")];
    assert_eq!(names, expected);
    let later = "2999-01-01T00:00:00Z".parse().unwrap();
    let job = |id: &str| {
        let mut job = message(id, &json!({}));
        job.properties.insert("WorkerId".to_owned(), "cloud-01".to_owned());
        job
    };
    let scheduled =
        BusMessage { scheduled_at: Some(later), time_to_live_ms: Some(1_000), ..job("step-9-later") };
    let other = BusMessage { properties: std::collections::BTreeMap::new(), ..job("step-9-other-pool") };
    let jobs = SendMessages { messages: vec![job("step-9"), scheduled, other] };
    client.send_messages("jobs", &jobs).await.unwrap();
    for _ in 0..2 {
        let messages = client.bus_messages(JOBS, None).await.unwrap().messages;
        let mut shown: Vec<_> =
            messages.iter().map(|one| (&*one.message.message_id, one.state, one.delivery_count)).collect();
        shown.sort_by_key(|one| one.0);
        let waiting = ("step-9", BusMessageState::Waiting, 0);
        assert_eq!(shown, [waiting, ("step-9-later", BusMessageState::Scheduled, 0)]);
    }
    client.receive_messages(JOBS, &ReceiveMessages::default()).await.unwrap();
    let messages = client.bus_messages(JOBS, None).await.unwrap().messages;
    let locked = messages.iter().find(|one| one.state == BusMessageState::Locked).unwrap();
    assert_eq!((&*locked.message.message_id, locked.delivery_count), ("step-9", 1));
    let shown = client.bus_subscription(JOBS).await.unwrap();
    assert_eq!((shown.lock_ms, shown.max_deliveries, shown.time_to_live_ms), (60_000, 10, 1_209_600_000));
    assert!(shown.oldest_enqueued_at.is_some() && shown.oldest_dead_at.is_none(), "{shown:?}");
    let unknown = client.bus_subscription(("jobs", "none")).await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown-subscription"));
}

#[tokio::test]
async fn a_workers_key_receives_jobs_and_sends_results_and_nothing_else() {
    let mut settings = with_bus();
    settings.auth.mode = Authentication::Keys;
    let stand = Stand::with(settings).await;
    let worker = stand.client_with(Role::Worker, "default", "default").await;
    let operator = stand.client_with(Role::Operator, "default", "default").await;
    let viewer = stand.client_with(Role::Viewer, "default", "default").await;
    let one = |id: &str| SendMessages { messages: vec![message(id, &json!({}))] };
    worker.receive_messages(JOBS, &ReceiveMessages::default()).await.unwrap();
    worker.send_messages("worker-results", &one("r-1")).await.unwrap();
    operator.send_messages("orchestrator-events", &one("e-1")).await.unwrap();
    let refused = [
        worker.send_messages("orchestrator-events", &one("e-2")).await.unwrap_err(),
        worker.send_messages("jobs", &one("j-1")).await.unwrap_err(),
        worker.receive_messages(RESULTS, &ReceiveMessages::default()).await.unwrap_err(),
        worker.bus_messages(JOBS, None).await.unwrap_err(),
        viewer.send_messages("results", &one("r-2")).await.unwrap_err(),
        viewer.receive_messages(JOBS, &ReceiveMessages::default()).await.unwrap_err(),
        operator.receive_messages(JOBS, &ReceiveMessages::default()).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), Some("forbidden"), "{error}");
    }
    // What changes batches is in the audit log, what workers do is not.
    let entries = stand.client().audit(&Default::default()).await.unwrap().entries;
    let sent: Vec<(&str, u16)> = entries
        .iter()
        .filter(|entry| entry.path.starts_with("/v1/bus/"))
        .map(|entry| (&*entry.path, entry.status))
        .collect();
    let events = "/v1/bus/orchestrator-events/messages";
    assert!(sent.contains(&(events, 200)) && sent.contains(&(events, 403)), "{sent:?}");
    assert!(!sent.iter().any(|(path, status)| path.contains("results") && *status == 200), "{sent:?}");
}
