//! Callers that hang up: a request that changes something ends all the same, with its entry in the
//! audit log and its answer under its idempotency key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use segno::clock::{Clock as _, SystemClock};
use segno::store::ListRecords;
use segno_api::key::Role;
use segno_server::settings::Authentication;
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::Fault;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::outcomes::{Failing, Row, answer, rows};
use crate::stand::{Ground, PATIENCE, Stand, creates_on_condition, settings};

/// Whether the changes of a route are in the audit log: what workers do and what senders post is
/// not.
fn is_audited((method, route, ..): &Row) -> bool {
    let is_of_workers = route.starts_with("/v1/work/")
        || ["settle", "renew"]
            .iter()
            .any(|verb| *route == format!("/v1/bus/{{topic}}/{{subscription}}/{verb}"));
    let is_of_senders = *method == Method::POST && *route == "/v1/hooks/{namespace}/{route}";
    // A session and its entry are one commit, and a session is of no use to a browser that has gone.
    let is_sign_in = *method == Method::POST && *route == "/v1/sessions";
    !is_of_workers && !is_of_senders && !is_sign_in
}

/// Routes that store their answer in the commit of their operation, without a claim before it.
const ONE_COMMIT: [&str; 2] = ["/v1/instances", "/v1/invocations"];

/// Lists that grow by one when their route is called once.
const LISTS: [(&str, &str); 4] = [
    ("/v1/actions", "actions"),
    ("/v1/recurring", "recurring_actions"),
    ("/v1/keys", "keys"),
    ("/v1/batches", "batches"),
];

/// Whether requests have an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Plain,
    Keyed,
}

/// A server on a clock that stands still, whose callers hang up.
struct Line {
    failing: Failing,
    clock: Arc<VirtualClock>,
}

impl Line {
    /// Sends a request, hangs up while one of its writes is under way, and lets that write go on
    /// once the server has noticed.
    async fn hang_up(&self, row: &Row, key: Option<&str>, at_write: u64) {
        let (method, _, path, body) = row;
        let writes = AtomicU64::new(0);
        self.failing.fail(move |_| match writes.fetch_add(1, Ordering::SeqCst) + 1 == at_write {
            true => Fault::Delay(Duration::from_secs(1)),
            false => Fault::None,
        });
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n",
            self.failing.key,
            body.len()
        );
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        if creates_on_condition(method, path) {
            head.push_str("if-none-match: *\r\n");
        }
        if let Some(key) = key {
            head.push_str(&format!("idempotency-key: {key}\r\n"));
        }
        let mut caller = TcpStream::connect(self.failing.server.address()).await.unwrap();
        caller.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let met = segno::clock::timeout(&SystemClock, PATIENCE, self.failing.met.notified()).await;
        assert!(met.is_some(), "{method} {path} makes no write {at_write}");
        caller.shutdown().await.unwrap();
        // The server has noticed once it has closed the connection as well.
        let _ = caller.read_to_end(&mut Vec::new()).await;
        self.failing.fail(|_| Fault::None);
        self.clock.advance(Duration::from_secs(1));
    }

    /// Entries of successful requests of a row.
    async fn entries(&self, (method, route, path, _): &Row) -> usize {
        let page = answer(self.failing.call(&Method::GET, "/v1/audit?limit=200", &Value::Null)).await.problem;
        let (operation, path) = (format!("{method} {route}"), path.split('?').next().unwrap());
        let is_it = |entry: &&Value| {
            let is_done = entry["status"].as_u64().is_some_and(|status| status < 300);
            is_done && entry["operation"] == operation.as_str() && entry["path"] == path
        };
        page["entries"].as_array().unwrap().iter().filter(is_it).count()
    }

    /// Waits until there are this many entries of a row.
    async fn until_entries(&self, row: &Row, count: usize) {
        let listed = async {
            while self.entries(row).await < count {
                // Some requests wait for a while after their change.
                self.clock.advance(Duration::from_secs(1));
            }
        };
        let listed = segno::clock::timeout(&SystemClock, PATIENCE, listed).await;
        assert!(listed.is_some(), "{} {} has fewer than {count} entries", row.0, row.2);
        assert_eq!(self.entries(row).await, count, "{} {}", row.0, row.2);
    }

    /// Repeats a request until it is not in flight any more, and returns whether it got the first
    /// answer.
    async fn repeat(&self, (method, _, path, body): &Row, key: &str) -> (u16, bool) {
        let repeated = async {
            loop {
                let call = self.failing.call(method, path, body).header("idempotency-key", key);
                let answer = call.send().await.unwrap();
                if answer.status() != StatusCode::CONFLICT {
                    return (answer.status().as_u16(), answer.headers().contains_key("idempotency-replayed"));
                }
                self.clock.advance(Duration::from_millis(10));
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, repeated).await.expect("it stays in flight")
    }

    /// Rows of a list.
    async fn count(&self, (path, field): (&str, &str)) -> usize {
        let page = answer(self.failing.call(&Method::GET, path, &Value::Null)).await.problem;
        page[field].as_array().unwrap().len()
    }
}

/// Hangs up on every route that changes something.
async fn hang_up_everywhere(sent: Sent) {
    let ground = Ground::new().await;
    let calm = Stand::on(settings(Authentication::Keys), &ground).await;
    let rows = rows(&calm).await;
    let Stand { server, admin_key, .. } = calm;
    server.shutdown().await;
    // From now on, so that what lies in the past for the rows does so for the server.
    let clock = VirtualClock::new();
    clock.advance(Duration::from_millis(SystemClock.now_ms() - clock.now_ms()));
    let failing = Failing::new(&ground, &admin_key, clock.clone()).await;
    let line = Line { failing, clock };
    for (number, row) in rows.iter().filter(|row| is_audited(row)).enumerate() {
        let list = LISTS.into_iter().find(|(path, _)| *path == row.2 && row.0 == Method::POST);
        let before = match list {
            Some(list) => line.count(list).await,
            None => 0,
        };
        let key = (sent == Sent::Keyed && row.0 == Method::POST).then(|| format!("key-{number}"));
        let entries = line.entries(row).await;
        let at_write = if key.is_some() && !ONE_COMMIT.contains(&row.1) { 2 } else { 1 };
        line.hang_up(row, key.as_deref(), at_write).await;
        line.until_entries(row, entries + 1).await;
        if let Some(key) = &key {
            let (status, is_replayed) = line.repeat(row, key).await;
            assert!(status < 300 && is_replayed, "{} {}: {status}, replayed: {is_replayed}", row.0, row.2);
        }
        if let Some(list) = list {
            assert_eq!(line.count(list).await, before + 1, "{}", row.2);
        }
    }
}

#[tokio::test]
async fn every_change_has_its_entry_also_when_its_caller_hangs_up() {
    hang_up_everywhere(Sent::Plain).await;
}

#[tokio::test]
async fn a_repeat_gets_the_answer_that_its_first_caller_did_not_wait_for() {
    hang_up_everywhere(Sent::Keyed).await;
}

#[tokio::test]
async fn a_start_has_its_entry_before_its_end_is_waited_for() {
    let stand = Stand::open().await;
    let waiting = json!({ "orchestration": "greet", "input": { "name": "Ada", "wait": true } });
    for key in [None, Some("k")] {
        let mut call = crate::stand::http().post(stand.url("/v1/instances?wait_ms=60000")).json(&waiting);
        if let Some(key) = key {
            call = call.header("idempotency-key", key);
        }
        let call = tokio::spawn(call.send());
        let entries = async || {
            let page: Value =
                crate::stand::http().get(stand.url("/v1/audit")).send().await.unwrap().json().await.unwrap();
            page["entries"].as_array().unwrap().len()
        };
        let wanted = if key.is_some() { 2 } else { 1 };
        while entries().await < wanted {
            crate::stand::look_again().await;
        }
        assert!(!call.is_finished(), "it waits for an end that does not come");
        call.abort();
    }
}

#[tokio::test]
async fn the_answer_with_the_end_is_kept_in_place_of_the_one_without() {
    let stand = Stand::open().await;
    let body = json!({ "function": "echo", "input": 7 });
    for is_replayed in [false, true] {
        let call = crate::stand::http().post(stand.url("/v1/invocations?wait_ms=60000"));
        let answer = call.header("idempotency-key", "k").json(&body).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(answer.headers().contains_key("idempotency-replayed"), is_replayed);
        let started: Value = answer.json().await.unwrap();
        assert_eq!(started["instance"]["status"], "completed", "{started}");
    }
}

#[tokio::test]
async fn a_request_that_timed_out_and_changed_nothing_can_be_repeated_at_once() {
    let clock = VirtualClock::new();
    // In memory whatever this run is about: other stores do not stand still with this clock.
    let ground = Ground::on_clock(clock.clone());
    let failing = Failing::new(&ground, "", clock.clone()).await;
    let action = json!({ "tool_name": "echo", "tool_input": 1, "next_tick_at": "2999-01-01T00:00:00Z" });
    let post = || failing.call(&Method::POST, "/v1/actions", &action).header("idempotency-key", "k");
    // The node has written that it is up, and writes nothing of its own until the clock goes on.
    let is_up = async {
        let nodes = || ListRecords { kind: "segno.node", limit: 1, ..ListRecords::default() };
        while ground.store.list_records(nodes()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, is_up).await.expect("it is not up");
    // The claim on the key is stored, and then the node stands still.
    let writes = AtomicU64::new(0);
    failing.fail(move |_| match writes.fetch_add(1, Ordering::SeqCst) {
        0 => Fault::StallFor(Duration::from_secs(37)),
        _ => Fault::None,
    });
    let call = tokio::spawn(answer(post()));
    failing.met.notified().await;
    clock.advance(Duration::from_secs(35));
    let timed_out = async {
        while !call.is_finished() {
            clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, timed_out).await.expect("it is answered");
    let timed_out = call.await.unwrap();
    assert_eq!((timed_out.status, timed_out.code()), (503, "unavailable"), "{}", timed_out.problem);
    clock.advance(Duration::from_secs(2));
    let repeated = async {
        loop {
            let again = answer(post()).await;
            if again.code() != "idempotency-in-flight" {
                return again;
            }
        }
    };
    let again = segno::clock::timeout(&SystemClock, PATIENCE, repeated).await.expect("the claim is released");
    assert_eq!(again.status, 201, "{}", again.problem);
    let page = answer(failing.call(&Method::GET, "/v1/actions", &Value::Null)).await.problem;
    assert_eq!(page["actions"].as_array().unwrap().len(), 1, "{page}");
}

#[tokio::test]
async fn an_idempotency_key_counts_for_a_tenant_whatever_api_key_sends_it() {
    let stand = Stand::with_keys().await;
    let (old, new) =
        (stand.key(Role::Operator, "shop", "eu").await, stand.key(Role::Operator, "shop", "eu").await);
    let (viewer, other) =
        (stand.key(Role::Viewer, "shop", "eu").await, stand.key(Role::Operator, "shop", "us").await);
    let send = async |key: &str, tenant: &str| {
        let url = stand.url(&format!("/v1/invocations?namespace=shop&tenant={tenant}"));
        let call = crate::stand::http().post(url).bearer_auth(key).header("idempotency-key", "k");
        let answer = call.json(&json!({ "function": "echo", "input": 1 })).send().await.unwrap();
        let is_replayed = answer.headers().contains_key("idempotency-replayed");
        (answer.status().as_u16(), is_replayed, answer.json::<Value>().await.unwrap()["id"].clone())
    };
    let first = send(&old, "eu").await;
    assert_eq!((first.0, first.1), (201, false));
    assert_eq!(send(&new, "eu").await, (201, true, first.2.clone()), "the key was replaced");
    for (key, tenant) in [(&viewer, "eu"), (&other, "eu")] {
        assert_eq!(send(key, tenant).await, (403, false, Value::Null));
    }
    let elsewhere = send(&other, "us").await;
    assert_eq!((elsewhere.0, elsewhere.1), (201, false));
}
