//! Calls of functions in lists and streams by the names of their functions, and how far one is.

use std::time::Duration;

use segno_api::Client;
use segno_api::bulk::{Bulk, BulkAction, BulkFilter};
use segno_api::call::{CallDetails, CallState};
use segno_api::client::Expected;
use segno_api::instance::{Instance, Kind, ListInstances, Status};
use segno_api::invocation::{Invoke, RetryPolicy};
use segno_api::work::{CompleteWork, FailWork, FailureCategory, FetchWork, Heartbeat};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet, json_of};

async fn declare(client: &Client, name: &str, declaration: Value) {
    client.put_function(name, &json_of(&declaration), Expected::Absent).await.unwrap();
}

async fn call(client: &Client, function: &str, key: &str) -> String {
    let request =
        Invoke { key: Some(key.to_owned()), ..Invoke::new(function, json_of(&json!({ "n": key }))) };
    client.invoke(&request, Duration::ZERO).await.unwrap().id
}

async fn calls_of(client: &Client, function: &str) -> Vec<Instance> {
    let filter = ListInstances { function: Some(function.to_owned()), ..ListInstances::default() };
    client.instances(&filter).await.unwrap().instances
}

/// Waits until a call is as it should be.
async fn until(client: &Client, id: &str, is_so: impl Fn(&CallDetails) -> bool) -> CallDetails {
    let look = async {
        loop {
            let shown = client.instance(id, Duration::ZERO).await.unwrap();
            match shown.call {
                Some(call) if is_so(&call) => return *call,
                _ => crate::stand::look_again().await,
            }
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await.expect("it does not come to that")
}

#[tokio::test]
async fn calls_are_listed_and_found_by_their_function_and_show_what_made_them() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut request = Invoke { key: Some("k".to_owned()), ..Invoke::new("echo", json_of(&1)) };
    request.labels.insert("team".to_owned(), "eu".to_owned());
    client.invoke(&request, PATIENCE).await.unwrap();
    client.invoke(&Invoke::new("greet", json_of("Ada")), PATIENCE).await.unwrap();
    client.start(&greet("workflow", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let action = json!({ "tool_name": "echo", "tool_input": 2 });
    client.create_action(&serde_json::from_value(action).unwrap()).await.unwrap();
    let recurring = json!({ "every": "1h", "function": "echo", "input": 3, "name": "hourly" });
    client.create_recurring(&serde_json::from_value(recurring).unwrap()).await.unwrap();
    client.run_recurring("hourly", &Default::default()).await.unwrap();
    let hook = json!({ "verification": "none", "function": "echo" });
    client.put_hook("inbox", &json_of(&hook), Expected::Absent).await.unwrap();
    crate::stand::http().post(stand.url("/v1/hooks/default/inbox")).body("{}").send().await.unwrap();
    let found = async {
        loop {
            let found = calls_of(&client, "echo").await;
            if found.len() == 4 && found.iter().all(|call| call.status == Status::Completed) {
                return found;
            }
            crate::stand::look_again().await;
        }
    };
    let found = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, found).await.unwrap();
    let mut kinds: Vec<&str> = found.iter().filter_map(|call| call.kind).map(Kind::as_str).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["action", "call", "hook", "schedule"]);
    for call in &found {
        assert_eq!(call.shown_name(), Some("echo"));
        assert_eq!(call.orchestration.as_deref(), Some("invoke"));
        assert!(call.labels.keys().all(|key| !key.starts_with("segno.")), "{:?}", call.labels);
    }
    let greeted = calls_of(&client, "greet").await;
    assert_eq!((greeted.len(), greeted[0].kind), (1, Some(Kind::Call)));
    let labelled = ListInstances {
        function: Some("echo".to_owned()),
        label: vec!["team=eu".to_owned()],
        ..ListInstances::default()
    };
    assert_eq!(client.instances(&labelled).await.unwrap().instances.len(), 1);
    let workflow = client.instance("workflow", Duration::ZERO).await.unwrap();
    assert_eq!((workflow.shown_name(), workflow.kind, &workflow.call), (Some("greet"), None, &None));
    assert!(calls_of(&client, "nosuch").await.is_empty());
    let bulk = Bulk {
        action: BulkAction::Delete,
        ids: Vec::new(),
        filter: BulkFilter { function: Some("echo".to_owned()), ..BulkFilter::default() },
        reason: None,
        dry_run: true,
        force: false,
        limit: None,
        cursor: None,
    };
    assert_eq!(client.bulk(&bulk).await.unwrap().matched, 4);
}

#[tokio::test]
async fn labels_of_segno_are_refused_at_every_door() {
    let stand = Stand::open().await;
    let send = async |path: &str, body: Value| -> (u16, Value) {
        let answer = crate::stand::http().post(stand.url(path)).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    };
    let labels = json!({ "segno.function": "default/default/charge" });
    let start = json!({ "orchestration": "greet", "input": { "name": "A" }, "labels": labels });
    let invoke = json!({ "function": "echo", "labels": labels });
    let recurring = json!({ "every": "1h", "function": "echo", "labels": labels });
    for (path, body, code) in [
        ("/v1/instances", start, "invalid-label"),
        ("/v1/invocations", invoke, "invalid-label"),
        ("/v1/recurring", recurring, "invalid-action"),
    ] {
        let (status, problem) = send(path, body).await;
        assert_eq!((status, problem["code"].as_str()), (400, Some(code)), "{path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains("reserved"), "{problem}");
    }
    let filter = json!({ "label": "segno.function=default/default/charge" });
    let (status, problem) = send("/v1/instances/bulk", json!({ "action": "cancel", "filter": filter })).await;
    assert_eq!((status, problem["code"].as_str()), (400, Some("invalid-request")), "{problem}");
    for path in ["/v1/instances?label=segno.function%3Dx", "/v1/events?label=segno.trigger%3Dhook"] {
        let answer = crate::stand::http().get(stand.url(path)).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 400, "{path}");
    }
}

#[tokio::test]
async fn a_call_says_what_it_waits_for_from_its_start_to_its_end() {
    let stand = Stand::open().await;
    let client = stand.client();
    let hour = Some("1h".to_owned());
    let retry = RetryPolicy { attempts: 3, initial_delay: hour.clone(), factor: None, max_delay: hour };
    declare(&client, "charge", json!({ "executor": "remote" })).await;
    let mut request =
        Invoke { key: Some("k".to_owned()), ..Invoke::new("charge", json_of(&json!({ "euro": 7 }))) };
    request.retry = Some(retry);
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;

    let waits = until(&client, &id, |call| call.state == CallState::WaitsForWorker).await;
    assert_eq!(waits.waits_for, "a worker: none has announced `charge`");
    assert_eq!((waits.function.as_str(), waits.input.text()), ("charge", r#"{"euro":7}"#));
    assert_eq!((waits.attempt, waits.max_attempts, waits.deliveries), (1, 3, 0));
    assert_eq!((waits.made_by.kind, waits.made_by.id), (Kind::Call, None));

    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("paint-1", ["charge"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    let held = until(&client, &id, |call| call.state == CallState::Held).await;
    assert_eq!(held.worker.as_deref(), Some("paint-1"));
    assert_eq!(held.waits_for, "worker `paint-1`, which holds it");
    assert_eq!(held.deliveries, 1);
    assert!(held.lease_expires_at.is_some() && held.heartbeat_at.is_some());
    let beat = Heartbeat { lease: item.lease.clone(), extend_ms: 60_000, progress: Some(json_of("half")) };
    let lease = client.heartbeat_work(&beat).await.unwrap().lease.unwrap();
    let beaten = until(&client, &id, |call| call.progress.is_some()).await;
    assert_eq!(beaten.progress.unwrap().text(), r#""half""#);
    assert!(beaten.progress_at.is_some() && beaten.lease_expires_at > held.lease_expires_at);

    let failure = FailWork {
        retry_after_ms: None,
        lease,
        message: "card declined".to_owned(),
        category: FailureCategory::Application,
        code: Some("declined".to_owned()),
        retryable: None,
        details: None,
    };
    client.fail_work(&failure).await.unwrap();
    let retries = until(&client, &id, |call| call.state == CallState::WaitsForRetry).await;
    assert_eq!((retries.attempt, retries.failed_attempts.len()), (2, 1));
    let failed = &retries.failed_attempts[0];
    assert_eq!((failed.attempt, failed.failure.message.as_str()), (1, "card declined"));
    assert_eq!(failed.failure.code.as_deref(), Some("declined"));
    assert_eq!((retries.retry_at, retries.worker), (failed.retry_at, None));
    assert_eq!(
        (retries.waits_for.as_str(), retries.waits_until),
        ("a retry: attempt 1 failed", failed.retry_at)
    );

    client.cancel(&id, None).await.unwrap();
    let ended = until(&client, &id, |call| call.state == CallState::Ended).await;
    assert_eq!(ended.failed_attempts.len(), 1, "what failed stays known");
    assert_eq!(ended.waits_for, "nothing: it has ended (cancelled)");
}

#[tokio::test]
async fn a_call_with_a_tag_says_which_worker_it_lacks() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, "render", json!({ "executor": "remote", "tag": "gpu" })).await;
    let id = call(&client, "render", "k").await;
    // A worker of the function without its tag.
    client.fetch_work(&FetchWork::new("w", ["render"])).await.unwrap();
    let waits = until(&client, &id, |call| call.state == CallState::WaitsForWorker).await;
    assert_eq!(waits.waits_for, "a worker: none has announced `render` with the tag `gpu`");
    assert_eq!(waits.tag.as_deref(), Some("gpu"));
    let fetch =
        FetchWork { tags: vec!["gpu".to_owned()], wait_ms: 60_000, ..FetchWork::new("g", ["render"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    client.complete_work(&CompleteWork { lease: item.lease, result: json_of(&1) }).await.unwrap();
    client.instance(&id, PATIENCE).await.unwrap();
    let second = call(&client, "render", "k2").await;
    let waits = until(&client, &second, |call| call.state == CallState::WaitsForWorker).await;
    assert_eq!(
        waits.waits_for,
        "a worker: 1 has announced `render` with the tag `gpu` and has not fetched it"
    );
}

#[tokio::test]
async fn a_paused_call_and_one_on_a_node_say_so() {
    let stand = Stand::open().await;
    let client = stand.client();
    let request =
        Invoke { key: Some("s".to_owned()), ..Invoke::new("slow", json_of(&json!({ "seconds": 600 }))) };
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;
    let runs = until(&client, &id, |call| call.state == CallState::Held).await;
    assert_eq!(runs.waits_for, "its function, which runs on a node");
    client.cancel(&id, None).await.unwrap();
    declare(&client, "render", json!({ "executor": "remote" })).await;
    let waiting = call(&client, "render", "k").await;
    until(&client, &waiting, |call| call.state == CallState::WaitsForWorker).await;
    client.pause(&waiting, Some("wait for the fix".to_owned())).await.unwrap();
    let paused = until(&client, &waiting, |call| call.state == CallState::Paused).await;
    assert_eq!(paused.waits_for, "a resume: it is paused (wait for the fix)");
}

#[tokio::test]
async fn only_the_last_failed_attempts_are_shown() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client, "render", json!({ "executor": "remote" })).await;
    let mut request = Invoke { key: Some("k".to_owned()), ..Invoke::new("render", json_of(&1)) };
    let delay = Some("1ms".to_owned());
    request.retry =
        Some(RetryPolicy { attempts: 60, initial_delay: delay.clone(), factor: None, max_delay: delay });
    let id = client.invoke(&request, Duration::ZERO).await.unwrap().id;
    for attempt in 1..=50 {
        let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
        let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
        assert_eq!(item.attempt, attempt);
        let failure = FailWork {
            retry_after_ms: None,
            lease: item.lease,
            message: format!("no {attempt}"),
            category: FailureCategory::Application,
            code: None,
            retryable: None,
            details: None,
        };
        client.fail_work(&failure).await.unwrap();
    }
    let call = until(&client, &id, |call| call.attempt == 51).await;
    let shown: Vec<u32> = call.failed_attempts.iter().map(|failed| failed.attempt).collect();
    assert_eq!(shown, (31..=50).collect::<Vec<u32>>());
    assert_eq!(call.failed_attempts[19].failure.message, "no 50");
}

#[tokio::test]
async fn a_restarted_call_keeps_its_function() {
    let stand = Stand::open().await;
    let client = stand.client();
    let request = Invoke { key: Some("k".to_owned()), ..Invoke::new("echo", json_of(&1)) };
    let id = client.invoke(&request, PATIENCE).await.unwrap().id;
    client.restart(&id, &Default::default()).await.unwrap();
    let again = client.instance(&id, PATIENCE).await.unwrap();
    assert_eq!((again.execution, again.function.as_deref()), (2, Some("echo")));
    let copy = segno_api::instance::Restart { new_id: Some("copy".to_owned()), ..Default::default() };
    client.restart(&id, &copy).await.unwrap();
    let copied = client.instance("copy", PATIENCE).await.unwrap();
    assert_eq!((copied.function.as_deref(), copied.kind), (Some("echo"), Some(Kind::Call)));
    assert_eq!(calls_of(&client, "echo").await.len(), 2);
    let executions = client.executions(&id, None).await.unwrap();
    let numbers: Vec<u64> = executions.executions.iter().map(|execution| execution.execution).collect();
    assert_eq!((numbers, executions.next_cursor), (vec![2, 1], None));
    let request = segno_api::client::PageRequest { limit: Some(1), cursor: None };
    let first = client.executions(&id, request).await.unwrap();
    assert_eq!((first.executions[0].execution, first.next_cursor.as_deref()), (2, Some("2")));
    let second = client.executions(&id, first.next_cursor.as_deref()).await.unwrap();
    assert_eq!((second.executions[0].execution, second.next_cursor), (1, None));
}
