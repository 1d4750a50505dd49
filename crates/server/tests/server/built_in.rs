//! Orchestrations that only Segno itself starts.

use std::time::Duration;

use segno::clock::SystemClock;
use segno_api::client::Expected;
use segno_api::instance::{Kind, Restart, Send, StartInstance, Status};
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::work::{FailWork, FailureCategory, FetchWork};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet, json_of};

/// An input of `invoke` as somebody would write it by hand.
fn written(namespace: &str, tenant: &str, function: &str) -> Value {
    json!({
        "namespace": namespace, "tenant": tenant, "function": function, "input": { "stolen": true },
        "route": { "local": {} }, "retry": { "max": 1, "first": 0, "factor": 1.0, "cap": 0, "jitter": 0.0 },
    })
}

fn start_of(input: &Value, id: &str) -> StartInstance {
    StartInstance { orchestration: "invoke".to_owned(), ..greet(id, &input.to_string()) }
}

#[tokio::test]
async fn no_caller_starts_a_built_in_orchestration() {
    let stand = Stand::with_keys().await;
    let lab = stand.client_with(Role::Operator, "lab", "us").await.scope("lab", "us");
    for (id, version) in [("x", None), ("invoke:x", None), ("y", Some("1.0.0"))] {
        for input in [written("shop", "eu", "echo"), written("lab", "us", "echo")] {
            let start = StartInstance { version: version.map(str::to_owned), ..start_of(&input, id) };
            let refused = lab.start(&start, None, Duration::ZERO).await.unwrap_err();
            assert_eq!((refused.status(), refused.code()), (Some(400), Some("built-in-orchestration")));
        }
    }
    assert!(lab.instances(&Default::default()).await.unwrap().instances.is_empty());
}

#[tokio::test]
async fn a_call_that_was_written_by_hand_reaches_no_other_tenant() {
    let stand = Stand::with_keys().await;
    let shop = stand.client_with(Role::Admin, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "us").await.scope("lab", "us");
    let remote = json_of(&json!({ "executor": "remote" }));
    shop.put_function("render", &remote, Expected::Absent).await.unwrap();
    let mut far = written("shop", "eu", "render");
    far["route"] = json!({ "remote": {} });
    // As a program on the same store could, or a server could before it refused.
    let engine = stand.server.client();
    for (id, input) in [("far", far), ("near", written("shop", "eu", "echo"))] {
        let invoke = segno::Orchestration::<Value, Value>::named("invoke");
        engine.start(invoke, input).id(format!("lab/us/{id}")).await.unwrap();
        let ended = lab.instance(id, PATIENCE).await.unwrap();
        assert_eq!(ended.status, Status::Failed);
        assert_eq!(ended.failure.unwrap().code.as_deref(), Some("scope-mismatch"));
        // Restarted, it is a call of the caller's own function, or none.
        let restarted =
            lab.restart(id, &Restart { new_id: Some(format!("{id}-2")), ..Restart::default() }).await;
        match id {
            "far" => assert_eq!(restarted.unwrap_err().code(), Some("unknown-function")),
            _ => {
                let again = lab.instance(&restarted.unwrap().id, PATIENCE).await.unwrap();
                assert_eq!((again.status, again.namespace.as_str()), (Status::Completed, "lab"));
            }
        }
    }
    let fetch = FetchWork { wait_ms: 0, ..FetchWork::new("w", ["render"]) };
    assert!(shop.fetch_work(&fetch).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_restarted_call_is_checked_as_a_new_one() {
    let stand = Stand::open().await;
    let client = stand.client();
    let loose = json_of(&json!({ "executor": "remote" }));
    client.put_function("render", &loose, Expected::Absent).await.unwrap();
    let called = client.invoke(&Invoke::new("render", json_of(&json!("x"))), Duration::ZERO).await.unwrap();
    client.cancel(&called.id, None).await.unwrap();
    client.instance(&called.id, PATIENCE).await.unwrap();
    let strict = json!({ "executor": "remote", "deadline": "7s", "input_schema": { "type": "integer" } });
    let version = client.function("render").await.unwrap().version.unwrap();
    client.put_function("render", &json_of(&strict), Expected::Version(version)).await.unwrap();
    let refused = client.restart(&called.id, &Restart::default()).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-input")));
    assert_eq!(client.instance(&called.id, Duration::ZERO).await.unwrap().status, Status::Cancelled);
    client.delete_function("render", None).await.unwrap();
    let refused = client.restart(&called.id, &Restart::default()).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(404), Some("unknown-function")));
    client
        .put_function(
            "render",
            &json_of(&json!({ "executor": "remote", "deadline": "7s" })),
            Expected::Absent,
        )
        .await
        .unwrap();
    let again = client.restart(&called.id, &Restart::default()).await.unwrap();
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    assert_eq!((item.instance, item.input.text()), (again.id, r#""x""#));
    assert!(item.deadline.is_some(), "the limits are those of the declaration as it is now");
}

#[tokio::test]
async fn a_call_takes_no_messages_whatever_its_id_is() {
    let stand = Stand::open().await;
    let client = stand.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("render", &remote, Expected::Absent).await.unwrap();
    let id = client.invoke(&Invoke::new("render", json_of(&1)), Duration::ZERO).await.unwrap().id;
    let copy = Restart { new_id: Some("mine".to_owned()), ..Restart::default() };
    let restarted = async {
        loop {
            match client.restart(&id, &copy).await {
                Ok(copy) => return copy.id,
                // The start is stored; its first turn may not be.
                Err(error) => assert_eq!(error.code(), Some("instance-running"), "{error}"),
            }
            tokio::task::yield_now().await;
        }
    };
    let copy = segno::clock::timeout(&SystemClock, PATIENCE, restarted).await.expect("it begins");
    let message = Send { name: "x".to_owned(), data: json_of(&1), id: None };
    for id in [id, copy] {
        for refused in
            [client.raise(&id, &message).await.unwrap_err(), client.enqueue(&id, &message).await.unwrap_err()]
        {
            assert_eq!((refused.status(), refused.code()), (Some(400), Some("built-in-orchestration")));
            assert!(refused.to_string().contains("takes no messages"), "{refused}");
        }
    }
}

#[tokio::test]
async fn messages_of_a_program_on_the_same_store_do_not_hide_the_attempts_of_a_call() {
    let stand = Stand::open().await;
    let client = stand.client();
    let often = json!({ "executor": "remote", "retry": { "attempts": 50, "initial_delay": "1ms", "max_delay": "1ms" } });
    client.put_function("render", &json_of(&often), Expected::Absent).await.unwrap();
    for (failures, messages) in [(3, 41), (30, 50)] {
        let id = client.invoke(&Invoke::new("render", json_of(&1)), Duration::ZERO).await.unwrap().id;
        for _ in 0..failures {
            let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
            let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
            let failure = FailWork {
                retry_after_ms: None,
                lease: item.lease,
                message: "out of paint".to_owned(),
                category: FailureCategory::Application,
                code: None,
                retryable: None,
                details: None,
            };
            client.fail_work(&failure).await.unwrap();
        }
        let (engine, stored) = (stand.server.client(), format!("default/default/{id}"));
        for number in 0..messages {
            let signal = segno::Signal::<u64>::named("x");
            engine.signal(stored.as_str(), signal, number).await.unwrap();
        }
        let recorded = async {
            while engine.execution(&stored, 1).await.unwrap().event_count < failures + messages {
                tokio::task::yield_now().await;
            }
        };
        segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, recorded).await.unwrap();
        let call = client.instance(&id, Duration::ZERO).await.unwrap().call.unwrap();
        assert_eq!(u64::from(call.attempt), failures + 1);
        assert_eq!(u64::from(call.failed_attempts.last().unwrap().attempt), failures);
        client.cancel(&id, None).await.unwrap();
        client.instance(&id, PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_copy_of_a_scheduled_call_is_a_call_of_the_caller() {
    let stand = Stand::open().await;
    let client = stand.client();
    let recurring = json!({ "every": "1h", "function": "echo", "input": 3, "name": "hourly" });
    client.create_recurring(&serde_json::from_value(recurring).unwrap()).await.unwrap();
    let run = client.run_recurring("hourly", &Default::default()).await.unwrap();
    let original = client.instance(run.instance.as_ref().unwrap(), PATIENCE).await.unwrap();
    assert_eq!(original.kind, Some(Kind::Schedule));
    let copy = Restart { new_id: Some("copy".to_owned()), ..Restart::default() };
    let copy = client.restart(&original.id, &copy).await.unwrap().id;
    let copy = client.instance(&copy, PATIENCE).await.unwrap();
    assert_eq!((copy.kind, copy.shown_name()), (Some(Kind::Call), Some("echo")));
    // One that is begun again under its own id is what it was.
    client.restart(&original.id, &Restart::default()).await.unwrap();
    let again = client.instance(&original.id, PATIENCE).await.unwrap();
    assert_eq!((again.kind, again.status), (Some(Kind::Schedule), Status::Completed));
}
