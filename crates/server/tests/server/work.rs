//! The workers' protocol.

use std::collections::BTreeSet;
use std::time::Duration;

use segno_api::client::Expected;
use segno_api::instance::Status;
use segno_api::invocation::{Invoke, RetryPolicy};
use segno_api::key::Role;
use segno_api::work::{
    CompleteWork, FailWork, FailureCategory, FetchWork, Heartbeat, HeartbeatAction, ReleaseWork, WorkItem,
};
use segno_api::{Client, Json};
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{Ground, PATIENCE, Stand, json_of, settings};

/// Stores a remote function.
async fn declare(client: &Client, declaration: Value) {
    client.put_function("render", &json_of(&declaration), Expected::Absent).await.unwrap();
}

/// Calls it under a key.
async fn call(client: &Client, key: &str) -> String {
    let request =
        Invoke { key: Some(key.to_owned()), ..Invoke::new("render", json_of(&json!({ "n": key }))) };
    client.invoke(&request, Duration::ZERO).await.unwrap().id
}

fn patient() -> FetchWork {
    let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
    FetchWork { max_items: 10, wait_ms, ..FetchWork::new("w", ["render"]) }
}

async fn fetch_one(client: &Client) -> WorkItem {
    let mut items = client.fetch_work(&patient()).await.unwrap().items;
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn done(lease: &str, result: Value) -> CompleteWork {
    CompleteWork { lease: lease.to_owned(), result: json_of(&result) }
}

fn failed(lease: &str) -> FailWork {
    FailWork {
        lease: lease.to_owned(),
        message: "out of paint".to_owned(),
        category: FailureCategory::Application,
        code: Some("no-paint".to_owned()),
        retry_after_ms: None,
        retryable: None,
        details: Some(json_of(&json!({ "colour": "red" }))),
    }
}

fn beat(lease: &str, progress: Option<Json>) -> Heartbeat {
    Heartbeat { lease: lease.to_owned(), extend_ms: 30_000, progress }
}

#[tokio::test]
async fn a_call_is_fetched_kept_alive_and_completed() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote", "timeout": "10m", "deadline": "20m" })).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { fetch_one(&client).await }
    });
    let id = call(&client, "k").await;
    let item = waiting.await.unwrap();
    assert_eq!(
        (item.function.as_str(), item.input.text(), item.attempt, item.delivery),
        ("render", r#"{"n":"k"}"#, 1, 1)
    );
    assert_eq!(
        (item.instance.as_str(), item.timeout_ms, item.deadline.is_some()),
        (id.as_str(), Some(600_000), true)
    );
    let workers = client.workers(None).await.unwrap().workers;
    assert_eq!((workers.len(), workers[0].worker.as_str(), workers[0].in_flight), (1, "w", 1));
    assert_eq!(workers[0].functions, ["render"]);

    let answer = client.heartbeat_work(&beat(&item.lease, Some(json_of(&json!("half"))))).await.unwrap();
    assert_eq!(answer.action, HeartbeatAction::Continue);
    let lease = answer.lease.unwrap();
    client.complete_work(&done(&lease, json!({ "file": "x.png" }))).await.unwrap();
    let ended = client.instance(&id, PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#"{"file":"x.png"}"#);
    assert_eq!(client.workers(None).await.unwrap().workers[0].in_flight, 0);

    for late in [
        client.complete_work(&done(&lease, json!(2))).await.unwrap_err(),
        client.fail_work(&failed(&lease)).await.unwrap_err(),
        client.release_work(&ReleaseWork { lease: lease.clone(), delay_ms: None }).await.unwrap_err(),
    ] {
        assert_eq!((late.status(), late.code()), (Some(409), Some("lease-lost")));
        assert!(!late.to_string().contains("default/default"), "{late}");
    }
    let unchanged = client.instance(&id, Duration::ZERO).await.unwrap();
    assert_eq!(
        (unchanged.status, unchanged.result.unwrap().text()),
        (Status::Completed, r#"{"file":"x.png"}"#)
    );
}

#[tokio::test]
async fn a_failure_is_tried_again_and_the_progress_goes_along() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote", "retry": { "attempts": 2, "initial_delay": "1ms" } }))
        .await;
    let id = call(&client, "k").await;
    let first = fetch_one(&client).await;
    let lease =
        client.heartbeat_work(&beat(&first.lease, Some(json_of(&json!(41))))).await.unwrap().lease.unwrap();
    client.fail_work(&failed(&lease)).await.unwrap();
    let second = fetch_one(&client).await;
    assert_eq!((second.attempt, second.delivery, second.progress.unwrap().text()), (2, 1, "41"));
    assert_eq!(second.idempotency_key, first.idempotency_key);
    client.fail_work(&failed(&second.lease)).await.unwrap();
    let failure = client.instance(&id, PATIENCE).await.unwrap().failure.unwrap();
    assert_eq!((failure.code.as_deref(), failure.category.as_str()), (Some("no-paint"), "application"));
    assert_eq!(failure.details.unwrap().text(), r#"{"colour":"red"}"#);
}

#[tokio::test]
async fn a_failure_that_no_attempt_can_mend_ends_the_call() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    let retry = RetryPolicy { attempts: 5, initial_delay: None, factor: None, max_delay: None };
    let request = Invoke { retry: Some(retry), ..Invoke::new("render", Json::null()) };
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;
    let item = fetch_one(&client).await;
    client.fail_work(&FailWork { retryable: Some(false), ..failed(&item.lease) }).await.unwrap();
    assert_eq!(client.instance(&id, PATIENCE).await.unwrap().status, Status::Failed);
}

#[tokio::test]
async fn work_that_was_released_or_whose_lease_ended_is_handed_out_again() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    let id = call(&client, "k").await;
    let first = fetch_one(&client).await;
    client.release_work(&ReleaseWork { lease: first.lease.clone(), delay_ms: None }).await.unwrap();
    let mut items = client.fetch_work(&FetchWork { lease_ms: 10, ..patient() }).await.unwrap().items;
    let second = items.remove(0);
    assert_eq!((second.attempt, second.delivery), (1, 1), "a release counts as nothing");
    // The lease of this worker, which says nothing, ends at once.
    let third = fetch_one(&client).await;
    assert_eq!((third.attempt, third.delivery), (1, 2));
    let late = client.complete_work(&done(&second.lease, json!("late"))).await.unwrap_err();
    assert_eq!((late.status(), late.code()), (Some(409), Some("lease-lost")));
    client.complete_work(&done(&third.lease, json!("in time"))).await.unwrap();
    assert_eq!(client.instance(&id, PATIENCE).await.unwrap().result.unwrap().text(), r#""in time""#);
}

#[tokio::test]
async fn a_heartbeat_hears_of_a_cancelled_call_and_of_an_attempt_that_took_too_long() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    let id = call(&client, "cancelled").await;
    let item = fetch_one(&client).await;
    client.cancel(&id, None).await.unwrap();
    assert_eq!(client.instance(&id, PATIENCE).await.unwrap().status, Status::Cancelled);
    let answer = client.heartbeat_work(&beat(&item.lease, None)).await.unwrap();
    assert_eq!((answer.action, answer.reason.as_deref()), (HeartbeatAction::Cancel, Some("cancelled")));
    assert_eq!(client.complete_work(&done(&item.lease, json!(1))).await.unwrap_err().status(), Some(409));

    let request = Invoke { timeout: Some("1ms".to_owned()), ..Invoke::new("render", Json::null()) };
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;
    let item = fetch_one(&client).await;
    let mut lease = item.lease;
    let reason = loop {
        let answer = client.heartbeat_work(&beat(&lease, None)).await.unwrap();
        match answer.action {
            HeartbeatAction::Continue => lease = answer.lease.unwrap(),
            HeartbeatAction::Cancel => break answer.reason.unwrap(),
        }
    };
    assert_eq!(reason, "timed-out");
    let failure = client.instance(&id, PATIENCE).await.unwrap().failure.unwrap();
    assert_eq!(failure.code.as_deref(), Some("attempt-timeout"));
}

#[tokio::test]
async fn leases_that_are_forged_or_of_another_tenant_do_nothing() {
    let stand = Stand::with_keys().await;
    let operator = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let worker = stand.client_with(Role::Worker, "shop", "eu").await.scope("shop", "eu");
    let stranger = stand.client_with(Role::Worker, "shop", "us").await.scope("shop", "us");
    declare(&operator, json!({ "executor": "remote" })).await;
    let id = call(&operator, "k").await;
    assert_eq!(operator.fetch_work(&patient()).await.unwrap_err().status(), Some(403));
    assert!(stranger.fetch_work(&FetchWork::new("w", ["render"])).await.unwrap().items.is_empty());
    assert_eq!(
        stranger.clone().scope("shop", "eu").fetch_work(&patient()).await.unwrap_err().status(),
        Some(403)
    );
    let item = fetch_one(&worker).await;

    let (payload, mac) = item.lease.split_once('.').unwrap();
    let mut other = payload.to_owned().into_bytes();
    other[20] ^= 1;
    let changed = format!("{}.{mac}", String::from_utf8(other).unwrap());
    for forged in [changed.as_str(), payload, "", "x.y", &format!("{payload}.")] {
        let refused = worker.complete_work(&done(forged, json!("stolen"))).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("lease-lost")), "{forged}");
    }
    for refused in [
        stranger.complete_work(&done(&item.lease, json!("stolen"))).await.unwrap_err(),
        stranger.fail_work(&failed(&item.lease)).await.unwrap_err(),
        stranger.release_work(&ReleaseWork { lease: item.lease.clone(), delay_ms: None }).await.unwrap_err(),
        stranger.heartbeat_work(&beat(&item.lease, None)).await.unwrap_err(),
    ] {
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("lease-lost")));
    }
    let elsewhere = stand.client_with(Role::Viewer, "shop", "us").await.scope("shop", "us");
    let rows = elsewhere.workers(None).await.unwrap().workers;
    assert_eq!((rows.len(), rows[0].in_flight), (1, 0), "the stranger sees itself: {rows:?}");
    worker.complete_work(&done(&item.lease, json!("mine"))).await.unwrap();
    assert_eq!(operator.instance(&id, PATIENCE).await.unwrap().result.unwrap().text(), r#""mine""#);
}

#[tokio::test]
async fn tags_decide_who_gets_a_call() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    let tagged = Invoke { tag: Some("gpu".to_owned()), ..Invoke::new("render", json_of(&json!("tagged"))) };
    client.invoke(&tagged, Duration::ZERO).await.unwrap();
    call(&client, "plain").await;
    let plain = fetch_one(&client).await;
    assert_eq!(plain.input.text(), r#"{"n":"plain"}"#);
    let gpu_only = FetchWork { tags: vec!["gpu".to_owned()], untagged: false, ..patient() };
    let items = client.fetch_work(&gpu_only).await.unwrap().items;
    assert_eq!((items.len(), items[0].input.text()), (1, r#""tagged""#));
    assert!(client.fetch_work(&FetchWork { wait_ms: 0, ..patient() }).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn requests_that_are_out_of_range_are_told_by_field() {
    let stand = Stand::open().await;
    let client = stand.client();
    let with = |change: fn(&mut FetchWork)| {
        let mut request = FetchWork::new("w", ["render"]);
        change(&mut request);
        request
    };
    for (request, field) in [
        (with(|r| r.worker = String::new()), "worker"),
        (with(|r| r.worker = "a/b".to_owned()), "worker"),
        (with(|r| r.functions.clear()), "functions"),
        (with(|r| r.functions = vec!["f".to_owned(); 33]), "functions"),
        (with(|r| r.functions = vec!["No".to_owned()]), "functions"),
        (with(|r| r.tags = vec!["t".to_owned(); 6]), "tags"),
        (with(|r| r.untagged = false), "tags"),
        (with(|r| r.max_items = 0), "max_items"),
        (with(|r| r.max_items = 101), "max_items"),
        (with(|r| r.lease_ms = 9), "lease_ms"),
        (with(|r| r.wait_ms = 60_001), "wait_ms"),
    ] {
        let refused = client.fetch_work(&request).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")), "{request:?}");
        assert!(refused.to_string().contains(field), "{request:?}: {refused}");
    }
}

#[tokio::test]
async fn a_poll_whose_caller_has_gone_takes_no_work_away() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    for number in 0..8 {
        let name = format!("gone-{number}");
        let poll = tokio::spawn({
            let (client, request) = (client.clone(), FetchWork { worker: name.clone(), ..patient() });
            async move { client.fetch_work(&request).await }
        });
        // The server has the request once it lists the worker.
        while client.workers(None).await.unwrap().workers.iter().all(|row| row.worker != name) {}
        poll.abort();
        assert!(poll.await.is_err());
    }
    for key in ["a", "b", "c"] {
        call(&client, key).await;
        let item = fetch_one(&client).await;
        assert_eq!(item.delivery, 1, "what others got and gave back is not counted");
        client.complete_work(&done(&item.lease, json!(1))).await.unwrap();
    }
}

#[tokio::test]
async fn the_answers_of_workers_are_not_in_the_audit_log() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    call(&client, "k").await;
    let item = fetch_one(&client).await;
    client.complete_work(&done(&item.lease, json!(1))).await.unwrap();
    let entries = client.audit(&Default::default()).await.unwrap().entries;
    let operations: BTreeSet<&str> = entries.iter().map(|entry| entry.operation.as_str()).collect();
    assert_eq!(operations, BTreeSet::from(["POST /v1/invocations", "PUT /v1/functions/{name}"]));
}

#[tokio::test]
async fn any_server_of_a_store_takes_the_answer() {
    let ground = Ground::new().await;
    let one = Stand::on(settings(Authentication::None), &ground).await;
    let two = Stand::on(settings(Authentication::None), &ground).await;
    declare(&one.client(), json!({ "executor": "remote" })).await;
    let id = call(&one.client(), "k").await;
    let item = fetch_one(&one.client()).await;
    let lease = two.client().heartbeat_work(&beat(&item.lease, None)).await.unwrap().lease.unwrap();
    one.client().complete_work(&done(&lease, json!("taken"))).await.unwrap();
    assert_eq!(two.client().instance(&id, PATIENCE).await.unwrap().result.unwrap().text(), r#""taken""#);
    assert_eq!(
        two.client().complete_work(&done(&item.lease, json!(2))).await.unwrap_err().status(),
        Some(409)
    );
}

#[tokio::test]
async fn a_poll_ends_when_the_server_stops() {
    let stand = Stand::open().await;
    let client = stand.client();
    let poll = tokio::spawn({
        let client = client.clone();
        async move { client.fetch_work(&patient()).await }
    });
    while client.workers(None).await.unwrap().workers.is_empty() {}
    stand.server.shutdown().await;
    assert!(poll.await.unwrap().unwrap().items.is_empty());
}

#[tokio::test]
async fn an_answer_has_bounds_and_what_does_not_fit_comes_with_the_next() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, json!({ "executor": "remote" })).await;
    let large = json_of(&"x".repeat(1_000_000));
    for _ in 0..10 {
        client.invoke(&Invoke::new("render", large.clone()), Duration::ZERO).await.unwrap();
    }
    let mut sizes = Vec::new();
    let mut fetched = 0;
    while fetched < 10 {
        let items = client.fetch_work(&patient()).await.unwrap().items;
        assert!(items.iter().all(|item| item.delivery == 1));
        sizes.push(items.len());
        fetched += items.len();
    }
    assert_eq!(fetched, 10);
    assert!(sizes.iter().all(|size| *size <= 8), "{sizes:?}");
}
