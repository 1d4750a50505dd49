//! What every door of the API refuses in the same way: the tables walk the document or all routes of a kind.

use reqwest::Method;
use segno::clock::SystemClock;
use segno_api::client::Expected;
use segno_server::settings::Authentication;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stand::{PATIENCE, Stand, creates_on_condition, json_of, settings};

/// Doors whose callers add parameters of their own: senders of webhooks, and probes of load balancers. And those for workers with a
/// task token, who have no key: `callbacks.rs` tries them.
const OPEN_DOORS: [(&str, &str); 6] = [
    ("post", "/v1/hooks/{namespace}/{route}"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("post", "/api/v1/tasks/{task}/started"),
    ("post", "/api/v1/tasks/{task}/heartbeat"),
    ("post", "/api/v1/tasks/{task}/completed"),
];

/// An operation of the document.
struct Door {
    method: Method,
    /// Its path, with names that nothing has.
    path: String,
    parameters: Vec<String>,
    /// Names of its headers.
    headers: Vec<String>,
    takes_json: bool,
}

async fn doors(stand: &Stand) -> Vec<Door> {
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut doors = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if OPEN_DOORS.contains(&(method.as_str(), path.as_str())) {
                continue;
            }
            let number = if path.starts_with("/v1/batches") { "77" } else { "nothing" };
            let named = path.replace("{namespace}", "default").replace("{id}", number);
            let named = named.replace("{version}", "7").replace("{member}", "7").replace("{of}", "actions");
            let named = ["{name}", "{route}", "{key}", "{topic}", "{subscription}", "{task}", "{asset}"]
                .iter()
                .fold(named, |path, it| path.replace(it, "nothing"));
            assert!(!named.contains('{'), "{named}");
            let named_in = |place: &str| {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let found = parameters.filter(|parameter| parameter["in"] == place);
                found.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
            };
            doors.push(Door {
                method: method.to_uppercase().parse().unwrap(),
                path: named,
                parameters: named_in("query"),
                headers: named_in("header"),
                takes_json: operation["requestBody"]["content"]["application/json"].is_object(),
            });
        }
    }
    assert!(doors.len() > 80, "{} operations", doors.len());
    doors
}

async fn send(stand: &Stand, method: &Method, path: &str, body: &str) -> (u16, String, Value) {
    let mut call =
        crate::stand::http().request(method.clone(), stand.url(path)).bearer_auth(&stand.admin_key);
    if creates_on_condition(method, path) {
        call = call.header("if-none-match", "*");
    }
    if *method != Method::GET {
        call = call.header("content-type", "application/json").body(body.to_owned());
    }
    let answer = call.send().await.unwrap();
    let status = answer.status().as_u16();
    if status < 400 {
        // It may be a stream.
        return (status, String::new(), Value::Null);
    }
    let problem: Value = answer.json().await.unwrap();
    (status, problem["detail"].as_str().unwrap().to_owned(), problem["code"].clone())
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_by_every_operation() {
    let stand = Stand::with_keys().await;
    for Door { method, path, parameters, .. } in doors(&stand).await {
        for unknown in ["zz=1", "tennant=t2", "Tenant=a", "tenant%20=a", "zz"] {
            let (status, detail, _) = send(&stand, &method, &format!("{path}?{unknown}"), "{}").await;
            assert_eq!(status, 400, "{method} {path}?{unknown}: {detail}");
            assert!(detail.contains("is not a parameter of"), "{method} {path}?{unknown}: {detail}");
        }
        for known in parameters {
            let (_, detail, _) = send(&stand, &method, &format!("{path}?{known}="), "{}").await;
            assert!(!detail.contains("is not a parameter"), "{method} {path}?{known}: {detail}");
        }
    }
    let make = r#"{"tool_name":"echo"}"#;
    let path = "/v1/actions?namespace=a&tennant=t2";
    assert_eq!(send(&stand, &Method::POST, path, make).await.0, 400);
    let made = stand.client().scope("a", "default").actions(None, None).await.unwrap();
    assert!(made.actions.is_empty(), "{made:?}");
}

#[tokio::test]
async fn values_that_are_not_text_and_names_that_nothing_has_are_refused_by_every_operation() {
    let stand = Stand::with_keys().await;
    let (mut count, mut named) = (0, Vec::new());
    for Door { method, path, parameters, .. } in doors(&stand).await {
        // The scope has rules of its own.
        let own = parameters.into_iter().filter(|name| !["namespace", "tenant"].contains(&name.as_str()));
        for parameter in own {
            for (value, told) in
                [("%ff", "is not percent-encoded UTF-8"), ("a%00b", "has control characters")]
            {
                // Cursors are refused by their listings, as `lists.rs` has it.
                if parameter == "cursor" && value == "a%00b" {
                    continue;
                }
                let target = format!("{path}?{parameter}={value}");
                let (status, detail, code) = send(&stand, &method, &target, "{}").await;
                assert_eq!((status, &code), (400, &json!("invalid-request")), "{method} {target}: {detail}");
                assert_eq!(detail, format!("{parameter}: {told}"), "{method} {target}");
                count += 1;
            }
            if method == Method::GET && ["dag", "function", "runbook"].contains(&parameter.as_str()) {
                let target = format!("{path}?{parameter}=no%20name!");
                let (status, detail, _) = send(&stand, &method, &target, "").await;
                assert_eq!(status, 400, "{method} {target}: {detail}");
                assert!(detail.starts_with(&format!("{parameter}: ")), "{method} {target}: {detail}");
                named.push(target);
            }
        }
    }
    assert!(count > 200, "{count} values");
    assert_eq!(named.len(), 5, "{named:?}");
}

#[tokio::test]
async fn preconditions_are_refused_by_every_operation_that_does_not_check_them() {
    let stand = Stand::with_keys().await;
    let (mut checked, mut refused) = (Vec::new(), 0);
    for Door { method, path, headers, .. } in doors(&stand).await {
        for (name, value) in [("If-Match", "\"1\""), ("If-None-Match", "*")] {
            let is_safe = method == Method::GET;
            if is_safe && name == "If-None-Match" {
                continue;
            }
            let call = crate::stand::http().request(method.clone(), stand.url(&path));
            let call = call.bearer_auth(&stand.admin_key).header(name, value);
            let call = call.header("origin", stand.origin());
            let call = if is_safe { call } else { call.json(&json!({})) };
            let answer = call.send().await.unwrap();
            let status = answer.status().as_u16();
            if headers.iter().any(|header| header.eq_ignore_ascii_case(name)) {
                let problem: Value = answer.json().await.unwrap_or_default();
                let detail = problem["detail"].to_string();
                assert!(!detail.contains("is not a precondition"), "{method} {path} {name}: {problem}");
                checked.push(format!("{method} {path} {name}"));
                continue;
            }
            let problem: Value = if status < 400 { Value::Null } else { answer.json().await.unwrap() };
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert_eq!(status, 400, "{method} {path} {name}: {problem}");
            let told = format!("{name}: is not a precondition of {method} /v1/");
            assert!(detail.starts_with(&told) || !path.starts_with("/v1/"), "{method} {path}: {detail}");
            assert_eq!(problem["errors"][0]["field"], name, "{method} {path}: {problem}");
            refused += 1;
        }
    }
    assert!(refused > 150, "{refused} refused");
    checked.sort();
    let of = |kind: &str| {
        let path = format!("/v1/{kind}");
        [
            format!("DELETE {path} If-Match"),
            format!("PUT {path} If-Match"),
            format!("PUT {path} If-None-Match"),
        ]
    };
    let mut expected: Vec<String> =
        ["functions/nothing", "hooks/default/nothing", "saved/nothing"].into_iter().flat_map(of).collect();
    expected.push("PATCH /v1/hooks/default/nothing If-Match".to_owned());
    expected.sort();
    assert_eq!(checked, expected);
    // A precondition that is refused changes nothing, also where there is something to change.
    let client = stand.client();
    let every = serde_json::from_value(json!({ "every": "1h", "function": "echo" })).unwrap();
    let id = client.create_recurring(&every).await.unwrap().recurring_id;
    let path = stand.url(&format!("/v1/recurring/{id}"));
    let delete = crate::stand::http().delete(path).bearer_auth(&stand.admin_key);
    assert_eq!(delete.header("if-match", "\"1\"").send().await.unwrap().status(), 400);
    client.recurring(&id).await.unwrap();
}

#[tokio::test]
async fn arrays_are_refused_where_an_object_is_expected() {
    let stand = Stand::with_keys().await;
    let doors = doors(&stand).await;
    assert!(doors.iter().filter(|door| door.takes_json).count() > 25);
    for Door { method, path, .. } in doors.iter().filter(|door| door.takes_json) {
        for body in ["[]", " \n[[1]]", r#"["pause_batch","why"]"#] {
            let (status, detail, _) = send(&stand, method, path, body).await;
            assert_eq!(status, 400, "{method} {path} {body}: {detail}");
            assert!(detail.contains("array"), "{method} {path} {body}: {detail}");
        }
    }
    let hook = json_of(&json!({ "store_only": true, "verification": "none" }));
    stand.client().put_hook("made", &hook, Expected::Absent).await.unwrap();
    for (method, path, body) in [
        (Method::POST, "/v1/keys", r#"{"name":"n","role":"viewer","grants":[["a","t1"]]}"#),
        (Method::POST, "/v1/invocations", r#"{"function":"echo","retry":[2]}"#),
        (Method::POST, "/v1/instances/bulk", r#"{"action":"cancel","filter":[null,"a"]}"#),
        (Method::PUT, "/v1/functions/f", r#"{"executor":"remote","retry":[2]}"#),
        (Method::PUT, "/v1/functions/f", r#"{"executor":"remote","push":["http://a",{"env":"A"}]}"#),
        (Method::PUT, "/v1/hooks/default/h", r#"{"store_only":true,"verification":"none","dedup":["a"]}"#),
        (Method::PATCH, "/v1/hooks/default/made", r#"{"dedup":["a",null,"1h"]}"#),
    ] {
        let (status, detail, _) = send(&stand, &method, path, body).await;
        assert_eq!(status, 400, "{method} {path} {body}: {detail}");
        assert!(detail.contains("sequence, expected an object"), "{method} {path} {body}: {detail}");
    }
}

/// The head of the answer to a request whose body never comes.
async fn head_of_answer(stand: &Stand, request: &str) -> String {
    let mut connection = TcpStream::connect(stand.server.address()).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = async {
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            assert!(connection.read_buf(&mut answer).await.unwrap() > 0, "the connection was closed");
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, read).await.expect("there is no answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_before_it_comes() {
    let mut settings = settings(Authentication::None);
    // Waiting for the body would end the test by its patience.
    settings.server.body_timeout_seconds = 2 * PATIENCE.as_secs();
    let stand = Stand::with(settings).await;
    let hook = json_of(&json!({ "store_only": true, "verification": "none" }));
    stand.client().put_hook("h", &hook, Expected::Absent).await.unwrap();
    for path in [
        "/v1/instances",
        "/v1/invocations",
        "/v1/actions",
        "/v1/recurring",
        "/v1/instances/a/cancel",
        "/v1/keys",
        "/v1/batches",
        "/v1/runbooks",
        "/v1/work/fetch",
        "/v1/work/exchange",
        "/v1/hooks/default/h",
    ] {
        for more in ["", "expect: 100-continue\r\n", "idempotency-key: a\r\n"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 2000000000\r\n{more}\r\n"
            );
            let answer = head_of_answer(&stand, &head).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{path} {more}: {answer}");
            assert!(answer.contains("application/problem+json"), "{path} {more}: {answer}");
        }
    }
}

#[tokio::test]
async fn bodies_with_an_encoding_are_refused_by_name() {
    let stand = Stand::open().await;
    for Door { method, path, .. } in doors(&stand).await.into_iter().filter(|door| door.takes_json) {
        for (encoding, status) in [("gzip", Some(415)), ("identity", None)] {
            let mut call = crate::stand::http().request(method.clone(), stand.url(&path));
            call = call.header("content-type", "application/json").header("content-encoding", encoding);
            if creates_on_condition(&method, &path) {
                call = call.header("if-none-match", "*");
            }
            let answer = call.body("\u{1f}\u{8b}").send().await.unwrap();
            let (found, problem) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
            assert_eq!(found, status.unwrap_or(400), "{method} {path} {encoding}: {problem}");
            assert!(status.is_none() || problem["detail"].as_str().unwrap().contains("gzip"), "{problem}");
        }
    }
}

#[tokio::test]
async fn an_empty_key_is_nobodys() {
    let stand = Stand::with_keys().await;
    let every = serde_json::from_value(json!({ "every": "1h", "function": "echo" })).unwrap();
    let id = stand.client().create_recurring(&every).await.unwrap().recurring_id;
    let run = format!("/v1/recurring/{id}/run");
    for (path, body, field) in [
        ("/v1/invocations", r#"{"function":"echo","key":""}"#, "key"),
        ("/v1/invocations", r#"{"function":"echo","key":" "}"#, "key"),
        (&run, r#"{"key":""}"#, "key"),
        ("/v1/recurring", r#"{"every":"1h","function":"echo","dedup_key":""}"#, "dedup_key"),
    ] {
        let (status, detail, _) = send(&stand, &Method::POST, path, body).await;
        assert_eq!(status, 400, "{path} {body}: {detail}");
        assert!(detail.contains(&format!("{field}: is empty")), "{path} {body}: {detail}");
    }
}

#[tokio::test]
async fn times_that_are_none_or_out_of_range_are_told_in_plain_words() {
    let stand = Stand::with_keys().await;
    let (post, get) = (Method::POST, Method::GET);
    for (method, path, body) in [
        (&post, "/v1/recurring", r#"{"function":"echo","at":"TIME"}"#),
        (&post, "/v1/recurring", r#"{"function":"echo","every":"1h","anchor":"TIME"}"#),
        (&post, "/v1/recurring/preview", r#"{"every":"1h","starts_at":"TIME"}"#),
        (&post, "/v1/actions", r#"{"function":"echo","at":"TIME"}"#),
        (&post, "/v1/instances", r#"{"orchestration":"greet","start_at":"TIME"}"#),
        (&post, "/v1/keys", r#"{"name":"n","role":"viewer","grants":[],"expires_at":"TIME"}"#),
        (&post, "/v1/batches/1/requests", r#"{"action":"reschedule","batch_start_time":"TIME"}"#),
        (&get, "/v1/recurring/a/preview?from=TIME", ""),
        (&get, "/v1/recurring/a/explain?time=TIME", ""),
        (&get, "/v1/audit?since=TIME", ""),
        (&get, "/v1/audit?until=TIME", ""),
    ] {
        for (time, told) in [
            ("9999-12-31T23:59:59Z", "out of range; times are from the year -9999 to 9999-12-30T22:00:00Z"),
            ("x", "\"x\" is not a time; write RFC 3339, as in 2026-03-27T09:00:00Z"),
            ("2026-02-30T00:00:00Z", "is not a time; write RFC 3339"),
            ("2026-02-03", "is not a time; write RFC 3339"),
        ] {
            let (path, body) = (path.replace("TIME", time), body.replace("TIME", time));
            let (status, detail, _) = send(&stand, method, &path, &body).await;
            assert_eq!(status, 400, "{path} {body}: {detail}");
            assert!(detail.contains(told), "{path} {body}: {detail}");
        }
    }
}

#[tokio::test]
async fn values_of_declarations_are_refused_with_their_own_codes() {
    let stand = Stand::with_keys().await;
    let hook = json_of(&json!({ "store_only": true, "verification": "none" }));
    stand.client().put_hook("made", &hook, Expected::Absent).await.unwrap();
    for (change, code) in [
        (json!({ "filter": "payload.a =" }), "invalid-template"),
        (json!({ "input": { "a": "{{" } }), "invalid-template"),
        (json!({ "dedup": { "key": "{{payload." } }), "invalid-template"),
        (json!({ "function": "A b" }), "invalid-function-name"),
    ] {
        let mut whole = json!({ "verification": "none", "function": "echo" });
        whole.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        for (method, path, body) in [
            (Method::PUT, "/v1/hooks/default/new", &whole),
            (Method::PATCH, "/v1/hooks/default/made", &change),
        ] {
            let (status, detail, found) = send(&stand, &method, path, &body.to_string()).await;
            assert_eq!((status, &found), (400, &json!(code)), "{method} {body}: {detail}");
            assert!(!detail.contains('[') && !detail.contains(" at line "), "{method} {body}: {detail}");
        }
    }
}
