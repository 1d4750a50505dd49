//! Calls of functions over HTTP.

use std::time::Duration;

use segno_api::client::Expected;
use segno_api::instance::Status;
use segno_api::invocation::{Invoke, RetryPolicy};
use segno_api::{ClientError, Json};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet, json_of};

fn echo(key: Option<&str>, input: Value) -> Invoke {
    Invoke { key: key.map(str::to_owned), ..Invoke::new("echo", json_of(&input)) }
}

#[tokio::test]
async fn a_call_gives_its_result_and_is_an_instance() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut request = echo(Some("order-7"), json!({ "a": 1 }));
    request.labels.insert("team".to_owned(), "eu".to_owned());
    let called = client.invoke(&request, PATIENCE).await.unwrap();
    assert!(called.created);
    assert_eq!(called.instance.unwrap().result.unwrap().text(), r#"{"a":1}"#);
    let instance = client.instance(&called.id, Duration::ZERO).await.unwrap();
    assert_eq!((instance.orchestration.as_deref(), instance.labels["team"].as_str()), (Some("invoke"), "eu"));
}

#[tokio::test]
async fn the_same_key_is_the_same_call_and_no_other() {
    let stand = Stand::open().await;
    let client = stand.client();
    let first = client.invoke(&echo(Some("k"), json!({ "a": 1, "b": 2 })), PATIENCE).await.unwrap();
    let again = client.invoke(&echo(Some("k"), json!({ "b": 2, "a": 1 })), PATIENCE).await.unwrap();
    assert!(first.created && !again.created);
    assert_eq!(first.id, again.id);
    for other in [
        echo(Some("k"), json!({ "a": 2 })),
        Invoke { function: "slow".to_owned(), ..echo(Some("k"), json!({ "a": 1, "b": 2 })) },
    ] {
        let refused = client.invoke(&other, PATIENCE).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("conflict")), "{other:?}");
    }
    // No caller can take the id of a call for something else.
    let taken = client.start(&greet("invoke:taken", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap_err();
    assert_eq!((taken.status(), taken.code()), (Some(400), Some("reserved-id")));
    let (one, two) = (echo(None, Value::Null), echo(None, Value::Null));
    let one = client.invoke(&one, Duration::ZERO).await.unwrap();
    assert_ne!(one.id, client.invoke(&two, Duration::ZERO).await.unwrap().id);
}

#[tokio::test]
async fn a_key_is_compared_also_before_the_first_call_has_begun() {
    let stand = Stand::open().await;
    let client = stand.client();
    for number in 0..20 {
        let key = format!("k-{number}");
        client.invoke(&echo(Some(&key), json!(1)), Duration::ZERO).await.unwrap();
        let refused = client.invoke(&echo(Some(&key), json!(2)), Duration::ZERO).await.unwrap_err();
        assert_eq!(refused.status(), Some(409), "{refused}");
        assert!(!client.invoke(&echo(Some(&key), json!(1)), PATIENCE).await.unwrap().created);
    }
}

#[tokio::test]
async fn a_repeated_request_is_one_call() {
    let stand = Stand::open().await;
    let http = crate::stand::http();
    let send = || async {
        let call = http.post(stand.url("/v1/invocations")).header("idempotency-key", "once");
        let response = call.json(&echo(None, json!(1))).send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        (status, body["id"].as_str().unwrap().to_owned())
    };
    let first = send().await;
    assert_eq!(first.0, 201);
    assert_eq!(send().await, first);
}

#[tokio::test]
async fn what_cannot_be_called_is_told_before_anything_is_stored() {
    let stand = Stand::open().await;
    let client = stand.client();
    let declaration = json!({ "executor": "remote", "input_schema": {
        "type": "object", "required": ["path"], "properties": { "size": { "type": "integer" } },
    } });
    client.put_function("render", &json_of(&declaration), Expected::Absent).await.unwrap();
    let mut request = Invoke::new("render", json_of(&json!({ "size": "big" })));
    let ClientError::Problem(problem) = client.invoke(&request, Duration::ZERO).await.unwrap_err() else {
        panic!()
    };
    assert_eq!((problem.status, problem.code.as_str()), (400, "invalid-input"));
    let fields: Vec<&str> = problem.errors.iter().map(|error| error.field.as_str()).collect();
    assert!(fields.contains(&"input.size") && fields.len() == 2, "{:?}", problem.errors);

    request.input = json_of(&json!({ "path": "x" }));
    let with = |change: fn(&mut Invoke)| {
        let mut request = request.clone();
        change(&mut request);
        request
    };
    for (wrong, status, code, told) in [
        (with(|r| r.function = "nobody".to_owned()), 404, "unknown-function", "nobody"),
        (with(|r| r.function = "A B".to_owned()), 400, "invalid-function-name", "A B"),
        (with(|r| r.tag = Some("A B".to_owned())), 400, "invalid-name", "A B"),
        (with(|r| r.timeout = Some("soon".to_owned())), 400, "invalid-request", "timeout"),
        (with(|r| r.deadline = Some("0s".to_owned())), 400, "invalid-invocation", "deadline"),
        (
            with(|r| {
                r.labels.insert(String::new(), String::new());
            }),
            400,
            "invalid-label",
            "label",
        ),
        (
            with(|r| {
                r.retry =
                    Some(RetryPolicy { attempts: 0, initial_delay: None, factor: None, max_delay: None })
            }),
            400,
            "invalid-invocation",
            "retry.attempts",
        ),
    ] {
        let refused = client.invoke(&wrong, Duration::ZERO).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(status), Some(code)), "{wrong:?}: {refused}");
        assert!(refused.to_string().contains(told), "{wrong:?}: {refused}");
    }
    assert!(client.instances(&Default::default()).await.unwrap().instances.is_empty());
}

#[tokio::test]
async fn a_call_that_takes_too_long_fails_and_a_cancelled_one_stops() {
    let stand = Stand::open().await;
    let client = stand.client();
    let slow = Invoke {
        timeout: Some("20ms".to_owned()),
        ..Invoke::new("slow", json_of(&json!({ "seconds": 3600 })))
    };
    let ended = client.invoke(&slow, PATIENCE).await.unwrap().instance.unwrap();
    assert_eq!(ended.failure.unwrap().code.as_deref(), Some("attempt-timeout"));
    let slow = Invoke::new("slow", json_of(&json!({ "seconds": 3600 })));
    let called = client.invoke(&slow, Duration::ZERO).await.unwrap();
    client.cancel(&called.id, None).await.unwrap();
    assert_eq!(client.instance(&called.id, PATIENCE).await.unwrap().status, Status::Cancelled);
    let ended = client.invoke(&Invoke::new("slow", Json::null()), PATIENCE).await.unwrap().instance.unwrap();
    assert_eq!(ended.status, Status::Failed);
}
