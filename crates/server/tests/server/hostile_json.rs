//! What a door accepts, every reader shows: a table of JSON that parsers disagree about, at every door that takes user data.
//!
//! A case is taken, and then every reader shows its text as it was written, or it is refused with its code, and then nothing
//! has changed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::post;
use reqwest::Method;
use segno::{Context, Orchestration, Payload, Registry, Signal};
use segno_api::Json;
use segno_api::client::Expected;
use segno_api::work::FetchWork;
use segno_server::Server;
use segno_server::settings::Authentication;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::stand::{Ground, PATIENCE, creates_on_condition, json_of, listener, settings};

/// Keeps what it gets as its status, waits for a signal, and returns what that brings.
const KEEP: Orchestration<Payload, Payload> = Orchestration::new("keep");
const GO: Signal<Payload> = Signal::new("go");

struct Case {
    name: &'static str,
    text: String,
    /// The code of its refusal; none if it is taken.
    refused: Option<&'static str>,
}

fn nested(levels: usize) -> String {
    format!("{}{}", r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2))
        .replace("[]", if levels % 2 == 1 { "[[]]" } else { "[]" })
}

fn cases() -> Vec<Case> {
    const DEEP: Option<&str> = Some("payload-too-deep");
    const ODD: Option<&str> = Some("payload-not-json");
    let case = |name, text: &str, refused| Case { name, text: text.to_owned(), refused };
    vec![
        case("99 levels", &nested(99), None),
        case("100 levels", &nested(100), None),
        case("101 levels", &nested(101), DEEP),
        case("125 levels", &nested(125), DEEP),
        case("200 levels", &nested(200), DEEP),
        case("10,000 levels", &nested(10_000), DEEP),
        case("beyond a double", r#"{"n":1e400}"#, ODD),
        case("below a double", r#"{"n":-1e400}"#, ODD),
        case("an integer of 5,000 digits", &format!(r#"{{"n":{}}}"#, "7".repeat(5_000)), ODD),
        case("an integer of 30 digits", r#"{"n":123456789012345678901234567890}"#, None),
        case("zeros and exponents", r#"{"n":[1.50,1E2,-0,1e-400]}"#, None),
        case("half a pair", r#"{"t":"\ud800"}"#, ODD),
        case("the other half", r#"{"t":"x\udc00"}"#, ODD),
        case("half a pair as a name", r#"{"\udfff":1}"#, ODD),
        case("a pair", r#"{"t":"\ud83d\ude00"}"#, None),
        case("a NUL", r#"{"t":"\u0000"}"#, None),
        case("a name twice", r#"{"a":1,"a":2}"#, None),
        case("a long text", &format!(r#"{{"t":"{}"}}"#, "x".repeat(300_000)), None),
        case("a name that the parser obeys", r#"{"$serde_json::private::RawValue":"[[1]]"}"#, ODD),
        case("the same, escaped", r#"{"a":{"\u0024serde_json::private::RawValue":"[[1]]"}}"#, ODD),
        case("spaces", r#"{ "a" :  1 }"#, None),
    ]
}

/// A server whose functions answer what the test says.
struct World {
    server: Server,
    ground: Ground,
    http: reqwest::Client,
    tool: NamedTempFile,
    _secret: NamedTempFile,
    answer: Arc<std::sync::Mutex<String>>,
}

impl World {
    async fn start() -> Self {
        let answer = Arc::new(std::sync::Mutex::new(String::new()));
        let told = Arc::clone(&answer);
        let speak = move || async move {
            let text = told.lock().unwrap().clone();
            ([(header::CONTENT_TYPE, "application/json")], text)
        };
        let elsewhere = listener().await;
        let url = format!("http://localhost:{}/", elsewhere.local_addr().unwrap().port());
        tokio::spawn(async move { axum::serve(elsewhere, Router::new().route("/", post(speak))).await });
        let (tool, secret) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        std::fs::write(secret.path(), "a shared secret").unwrap();
        let push = json!({ "url": url, "secret": { "file": secret.path() }, "allow_hosts": ["localhost"] });
        let mut settings = settings(Authentication::None);
        for (name, declaration) in [
            ("tool", json!({ "executor": "process", "command": ["cat", tool.path()] })),
            ("call", json!({ "executor": "http", "url": url, "allow_hosts": ["localhost"] })),
            ("pushed", json!({ "executor": "remote", "push": push })),
        ] {
            settings.functions.insert(name.parse().unwrap(), serde_json::from_value(declaration).unwrap());
        }
        let keep = async |ctx: Context, input: Payload| {
            ctx.set_status(&input)?;
            ctx.signal(GO).await
        };
        let registry = Registry::builder().orchestration(KEEP, keep);
        let ground = Ground::new().await;
        let builder = Server::builder(Arc::clone(&ground.store), settings).registry(registry);
        let server =
            builder.functions(segno_server::samples::functions).start(listener().await).await.unwrap();
        World { server, ground, http: crate::stand::http(), tool, _secret: secret, answer }
    }

    fn client(&self) -> segno_api::Client {
        segno_api::Client::new(&format!("http://{}", self.server.address()))
            .unwrap()
            .retry_for(Duration::ZERO)
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let url = format!("http://{}{path}", self.server.address());
        let method: Method = method.parse().unwrap();
        let mut call = self.http.request(method.clone(), url);
        if creates_on_condition(&method, path) {
            call = call.header("if-none-match", "*");
        }
        let call = call.header(header::CONTENT_TYPE, "application/json").body(body.to_owned());
        let answer = call.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Sends a request with user data in it, which is taken or refused as the case says. Returns the answer if it is taken.
    async fn knock(&self, door: &str, request: (&str, &str, String), case: &Case) -> Option<String> {
        let (method, path, body) = request;
        let (status, answer) = self.send(method, path, &body).await;
        let Some(code) = case.refused else {
            assert!((200..300).contains(&status), "{door}, {}: {status} {answer}", case.name);
            return Some(answer);
        };
        assert_eq!(status, 400, "{door}, {}: {answer}", case.name);
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(problem["code"], code, "{door}, {}: {answer}", case.name);
        assert!(problem["errors"][0]["field"].is_string(), "{door}, {}: {answer}", case.name);
        None
    }

    /// Every one of these readers shows the text as it was written.
    async fn shows(&self, paths: &[&str], case: &Case) {
        for path in paths {
            let (status, shown) = self.send("GET", path, "").await;
            assert_eq!(status, 200, "{path}, {}: {shown}", case.name);
            assert!(shown.contains(&case.text), "{path}, {}: {shown}", case.name);
        }
    }

    async fn reads(&self, path: &str) -> Value {
        let (status, shown) = self.send("GET", path, "").await;
        assert_eq!(status, 200, "{path}: {shown}");
        serde_json::from_str(&shown).unwrap()
    }
}

/// What an answer says, in one field.
fn field(answer: &str, name: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn starts_signals_and_mailboxes() {
    let world = World::start().await;
    for case in &cases() {
        let text = &case.text;
        let start = format!(r#"{{"orchestration":"keep","id":"a","input":{text}}}"#);
        if world.knock("start", ("POST", "/v1/instances", start), case).await.is_none() {
            assert_eq!(world.reads("/v1/instances").await["instances"], json!([]), "{}", case.name);
            let plain = r#"{"orchestration":"keep","id":"a"}"#.to_owned();
            assert_eq!(world.send("POST", "/v1/instances", &plain).await.0, 201);
        } else {
            let (_, status) = world.send("GET", "/v1/instances/a/status?wait_ms=60000", "").await;
            assert!(status.contains(text), "{}: {status}", case.name);
            world.shows(&["/v1/instances/a", "/v1/instances", "/v1/instances/a/history"], case).await;
        }
        let letter = format!(r#"{{"name":"letters","data":{text}}}"#);
        world.knock("enqueue", ("POST", "/v1/instances/a/enqueue", letter), case).await;
        let signal = format!(r#"{{"name":"go","data":{text}}}"#);
        if world.knock("raise", ("POST", "/v1/instances/a/raise", signal), case).await.is_some() {
            let ended = world.client().instance("a", PATIENCE).await.unwrap();
            assert_eq!(ended.result.unwrap().text(), text, "{}", case.name);
            world.shows(&["/v1/instances/a", "/v1/instances", "/v1/instances/a/history"], case).await;
            let events = world.client().history("a", None, 0).await.unwrap().events;
            let received = events.iter().filter(|event| event.kind == "MessageReceived");
            assert!(received.clone().count() == 2 && received.clone().all(|e| e.data.text().contains(text)));
        } else {
            let (_, history) = world.send("GET", "/v1/instances/a/history", "").await;
            assert!(!history.contains("MessageReceived"), "{}: {history}", case.name);
        }
        assert_eq!(world.send("DELETE", "/v1/instances/a?force=true", "").await.0, 200, "{}", case.name);
    }
}

#[tokio::test]
async fn calls_of_functions_and_their_results() {
    let world = World::start().await;
    for (number, case) in cases().iter().enumerate() {
        let text = &case.text;
        let call = format!(r#"{{"function":"echo","key":"{number}","input":{text}}}"#);
        let called =
            world.knock("invoke", ("POST", "/v1/invocations?wait_ms=60000", call.clone()), case).await;
        let id = format!("invoke:{number}");
        if called.is_some() {
            let paths = [format!("/v1/instances/{id}"), format!("/v1/instances/{id}/history")];
            world.shows(&[&paths[0], &paths[1]], case).await;
            let again = world.send("POST", "/v1/invocations", &call).await;
            assert_eq!(again.0, 200, "the same call under the same key is one call: {}", again.1);
        } else {
            assert_eq!(world.send("GET", &format!("/v1/instances/{id}"), "").await.0, 404, "{}", case.name);
        }
        // Results of tools, of HTTP calls, and of workers that are called.
        std::fs::write(world.tool.path(), text).unwrap();
        text.clone_into(&mut world.answer.lock().unwrap());
        for function in ["tool", "call", "pushed"] {
            let call = format!(r#"{{"function":"{function}","key":"{function}{number}"}}"#);
            let (status, answer) = world.send("POST", "/v1/invocations?wait_ms=60000", &call).await;
            assert_eq!(status, 201, "{answer}");
            match case.refused {
                None => assert!(answer.contains(text.trim()), "{function}, {}: {answer}", case.name),
                Some(code) => {
                    assert!(answer.contains("output-not-json"), "{function}, {}: {answer}", case.name);
                    assert!(answer.contains(code), "{function}, {}: {answer}", case.name);
                }
            }
        }
    }
}

#[tokio::test]
async fn answers_of_workers() {
    let world = World::start().await;
    let client = world.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("far", &remote, Expected::Absent).await.unwrap();
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["far"]) };
    for (number, case) in cases().iter().enumerate() {
        let text = &case.text;
        let mut ids = Vec::new();
        for end in ["complete", "fail"] {
            let call = format!(r#"{{"function":"far","key":"{end}{number}"}}"#);
            ids.push(field(&world.send("POST", "/v1/invocations", &call).await.1, "id"));
            let lease = client.fetch_work(&fetch).await.unwrap().items.remove(0).lease;
            let beat = format!(r#"{{"lease":"{lease}","extend_ms":60000,"progress":{text}}}"#);
            world.knock("progress", ("POST", "/v1/work/heartbeat", beat), case).await;
            let answer = match end {
                "complete" => format!(r#"{{"lease":"{lease}","result":{text}}}"#),
                _ => format!(r#"{{"lease":"{lease}","message":"no","retryable":false,"details":{text}}}"#),
            };
            let path = format!("/v1/work/{end}");
            if world.knock(end, ("POST", &path, answer), case).await.is_none() {
                let plain = format!(r#"{{"lease":"{lease}","result":1}}"#);
                assert_eq!(
                    world.send("POST", "/v1/work/complete", &plain).await.0,
                    204,
                    "the lease still holds"
                );
            }
        }
        let ended = client.instance(&ids[0], PATIENCE).await.unwrap();
        assert_eq!(ended.result.unwrap().text(), if case.refused.is_none() { text } else { "1" });
        if case.refused.is_none() {
            let paths = [format!("/v1/instances/{}", ids[0]), format!("/v1/instances/{}/history", ids[0])];
            world.shows(&[&paths[0], &paths[1]], case).await;
            let failed = client.instance(&ids[1], PATIENCE).await.unwrap().failure.unwrap();
            assert_eq!(failed.details.unwrap().text(), text, "{}", case.name);
        }
    }
}

#[tokio::test]
async fn actions_and_recurring_actions() {
    let world = World::start().await;
    for case in &cases() {
        let text = &case.text;
        let make = format!(r#"{{"tool_name":"echo","tool_input":{text}}}"#);
        if let Some(made) = world.knock("action", ("POST", "/v1/actions", make), case).await {
            assert!(made.contains(text), "{}: {made}", case.name);
            let path = format!("/v1/actions/{}", field(&made, "id"));
            while !world.send("GET", &path, "").await.1.contains("\"completed\"") {
                crate::stand::look_again().await;
            }
            let (_, done) = world.send("GET", &path, "").await;
            assert_eq!(done.matches(text.as_str()).count(), 2, "input and result, {}: {done}", case.name);
            world.shows(&["/v1/actions"], case).await;
            assert_eq!(world.send("DELETE", &path, "").await.0, 204);
        }
        assert_eq!(world.reads("/v1/actions").await["actions"], json!([]), "{}", case.name);

        let schedule = r#""cron_expr":"0 0 1 1 *","provider":"echo","action_type":"t""#;
        let by_payload = format!(r#"{{{schedule},"payload":{text}}}"#);
        let preview = world.send("POST", "/v1/recurring/preview", &by_payload).await;
        assert_eq!(preview.0, if case.refused.is_none() { 200 } else { 400 }, "{}: {}", case.name, preview.1);
        let made = world.knock("recurring", ("POST", "/v1/recurring", by_payload), case).await;
        let by_function = format!(r#"{{"every":"1h","function":"echo","input":{text}}}"#);
        world.knock("recurring, as input", ("POST", "/v1/recurring", by_function), case).await;
        let id = match made {
            Some(made) => field(&made, "recurring_id"),
            None => {
                assert_eq!(
                    world.reads("/v1/recurring").await["recurring_actions"],
                    json!([]),
                    "{}",
                    case.name
                );
                let (_, plain) = world.send("POST", "/v1/recurring", &format!("{{{schedule}}}")).await;
                field(&plain, "recurring_id")
            }
        };
        let path = format!("/v1/recurring/{id}");
        world.knock("change", ("PUT", &path, format!(r#"{{"payload":{text}}}"#)), case).await;
        if case.refused.is_none() {
            world.shows(&[&path], case).await;
        } else {
            assert_eq!(world.reads(&path).await["action_template"]["payload"], json!({}), "{}", case.name);
        }
        for verb in ["pause", "resume"] {
            assert_eq!(
                world.send("POST", &format!("{path}/{verb}"), "{}").await.0,
                200,
                "{verb}, {}",
                case.name
            );
        }
        for row in world.reads("/v1/recurring").await["recurring_actions"].as_array().unwrap() {
            let path = format!("/v1/recurring/{}", row["id"].as_str().unwrap());
            assert_eq!(world.send("DELETE", &path, "").await.0, 204, "{}", case.name);
        }
    }
}

#[tokio::test]
async fn webhooks_and_declarations() {
    let world = World::start().await;
    let client = world.client();
    client
        .put_hook("h", &json_of(&json!({ "function": "echo", "verification": "none" })), Expected::Absent)
        .await
        .unwrap();
    for case in &cases() {
        // A body is kept byte for byte, whatever it is; no call is made of what breaks the rule.
        let (status, answer) = world.send("POST", "/v1/hooks/default/h", &case.text).await;
        assert_eq!(status, 202, "{}: {answer}", case.name);
        let expected = if case.refused.is_none() { "routed" } else { "dispatch_error" };
        assert_eq!(field(&answer, "outcome"), expected, "{}: {answer}", case.name);
        let path = format!("/v1/hooks/default/h/payloads/{}", field(&answer, "id"));
        if case.refused.is_none() {
            while !world.send("GET", &path, "").await.1.contains("\"completed\"") {
                crate::stand::look_again().await;
            }
            world.shows(&[&path, "/v1/actions"], case).await;
        }
        world.reads(&path).await;
        world.reads("/v1/hooks/default/h/payloads").await;
        world.reads("/v1/hooks/events").await;
        assert_eq!(world.send("DELETE", &path, "").await.0, 204, "{}", case.name);

        // Declarations: what is taken can be read, listed and deleted.
        let text = &case.text;
        for (door, path, list, declaration) in [
            (
                "hook",
                "/v1/hooks/default/other",
                "/v1/hooks",
                format!(r#"{{"function":"echo","verification":"none","input":{text}}}"#),
            ),
            (
                "function",
                "/v1/functions/other",
                "/v1/functions",
                format!(r#"{{"executor":"remote","input_schema":{{"const":{text}}}}}"#),
            ),
        ] {
            let (status, answer) = world.send("PUT", path, &declaration).await;
            match status {
                201 => {
                    world.reads(path).await;
                    world.reads(list).await;
                    assert_eq!(world.send("DELETE", path, "").await.0, 204, "{door}, {}", case.name);
                }
                400 => assert!(!field(&answer, "detail").is_empty()),
                _ => panic!("{door}, {}: {status} {answer}", case.name),
            }
            assert_eq!(world.send("GET", path, "").await.0, 404, "{door}, {}", case.name);
        }
    }
}

/// A client reads answers as text too, whatever is in them.
#[tokio::test]
async fn the_client_passes_on_what_it_reads() {
    let world = World::start().await;
    for case in cases().iter().filter(|case| case.refused.is_none()) {
        let input = Json::from_text(case.text.clone()).unwrap();
        let request = segno_api::invocation::Invoke::new("echo", input);
        let called = world.client().invoke(&request, PATIENCE).await.unwrap();
        assert_eq!(called.instance.unwrap().result.unwrap().text(), case.text);
    }
    let _ = &world.ground;
}
