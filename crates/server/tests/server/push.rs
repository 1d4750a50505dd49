//! Calls that are pushed to a worker's URL.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use segno_actions::functions::{SecretReference, http};
use segno_api::action::{ActionStatus, CreateAction, OnRestart};
use segno_api::instance::Status;
use segno_api::invocation::Invoke;
use segno_api::work::{CompleteWork, WorkItem};
use segno_server::settings::Authentication;
use segno_testkit::clock::VirtualClock;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::stand::{Ground, PATIENCE, Stand, json_of, listener, settings};

/// What the worker was sent.
struct Sent {
    headers: HeaderMap,
    body: Bytes,
}

impl Sent {
    fn item(&self) -> WorkItem {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A worker that is called, and answers by a script: the last answer again and again.
struct PushedTo {
    stand: Stand,
    sent: mpsc::UnboundedReceiver<Sent>,
    secret: NamedTempFile,
}

type Script = Arc<Mutex<Vec<(u16, Value)>>>;

async fn hook(
    State((script, sent)): State<(Script, mpsc::UnboundedSender<Sent>)>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let (status, answer) = {
        let mut script = script.lock().unwrap();
        if script.len() > 1 { script.remove(0) } else { script[0].clone() }
    };
    sent.send(Sent { headers, body }).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(header::CONTENT_TYPE, "application/json")], answer.to_string())
}

impl PushedTo {
    /// A server with the function `notify`, which is pushed to a worker that answers like this.
    async fn start(answers: &[(u16, Value)], allow_hosts: &[&str]) -> Self {
        Self::start_on(&Ground::new().await, answers, allow_hosts).await
    }

    /// The same on a store of one's own.
    async fn start_on(ground: &Ground, answers: &[(u16, Value)], allow_hosts: &[&str]) -> Self {
        let (sender, sent) = mpsc::unbounded_channel();
        let script: Script = Arc::new(Mutex::new(answers.to_vec()));
        let router = Router::new().route("/hook", post(hook)).with_state((script, sender));
        let listener = listener().await;
        let url = format!("http://localhost:{}/hook", listener.local_addr().unwrap().port());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let secret = NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "a shared secret").unwrap();
        let declaration = json!({
            "executor": "remote",
            "retry": { "attempts": 3, "initial_delay": "1ms" },
            "push": { "url": url, "secret": { "file": secret.path() }, "allow_hosts": allow_hosts },
        });
        let mut settings = settings(Authentication::None);
        settings.functions.insert("notify".parse().unwrap(), serde_json::from_value(declaration).unwrap());
        PushedTo { stand: Stand::on(settings, ground).await, sent, secret }
    }

    async fn next(&mut self) -> Sent {
        self.sent.recv().await.unwrap()
    }
}

const HERE: &[&str] = &["localhost"];

#[tokio::test]
async fn a_call_is_sent_signed_and_its_answer_is_the_result() {
    let mut worker = PushedTo::start(&[(200, json!({ "sent": true }))], HERE).await;
    let client = worker.stand.client().scope("shop", "eu");
    let called =
        client.invoke(&Invoke::new("notify", json_of(&json!({ "to": "Ada" }))), PATIENCE).await.unwrap();
    assert_eq!(called.instance.unwrap().result.unwrap().text(), r#"{"sent":true}"#);
    let sent = worker.next().await;
    let item = sent.item();
    assert_eq!((item.function.as_str(), item.input.text(), item.attempt), ("notify", r#"{"to":"Ada"}"#, 1));
    assert_eq!(item.instance, called.id);
    assert_eq!(sent.header("idempotency-key"), item.idempotency_key);
    let secret = SecretReference::File(worker.secret.path().to_owned()).resolve().await.unwrap();
    let at = sent.header("webhook-timestamp").parse().unwrap();
    let expected = http::sign(&secret, sent.header("webhook-id"), at, &sent.body).unwrap();
    assert_eq!(sent.header("webhook-signature"), expected);
}

#[tokio::test]
async fn a_worker_that_accepts_a_call_answers_it_later() {
    let mut worker = PushedTo::start(&[(202, Value::Null)], HERE).await;
    let client = worker.stand.client();
    let id = client.invoke(&Invoke::new("notify", json_of(&json!(1))), Duration::ZERO).await.unwrap().id;
    let item = worker.next().await.item();
    assert_eq!(client.instance(&id, Duration::ZERO).await.unwrap().status, Status::Running);
    let answer = CompleteWork { lease: item.lease, result: json_of(&json!("later")) };
    client.scope("shop", "us").complete_work(&answer).await.unwrap_err();
    let client = worker.stand.client();
    client.complete_work(&answer).await.unwrap();
    assert_eq!(client.instance(&id, PATIENCE).await.unwrap().result.unwrap().text(), r#""later""#);
    assert_eq!(client.complete_work(&answer).await.unwrap_err().code(), Some("lease-lost"));
}

#[tokio::test]
async fn trouble_is_tried_again_and_a_refusal_is_not() {
    let mut worker =
        PushedTo::start(&[(500, json!("down")), (503, json!("down")), (200, json!("up"))], HERE).await;
    let client = worker.stand.client();
    let called = client.invoke(&Invoke::new("notify", json_of(&json!(1))), PATIENCE).await.unwrap();
    assert_eq!(called.instance.unwrap().result.unwrap().text(), r#""up""#);
    for attempt in 1..=3 {
        assert_eq!(worker.next().await.item().attempt, attempt);
    }
    let worker = PushedTo::start(&[(422, json!("no")), (200, json!("yes"))], HERE).await;
    let client = worker.stand.client();
    let ended =
        client.invoke(&Invoke::new("notify", json_of(&json!(1))), PATIENCE).await.unwrap().instance.unwrap();
    let failure = ended.failure.unwrap();
    assert_eq!((failure.code.as_deref(), failure.retryable), (Some("http-status"), false));
}

#[tokio::test]
async fn a_worker_on_a_private_address_is_not_called_unless_it_is_allowed() {
    let mut worker = PushedTo::start(&[(200, Value::Null)], &[]).await;
    let client = worker.stand.client();
    let ended =
        client.invoke(&Invoke::new("notify", json_of(&json!(1))), PATIENCE).await.unwrap().instance.unwrap();
    assert_eq!(ended.failure.unwrap().code.as_deref(), Some("address-refused"));
    assert!(worker.sent.try_recv().is_err());
}

#[tokio::test]
async fn a_call_that_a_worker_has_accepted_is_its_own_after_a_crash_of_the_server() {
    let ground = Ground::embedded().await;
    let mut worker = PushedTo::start_on(&ground, &[(202, Value::Null)], HERE).await;
    let client = worker.stand.client();
    let id = client.invoke(&Invoke::new("notify", json_of(&json!(1))), Duration::ZERO).await.unwrap().id;
    let item = worker.next().await.item();
    // The server makes the lease durable once it has the worker's answer.
    let next = loop {
        let next = ground.after_a_crash().await;
        if next.store.get_queue_depths().await.unwrap().locked == 1 {
            break next;
        }
        crate::stand::look_again().await;
    };
    let stand = Stand::on(settings(Authentication::None), &next).await;
    let answer = CompleteWork { lease: item.lease, result: json_of(&json!("later")) };
    stand.client().complete_work(&answer).await.unwrap();
    let ended = stand.client().instance(&id, PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#""later""#);
    assert!(worker.sent.try_recv().is_err(), "it was sent once");
}

#[tokio::test]
async fn what_is_begun_once_is_not_sent_again_when_its_worker_has_accepted_it_and_died() {
    let (sender, mut sent) = mpsc::unbounded_channel();
    let script: Script = Arc::new(Mutex::new(vec![(202, Value::Null)]));
    let router = Router::new().route("/hook", post(hook)).with_state((script, sender));
    let listener = listener().await;
    let url = format!("http://localhost:{}/hook", listener.local_addr().unwrap().port());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let secret = NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a shared secret").unwrap();
    let push = json!({ "url": url, "secret": { "file": secret.path() }, "allow_hosts": HERE });
    let mut settings = settings(Authentication::None);
    let declaration = serde_json::from_value(json!({ "executor": "remote", "push": push })).unwrap();
    settings.functions.insert("notify".parse().unwrap(), declaration);
    let clock = VirtualClock::new();
    let stand = Stand::on_clock(settings, clock.clone()).await;
    let client = stand.client();
    let once: CreateAction =
        serde_json::from_value(json!({ "function": "notify", "input": 1, "on_restart": "fail" })).unwrap();
    assert_eq!(once.on_restart, OnRestart::Fail);
    let made = client.create_action(&once).await.unwrap();
    sent.recv().await.unwrap();
    let instance = client.action(&made.id).await.unwrap().instance.unwrap();
    let (engine, stored) = (stand.server.client(), format!("default/default/{instance}"));
    let ended = async {
        while !engine.instance(stored.as_str()).await.unwrap().has_ended() {
            // Longer than the worker has for its first answer. Requests would time out, too.
            clock.advance(Duration::from_secs(61));
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, ended).await.expect("it takes too long");
    let status = stand.client().action(&made.id).await.unwrap().status;
    assert_eq!(status, ActionStatus::Failed { reason: "recovered from restart".to_owned() });
    assert!(sent.try_recv().is_err(), "it was sent once");
}

/// Calls of a slow function, of which a node sends so many at once.
const SENT_AT_ONCE: usize = 16;

/// Where two workers are called: one says nothing until it has a permit, one
/// answers at once.
pub async fn two_workers(permits: &Arc<Semaphore>, called: mpsc::UnboundedSender<()>) -> String {
    let permits = Arc::clone(permits);
    let slow = move || {
        let (permits, called) = (Arc::clone(&permits), called.clone());
        async move {
            called.send(()).unwrap();
            permits.acquire().await.unwrap().forget();
            StatusCode::NO_CONTENT
        }
    };
    let router = Router::new().route("/late", post(slow)).route("/prompt", post(|| async { StatusCode::OK }));
    let listener = listener().await;
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn no_call_waits_for_a_pause_however_many_there_are_and_however_slow_another_worker_is() {
    let permits = Arc::new(Semaphore::new(0));
    let (called, mut slow_calls) = mpsc::unbounded_channel();
    let url = two_workers(&permits, called).await;
    let secret = NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a shared secret").unwrap();
    let mut settings = settings(Authentication::None);
    for name in ["late", "prompt"] {
        let push = json!({ "url": format!("{url}/{name}"), "secret": { "file": secret.path() }, "allow_hosts": HERE });
        let declaration = serde_json::from_value(json!({ "executor": "remote", "push": push })).unwrap();
        settings.functions.insert(name.parse().unwrap(), declaration);
    }
    // The clock stands still: whatever waits for a time waits for ever.
    let stand = Stand::on_clock(settings, VirtualClock::new()).await;
    let mut callers = JoinSet::new();
    let call = |callers: &mut JoinSet<Status>, function: &'static str, number: usize| {
        let client = stand.client();
        callers.spawn(async move {
            let request = Invoke::new(function, json_of(&json!(number)));
            client.invoke(&request, PATIENCE).await.unwrap().instance.unwrap().status
        });
    };
    (0..SENT_AT_ONCE + 4).for_each(|number| call(&mut callers, "late", number));
    for _ in 0..SENT_AT_ONCE {
        slow_calls.recv().await.unwrap();
    }
    let slow = std::mem::take(&mut callers);
    for _ in 0..3 {
        (0..64).for_each(|number| call(&mut callers, "prompt", number));
        while let Some(ended) = callers.join_next().await {
            assert_eq!(ended.unwrap(), Status::Completed);
        }
    }
    assert!(slow_calls.try_recv().is_err(), "no more than so many of one function at once");
    permits.add_permits(SENT_AT_ONCE + 4);
    for ended in slow.join_all().await {
        assert_eq!(ended, Status::Completed);
    }
}

/// Calls of one tenant, of which a node sends so many at once.
const SENT_OF_A_TENANT: usize = 48;

#[tokio::test]
async fn a_tenant_with_many_slow_workers_leaves_places_to_others() {
    let permits = Arc::new(Semaphore::new(0));
    let (called, mut slow_calls) = mpsc::unbounded_channel();
    let url = two_workers(&permits, called).await;
    let secret = NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a shared secret").unwrap();
    let mut settings = settings(Authentication::None);
    let mut declare = |name: &str, path: &str| {
        let push = json!({ "url": format!("{url}/{path}"), "secret": { "file": secret.path() }, "allow_hosts": HERE });
        let declaration = serde_json::from_value(json!({ "executor": "remote", "push": push })).unwrap();
        settings.functions.insert(name.parse().unwrap(), declaration);
    };
    declare("prompt", "prompt");
    let slow: Vec<String> = (0..64).map(|number| format!("late-{number}")).collect();
    slow.iter().for_each(|name| declare(name, "late"));
    // The clock stands still: whatever waits for a time waits for ever.
    let stand = Stand::on_clock(settings, VirtualClock::new()).await;
    let (greedy, other) = (stand.client().scope("shop", "greedy"), stand.client().scope("shop", "other"));
    let mut ids = Vec::new();
    for name in &slow {
        ids.push(greedy.invoke(&Invoke::new(name, json_of(&json!(1))), Duration::ZERO).await.unwrap().id);
    }
    for _ in 0..SENT_OF_A_TENANT {
        slow_calls.recv().await.unwrap();
    }
    for number in 0..32 {
        let request = Invoke::new("prompt", json_of(&json!(number)));
        let ended = other.invoke(&request, PATIENCE).await.unwrap().instance.unwrap();
        assert_eq!(ended.status, Status::Completed);
    }
    assert!(slow_calls.try_recv().is_err(), "no more than so many of one tenant at once");
    permits.add_permits(slow.len());
    for id in ids {
        assert_eq!(greedy.instance(&id, PATIENCE).await.unwrap().status, Status::Completed);
    }
}
