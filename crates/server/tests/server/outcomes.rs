//! What a caller is told about a write that failed: never done when it was not, never undone when
//! it may have been done.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use segno::clock::{Clock, SystemClock};
use segno_api::Client;
use segno_api::batch::BatchAction;
use segno_api::client::Expected;
use segno_api::invocation::Invoke;
use segno_api::work::FetchWork;
use segno_runbook::bus::{
    Bus as _, DeadLetterReason, Message, RecordBus, Settlement, SubscriptionName, SubscriptionSettings,
};
use segno_server::settings::{Authentication, Role, Settings};
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{CommitPoint, Fault, FaultStore};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stand::{Ground, PATIENCE, Stand, creates_on_condition, json_of, listener, settings};

/// Which writes of a store fail, and how.
type FaultPlan = Box<dyn Fn(CommitPoint) -> Fault + Send>;

/// A server without a runtime, whose store fails as a test says.
pub struct Failing {
    pub server: Server,
    pub key: String,
    fault: Arc<Mutex<FaultPlan>>,
    /// Told of every write that meets a fault.
    pub met: Arc<Notify>,
}

pub struct Answer {
    pub status: u16,
    pub problem: Value,
    warning: Option<String>,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.problem["code"].as_str().unwrap_or_default()
    }
}

fn api_only() -> Settings {
    let mut settings = settings(Authentication::Keys);
    settings.server.roles = [Role::Api].into();
    // Without one, its routes do not come as far as the store.
    settings.archive.enabled = true;
    settings
}

impl Failing {
    pub async fn new(ground: &Ground, key: &str, clock: Arc<dyn Clock>) -> Self {
        let fault: Arc<Mutex<FaultPlan>> = Arc::new(Mutex::new(Box::new(|_| Fault::None)));
        let met = Arc::new(Notify::new());
        let plan = Box::new({
            let (fault, met) = (fault.clone(), met.clone());
            move |point| {
                let fault = (*fault.lock().unwrap())(point);
                if fault != Fault::None {
                    met.notify_one();
                }
                fault
            }
        });
        let store = FaultStore::new(ground.store.clone(), clock.clone(), plan);
        let builder = Server::builder(store, api_only()).clock(clock).functions(samples::functions);
        let builder = builder.registry(samples::registry()).ledger(ground.ledger.clone());
        let mut server = builder.start(listener().await).await.unwrap();
        let key = server.take_first_key().unwrap_or_else(|| key.to_owned());
        Failing { server, key, fault, met }
    }

    pub fn fail(&self, fault: impl Fn(CommitPoint) -> Fault + Send + 'static) {
        *self.fault.lock().unwrap() = Box::new(fault);
    }

    pub fn call(&self, method: &Method, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.server.address());
        let mut call = crate::stand::http().request(method.clone(), url).bearer_auth(&self.key);
        if creates_on_condition(method, path) {
            call = call.header("if-none-match", "*");
        }
        if !body.is_null() {
            call = call.json(body);
        }
        if path == "/v1/sessions" {
            call = call.header("origin", format!("http://{}", self.server.address()));
        }
        call
    }
}

pub async fn answer(call: reqwest::RequestBuilder) -> Answer {
    let answer = call.send().await.unwrap();
    let warning = answer.headers().get("segno-warning").map(|value| value.to_str().unwrap().to_owned());
    Answer { status: answer.status().as_u16(), problem: answer.json().await.unwrap_or_default(), warning }
}

/// A write: its method, its route in the document, where it goes, and its body.
pub type Row = (Method, &'static str, String, Value);

/// Everything that the rows need, made on a server whose store does not fail; then the rows, those
/// that remove last.
pub async fn rows(calm: &Stand) -> Vec<Row> {
    let client = calm.client();
    let waiting = json!({ "name": "Ada", "wait": true }).to_string();
    for id in ["one", "two"] {
        client.start(&crate::stand::greet(id, &waiting), None, Duration::ZERO).await.unwrap();
        let is_begun = async {
            while client.instance(id, Duration::ZERO).await.unwrap().orchestration.is_none() {
                crate::stand::look_again().await;
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, is_begun).await.expect("it does not begin");
    }
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("render", &remote, Expected::Absent).await.unwrap();
    let mut leases = Vec::new();
    for key in ["a", "b", "c", "d", "e"] {
        let mut request = segno_api::invocation::Invoke::new("render", json_of(&1));
        request.key = Some(key.to_owned());
        client.invoke(&request, Duration::ZERO).await.unwrap();
        let fetch = FetchWork { wait_ms: 60_000, lease_ms: 600_000, ..FetchWork::new("w", ["render"]) };
        leases.push(client.fetch_work(&fetch).await.unwrap().items.remove(0).lease);
    }
    client.fetch_work(&FetchWork::of_pool("w", "Edge", ["New-X"])).await.unwrap();
    let hook = json!({ "function": "echo", "verification": "none", "store_only": true });
    client.put_hook("inbox", &json_of(&hook), Expected::Absent).await.unwrap();
    let posted = crate::stand::http().post(calm.url("/v1/hooks/default/inbox")).body("{}").send().await;
    let payload: Value = posted.unwrap().json().await.unwrap();
    let payload = format!("/v1/hooks/default/inbox/payloads/{}", payload["id"].as_str().unwrap());
    let post = async |path: &str, body: Value| -> String {
        let call = crate::stand::http().post(calm.url(path)).bearer_auth(&calm.admin_key).json(&body);
        let made: Value = call.send().await.unwrap().json().await.unwrap();
        let ids = [&made["id"], &made["recurring_id"], &made["key"]["id"]];
        ids.into_iter().find_map(Value::as_str).unwrap_or_else(|| panic!("{path}: {made}")).to_owned()
    };
    let action = json!({ "tool_name": "echo", "tool_input": 1, "next_tick_at": "2999-01-01T00:00:00Z" });
    let first = post("/v1/actions", action.clone()).await;
    let second = post("/v1/actions", action.clone()).await;
    let daily = json!({ "cron_expr": "0 9 * * *", "provider": "echo", "action_type": "x", "payload": {} });
    let recurring = post("/v1/recurring", daily.clone()).await;
    for _ in 0..2 {
        calm.send_junk("default/default/one", "junk").await;
    }
    let letters = calm.until_dead_letters(&client, 2).await;
    let (sent_again, discarded) = (&letters[0].id, &letters[1].id);
    let saved = json!({ "kind": "view", "text": "status:failed" });
    client.save("mine", &serde_json::from_value(saved).unwrap(), None).await.unwrap();
    let runbook = "name: move\ndata_source: {type: manual, primary_key: Key}\nphases:\n  - {name: a, offset: T-0, steps: [{name: b, worker_id: Edge, function: New-X}]}\n";
    client.publish_runbook(&crate::runbooks::yaml(runbook)).await.unwrap();
    let batch = json!({ "runbook": "move", "members": [{ "Key": "a" }] });
    client.create_batch(&serde_json::from_value(batch.clone()).unwrap()).await.unwrap();
    let ended = client.create_batch(&serde_json::from_value(batch.clone()).unwrap()).await.unwrap().id;
    client.request_of_batch(ended, &BatchAction::CancelBatch { reason: None }).await.unwrap();
    let queried = runbook
        .replace("name: move", "name: queried")
        .replace("type: manual", "type: function, function: echo, batch_time: immediate");
    client.publish_runbook(&crate::runbooks::yaml(&queried)).await.unwrap();
    let spare = runbook.replace("name: move", "name: spare");
    for text in [spare.clone(), format!("{spare}description: newer\n")] {
        client.publish_runbook(&crate::runbooks::yaml(&text)).await.unwrap();
    }
    calm.hold_removal("queried", 3).await;
    let key = json!({ "name": "x", "role": "viewer", "grants": [{ "namespace": "*", "tenant": "*" }] });
    let revoked = post("/v1/keys", key.clone()).await;
    let (_, ended_session) = calm.sign_in(&calm.admin_key).await;
    let backfill = json!({ "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T12:00:00Z" });
    let (post_method, put) = (Method::POST, Method::PUT);
    let row = |method: &Method, route: &'static str, path: &str, body: Value| {
        (method.clone(), route, path.to_owned(), body)
    };
    let lease = |place: usize| json!({ "lease": leases[place] });
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let [letter_again, letter_gone, completed, renewed] = bus_of(calm).await;
    let mut rows = vec![
        // Locks of the bus last a minute, so these come first.
        row(
            &post_method,
            "/v1/bus/{topic}/messages",
            "/v1/bus/jobs/messages",
            json!({ "messages": [{ "message_id": "new", "body": "{}" }] }),
        ),
        row(
            &post_method,
            "/v1/bus/{topic}/{subscription}/settle",
            "/v1/bus/jobs/w/settle",
            json!({ "lock": completed, "outcome": "complete" }),
        ),
        row(
            &post_method,
            "/v1/bus/{topic}/{subscription}/renew",
            "/v1/bus/jobs/w/renew",
            json!({ "lock": renewed }),
        ),
        row(
            &post_method,
            "/v1/bus/{topic}/{subscription}/dead-letters/{id}/resubmit",
            &format!("/v1/bus/jobs/w/dead-letters/{letter_again}/resubmit"),
            Value::Null,
        ),
        row(
            &Method::DELETE,
            "/v1/bus/{topic}/{subscription}/dead-letters/{id}",
            &format!("/v1/bus/jobs/w/dead-letters/{letter_gone}"),
            Value::Null,
        ),
        row(
            &post_method,
            "/v1/instances",
            "/v1/instances",
            json!({ "orchestration": "greet", "id": "new", "input": { "name": "A" } }),
        ),
        row(&post_method, "/v1/invocations", "/v1/invocations", json!({ "function": "echo", "input": 1 })),
        row(
            &post_method,
            "/v1/instances/bulk",
            "/v1/instances/bulk",
            json!({ "action": "pause", "filter": { "prefix": "one" } }),
        ),
        row(&put, "/v1/functions/{name}", "/v1/functions/new", json!({ "executor": "remote" })),
        row(&put, "/v1/hooks/{namespace}/{route}", "/v1/hooks/default/new", hook),
        row(
            &Method::PATCH,
            "/v1/hooks/{namespace}/{route}",
            "/v1/hooks/default/inbox",
            json!({ "store_only": false }),
        ),
        row(&post_method, "/v1/hooks/{namespace}/{route}", "/v1/hooks/default/inbox", json!({ "n": 1 })),
        row(
            &post_method,
            "/v1/hooks/{namespace}/{route}/payloads/{id}/replay",
            &format!("{payload}/replay"),
            Value::Null,
        ),
        row(&post_method, "/v1/actions", "/v1/actions", action),
        row(&Method::PATCH, "/v1/actions/{id}", &format!("/v1/actions/{first}"), json!({ "label": "new" })),
        row(&post_method, "/v1/actions/{id}/run", &format!("/v1/actions/{first}/run"), Value::Null),
        row(&post_method, "/v1/actions/{id}/cancel", &format!("/v1/actions/{second}/cancel"), Value::Null),
        row(&post_method, "/v1/recurring", "/v1/recurring", daily),
        row(
            &put,
            "/v1/recurring/{id}",
            &format!("/v1/recurring/{recurring}"),
            json!({ "description": "new" }),
        ),
        row(
            &post_method,
            "/v1/recurring/{id}/pause",
            &format!("/v1/recurring/{recurring}/pause"),
            Value::Null,
        ),
        row(
            &post_method,
            "/v1/recurring/{id}/resume",
            &format!("/v1/recurring/{recurring}/resume"),
            Value::Null,
        ),
        row(
            &post_method,
            "/v1/recurring/{id}/backfill",
            &format!("/v1/recurring/{recurring}/backfill"),
            backfill,
        ),
        row(
            &post_method,
            "/v1/recurring/{id}/run",
            &format!("/v1/recurring/{recurring}/run"),
            json!({ "key": "x" }),
        ),
        row(
            &post_method,
            "/v1/dead-letters/{id}/resubmit",
            &format!("/v1/dead-letters/{sent_again}/resubmit"),
            Value::Null,
        ),
        row(&post_method, "/v1/pools/{name}/pause", "/v1/pools/Edge/pause", json!({ "reason": "x" })),
        row(&post_method, "/v1/pools/{name}/resume", "/v1/pools/Edge/resume", Value::Null),
        row(
            &post_method,
            "/v1/runbooks",
            "/v1/runbooks",
            json!({ "yaml_content": format!("{runbook}description: new\n") }),
        ),
        row(
            &post_method,
            "/v1/runbooks/{name}/removal/approve",
            "/v1/runbooks/queried/removal/approve",
            json!({ "set": 3 }),
        ),
        row(
            &post_method,
            "/v1/runbooks/{name}/removal/reject",
            "/v1/runbooks/queried/removal/reject",
            json!({ "set": 3 }),
        ),
        row(
            &put,
            "/v1/runbooks/{name}/automation",
            "/v1/runbooks/queried/automation",
            json!({ "enabled": true }),
        ),
        row(&post_method, "/v1/batches", "/v1/batches", batch),
        row(
            &post_method,
            "/v1/batches/{id}/members",
            "/v1/batches/1/members",
            json!({ "members": [{ "Key": "b" }] }),
        ),
        row(
            &post_method,
            "/v1/batches/{id}/members/remove",
            "/v1/batches/1/members/remove",
            json!({ "keys": ["a"] }),
        ),
        row(
            &post_method,
            "/v1/batches/{id}/requests",
            "/v1/batches/1/requests",
            json!({ "action": "pause_batch" }),
        ),
        row(&put, "/v1/saved/{name}", "/v1/saved/new", json!({ "kind": "view", "text": "status:failed" })),
        row(&post_method, "/v1/keys", "/v1/keys", key),
        row(&post_method, "/v1/sessions", "/v1/sessions", json!({ "key": calm.admin_key })),
        row(
            &post_method,
            "/v1/work/heartbeat",
            "/v1/work/heartbeat",
            with(lease(0), "extend_ms", json!(30_000)),
        ),
        row(&post_method, "/v1/work/complete", "/v1/work/complete", with(lease(1), "result", json!(1))),
        row(&post_method, "/v1/work/fail", "/v1/work/fail", with(lease(2), "message", json!("no paint"))),
        row(&post_method, "/v1/work/release", "/v1/work/release", lease(3)),
        row(
            &post_method,
            "/v1/work/exchange",
            "/v1/work/exchange",
            json!({ "worker": "w", "number": 1, "answers": [{ "complete": lease(4) }] }),
        ),
        row(
            &post_method,
            "/v1/instances/{id}/restart",
            "/v1/instances/one/restart",
            json!({ "new_id": "three" }),
        ),
    ];
    for (route, verb, body) in [
        ("/v1/instances/{id}/raise", "raise", json!({ "name": "x" })),
        ("/v1/instances/{id}/enqueue", "enqueue", json!({ "name": "x" })),
        ("/v1/instances/{id}/pause", "pause", json!({})),
        ("/v1/instances/{id}/resume", "resume", Value::Null),
        ("/v1/instances/{id}/cancel", "cancel", json!({})),
    ] {
        rows.push(row(&post_method, route, &format!("/v1/instances/two/{verb}"), body));
    }
    let retry = format!("/v1/instances/{}/retry", waiting_retry(&client).await);
    rows.push(row(&post_method, "/v1/instances/{id}/retry", &retry, json!({})));
    rows.extend(crate::dags::writes(calm).await);
    let delete = &Method::DELETE;
    rows.push(row(delete, "/v1/dags/{name}", "/v1/dags/one", Value::Null));
    rows.push(row(delete, "/v1/hooks/{namespace}/{route}/payloads/{id}", &payload, Value::Null));
    rows.push(row(delete, "/v1/hooks/{namespace}/{route}", "/v1/hooks/default/inbox", Value::Null));
    rows.push(row(delete, "/v1/functions/{name}", "/v1/functions/render", Value::Null));
    rows.push(row(delete, "/v1/pools/{name}", "/v1/pools/Edge", Value::Null));
    let version = "/v1/runbooks/{name}/versions/{version}";
    rows.push(row(delete, version, "/v1/runbooks/spare/versions/1", Value::Null));
    rows.push(row(delete, "/v1/runbooks/{name}", "/v1/runbooks/spare", Value::Null));
    rows.push(row(delete, "/v1/batches/{id}", &format!("/v1/batches/{ended}"), Value::Null));
    rows.push(row(delete, "/v1/actions/{id}", &format!("/v1/actions/{second}"), Value::Null));
    rows.push(row(delete, "/v1/recurring/{id}", &format!("/v1/recurring/{recurring}"), Value::Null));
    rows.push(row(delete, "/v1/dead-letters/{id}", &format!("/v1/dead-letters/{discarded}"), Value::Null));
    rows.push(row(delete, "/v1/sessions/{id}", &format!("/v1/sessions/{}", ended_session.id), Value::Null));
    rows.push(row(delete, "/v1/saved/{name}", "/v1/saved/mine", Value::Null));
    rows.push(row(delete, "/v1/keys/{id}", &format!("/v1/keys/{revoked}"), Value::Null));
    rows.push(row(delete, "/v1/instances/{id}", "/v1/instances/two?force=true", Value::Null));
    rows.push(row(delete, "/v1/archive/{of}/{id}", "/v1/archive/instances/two", Value::Null));
    rows.push(row(delete, "/v1/archive", "/v1/archive", Value::Null));
    rows
}

/// A subscription with two dead letters and two locked messages: ids and locks.
pub async fn bus_of(calm: &Stand) -> [String; 4] {
    let store = calm.server.client().store().clone();
    let ids = segno::ids::SystemIds::shared();
    let bus = RecordBus::new(store, SystemClock::shared(), ids, segno_actions::functions::Scope::default());
    let from = SubscriptionName::new("jobs", "w").unwrap();
    bus.subscribe(&from, &SubscriptionSettings::default()).await.unwrap();
    let other = SubscriptionName::new("results", "w").unwrap();
    bus.subscribe(&other, &SubscriptionSettings::default()).await.unwrap();
    let messages = ["a", "b", "c", "d"].map(|id| Message::json(id, "{}"));
    bus.send(&from.topic, messages.to_vec()).await.unwrap();
    let mut locked = bus.receive(&from, 4, Duration::ZERO).await.unwrap();
    for one in locked.drain(..2) {
        let dead = Settlement::DeadLetter(DeadLetterReason::new("Rejected", "x"));
        bus.settle(&from, &one.lock, dead).await.unwrap();
    }
    let (letters, _) = segno_actions::Listed::split(bus.dead_letters(&from, None, 2).await.unwrap());
    let letters = letters.into_iter().map(|letter| letter.id);
    let all: Vec<String> = letters.chain(locked.into_iter().map(|one| one.lock)).collect();
    all.try_into().unwrap()
}

/// A call whose next attempt is far away.
async fn waiting_retry(client: &Client) -> String {
    let function =
        json!({ "executor": "remote", "retry": { "attempts": 3, "initial_delay": "1h", "max_delay": "1h" } });
    client.put_function("again", &json_of(&function), Expected::Absent).await.unwrap();
    let id = client.invoke(&Invoke::new("again", json_of(&1)), Duration::ZERO).await.unwrap().id;
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["again"]) };
    let lease = client.fetch_work(&fetch).await.unwrap().items.remove(0).lease;
    let failure = json!({ "lease": lease, "message": "not yet" });
    client.fail_work(&serde_json::from_value(failure).unwrap()).await.unwrap();
    let look = json!({ "action": "retry", "ids": [id], "dry_run": true });
    let look = serde_json::from_value(look).unwrap();
    let is_waiting = async {
        while client.bulk(&look).await.unwrap().would_change != Some(1) {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, is_waiting).await.expect("it does not wait");
    id
}

/// The writes that the document has, but for those that leave nothing behind.
async fn documented(calm: &Stand) -> BTreeSet<(String, String)> {
    let document: Value =
        crate::stand::http().get(calm.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut writes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let leaves_nothing = [
                "/v1/bus/{topic}/{subscription}/receive",
                "/v1/hooks/{namespace}/{route}/test",
                "/v1/recurring/preview",
                "/v1/runbooks/{name}/plan",
                "/v1/runbooks/{name}/preview",
                "/v1/sql",
                "/v1/work/fetch",
            ]
            .contains(&path.as_str())
                // They take a task token and no key.
                || path.starts_with("/api/v1/tasks/");
            let is_write = ["post", "put", "patch", "delete"].contains(&method.as_str());
            if is_write && !leaves_nothing {
                writes.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    writes
}

#[tokio::test]
async fn no_route_calls_done_what_was_not_nor_undone_what_may_have_been() {
    let ground = Ground::new().await;
    let calm = Stand::on(settings(Authentication::Keys), &ground).await;
    let rows = rows(&calm).await;
    let known = rows.iter().map(|row| (row.0.to_string(), row.1.to_owned())).collect();
    assert_eq!(documented(&calm).await, known, "every route that writes has a row here");
    // From here on nothing but the requests changes anything.
    let Stand { server, admin_key, .. } = calm;
    server.shutdown().await;
    let failing = Failing::new(&ground, &admin_key, SystemClock::shared()).await;
    for (method, _, path, body) in &rows {
        failing.fail(|_| Fault::Refuse);
        let refused = answer(failing.call(method, path, body)).await;
        let detail = refused.problem["detail"].as_str().unwrap_or_default().to_owned();
        assert_eq!((refused.status, refused.code()), (503, "unavailable"), "{method} {path}: {detail}");
        assert!(detail.contains("nothing was changed"), "{method} {path}: {detail}");
        failing.fail(|_| Fault::FailBefore);
        let lost = answer(failing.call(method, path, body)).await;
        assert_eq!((lost.status, lost.code()), (503, "outcome-unknown"), "{method} {path}: {}", lost.problem);
        failing.fail(|_| Fault::FailAfter);
        let done = answer(failing.call(method, path, body)).await;
        assert_eq!((done.status, done.code()), (503, "outcome-unknown"), "{method} {path}: {}", done.problem);
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up_within_35_seconds() {
    let ground = Ground::new().await;
    let clock = VirtualClock::new();
    let failing = Failing::new(&ground, "", clock.clone()).await;
    failing.fail(|point| match point.operation {
        "commit_records" => Fault::CrashBefore,
        _ => Fault::None,
    });
    let body = json!({ "orchestration": "greet", "id": "a", "input": {} });
    let begun_ms = clock.now_ms();
    let call = tokio::spawn(answer(failing.call(&Method::POST, "/v1/instances", &body)));
    failing.met.notified().await;
    clock.advance(Duration::from_secs(35));
    let answer = call.await.unwrap();
    assert_eq!((answer.status, answer.code()), (503, "outcome-unknown"), "{}", answer.problem);
    assert!(clock.now_ms() - begun_ms <= 35_000);
}

#[tokio::test]
async fn a_refusal_is_neither_replaced_nor_delayed_by_an_audit_log_that_cannot_be_written() {
    let ground = Ground::new().await;
    let clock = VirtualClock::new();
    let failing = Failing::new(&ground, "", clock.clone()).await;
    failing.fail(|_| Fault::CrashBefore);
    // Time stands still, so an answer that waited for anything would never come.
    let refused = answer(failing.call(&Method::POST, "/v1/invocations", &json!({ "function": 1 }))).await;
    assert_eq!((refused.status, refused.code()), (400, "invalid-request"), "{}", refused.problem);
}

#[tokio::test]
async fn a_success_stays_one_when_its_audit_entry_is_late() {
    let clock = VirtualClock::new();
    // In memory whatever this run is about: only then is the request at its wait when this thread says so.
    let ground = Ground::on_clock(clock.clone());
    let failing = Failing::new(&ground, "", clock.clone()).await;
    let body = json!({ "orchestration": "greet", "id": "a", "input": { "name": "Ada", "wait": true } });
    assert_eq!(answer(failing.call(&Method::POST, "/v1/instances", &body)).await.status, 201);
    failing.fail(|point| match point.operation {
        "commit_records" => Fault::FailBefore,
        _ => Fault::None,
    });
    let body = json!({ "name": "x" });
    let call = tokio::spawn(answer(failing.call(&Method::POST, "/v1/instances/a/raise", &body)));
    failing.met.notified().await;
    // The request is a task of this thread; let it get to its wait for the entry.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(3));
    let done = call.await.unwrap();
    assert!((200..300).contains(&done.status), "{}", done.problem);
    assert_eq!(done.warning.as_deref(), Some("audit-entry-delayed"));
    failing.fail(|_| Fault::None);
    let listed = async {
        loop {
            clock.advance(Duration::from_secs(1));
            let page = answer(failing.call(&Method::GET, "/v1/audit", &Value::Null)).await;
            if page.problem["entries"].as_array().is_some_and(|entries| entries.len() == 2) {
                return;
            }
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("the entry is written later");
}
