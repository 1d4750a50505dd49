//! Instances over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::{Context, Failure, Orchestration, Payload, Registry, Runtime};
use segno_api::Json;
use segno_api::bulk::{Bulk, BulkAction, BulkFilter, BulkLeft};
use segno_api::instance::{ListInstances, OnConflict, Restart, Send, StartInstance, Status};
use segno_server::settings::Authentication;
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{CommitPoint, Fault, FaultStore};
use serde_json::json;

use crate::stand::{Ground, PATIENCE, Stand, greet, settings};

#[tokio::test]
async fn an_instance_is_started_and_its_result_waited_for() {
    let stand = Stand::open().await;
    let client = stand.client();
    let started = client.start(&greet("order/7", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    assert!(started.created);
    assert_eq!(started.id, "order/7");
    let instance = started.instance.unwrap();
    assert_eq!(instance.status, Status::Completed);
    assert_eq!(instance.result.unwrap().text(), r#""Hello, Ada!""#);
    let read = client.instance("order/7", Duration::ZERO).await.unwrap();
    assert_eq!(read.labels["team"], "eu");
    assert_eq!((read.namespace.as_str(), read.tenant.as_str()), ("default", "default"));
    let history = client.history("order/7", None, 0).await.unwrap();
    let kinds: Vec<&str> = history.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
    );
    let rest = client.history("order/7", Some(1), 3).await.unwrap();
    assert_eq!(rest.events.len(), 1);
    assert_eq!(client.executions("order/7", None).await.unwrap().executions.len(), 1);
    assert_eq!(client.tree("order/7", None).await.unwrap().nodes[0].id, "order/7");
}

#[tokio::test]
async fn the_callers_trace_goes_on_in_what_is_started() {
    let stand = Stand::open().await;
    let traceparent = |id: char| format!("00-0af7651916cd43dd8448eb211c80319{id}-b7ad6b7169203331-01");
    let greeting = json!({ "orchestration": "greet", "id": "one", "input": { "name": "Ada" } });
    let call = json!({ "function": "echo", "key": "k", "input": null });
    for (path, body, instance, sent) in [
        ("/v1/instances", greeting, Some("one"), traceparent('a')),
        ("/v1/instances/one/restart", json!({ "new_id": "two" }), Some("two"), traceparent('b')),
        ("/v1/invocations", call, None, traceparent('c')),
    ] {
        let request = crate::stand::http().post(stand.url(path)).json(&body);
        let answer = request.header("traceparent", &sent).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{path}");
        let answer: serde_json::Value = answer.json().await.unwrap();
        let id = instance.unwrap_or_else(|| answer["id"].as_str().unwrap());
        stand.client().instance(id, PATIENCE).await.unwrap();
        let history = stand.client().history(id, None, 0).await.unwrap();
        let started: serde_json::Value = serde_json::from_str(history.events[0].data.text()).unwrap();
        assert_eq!(started["traceparent"], sent, "{path}");
    }
}

#[tokio::test]
async fn a_start_of_an_id_that_is_taken_does_what_it_says() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut request = greet("one", r#"{"name":"Ada"}"#);
    client.start(&request, None, PATIENCE).await.unwrap();
    let refused = client.start(&request, None, Duration::ZERO).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("instance-exists")));
    assert!(!refused.to_string().contains("default/default"), "{refused}");
    request.on_conflict = OnConflict::UseExisting;
    assert!(!client.start(&request, None, Duration::ZERO).await.unwrap().created);
    request.on_conflict = OnConflict::Replace;
    assert!(client.start(&request, None, PATIENCE).await.unwrap().created);
}

#[tokio::test]
async fn signals_pauses_and_cancels_reach_an_instance() {
    let stand = Stand::open().await;
    let client = stand.client();
    let waits = r#"{"name":"Ada","wait":true}"#;
    client.start(&greet("waiting", waits), None, Duration::ZERO).await.unwrap();
    let status = client.custom_status("waiting", 0, PATIENCE).await.unwrap();
    assert_eq!(status.version, 1);
    client.pause("waiting", Some("lunch".to_owned())).await.unwrap();
    client.resume("waiting").await.unwrap();
    let message = Send { name: "wave".to_owned(), data: Json::null(), id: None };
    client.raise("waiting", &message).await.unwrap();
    let ended = client.instance("waiting", PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#""Hello, Ada! Goodbye, Ada.""#);
    let late = client.raise("waiting", &message).await.unwrap_err();
    assert_eq!((late.status(), late.code()), (Some(409), Some("instance-ended")));
    for refused in [
        client.cancel("waiting", None).await.unwrap_err(),
        client.pause("waiting", None).await.unwrap_err(),
        client.resume("waiting").await.unwrap_err(),
        client.enqueue("waiting", &message).await.unwrap_err(),
    ] {
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("instance-ended")));
        assert!(refused.to_string().contains("(completed)"), "{refused}");
    }

    client.start(&greet("cancelled", waits), None, Duration::ZERO).await.unwrap();
    client.custom_status("cancelled", 0, PATIENCE).await.unwrap();
    client.cancel("cancelled", Some("changed my mind".to_owned())).await.unwrap();
    let ended = client.instance("cancelled", PATIENCE).await.unwrap();
    assert_eq!(ended.status, Status::Cancelled);
    assert!(ended.failure.unwrap().message.contains("changed my mind"));

    let restarted = client.restart("cancelled", &Restart::default()).await.unwrap();
    assert!(restarted.created);
    assert_eq!(client.instance("cancelled", Duration::ZERO).await.unwrap().execution, 2);
    let refused = client.restart("cancelled", &Restart::default()).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("instance-running")));
    // What was cancelled can still be read.
    let first = client.history("cancelled", Some(1), 0).await.unwrap();
    assert!(first.events.iter().any(|event| event.kind == "OrchestrationFailed"), "{first:?}");
    // An execution that has not begun cannot be replaced by force.
    while client.history("cancelled", Some(2), 0).await.unwrap().events.is_empty() {
        crate::stand::look_again().await;
    }
    let by_force = Restart { force: true, ..Restart::default() };
    client.restart("cancelled", &by_force).await.unwrap();
    assert_eq!(client.instance("cancelled", Duration::ZERO).await.unwrap().execution, 3);
    let refused = client.delete("cancelled", false).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("instance-running")));
    assert_eq!(client.delete("cancelled", true).await.unwrap().instances, 1);
    let gone = client.instance("cancelled", Duration::ZERO).await.unwrap_err();
    assert_eq!((gone.status(), gone.code()), (Some(404), Some("not-found")));
}

#[tokio::test]
async fn listings_are_filtered_and_paged() {
    let stand = Stand::open().await;
    let client = stand.client();
    for number in 0..5 {
        client.start(&greet(&format!("a-{number}"), r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    }
    client.start(&greet("b-0", r#"{"name":"Bob"}"#), None, PATIENCE).await.unwrap();
    let mut filter =
        ListInstances { prefix: Some("a-".to_owned()), limit: Some(2), ..ListInstances::default() };
    let mut seen = Vec::new();
    loop {
        let page = client.instances(&filter).await.unwrap();
        seen.extend(page.instances.into_iter().map(|instance| instance.id));
        match page.next_cursor {
            Some(cursor) => filter.cursor = Some(cursor),
            None => break,
        }
    }
    seen.sort();
    assert_eq!(seen, ["a-0", "a-1", "a-2", "a-3", "a-4"]);
    let labelled = ListInstances {
        label: vec!["team=eu".to_owned()],
        status: vec![Status::Completed],
        ..ListInstances::default()
    };
    assert_eq!(client.instances(&labelled).await.unwrap().instances.len(), 6);
    let several = ListInstances {
        label: vec!["team=eu".to_owned(), "team=eu".to_owned()],
        status: vec![Status::Failed, Status::Completed],
        ..ListInstances::default()
    };
    assert_eq!(client.instances(&several).await.unwrap().instances.len(), 6);
    let contradiction =
        ListInstances { label: vec!["team=eu".to_owned(), "team=us".to_owned()], ..ListInstances::default() };
    assert!(client.instances(&contradiction).await.unwrap().instances.is_empty());
    let ended_otherwise =
        ListInstances { status: vec![Status::Failed, Status::Cancelled], ..ListInstances::default() };
    assert!(client.instances(&ended_otherwise).await.unwrap().instances.is_empty());
    let none = ListInstances { label: vec!["team=us".to_owned()], ..ListInstances::default() };
    assert!(client.instances(&none).await.unwrap().instances.is_empty());
    for wrong in [
        ListInstances { limit: Some(0), ..ListInstances::default() },
        ListInstances { limit: Some(1_001), ..ListInstances::default() },
        ListInstances { cursor: Some("???".to_owned()), ..ListInstances::default() },
        ListInstances { label: vec!["team".to_owned()], ..ListInstances::default() },
        ListInstances { label: vec!["a=b".to_owned(); 33], ..ListInstances::default() },
    ] {
        assert_eq!(client.instances(&wrong).await.unwrap_err().status(), Some(400), "{wrong:?}");
    }
}

#[tokio::test]
async fn many_are_counted_first_and_then_acted_on() {
    let stand = Stand::open().await;
    let client = stand.client();
    for number in 0..20 {
        let id = format!("many-{number}");
        client.start(&greet(&id, r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
        client.custom_status(&id, 0, PATIENCE).await.unwrap();
    }
    let filter = BulkFilter { prefix: Some("many-".to_owned()), ..BulkFilter::default() };
    let mut request = Bulk {
        action: BulkAction::Cancel,
        ids: Vec::new(),
        filter,
        reason: None,
        dry_run: true,
        force: false,
        limit: None,
        cursor: None,
    };
    let counted = client.bulk(&request).await.unwrap();
    assert_eq!((counted.matched, counted.changed, counted.next_cursor), (20, 0, None));
    assert_eq!(counted.would_change, Some(20));
    // What runs is not deleted, and the dry run says so.
    let mut delete = Bulk { action: BulkAction::Delete, ..request.clone() };
    for dry_run in [true, false] {
        let kept = client.bulk(&Bulk { dry_run, ..delete.clone() }).await.unwrap();
        assert_eq!((kept.would_change.unwrap_or(0), kept.changed), (0, 0));
        assert_eq!(kept.left, BulkLeft { running: 20, ..BulkLeft::default() });
    }
    delete.force = true;
    assert_eq!(client.bulk(&delete).await.unwrap().would_change, Some(20));
    request.dry_run = false;
    request.limit = Some(7);
    let mut parts = Vec::new();
    loop {
        let done = client.bulk(&request).await.unwrap();
        parts.push((done.matched, done.changed));
        request.cursor = done.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    assert_eq!(parts, [(7, 7), (7, 7), (6, 6)]);
    for number in 0..20 {
        let ended = client.instance(&format!("many-{number}"), PATIENCE).await.unwrap();
        assert_eq!(ended.status, Status::Cancelled);
    }
    let ended = Bulk { dry_run: true, cursor: None, limit: None, ..request.clone() };
    for dry_run in [true, false] {
        let kept = client.bulk(&Bulk { dry_run, ..ended.clone() }).await.unwrap();
        assert_eq!((kept.would_change.unwrap_or(0), kept.changed), (0, 0), "what has ended is not cancelled");
        assert_eq!(kept.left, BulkLeft { ended: 20, ..BulkLeft::default() });
    }
    let delete = Bulk { action: BulkAction::Delete, ..ended };
    assert_eq!(client.bulk(&delete).await.unwrap().would_change, Some(20));
    let deleted = client.bulk(&Bulk { dry_run: false, ..delete }).await.unwrap();
    assert_eq!((deleted.changed, deleted.would_change), (20, None));
    request.cursor = Some("???".to_owned());
    assert_eq!(client.bulk(&request).await.unwrap_err().status(), Some(400));
    request.filter = BulkFilter::default();
    assert_eq!(client.bulk(&request).await.unwrap_err().status(), Some(400));
}

/// A store that takes 200 ms of virtual time for each message, once it is told to.
fn slow_store(ground: &Ground, clock: &Arc<VirtualClock>) -> (Arc<FaultStore>, Arc<AtomicBool>) {
    let is_slow = Arc::new(AtomicBool::new(false));
    let (slow, passing) = (is_slow.clone(), clock.clone());
    let plan = move |point: CommitPoint| {
        if point.operation == "enqueue_for_orchestrator" && slow.load(Ordering::SeqCst) {
            passing.advance(Duration::from_millis(200));
        }
        Fault::None
    };
    (FaultStore::new(ground.store.clone(), clock.clone(), Box::new(plan)), is_slow)
}

#[tokio::test]
async fn a_bulk_call_that_takes_long_answers_in_time_with_where_to_go_on() {
    let clock = VirtualClock::new();
    let ground = Ground::on_clock(clock.clone());
    let (store, is_slow) = slow_store(&ground, &clock);
    let builder = Server::builder(store, settings(Authentication::None)).clock(clock.clone());
    let builder = builder.registry(samples::registry()).functions(samples::functions);
    let stand = Stand::begun(builder, &ground).await;
    let client = stand.client();
    for number in 0..200 {
        let id = format!("many-{number}");
        client.start(&greet(&id, r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
        client.custom_status(&id, 0, PATIENCE).await.unwrap();
    }
    is_slow.store(true, Ordering::SeqCst);
    let filter = BulkFilter { prefix: Some("many-".to_owned()), ..BulkFilter::default() };
    let mut request = Bulk {
        action: BulkAction::Cancel,
        ids: Vec::new(),
        filter,
        reason: None,
        dry_run: false,
        force: false,
        limit: None,
        cursor: None,
    };
    let (mut requests, mut matched, mut changed) = (0, 0, 0);
    loop {
        let begun_ms = clock.now_ms();
        let done = client.bulk(&request).await.unwrap();
        let took_ms = clock.now_ms() - begun_ms;
        assert!(took_ms <= 35_000, "a request is answered within 35 s, this took {took_ms} ms");
        (requests, matched, changed) = (requests + 1, matched + done.matched, changed + done.changed);
        request.cursor = done.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    assert!(requests > 1, "40 s of work do not fit into one request");
    assert_eq!((matched, changed), (200, 200), "each is counted and cancelled once");
    is_slow.store(false, Ordering::SeqCst);
    for number in 0..200 {
        let ended = client.instance(&format!("many-{number}"), PATIENCE).await.unwrap();
        assert_eq!(ended.status, Status::Cancelled);
    }
}

#[tokio::test]
async fn a_start_that_no_node_could_run_is_refused_with_the_nearest_names() {
    let ground = Ground::new().await;
    let stand = Stand::on(settings(Authentication::None), &ground).await;
    let client = stand.client();
    let named =
        |name: &str| StartInstance { orchestration: name.to_owned(), ..greet(name, r#"{"name":"Ada"}"#) };
    let refused = client.start(&named("gret"), None, Duration::ZERO).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(404), Some("unknown-orchestration")));
    assert!(refused.to_string().contains(r#"did you mean "greet"?"#), "{refused}");
    assert_eq!(client.instance("gret", Duration::ZERO).await.unwrap_err().status(), Some(404));
    // Another node publishes the name, and the start is taken, also when that node is gone again.
    let gret = Orchestration::<Payload, Payload>::new("gret");
    let registry = Registry::builder().orchestration(gret, async |_, input| Ok(input)).build().unwrap();
    let store = ground.of_another_node().await.store;
    let node = Runtime::builder(store.clone()).registry(registry).start().await.unwrap();
    while !segno::published::is_published(&*store, "gret").await.unwrap() {
        crate::stand::look_again().await;
    }
    node.shutdown(Duration::ZERO).await;
    client.start(&named("gret"), None, Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_delayed_start_shows_when_it_is_due() {
    let stand = Stand::open().await;
    let client = stand.client();
    let at: jiff::Timestamp = "2999-01-01T00:00:00Z".parse().unwrap();
    let delayed = StartInstance { start_at: Some(at), ..greet("delayed", r#"{"name":"Ada"}"#) };
    client.start(&delayed, None, Duration::ZERO).await.unwrap();
    let pending = async {
        loop {
            let shown = client.instance("delayed", Duration::ZERO).await.unwrap();
            // Until its first turn, only the start is known, and not its time.
            if shown.revision > 0 {
                return shown;
            }
        }
    };
    let shown = segno::clock::timeout(&SystemClock, PATIENCE, pending).await.expect("it has no turn");
    assert_eq!((shown.status, shown.start_at), (Status::Pending, Some(at)));
    assert_eq!(shown.labels.len(), 1, "{:?}", shown.labels);
    let listed = client.instances(&ListInstances::default()).await.unwrap().instances;
    assert_eq!((listed[0].start_at, listed[0].labels.len()), (Some(at), 1));
    client.start(&greet("now", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    assert_eq!(client.instance("now", PATIENCE).await.unwrap().start_at, None);
}

#[tokio::test]
async fn an_input_that_is_left_out_is_null_at_every_door() {
    const ECHOES: Orchestration<serde_json::Value, serde_json::Value> = Orchestration::new("echoes");
    let echo = async |_: Context, input: serde_json::Value| Ok::<_, Failure>(input);
    let registry = samples::registry().orchestration(ECHOES, echo);
    let stand = Stand::with_registry(settings(Authentication::None), registry).await;
    let client = stand.client();
    let http = crate::stand::http();
    let post = async |path: &str, body: serde_json::Value| -> serde_json::Value {
        http.post(stand.url(path)).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let every_year = "0 0 1 1 *";
    for (path, body) in [
        ("/v1/instances?wait_ms=60000", json!({ "orchestration": "echoes" })),
        ("/v1/invocations?wait_ms=60000", json!({ "function": "echo" })),
        ("/v1/actions", json!({ "function": "echo" })),
        ("/v1/actions", json!({ "function": "echo", "input": null })),
        ("/v1/actions", json!({ "orchestration": "echoes" })),
        ("/v1/recurring", json!({ "function": "echo", "cron_expr": every_year })),
        ("/v1/recurring", json!({ "orchestration": "echoes", "cron_expr": every_year })),
    ] {
        let made = post(path, body.clone()).await;
        let instance = match (path, &made["id"], &made["recurring_id"]) {
            ("/v1/actions", id, _) => {
                let path = format!("/v1/actions/{}", id.as_str().unwrap());
                let fired = async {
                    loop {
                        let action: serde_json::Value =
                            http.get(stand.url(&path)).send().await.unwrap().json().await.unwrap();
                        assert!(action["tool_input"].is_null(), "{action}");
                        match action["instance"].as_str() {
                            Some(instance) => return instance.to_owned(),
                            None => crate::stand::look_again().await,
                        }
                    }
                };
                segno::clock::timeout(&SystemClock, PATIENCE, fired).await.expect("it is not fired")
            }
            (_, _, id) if id.is_string() => {
                let run = client.run_recurring(id.as_str().unwrap(), &Default::default()).await.unwrap();
                run.instance.unwrap()
            }
            (_, id, _) => id.as_str().unwrap_or_else(|| panic!("{path}: {made}")).to_owned(),
        };
        let ended = client.instance(&instance, PATIENCE).await.unwrap();
        assert_eq!(ended.status, Status::Completed, "{path} {body}");
        assert_eq!(ended.result.as_ref().map_or("null", Json::text), "null", "{path} {body}");
    }
}
