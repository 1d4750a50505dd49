//! Functions over HTTP.

use std::time::Duration;

use reqwest::StatusCode;
use segno_api::Json;
use segno_api::client::{Expected, PageRequest};
use segno_api::function::{FunctionLogList, FunctionOrigin};
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_server::settings::Authentication;
use serde_json::json;

use crate::stand::{PATIENCE, Stand, json_of, settings};

#[tokio::test]
async fn a_function_is_stored_read_replaced_and_removed_by_version() {
    let stand = Stand::open().await;
    let client = stand.client();
    let remote = json_of(&json!({ "executor": "remote", "timeout": "1m" }));
    let made = client.put_function("render", &remote, Expected::Absent).await.unwrap();
    assert_eq!(made.origin, FunctionOrigin::Stored);
    let first = made.version.unwrap();
    let again = client.put_function("render", &remote, Expected::Absent).await.unwrap_err();
    assert_eq!((again.status(), again.code()), (Some(412), Some("precondition-failed")));

    let changed = json_of(&json!({ "executor": "remote", "timeout": "2m" }));
    let second =
        client.put_function("render", &changed, Expected::Version(first)).await.unwrap().version.unwrap();
    assert_ne!(first, second);
    let late = client.put_function("render", &remote, Expected::Version(first)).await.unwrap_err();
    assert_eq!(late.status(), Some(412));
    assert_eq!(client.function("render").await.unwrap().declaration, changed);

    let response = crate::stand::http().get(stand.url("/v1/functions/render")).send().await.unwrap();
    assert_eq!(response.headers()["etag"], format!("\"{second}\""));
    let unconditional =
        crate::stand::http().put(stand.url("/v1/functions/render")).json(&remote).send().await.unwrap();
    assert_eq!(unconditional.status(), StatusCode::PRECONDITION_FAILED);

    assert_eq!(client.delete_function("render", Some(first)).await.unwrap_err().status(), Some(412));
    client.delete_function("render", Some(second)).await.unwrap();
    let gone = client.function("render").await.unwrap_err();
    assert_eq!((gone.status(), gone.code()), (Some(404), Some("unknown-function")));
    assert_eq!(client.delete_function("render", None).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn configured_functions_are_listed_with_stored_ones_and_cannot_be_changed() {
    let mut settings = settings(Authentication::None);
    let declaration =
        json!({ "executor": "process", "command": ["true"], "environment": { "KEY": { "env": "SECRET" } } });
    settings.functions.insert("tool".parse().unwrap(), serde_json::from_value(declaration).unwrap());
    let stand = Stand::with(settings).await;
    let client = stand.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("far", &remote, Expected::Absent).await.unwrap();
    let listed = client.functions(None).await.unwrap().functions;
    let names: Vec<_> =
        listed.iter().map(|function| (function.name.as_str(), function.version.is_some())).collect();
    assert_eq!(names, [("echo", false), ("far", true), ("greet", false), ("slow", false), ("tool", false)]);
    assert!(listed[4].declaration.text().contains(r#"{"env":"SECRET"}"#), "{:?}", listed[4]);
    for refused in [
        client.put_function("tool", &remote, Expected::Absent).await.unwrap_err(),
        client.put_function("tool", &remote, Expected::Version(1)).await.unwrap_err(),
        client.delete_function("tool", None).await.unwrap_err(),
    ] {
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("function-exists")), "{refused}");
    }
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let url = stand.url("/v1/functions");
        let mut call = crate::stand::http().get(url).query(&[("limit", "3")]);
        if let Some(cursor) = &cursor {
            call = call.query(&[("cursor", cursor)]);
        }
        let page: segno_api::function::FunctionList = call.send().await.unwrap().json().await.unwrap();
        pages.push(page.functions.len());
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [3, 2]);
}

#[tokio::test]
async fn what_a_declaration_may_not_say_is_told_by_field() {
    let stand = Stand::open().await;
    let client = stand.client();
    for (declaration, code, told) in [
        (json!({ "executor": "process", "command": ["id"] }), "function-not-permitted", "executor"),
        (json!({ "executor": "http", "url": "http://10.0.0.1/" }), "invalid-function", "url"),
        (
            json!({ "executor": "http", "url": "https://example.org", "allow_private": true }),
            "function-not-permitted",
            "allow_private",
        ),
        (
            json!({ "executor": "remote", "push": { "url": "https://example.org", "secret": { "env": "HOME" } } }),
            "function-not-permitted",
            "push.secret",
        ),
        (json!({ "executor": "remote", "timout": "1s" }), "invalid-request", "timout"),
        (json!({ "executor": "teleport" }), "invalid-request", "teleport"),
        (json!([]), "invalid-request", "the body is an array"),
    ] {
        let refused = client.put_function("x", &json_of(&declaration), Expected::Absent).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some(code)), "{declaration}: {refused}");
        assert!(refused.to_string().contains(told), "{declaration}: {refused}");
    }
    let name = client
        .put_function("No Slug", &json_of(&json!({ "executor": "remote" })), Expected::Absent)
        .await
        .unwrap_err();
    assert_eq!((name.status(), name.code()), (Some(400), Some("invalid-function-name")));
}

#[tokio::test]
async fn a_tenants_functions_are_its_own() {
    let stand = Stand::with_keys().await;
    let eu = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let us = stand.client_with(Role::Operator, "shop", "us").await.scope("shop", "us");
    eu.put_function("render", &json_of(&json!({ "executor": "remote" })), Expected::Absent).await.unwrap();
    assert_eq!(us.function("render").await.unwrap_err().status(), Some(404));
    let called = us.invoke(&Invoke::new("render", Json::null()), Duration::ZERO).await.unwrap_err();
    assert_eq!((called.status(), called.code()), (Some(404), Some("unknown-function")));
    let strayed = us.scope("shop", "eu").function("render").await.unwrap_err();
    assert_eq!(strayed.status(), Some(403));
    let viewer = stand.client_with(Role::Viewer, "shop", "eu").await.scope("shop", "eu");
    assert_eq!(viewer.function("render").await.unwrap().name, "render");
    assert_eq!(viewer.delete_function("render", None).await.unwrap_err().status(), Some(403));
}

#[tokio::test]
async fn what_a_tool_wrote_is_read_through_its_instance() {
    let mut settings = settings(Authentication::None);
    let declaration = json!({ "executor": "process", "command": ["sh", "-c", "echo working >&2; echo 7"] });
    settings.functions.insert("tool".parse().unwrap(), serde_json::from_value(declaration).unwrap());
    let stand = Stand::with(settings).await;
    let client = stand.client();
    let ended = client.invoke(&Invoke::new("tool", Json::null()), PATIENCE).await.unwrap();
    assert_eq!(ended.instance.unwrap().result.unwrap().text(), "7");
    let logs = client.logs(&ended.id, None).await.unwrap().logs;
    assert_eq!((logs.len(), logs[0].attempt, logs[0].text.as_str()), (1, 1, "working\n"));
    assert_eq!(client.logs("nobody", None).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn logs_of_an_instance_are_read_page_by_page() {
    let mut settings = settings(Authentication::None);
    let declaration = json!({
        "executor": "process",
        "command": ["sh", "-c", "echo attempt $SEGNO_ATTEMPT >&2; test $SEGNO_ATTEMPT = 3 && echo 7"],
        "retry": { "attempts": 3, "initial_delay": "1ms" },
    });
    settings.functions.insert("tool".parse().unwrap(), serde_json::from_value(declaration).unwrap());
    let stand = Stand::with(settings).await;
    let client = stand.client();
    let ended = client.invoke(&Invoke::new("tool", Json::null()), PATIENCE).await.unwrap();
    let page = |cursor: Option<String>| PageRequest { limit: Some(2), cursor };
    let attempts = |list: &FunctionLogList| -> Vec<u32> { list.logs.iter().map(|log| log.attempt).collect() };
    let first = client.logs(&ended.id, page(None)).await.unwrap();
    assert_eq!(attempts(&first), [1, 2]);
    let rest = client.logs(&ended.id, page(first.next_cursor)).await.unwrap();
    assert_eq!((attempts(&rest), rest.next_cursor), (vec![3], None));
    let broken = client.logs(&ended.id, page(Some("nowhere".to_owned()))).await.unwrap_err();
    assert_eq!((broken.status(), broken.code()), (Some(400), Some("invalid-request")));
}
