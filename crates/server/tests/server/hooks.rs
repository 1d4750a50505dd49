//! Webhooks over real sockets: from what a sender posts to what the function returned.

use reqwest::StatusCode;
use segno::clock::{Clock as _, SystemClock};
use segno_api::action::{Action, ActionTrigger};
use segno_api::client::{Expected, ListPayloads};
use segno_api::hook::{HookPayloadDetail, Received};
use segno_api::key::Role;
use segno_api::{Client, ClientError};
use segno_server::settings::Authentication;
use segno_server::{Verification, signed_headers};
use serde_json::{Value, json};

use crate::stand::{Stand, json_of, settings};

/// A server whose routes may read secrets in a directory.
struct World {
    stand: Stand,
    secrets: tempfile::TempDir,
}

impl World {
    async fn new(mode: Authentication, change: impl FnOnce(&mut segno_server::settings::Settings)) -> World {
        let secrets = tempfile::tempdir().unwrap();
        let mut settings = settings(mode);
        settings.stored_functions.secret_directory = Some(secrets.path().to_owned());
        change(&mut settings);
        World { stand: Stand::with(settings).await, secrets }
    }

    /// Writes a secret of the default tenant and says where it is.
    fn secret(&self, name: &str, text: &str) -> Value {
        let directory = self.secrets.path().join("default/default");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(name), text).unwrap();
        json!({ "file": directory.join(name) })
    }

    async fn declare(&self, name: &str, settings: Value) {
        declare(&self.stand.client(), name, settings).await.unwrap();
    }

    /// What a sender gets that posts this.
    async fn post(&self, path: &str, headers: &[(String, String)], body: &[u8]) -> (StatusCode, Value) {
        let mut call = crate::stand::http().post(self.stand.url(path)).body(body.to_vec());
        for (name, value) in headers {
            call = call.header(name, value);
        }
        let answer = call.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    async fn received(&self, path: &str, body: &[u8]) -> Received {
        let (status, answer) = self.post(path, &[], body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        serde_json::from_value(answer).unwrap()
    }

    /// A payload once the last of its actions has ended.
    async fn ended(&self, name: &str, id: &str) -> HookPayloadDetail {
        loop {
            let detail = self.stand.client().hook_payload(name, id).await.unwrap();
            let last = detail.actions.last().map(|action| action.status.as_str());
            if matches!(last, Some("completed" | "failed")) {
                return detail;
            }
            crate::stand::look_again().await;
        }
    }
}

async fn declare(client: &Client, name: &str, settings: Value) -> Result<(), ClientError> {
    let mut declaration = json!({ "function": "echo", "verification": "none" });
    for (name, value) in settings.as_object().unwrap() {
        declaration[name] = value.clone();
    }
    client.put_hook(name, &json_of(&declaration), Expected::Absent).await.map(|_| ())
}

#[tokio::test]
async fn what_a_sender_posts_reaches_the_function_and_can_be_inspected_and_replayed() {
    let world = World::new(Authentication::None, |_| {}).await;
    let client = world.stand.client();
    let input = json!({ "who": "{{payload.name}}", "from": "{{params.from}}" });
    world.declare("greet", json!({ "input": input, "headers": ["user-agent"] })).await;
    let received = world.received("/v1/hooks/default/greet?from=test", br#"{ "name": "Ada" }"#).await;
    assert_eq!(received.outcome, "routed");
    let detail = world.ended("greet", &received.id).await;
    assert_eq!(detail.actions[0].result.as_ref().unwrap().text(), r#"{"from":"test","who":"Ada"}"#);
    assert_eq!(detail.body_base64, "eyAibmFtZSI6ICJBZGEiIH0=");
    assert_eq!(detail.params, [("from".to_owned(), "test".to_owned())].into());
    let instance = detail.actions[0].instance.clone().unwrap();
    assert_eq!(client.instance(&instance, std::time::Duration::ZERO).await.unwrap().id, instance);
    client.patch_hook("greet", &json_of(&json!({ "input": "{{payload}}", "headers": null }))).await.unwrap();
    let replayed = client.replay_hook_payload("greet", &received.id).await.unwrap();
    let detail = world.ended("greet", &received.id).await;
    assert_eq!(detail.actions[1].id, replayed.action);
    assert_eq!(detail.actions[1].result.as_ref().unwrap().text(), r#"{ "name": "Ada" }"#);
    let events = client.hook_events(Some("greet"), None, None).await.unwrap().events;
    let kinds: Vec<&str> = events.iter().map(|event| event.outcome.kind.as_str()).collect();
    assert_eq!(kinds, ["replayed", "routed"]);
    client.delete_hook_payload("greet", &received.id).await.unwrap();
    let gone = client.hook_payload("greet", &received.id).await.unwrap_err();
    assert_eq!(gone.code(), Some("unknown-payload"));
}

#[tokio::test]
async fn a_failing_function_never_loses_the_payload() {
    let world = World::new(Authentication::None, |_| {}).await;
    world.declare("slow", json!({ "function": "slow" })).await;
    let received = world.received("/v1/hooks/default/slow", br#"{"seconds":99999}"#).await;
    let detail = world.ended("slow", &received.id).await;
    assert_eq!(detail.actions[0].status, "failed");
    assert!(detail.actions[0].reason.as_ref().unwrap().contains("too many"), "{detail:?}");
    let received = world.received("/v1/hooks/default/slow", b"\xff\x00 not json").await;
    assert_eq!(received.outcome, "dispatch_error");
    let detail = world.stand.client().hook_payload("slow", &received.id).await.unwrap();
    assert_eq!(detail.body_base64, "/wAgbm90IGpzb24=");
    assert!(detail.payload.outcome.reason.unwrap().contains("not JSON"));
}

#[tokio::test]
async fn a_sender_cannot_bring_the_server_down_by_what_its_input_is_checked_against() {
    let world = World::new(Authentication::None, |_| {}).await;
    let client = world.stand.client();
    let variant = |name: &str| json!({ "properties": { "child": { "$ref": "#" } }, "required": [name] });
    for (function, schema) in [
        ("deep", json!({ "properties": { "child": { "allOf": [{ "$ref": "#" }] } } })),
        ("doubling", json!({ "anyOf": [variant("a"), variant("b")] })),
    ] {
        let declaration = json!({ "executor": "remote", "input_schema": schema });
        client.put_function(function, &json_of(&declaration), Expected::Absent).await.unwrap();
        world.declare(function, json!({ "function": function, "input": "{{payload}}" })).await;
        let body = format!("{}{{}}{}", "{\"child\":".repeat(80), "}".repeat(80));
        let received = world.received(&format!("/v1/hooks/default/{function}"), body.as_bytes()).await;
        let detail = world.ended(function, &received.id).await;
        assert_eq!(detail.actions[0].status, "failed");
        let reason = detail.actions[0].reason.as_ref().unwrap();
        assert!(reason.contains("[schema-too-costly]"), "{reason}");
    }
    let chain: serde_json::Map<String, Value> =
        (0..1_100).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }))).collect();
    let declaration =
        json!({ "executor": "remote", "input_schema": { "$ref": "#/$defs/d0", "$defs": chain } });
    let refused = client.put_function("chain", &json_of(&declaration), Expected::Absent).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-function")));
}

#[tokio::test]
async fn each_scheme_lets_its_sender_in_and_nobody_else() {
    let world = World::new(Authentication::Keys, |_| {}).await;
    let (old, new) = (world.secret("old", "whsec_b2xk"), world.secret("new", "whsec_bmV3"));
    for scheme in ["shared_secret", "github", "stripe", "standard_webhooks"] {
        let declared = json!({ "type": scheme, "secrets": [new, old] });
        let name = scheme.replace('_', "-");
        world.declare(&name, json!({ "verification": declared, "store_only": true })).await;
        let verification: Verification = serde_json::from_value(declared).unwrap();
        let path = format!("/v1/hooks/default/{name}");
        let now_s = SystemClock.now_ms() / 1_000;
        for secret in ["whsec_b2xk", "whsec_bmV3"] {
            let headers = signed_headers(&verification, secret, "msg_1", now_s, b"{}").unwrap();
            let (status, answer) = world.post(&path, &headers, b"{}").await;
            assert_eq!(status, StatusCode::ACCEPTED, "{scheme}: {answer}");
        }
        let wrong = signed_headers(&verification, "whsec_bm8=", "msg_1", now_s, b"{}").unwrap();
        let late = signed_headers(&verification, "whsec_bmV3", "msg_1", now_s - 900, b"{}").unwrap();
        let mut refused = vec![Vec::new(), wrong];
        refused.extend(["stripe", "standard_webhooks"].contains(&scheme).then_some(late));
        for headers in refused {
            let (status, answer) = world.post(&path, &headers, b"{}").await;
            assert_eq!(
                (status, &answer["code"]),
                (StatusCode::UNAUTHORIZED, &json!("hook-refused")),
                "{scheme}"
            );
            assert!(!answer.to_string().contains("bmV3"), "{answer}");
        }
        let kept = world.stand.client().hook_payloads(&name, &ListPayloads::default()).await.unwrap();
        assert_eq!(kept.payloads.len(), 2, "{scheme}");
    }
}

#[tokio::test]
async fn a_route_says_whether_it_would_take_a_request_and_how_to_make_one() {
    let world = World::new(Authentication::Keys, |_| {}).await;
    let secret = world.secret("door", "whsec_bmV3");
    let declared = json!({ "type": "shared_secret", "header": "x-secret", "secrets": [secret] });
    world.declare("door", json!({ "verification": declared, "store_only": true })).await;
    let test = async |key: &str, headers: Value| {
        let call = crate::stand::http().post(world.stand.url("/v1/hooks/default/door/test")).bearer_auth(key);
        let answer = call.json(&json!({ "headers": headers, "body": "it's" })).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let admin = &world.stand.admin_key;
    assert_eq!(test(admin, json!({ "X-Secret": "whsec_bmV3" })).await.1["accepted"], true);
    for (headers, reason) in
        [(json!({ "x-secret": "wrong" }), "wrong_secret"), (json!({}), "missing_signature")]
    {
        let (status, refused) = test(admin, headers).await;
        assert_eq!((status, &refused["accepted"], &refused["reason"]), (200, &json!(false), &json!(reason)));
        let curl = refused["curl"].as_str().unwrap();
        assert!(curl.contains("$SECRET") && curl.contains(r"'it'\''s'"), "{curl}");
        assert!(!refused.to_string().contains("bmV3"));
    }
    let viewer = world.stand.key(segno_api::key::Role::Viewer, "default", "default").await;
    assert_eq!(test(&viewer, json!({})).await.0, 403);
    let kept = world.stand.client().hook_payloads("door", &ListPayloads::default()).await.unwrap();
    assert!(kept.payloads.is_empty(), "nothing is received");
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_locks_nobody_out_who_has_another() {
    let world = World::new(Authentication::Keys, |_| {}).await;
    let (gone, good) = (world.secret("gone", "whsec_b2xk"), world.secret("good", "whsec_bmV3"));
    std::fs::remove_file(gone["file"].as_str().unwrap()).unwrap();
    for scheme in ["shared_secret", "github", "stripe", "standard_webhooks"] {
        for (order, secrets) in [("first", json!([gone, good])), ("last", json!([good, gone]))] {
            let declared = json!({ "type": scheme, "secrets": secrets });
            let name = format!("{}-{order}", scheme.replace('_', "-"));
            world.declare(&name, json!({ "verification": declared, "store_only": true })).await;
            let verification: Verification = serde_json::from_value(declared).unwrap();
            let path = format!("/v1/hooks/default/{name}");
            let now_s = SystemClock.now_ms() / 1_000;
            // What the secret that is gone has signed may be good: its sender tries again. Without a
            // signature no secret would help.
            for (secret, status) in [(Some("whsec_bmV3"), 202), (Some("whsec_b2xk"), 503), (None, 401)] {
                let headers = secret
                    .map(|secret| signed_headers(&verification, secret, "msg_1", now_s, b"{}").unwrap());
                let (found, answer) = world.post(&path, &headers.unwrap_or_default(), b"{}").await;
                assert_eq!(found.as_u16(), status, "{name}, {secret:?}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_refused_early_and_says_why() {
    let world = World::new(Authentication::None, |settings| settings.server.max_body_bytes = 10_000).await;
    world.declare("small", json!({ "max_body_bytes": 100, "content_types": ["application/json"] })).await;
    world.declare("off", json!({ "enabled": false })).await;
    let json_type = [("content-type".to_owned(), "application/json".to_owned())];
    let text_type = [("content-type".to_owned(), "text/plain".to_owned())];
    for (path, headers, body, status, code) in [
        ("/v1/hooks/default/small", &json_type[..], vec![b' '; 101], 413, "body-too-large"),
        ("/v1/hooks/default/small", &json_type[..], vec![b' '; 20_000], 413, "body-too-large"),
        ("/v1/hooks/default/small", &text_type[..], b"{}".to_vec(), 415, "unsupported-media-type"),
        ("/v1/hooks/default/small", &[], b"{}".to_vec(), 415, "unsupported-media-type"),
        ("/v1/hooks/default/off", &[], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/default/nobody", &[], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/other/small", &json_type[..], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/default/small?tenant=other", &json_type[..], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/default/small?tenant=a&tenant=b", &json_type[..], b"{}".to_vec(), 400, "invalid-request"),
        ("/v1/hooks/default/..%2fsmall", &[], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/default/small%2fx", &[], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/DEFAULT/small", &json_type[..], b"{}".to_vec(), 404, "unknown-hook"),
        ("/v1/hooks/default/small/", &json_type[..], b"{}".to_vec(), 404, "not-found"),
        ("/v1/hooks//small", &json_type[..], b"{}".to_vec(), 404, "unknown-hook"),
    ] {
        let (found, answer) = world.post(path, headers, &body).await;
        let found = (found.as_u16(), answer["code"].as_str().unwrap_or_default());
        assert_eq!(found, (status, code), "{path}: {answer}");
    }
    // A body that does not say how long it is.
    let chunks = unannounced(200);
    let call = crate::stand::http().post(world.stand.url("/v1/hooks/default/small"));
    let call = call.header("content-type", "application/json").body(chunks);
    assert_eq!(call.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_hook_takes_so_many_requests_a_second() {
    let world =
        World::new(Authentication::None, |settings| settings.hooks.requests_per_second = Some(1)).await;
    world.declare("busy", json!({ "store_only": true })).await;
    let mut limited = 0;
    for _ in 0..30 {
        let (status, _) = world.post("/v1/hooks/default/busy", &[], b"{}").await;
        limited += u32::from(status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!((1..30).contains(&limited), "{limited} of 30 requests were refused");
}

/// A body of so many bytes whose length is not told.
fn unannounced(bytes: usize) -> reqwest::Body {
    reqwest::Body::wrap(http_body_util::StreamBody::new(futures_util::stream::iter(
        (0..bytes)
            .map(|_| Ok::<_, std::io::Error>(hyper::body::Frame::data(bytes::Bytes::from_static(b" ")))),
    )))
}

#[tokio::test]
async fn the_same_delivery_is_called_once() {
    let world = World::new(Authentication::None, |_| {}).await;
    world.declare("once", json!({ "dedup": { "header": "x-delivery" }, "filter": "payload.n == 1" })).await;
    let delivery = |id: &str| [("x-delivery".to_owned(), id.to_owned())];
    let (_, first) = world.post("/v1/hooks/default/once", &delivery("a"), br#"{"n":1}"#).await;
    let (_, again) = world.post("/v1/hooks/default/once", &delivery("a"), br#"{"n":1}"#).await;
    assert_eq!((&again["outcome"], &again["id"]), (&json!("deduplicated"), &first["id"]));
    let (_, other) = world.post("/v1/hooks/default/once", &delivery("b"), br#"{"n":1}"#).await;
    assert_eq!(other["outcome"], "routed");
    let (_, filtered) = world.post("/v1/hooks/default/once", &delivery("c"), br#"{"n":2}"#).await;
    assert_eq!(filtered["outcome"], "filtered");
    let client = world.stand.client();
    let mut listed = Vec::new();
    let mut request = ListPayloads { limit: Some(2), ..ListPayloads::default() };
    loop {
        let page = client.hook_payloads("once", &request).await.unwrap();
        listed.extend(page.payloads.into_iter().map(|payload| payload.outcome.kind));
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, ["filtered", "routed", "routed"]);
}

#[tokio::test]
async fn declarations_are_checked_and_versioned() {
    let world = World::new(Authentication::None, |_| {}).await;
    let client = world.stand.client();
    for (settings, says) in [
        (json!({ "input": "{{".repeat(5_000) }), "input"),
        (json!({ "input": { "a": "{{ payload | shell }}" } }), "/a, column 14"),
        (json!({ "input": "{{ secrets.x }}" }), "there is no name \"secrets\""),
        (json!({ "filter": "(".repeat(3_000) }), "nested at most 32 deep"),
        (json!({ "function": "nobody" }), "there is no function"),
        (json!({ "verification": { "type": "github", "secrets": [{ "env": "HOME" }] } }), "may not read"),
        (
            json!({ "verification": { "type": "github", "secrets": [{ "file": "/etc/passwd" }] } }),
            "may not read",
        ),
        (json!({ "verification": null }), "expected \"none\""),
        (json!({ "max_body_bytes": 100_000_000 }), "max_body_bytes"),
        (json!({ "surprise": 1 }), "unknown field"),
    ] {
        let error = declare(&client, "bad", settings.clone()).await.unwrap_err();
        assert!(matches!(error.status(), Some(400 | 404)), "{settings}: {error}");
        assert!(error.to_string().contains(says), "{settings}: {error}");
    }
    assert_eq!(client.hooks(None).await.unwrap().hooks, []);
    world.declare("good", json!({})).await;
    let again = declare(&client, "good", json!({})).await.unwrap_err();
    assert_eq!(again.status(), Some(412));
    let hook = client.hook("good").await.unwrap();
    assert_eq!(hook.path, "/v1/hooks/default/good");
    let declaration = json_of(&json!({ "store_only": true, "verification": "none" }));
    let replaced = client.put_hook("good", &declaration, Expected::Version(hook.version)).await.unwrap();
    let stale = client.put_hook("good", &declaration, Expected::Version(hook.version)).await.unwrap_err();
    assert_eq!(stale.status(), Some(412));
    assert_eq!(client.hooks(None).await.unwrap().hooks, [replaced]);
    let error = client.patch_hook("good", &json_of(&json!({ "store_only": false }))).await.unwrap_err();
    assert!(error.to_string().contains("function"), "{error}");
    client.delete_hook("good").await.unwrap();
    assert_eq!(client.delete_hook("good").await.unwrap_err().code(), Some("unknown-hook"));
}

/// The body that an action shows.
fn raw_payload(action: &Action) -> Option<&str> {
    match &action.trigger {
        ActionTrigger::Webhook { raw_payload, .. } => raw_payload.as_deref(),
        ActionTrigger::Scheduled { .. } => panic!("{action:?} does not come from a hook"),
    }
}

#[tokio::test]
async fn roles_and_tenants_see_what_is_theirs() {
    let world = World::new(Authentication::Keys, |_| {}).await;
    let acme = world.stand.client_with(Role::Operator, "shop", "acme").await.scope("shop", "acme");
    let viewer = world.stand.client_with(Role::Viewer, "shop", "acme").await.scope("shop", "acme");
    let other = world.stand.client_with(Role::Operator, "shop", "other").await.scope("shop", "other");
    declare(&acme, "in", json!({})).await.unwrap();
    assert_eq!(acme.hook("in").await.unwrap().path, "/v1/hooks/shop/in?tenant=acme");
    let received = world.received("/v1/hooks/shop/in?tenant=acme", b"1").await;
    assert_eq!(viewer.hook_payloads("in", &ListPayloads::default()).await.unwrap().payloads.len(), 1);
    assert_eq!(viewer.hook_events(None, None, None).await.unwrap().events.len(), 1);
    assert_eq!(acme.hook_payload("in", &received.id).await.unwrap().body_base64, "MQ==");
    // The action that it became holds the body too.
    let action = acme.actions(None, None).await.unwrap().actions.remove(0);
    assert_eq!(raw_payload(&action), None);
    let shown = acme.action(&action.id).await.unwrap();
    assert_eq!(raw_payload(&shown), Some("MQ=="));
    let shown = viewer.action(&action.id).await.unwrap();
    assert_eq!(raw_payload(&shown), None);
    assert_eq!(raw_payload(&viewer.actions(None, None).await.unwrap().actions[0]), None);
    let forbidden = Some(403);
    // Bodies may have secrets of the sender in them.
    assert_eq!(viewer.hook_payload("in", &received.id).await.unwrap_err().status(), forbidden);
    assert_eq!(viewer.replay_hook_payload("in", &received.id).await.unwrap_err().status(), forbidden);
    assert_eq!(declare(&viewer, "x", json!({})).await.unwrap_err().status(), forbidden);
    assert_eq!(viewer.delete_hook("in").await.unwrap_err().status(), forbidden);
    // Another tenant does not even learn that it is there.
    assert_eq!(other.hook("in").await.unwrap_err().status(), Some(404));
    assert_eq!(other.hook_payload("in", &received.id).await.unwrap_err().status(), Some(404));
    assert_eq!(other.clone().scope("shop", "acme").hook("in").await.unwrap_err().status(), forbidden);
    assert_eq!(other.clone().scope("bank", "other").hook("in").await.unwrap_err().status(), forbidden);
    let tricked = crate::stand::http()
        .get(world.stand.url("/v1/hooks/shop/in?tenant=acme&namespace=bank"))
        .bearer_auth(&world.stand.admin_key);
    assert_eq!(tricked.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    let audit = world.stand.client().scope("shop", "acme").audit(&Default::default()).await.unwrap().entries;
    let changes: Vec<&str> = audit.iter().map(|entry| entry.operation.as_str()).collect();
    assert!(changes.contains(&"PUT /v1/hooks/{namespace}/{route}"), "{changes:?}");
}

#[tokio::test]
async fn a_route_with_many_filters_on_a_large_body_is_rendered_beside_the_serving_threads() {
    let world = World::new(Authentication::None, |_| {}).await;
    let many = "{{ payload.text | upper | lower | upper }}".repeat(40);
    let input = json!({ "many": many, "id": "{{payload.id}}" });
    world.declare("large", json!({ "function": "echo", "verification": "none", "input": input })).await;
    let text = "x".repeat(20_000);
    let body = json!({ "id": 7, "text": text }).to_string();
    let received = world.received("/v1/hooks/default/large", body.as_bytes()).await;
    let first = world.ended("large", &received.id).await;
    world.stand.client().replay_hook_payload("large", &received.id).await.unwrap();
    let second = world.ended("large", &received.id).await;
    for action in [&first.actions[0], &second.actions[1]] {
        let action = world.stand.client().action(&action.id).await.unwrap();
        let input: Value = serde_json::from_str(action.tool_input.text()).unwrap();
        assert_eq!(input["id"], 7);
        assert_eq!(input["many"].as_str().unwrap(), text.to_uppercase().repeat(40));
    }
}
