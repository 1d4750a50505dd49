//! One limit of size for user data: what is exactly as large as it may be is taken at every door and comes through to its
//! end, and what is one byte larger is refused at every door with the same code.

use std::sync::atomic::{AtomicU32, Ordering};

use segno::limits::MAX_PAYLOAD_BYTES;
use segno_api::client::Expected;
use segno_api::work::FetchWork;
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, json_of, settings};

/// Room for what a request has around its payload.
const BODY_BYTES: usize = 2 * MAX_PAYLOAD_BYTES;

/// JSON text of exactly so many bytes.
fn text_of(bytes: usize) -> String {
    format!(r#"{{"t":"{}"}}"#, "x".repeat(bytes - r#"{"t":""}"#.len()))
}

struct World {
    stand: Stand,
    http: reqwest::Client,
    last: AtomicU32,
}

impl World {
    async fn start() -> Self {
        let mut settings = settings(Authentication::None);
        settings.server.max_body_bytes = BODY_BYTES;
        let stand = Stand::with(settings).await;
        let client = stand.client();
        let far = json_of(&json!({ "executor": "remote" }));
        client.put_function("far", &far, Expected::Absent).await.unwrap();
        let hook = json_of(&json!({ "function": "echo", "verification": "none" }));
        client.put_hook("h", &hook, Expected::Absent).await.unwrap();
        World { stand, http: crate::stand::http(), last: AtomicU32::new(0) }
    }

    async fn send(&self, method: &str, path: &str, body: String) -> (u16, Value) {
        let call = self.http.request(method.parse().unwrap(), self.stand.url(path));
        let answer = call.header("content-type", "application/json").body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
    }

    /// A number that was not used before.
    fn next(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    async fn started(&self) -> String {
        let id = format!("i{}", self.next());
        let start = json!({ "orchestration": "greet", "id": id, "input": { "name": "a", "wait": true } });
        assert_eq!(self.send("POST", "/v1/instances", start.to_string()).await.0, 201);
        id
    }

    async fn recurring(&self) -> String {
        let fields = json!({ "every": "1h", "function": "echo", "input": 1 });
        let (status, made) = self.send("POST", "/v1/recurring", fields.to_string()).await;
        assert_eq!(status, 201, "{made}");
        made["recurring_id"].as_str().unwrap().to_owned()
    }

    async fn lease(&self) -> String {
        let call = json!({ "function": "far", "key": format!("k{}", self.next()) });
        assert_eq!(self.send("POST", "/v1/invocations", call.to_string()).await.0, 201);
        let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["far"]) };
        self.stand.client().fetch_work(&fetch).await.unwrap().items.remove(0).lease
    }

    /// Waits until an action has its result.
    async fn completes(&self, action: &str) {
        let path = format!("/v1/actions/{action}");
        loop {
            let (_, action) = self.send("GET", &path, String::new()).await;
            match action["status"]["type"].as_str().or(action["status"].as_str()) {
                Some("pending" | "running") => crate::stand::look_again().await,
                _ => {
                    let text = action["status"].to_string();
                    assert!(text.contains("completed"), "{}", &text[..text.len().min(500)]);
                    return;
                }
            }
        }
    }
}

const DOORS: &[&str] = &[
    "start",
    "raise",
    "enqueue",
    "invoke",
    "action",
    "recurring",
    "typed recurring",
    "preview",
    "change of a recurring action",
    "hook",
    "progress",
    "result",
    "details",
];

/// Sends a text through a door.
async fn knock(world: &World, door: &str, text: &str) -> (u16, Value) {
    let number = world.next();
    let (method, path, body) = match door {
        "start" => {
            let body = format!(r#"{{"orchestration":"greet","id":"s{number}","input":{text}}}"#);
            ("POST", "/v1/instances".to_owned(), body)
        }
        "raise" | "enqueue" => {
            let path = format!("/v1/instances/{}/{door}", world.started().await);
            ("POST", path, format!(r#"{{"name":"n","data":{text}}}"#))
        }
        "invoke" => {
            let body = format!(r#"{{"function":"echo","key":"i{number}","input":{text}}}"#);
            ("POST", "/v1/invocations?wait_ms=60000".to_owned(), body)
        }
        "action" => {
            let body = format!(r#"{{"tool_name":"echo","tool_input":{text}}}"#);
            ("POST", "/v1/actions".to_owned(), body)
        }
        "recurring" | "preview" => {
            let path = if door == "preview" { "/v1/recurring/preview" } else { "/v1/recurring" };
            ("POST", path.to_owned(), format!(r#"{{"every":"1h","function":"echo","input":{text}}}"#))
        }
        "typed recurring" => {
            let body = format!(
                r#"{{"cron_expr":"0 0 1 1 *","provider":"echo","action_type":"t","payload":{text}}}"#
            );
            ("POST", "/v1/recurring".to_owned(), body)
        }
        "change of a recurring action" => {
            let path = format!("/v1/recurring/{}", world.recurring().await);
            ("PUT", path, format!(r#"{{"input":{text}}}"#))
        }
        "hook" => ("POST", "/v1/hooks/default/h".to_owned(), text.to_owned()),
        "progress" => {
            let lease = world.lease().await;
            let body = format!(r#"{{"lease":"{lease}","extend_ms":60000,"progress":{text}}}"#);
            ("POST", "/v1/work/heartbeat".to_owned(), body)
        }
        "result" => {
            let lease = world.lease().await;
            ("POST", "/v1/work/complete".to_owned(), format!(r#"{{"lease":"{lease}","result":{text}}}"#))
        }
        _ => {
            let lease = world.lease().await;
            let body = format!(r#"{{"lease":"{lease}","message":"no","retryable":false,"details":{text}}}"#);
            ("POST", "/v1/work/fail".to_owned(), body)
        }
    };
    world.send(method, &path, body).await
}

#[tokio::test]
async fn every_door_takes_the_same_number_of_bytes() {
    let world = World::start().await;
    let (largest, over) = (text_of(MAX_PAYLOAD_BYTES), text_of(MAX_PAYLOAD_BYTES + 1));
    for door in DOORS {
        let (status, answer) = knock(&world, door, &largest).await;
        assert!((200..300).contains(&status), "{door}: {status} {}", answer["detail"]);
        match *door {
            "invoke" => {
                let result = answer["instance"]["result"].to_string().len();
                assert_eq!(result, MAX_PAYLOAD_BYTES, "{}", answer["instance"]["status"]);
            }
            // What is accepted is not refused when its time comes.
            "action" => world.completes(answer["id"].as_str().unwrap()).await,
            "hook" => {
                assert_eq!(answer["outcome"], "routed");
                world.completes(answer["id"].as_str().unwrap()).await;
            }
            _ => {}
        }
        let (status, answer) = knock(&world, door, &over).await;
        if *door == "hook" {
            // Any body is kept; no call is made of one that is too large for it.
            assert_eq!((status, &answer["outcome"]), (202, &json!("dispatch_error")));
            continue;
        }
        assert_eq!((status, &answer["code"]), (400, &json!("payload-too-large")), "{door}: {answer}");
        assert!(answer["errors"][0]["field"].is_string(), "{door}: {answer}");
    }
}

/// An occurrence of the largest size is fired, with what is put around it.
#[tokio::test]
async fn an_occurrence_of_the_largest_size_runs() {
    let world = World::start().await;
    let body = format!(
        r#"{{"every":"1s","provider":"echo","action_type":"t","payload":{},"max_executions":1}}"#,
        text_of(MAX_PAYLOAD_BYTES)
    );
    let (status, made) = world.send("POST", "/v1/recurring", body).await;
    assert_eq!(status, 201, "{}", made["detail"]);
    let path = format!("/v1/recurring/{}/history", made["recurring_id"].as_str().unwrap());
    let waits = async {
        loop {
            let (_, history) = world.send("GET", &path, String::new()).await;
            match history["entries"].as_array().and_then(|entries| entries.last()) {
                Some(entry) if !entry["outcome"].is_null() || entry["decision"] == "refused" => {
                    return entry.clone();
                }
                _ => crate::stand::look_again().await,
            }
        }
    };
    let entry = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, waits).await.unwrap();
    assert_eq!(entry["outcome"], "completed", "{entry}");
}
