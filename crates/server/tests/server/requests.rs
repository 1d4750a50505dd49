//! Requests that are wrong, large, slow or strange.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use segno_api::Problem;
use segno_server::settings::Authentication;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::runbooks::MOVE;
use crate::stand::{Stand, creates_on_condition, look_again, settings};

async fn send(
    stand: &Stand,
    method: Method,
    path: &str,
    content_type: Option<&str>,
    body: &str,
) -> (StatusCode, Problem) {
    let is_new = creates_on_condition(&method, path);
    let mut call = crate::stand::http().request(method, stand.url(path)).body(body.to_owned());
    if is_new {
        call = call.header("if-none-match", "*");
    }
    if let Some(content_type) = content_type {
        call = call.header("content-type", content_type);
    }
    let answer = call.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(answer.headers().contains_key("x-request-id"));
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let stand = Stand::open().await;
    let json = Some("application/json");
    for (path, content_type, body, status, code, told) in [
        ("/v1/instances", json, "{", 400, "invalid-request", "EOF"),
        ("/v1/instances", json, "[]", 400, "invalid-request", "array"),
        ("/v1/instances", json, "{}", 400, "invalid-request", "orchestration"),
        ("/v1/instances", json, r#"{"orchestration":1}"#, 400, "invalid-request", "orchestration"),
        (
            "/v1/instances",
            json,
            r#"{"orchestration":"greet","colour":"red"}"#,
            400,
            "invalid-request",
            "colour",
        ),
        ("/v1/instances", json, r#"{"orchestration":"greet"} x"#, 400, "invalid-request", "after its end"),
        (
            "/v1/instances",
            json,
            r#"{"orchestration":"greet","id":" x"}"#,
            400,
            "invalid-request",
            "white space",
        ),
        ("/v1/instances", json, r#"{"orchestration":"greet","id":""}"#, 400, "invalid-request", "empty"),
        (
            "/v1/instances",
            json,
            r#"{"orchestration":"greet","id":"a\u0000"}"#,
            400,
            "invalid-instance-id",
            "control",
        ),
        (
            "/v1/instances",
            json,
            r#"{"orchestration":"greet","version":"one"}"#,
            400,
            "invalid-version",
            "one",
        ),
        (
            "/v1/instances",
            json,
            r#"{"orchestration":"greet","start_at":"soon"}"#,
            400,
            "invalid-request",
            "start_at",
        ),
        (
            "/v1/instances",
            Some("text/plain"),
            r#"{"orchestration":"greet"}"#,
            415,
            "unsupported-media-type",
            "json",
        ),
        ("/v1/instances", None, r#"{"orchestration":"greet"}"#, 415, "unsupported-media-type", "json"),
        (
            "/v1/instances?wait_ms=60001",
            json,
            r#"{"orchestration":"greet"}"#,
            400,
            "invalid-request",
            "wait_ms",
        ),
        ("/v1/instances?wiat_ms=1", json, r#"{"orchestration":"greet"}"#, 400, "invalid-request", "wiat_ms"),
        (
            "/v1/instances?namespace=A",
            json,
            r#"{"orchestration":"greet"}"#,
            400,
            "invalid-request",
            "namespace",
        ),
        (
            "/v1/instances?tenant=a&tenant=b",
            json,
            r#"{"orchestration":"greet"}"#,
            400,
            "invalid-request",
            "twice",
        ),
        ("/v1/instances/nobody/raise", json, r#"{"name":"x"}"#, 404, "not-found", "nobody"),
        ("/v1/nothing", json, "{}", 404, "not-found", "/v1/nothing"),
        ("/v1/system", json, "{}", 405, "method-not-allowed", "POST"),
    ] {
        let (got, problem) = send(&stand, Method::POST, path, content_type, body).await;
        assert_eq!((got.as_u16(), problem.code.as_str()), (status, code), "{path} {body}: {problem:?}");
        assert_eq!(problem.page, format!("https://segno.dev/errors/{code}"));
        assert!(problem.detail.contains(told), "{path} {body}: {}", problem.detail);
    }
}

#[tokio::test]
async fn large_bodies_are_refused_and_nothing_is_stored() {
    let mut settings = settings(Authentication::None);
    settings.server.max_body_bytes = 1_000;
    let stand = Stand::with(settings).await;
    let body = format!(r#"{{"orchestration":"greet","id":"big","input":"{}"}}"#, "x".repeat(2_000));
    for path in ["/v1/instances", "/v1/instances?tenant=t"] {
        let (status, problem) = send(&stand, Method::POST, path, Some("application/json"), &body).await;
        assert_eq!((status.as_u16(), problem.code.as_str()), (413, "body-too-large"));
    }
    let gone = stand.client().instance("big", Duration::ZERO).await.unwrap_err();
    assert_eq!(gone.status(), Some(404));
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_cut_off() {
    let mut settings = settings(Authentication::None);
    settings.server.header_timeout_seconds = 1;
    let stand = Stand::with(settings).await;
    let mut connection = TcpStream::connect(stand.server.address()).await.unwrap();
    connection.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    assert_eq!(
        crate::stand::http().get(stand.url("/healthz")).send().await.unwrap().status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn heads_beyond_the_limit_are_refused() {
    let stand = Stand::open().await;
    let call = crate::stand::http().get(stand.url("/healthz")).header("x-large", "x".repeat(100_000));
    let status = call.send().await.unwrap().status();
    assert_eq!(status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn the_callers_request_id_comes_back_if_it_is_sound() {
    let stand = Stand::open().await;
    let send = async |id: &str| {
        let call = crate::stand::http().get(stand.url("/healthz")).header("x-request-id", id);
        call.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(send("abc-1").await, "abc-1");
    assert_ne!(send(&"x".repeat(200)).await.len(), 200);
}

#[tokio::test]
async fn the_document_and_its_page_are_served_from_the_binary() {
    let stand = Stand::open().await;
    let document: serde_json::Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(document["components"]["schemas"]["Problem"].is_object());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_public = ["/healthz", "/readyz"].contains(&path.as_str());
            let refused =
                &operation["responses"]["4XX"]["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(refused == "#/components/schemas/Problem", !is_public, "{method} {path}");
        }
    }
    let page = crate::stand::http().get(stand.url("/docs/")).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'self'"));
    assert!(!page.text().await.unwrap().contains("https://"));
}

#[tokio::test]
async fn readiness_is_over_when_the_server_stops_and_metrics_need_a_recorder() {
    let stand = Stand::open().await;
    assert_eq!(crate::stand::http().get(stand.url("/readyz")).send().await.unwrap().status(), StatusCode::OK);
    let metrics = crate::stand::http().get(stand.url("/metrics")).send().await.unwrap();
    assert_eq!(metrics.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_filter_of_a_listing_is_repeated_or_has_commas_and_mistakes_match_nothing() {
    let stand = Stand::with(settings(Authentication::None)).await;
    let get = async |query: &str| {
        let url = stand.url(&format!("/v1/instances?{query}"));
        crate::stand::http().get(url).send().await.unwrap().status().as_u16()
    };
    for (query, status) in [
        ("status=failed", 200),
        ("status=failed&status=cancelled", 200),
        ("status=failed,cancelled&status=running", 200),
        ("label=a%3Db&label=c%3D1%2C2", 200),
        ("status=failed,", 400),
        ("status=failed&status=nothing", 400),
        ("label=a%3Db%1Fc%3Dd", 400),
        ("prefix=a&prefix=b", 400),
        ("statsu=failed", 400),
    ] {
        assert_eq!(get(query).await, status, "{query}");
    }
}

#[tokio::test]
async fn deleting_what_is_not_there_is_not_found_everywhere() {
    let stand = Stand::with(settings(Authentication::Keys)).await;
    let http = crate::stand::http();
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut found = 0;
    for (path, _) in
        document["paths"].as_object().unwrap().iter().filter(|(_, item)| !item["delete"].is_null())
    {
        let named =
            path.replace("{namespace}", "default").replace("{route}", "nothing").replace("{name}", "nothing");
        let id = if path.starts_with("/v1/batches") { "77" } else { "0198c0de-0000-7000-8000-000000000000" };
        let named = named.replace("{id}", id);
        let named =
            named.replace("{topic}", "jobs").replace("{subscription}", "nothing").replace("{version}", "7");
        let answer = http.delete(stand.url(&named)).bearer_auth(&stand.admin_key).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 404, "DELETE {named}: {}", answer.text().await.unwrap());
        found += 1;
    }
    assert!(found >= 9, "{found} routes");
}

#[tokio::test]
async fn control_characters_in_texts_for_people_are_refused_at_every_door() {
    let mut settings = settings(Authentication::None);
    settings.pools = serde_json::from_value(json!({ "Cloud": { "functions": ["*"] } })).unwrap();
    let stand = Stand::with(settings).await;
    let text = "until \u{1b}[31mnoon";
    let every = |more: Value| {
        let mut fields = json!({ "every": "1h", "function": "greet", "input": "Ada" });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let fields = serde_json::from_value(every(json!({ "description": "two\n\tlines" }))).unwrap();
    let id = stand.client().create_recurring(&fields).await.unwrap().recurring_id;
    for (method, path, body, field) in [
        (Method::PUT, "/v1/functions/f", json!({ "executor": "remote", "description": text }), "description"),
        (
            Method::PUT,
            "/v1/hooks/default/h",
            json!({ "store_only": true, "verification": "none", "description": text }),
            "description",
        ),
        (Method::POST, "/v1/recurring", every(json!({ "description": text })), "description"),
        (Method::POST, "/v1/recurring/preview", every(json!({ "description": text })), "description"),
        (Method::PUT, &format!("/v1/recurring/{id}"), json!({ "description": text }), "description"),
        (Method::POST, &format!("/v1/recurring/{id}/pause"), json!({ "note": text }), "pause_note"),
        (Method::POST, "/v1/pools/Cloud/pause", json!({ "reason": text }), "reason"),
        (Method::POST, "/v1/instances/a/cancel", json!({ "reason": text }), "reason"),
        (Method::POST, "/v1/instances/a/pause", json!({ "reason": text }), "reason"),
        (
            Method::POST,
            "/v1/instances/bulk",
            json!({ "action": "cancel", "filter": { "prefix": "" }, "reason": text }),
            "reason",
        ),
        (
            Method::POST,
            "/v1/batches/1/requests",
            json!({ "action": "pause_batch", "reason": text }),
            "reason",
        ),
    ] {
        let (status, problem) = send(&stand, method, path, Some("application/json"), &body.to_string()).await;
        assert_eq!(status, 400, "{path}: {}", problem.detail);
        assert!(problem.detail.contains(field), "{path}: {}", problem.detail);
        assert!(
            problem.detail.contains(r"control character '\u{1b}' (character 7)"),
            "{path}: {}",
            problem.detail
        );
    }
}

#[tokio::test]
async fn the_location_of_what_a_tenant_made_leads_to_it_and_not_to_the_default_tenant() {
    let stand = Stand::with_keys().await;
    let everywhere = crate::stand::http();
    let made = [
        ("instances", json!({ "orchestration": "greet", "input": { "name": "Ada" } })),
        ("actions", json!({ "function": "echo", "at": "2999-01-01T00:00:00Z" })),
        ("recurring", json!({ "function": "echo", "cron_expr": "0 0 1 1 *" })),
        ("runbooks", json!({ "yaml_content": MOVE })),
        ("batches", json!({ "runbook": "move", "members": [{ "Key": "a" }] })),
        ("dags", json!({ "document": "name: daily\ntasks: [{key: one, function: echo, input: 1}]\n" })),
        ("runs", json!({ "dag": "daily" })),
    ];
    for (kind, body) in made {
        let path = stand.url(&format!("/v1/{kind}?namespace=shop&tenant=eu"));
        let answer = everywhere.post(path).bearer_auth(&stand.admin_key).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED, "{kind}");
        let location = answer.headers()["location"].to_str().unwrap().to_owned();
        let own: Value = answer.json().await.unwrap();
        let id = ["id", "recurring_id", "name"].into_iter().find_map(|name| own.get(name)).unwrap();
        let found = loop {
            let call = everywhere.get(stand.url(&location)).bearer_auth(&stand.admin_key);
            let found = call.send().await.unwrap();
            // A run is stored before the tables show it.
            if found.status() != StatusCode::SERVICE_UNAVAILABLE {
                break found;
            }
            look_again().await;
        };
        assert_eq!(found.status(), StatusCode::OK, "{location}");
        let found = found.text().await.unwrap();
        assert!(found.contains(&id.to_string()), "{location}: {found}");
    }
}
