//! Clients and a server that fails now and then: what is repeated counts once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::IntoResponse;
use segno_api::Client;
use serde_json::{Value, json};

use crate::examples::worker_at;
use crate::stand::{PATIENCE, greet, listener};

/// A request as it came in.
#[derive(Clone)]
struct Came {
    path: String,
    key: Option<String>,
    body: Value,
}

/// A server that refuses the first requests of each path with 503, and answers the next ones as a script says.
#[derive(Clone, Default)]
struct Flaky {
    came: Arc<Mutex<Vec<Came>>>,
    refused: usize,
}

impl Flaky {
    async fn start(refused: usize) -> (Self, String) {
        let flaky = Flaky { came: Arc::default(), refused };
        let router = Router::new().fallback(answer).with_state(flaky.clone());
        let listener = listener().await;
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (flaky, address)
    }

    fn came(&self, path: &str) -> Vec<Came> {
        self.came.lock().unwrap().iter().filter(|came| came.path == path).cloned().collect()
    }
}

async fn answer(State(flaky): State<Flaky>, uri: Uri, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = match uri.path() {
        // An exchange is known by what it answers first.
        "/v1/work/exchange" => match body["answers"][0].as_object().and_then(|answer| answer.keys().next()) {
            Some(verb) => verb.clone(),
            None => "fetch".to_owned(),
        },
        path => path.to_owned(),
    };
    flaky.came.lock().unwrap().push(Came { path: path.clone(), key, body });
    let number = flaky.came(&path).len();
    let (status, answer) = match path.as_str() {
        _ if number <= flaky.refused => (503, json!({})),
        "/v1/instances" => (201, json!({ "namespace": "n", "tenant": "t", "id": "a", "created": true })),
        "fetch" if number == flaky.refused + 1 => {
            let item = json!({ "lease": "the-lease", "function": "word-count", "input": "one two" });
            (200, json!({ "outcomes": [], "items": [item] }))
        }
        "fetch" => std::future::pending().await,
        "heartbeat" => (200, json!({ "outcomes": [{ "status": "continue" }], "items": [] })),
        "complete" => (200, json!({ "outcomes": [{ "status": "done" }], "items": [] })),
        _ => (204, Value::Null),
    };
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, "application/json")], answer.to_string())
}

#[tokio::test]
async fn a_repeated_start_has_the_key_of_the_first() {
    let (flaky, address) = Flaky::start(2).await;
    let client = Client::new(&address).unwrap();
    client.start(&greet("a", "null"), None, Duration::ZERO).await.unwrap();
    client.start(&greet("b", "null"), Some("mine"), Duration::ZERO).await.unwrap();
    let came = flaky.came("/v1/instances");
    let keys: Vec<&str> = came.iter().map(|came| came.key.as_deref().unwrap()).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
    assert_eq!((keys[0].len(), keys[3]), (32, "mine"));
    assert_eq!(came[0].body, came[2].body);

    let (flaky, address) = Flaky::start(1).await;
    let once = Client::new(&address).unwrap().retry_for(Duration::ZERO);
    let refused = once.start(&greet("a", "null"), None, Duration::ZERO).await.unwrap_err();
    assert!(refused.is_temporary());
    let came = flaky.came("/v1/instances");
    assert!(came.len() == 1 && came[0].key.is_none());
}

async fn check_worker(program: &str, file: &str) {
    let (flaky, address) = Flaky::start(2).await;
    let _worker = worker_at(program, file, &address, "key");
    let look = async {
        while flaky.came("complete").len() < 3 {
            crate::stand::look_again().await;
        }
    };
    let repeated = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, look).await;
    repeated.unwrap_or_else(|| panic!("{file} does not repeat its answer"));
    let came = flaky.came("complete");
    for again in &came {
        assert_eq!(
            again.body["answers"],
            json!([{ "complete": { "lease": "the-lease", "result": 2 } }]),
            "{file}"
        );
        assert_eq!(
            again.body["number"], came[0].body["number"],
            "{file}: a repeated exchange keeps its number"
        );
    }
}

#[tokio::test]
async fn the_python_worker_repeats_its_answer() {
    check_worker("python3", "worker.py").await;
}

#[tokio::test]
async fn the_node_worker_repeats_its_answer() {
    check_worker("node", "worker.mjs").await;
}
