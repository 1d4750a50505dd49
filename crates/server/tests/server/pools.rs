//! Pools of workers over HTTP.

use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};
use segno_api::Client;
use segno_api::call::{CallPoolState, CallState};
use segno_api::client::{Expected, PageRequest};
use segno_api::instance::{Restart, Status};
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::pool::{PausePool, PoolDetails, PoolOrigin, PoolTransport};
use segno_api::work::{CompleteWork, FailWork, FetchWork, WorkItem};
use segno_server::settings::{Authentication, Settings};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet, json_of, settings};

/// Settings with pools, as TOML would have them.
fn with_pools(pools: &Value) -> Settings {
    let mut settings = settings(Authentication::None);
    settings.pools = serde_json::from_value(pools.clone()).unwrap();
    settings
}

fn cloud() -> Settings {
    with_pools(&json!({ "Cloud-01": { "functions": ["New-EntraUser", "Set-*"], "timeout": "1m" } }))
}

fn call(pool: &str, function: &str, input: Value) -> Invoke {
    Invoke { pool: Some(pool.to_owned()), ..Invoke::new(function, json_of(&input)) }
}

/// Makes a call without waiting; its id.
async fn begin(client: &Client, pool: &str, function: &str) -> String {
    client.invoke(&call(pool, function, json!({ "n": 1 })), Duration::ZERO).await.unwrap().id
}

async fn fetch(client: &Client, pool: &str, wait_ms: u64) -> Vec<WorkItem> {
    let none: [&str; 0] = [];
    let request = FetchWork { wait_ms, max_items: 10, ..FetchWork::of_pool("w-1", pool, none) };
    client.fetch_work(&request).await.unwrap().items
}

async fn complete(client: &Client, item: &WorkItem) {
    let done = CompleteWork { lease: item.lease.clone(), result: json_of(&json!({ "complete": true })) };
    client.complete_work(&done).await.unwrap();
}

fn throttled(item: &WorkItem, retry_after_ms: Option<u64>) -> FailWork {
    let body = json!({ "lease": item.lease, "message": "429", "code": "throttled" });
    FailWork { retry_after_ms, ..serde_json::from_value(body).unwrap() }
}

#[tokio::test]
async fn a_worker_of_a_pool_gets_every_function_that_the_settings_allow() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let first = begin(&client, "Cloud-01", "New-EntraUser").await;
    begin(&client, "Cloud-01", "Set-Mailbox").await;
    for (pool, function, status, code) in [
        ("Cloud-01", "Remove-EntraUser", 400, "function-not-in-pool"),
        ("Cloud-01", "set-mailbox", 400, "function-not-in-pool"),
        ("cloud-01", "New-EntraUser", 404, "unknown-pool"),
        ("a b", "New-EntraUser", 400, "invalid-name"),
        ("Cloud-01", "New EntraUser", 400, "invalid-function-name"),
    ] {
        let refused = client.invoke(&call(pool, function, json!(1)), Duration::ZERO).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(status), Some(code)), "{pool} {function}");
    }
    let items = fetch(&client, "Cloud-01", 60_000).await;
    let mut functions: Vec<&str> = items.iter().map(|item| item.function.as_str()).collect();
    let more = if items.len() < 2 { fetch(&client, "Cloud-01", 60_000).await } else { Vec::new() };
    functions.extend(more.iter().map(|item| item.function.as_str()));
    assert_eq!(functions, ["New-EntraUser", "Set-Mailbox"]);
    assert_eq!((items[0].instance.as_str(), items[0].timeout_ms), (first.as_str(), Some(60_000)));
    complete(&client, &items[0]).await;
    let ended = client.instance(&first, PATIENCE).await.unwrap();
    assert_eq!(ended.result.unwrap().text(), r#"{"complete":true}"#);
    let shown = client.pool("Cloud-01", None).await.unwrap();
    assert_eq!((shown.pool.origin, shown.pool.transport), (PoolOrigin::Settings, PoolTransport::Queue));
    assert_eq!((shown.pool.worker_count, shown.workers[0].worker.as_str()), (1, "w-1"));
    assert_eq!(shown.workers[0].pools, ["Cloud-01"]);
    assert_eq!(shown.pool.in_flight, 1);
    assert!(shown.pool.last_seen_at.is_some());
}

#[tokio::test]
async fn workers_announce_a_pool_of_their_tenant() {
    let stand = Stand::with_keys().await;
    let admin = stand.client();
    let worker = stand.client_with(Role::Worker, "default", "default").await;
    let nothing = FetchWork::of_pool("w", "Edge", Vec::<String>::new());
    let unknown = worker.fetch_work(&nothing).await.unwrap_err();
    assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-pool")));
    worker.fetch_work(&FetchWork::of_pool("w", "Edge", ["Restart-Host", "Get-Disk"])).await.unwrap();
    let pools = admin.pools(None).await.unwrap().pools;
    assert_eq!(pools.len(), 1);
    let pool = &pools[0];
    assert_eq!((pool.name.as_str(), pool.origin, pool.worker_count), ("Edge", PoolOrigin::Announced, 1));
    assert_eq!(pool.functions, ["Restart-Host", "Get-Disk"]);
    let id = begin(&admin, "Edge", "Get-Disk").await;
    let item =
        worker.fetch_work(&FetchWork { wait_ms: 60_000, ..nothing.clone() }).await.unwrap().items.remove(0);
    complete(&worker, &item).await;
    assert_eq!(admin.instance(&id, PATIENCE).await.unwrap().status, Status::Completed);
    let lab = stand.client_with(Role::Admin, "lab", "us").await.scope("lab", "us");
    assert!(lab.pools(None).await.unwrap().pools.is_empty());
    assert_eq!(lab.pool("Edge", None).await.unwrap_err().code(), Some("unknown-pool"));
    admin.delete_pool("Edge").await.unwrap();
    assert_eq!(admin.pool("Edge", None).await.unwrap_err().code(), Some("unknown-pool"));
}

#[tokio::test]
async fn a_fetch_that_makes_no_sense_is_refused() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let fetch = |change: &dyn Fn(&mut FetchWork)| {
        let mut request = FetchWork::of_pool("w", "Cloud-01", ["New-EntraUser"]);
        change(&mut request);
        let client = client.clone();
        async move { client.fetch_work(&request).await.unwrap_err() }
    };
    for (refused, field) in [
        (fetch(&|request| request.tags.push("gpu".to_owned())).await, "tags"),
        (fetch(&|request| request.untagged = false).await, "tags"),
        (fetch(&|request| request.pool = Some("a/b".to_owned())).await, "pool"),
        (fetch(&|request| request.functions.push("a b".to_owned())).await, "functions"),
        (fetch(&|request| request.functions = vec!["x".to_owned(); 1_001]).await, "functions"),
        (fetch(&|request| request.max_items = 0).await, "max_items"),
        (
            fetch(&|request| {
                request.pool = None;
                request.functions.clear();
            })
            .await,
            "functions",
        ),
    ] {
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")), "{field}");
        assert!(refused.to_string().contains(field), "{refused}");
    }
    let tagged = Invoke { tag: Some("gpu".to_owned()), ..call("Cloud-01", "Set-X", json!(1)) };
    let refused = client.invoke(&tagged, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid-request"));
}

#[tokio::test]
async fn a_paused_pool_hands_nothing_out_until_it_is_resumed() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let paused =
        client.pause_pool("Cloud-01", &PausePool { reason: Some("freeze".to_owned()) }).await.unwrap();
    assert_eq!(paused.paused.unwrap().reason.as_deref(), Some("freeze"));
    let id = begin(&client, "Cloud-01", "New-EntraUser").await;
    assert!(fetch(&client, "Cloud-01", 1_500).await.is_empty());
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { fetch(&client, "Cloud-01", 60_000).await }
    });
    assert!(client.pool("Cloud-01", None).await.unwrap().pool.paused.is_some());
    let resumed = client.resume_pool("Cloud-01").await.unwrap();
    assert!(resumed.paused.is_none());
    let items = waiting.await.unwrap();
    assert_eq!((items[0].instance.as_str(), items[0].delivery), (id.as_str(), 1));
    for unknown in [
        client.pause_pool("nobody", &PausePool::default()).await.unwrap_err(),
        client.resume_pool("nobody").await.unwrap_err(),
    ] {
        assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-pool")));
    }
    let kept = client.delete_pool("Cloud-01").await.unwrap_err();
    assert_eq!((kept.status(), kept.code()), (Some(400), Some("invalid-pool")));
}

#[tokio::test]
async fn a_fetch_that_waits_gets_nothing_of_a_pool_that_was_paused_meanwhile() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { fetch(&client, "Cloud-01", 2_000).await }
    });
    while client.workers(None).await.unwrap().workers.is_empty() {
        crate::stand::look_again().await;
    }
    client.pause_pool("Cloud-01", &PausePool::default()).await.unwrap();
    begin(&client, "Cloud-01", "New-EntraUser").await;
    assert!(waiting.await.unwrap().is_empty());
    client.resume_pool("Cloud-01").await.unwrap();
    assert_eq!(fetch(&client, "Cloud-01", 60_000).await[0].delivery, 1, "it counts as no delivery");
}

#[tokio::test]
async fn a_throttled_worker_has_not_failed_and_its_pool_rests() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let id = begin(&client, "Cloud-01", "New-EntraUser").await;
    let item = fetch(&client, "Cloud-01", 60_000).await.remove(0);
    client.fail_work(&throttled(&item, Some(3_600_000))).await.unwrap();
    let rests = client.pool("Cloud-01", None).await.unwrap().pool;
    assert!(rests.throttled_until.is_some() && rests.in_flight == 0, "{rests:?}");
    assert!(fetch(&client, "Cloud-01", 0).await.is_empty());
    assert_eq!(client.instance(&id, Duration::ZERO).await.unwrap().status, Status::Running);
    // A caller that knows that it is over need not wait for an hour, and neither need the call.
    assert!(client.resume_pool("Cloud-01").await.unwrap().throttled_until.is_none());
    let again = fetch(&client, "Cloud-01", 60_000).await.remove(0);
    assert_eq!((again.attempt, again.delivery), (1, 1));
    complete(&client, &again).await;
    assert_eq!(client.instance(&id, PATIENCE).await.unwrap().status, Status::Completed);
    // Outside of a pool it is a failure like any other.
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("render", &remote, Expected::Absent).await.unwrap();
    let called = client.invoke(&Invoke::new("render", json_of(&json!(1))), Duration::ZERO).await.unwrap();
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["render"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    client.fail_work(&throttled(&item, None)).await.unwrap();
    assert_eq!(client.instance(&called.id, PATIENCE).await.unwrap().status, Status::Failed);
}

#[tokio::test]
async fn a_call_says_what_its_pool_waits_for() {
    let stand = Stand::open().await;
    let client = stand.client();
    let announce = FetchWork::of_pool("w", "Edge", ["Get-Disk"]);
    client.fetch_work(&announce).await.unwrap();
    let id = begin(&client, "Edge", "Get-Disk").await;
    let shown = async || {
        let call = client.instance(&id, Duration::ZERO).await.unwrap().call.unwrap();
        let pool = call.pool.unwrap();
        assert_eq!((pool.name.as_str(), call.state), ("Edge", CallState::WaitsForWorker));
        assert_eq!(call.waits_until, pool.throttled_until);
        (pool.state, pool.reason, call.waits_for)
    };
    let until_queued = async {
        while client
            .instance(&id, Duration::ZERO)
            .await
            .unwrap()
            .call
            .is_none_or(|call| call.state == CallState::Settling)
        {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, until_queued).await.expect("it is not queued");
    assert_eq!(shown().await.0, CallPoolState::Active);
    for (reason, words) in [
        (Some("upgrade"), "the pool `Edge` to be resumed: it is paused (upgrade)"),
        (Some("longer upgrade"), "the pool `Edge` to be resumed: it is paused (longer upgrade)"),
        (None, "the pool `Edge` to be resumed: it is paused"),
    ] {
        let before = client.pool("Edge", None).await.unwrap().pool.paused;
        let pause = PausePool { reason: reason.map(str::to_owned) };
        let paused = client.pause_pool("Edge", &pause).await.unwrap().paused.unwrap();
        assert_eq!(paused.reason.as_deref(), reason, "a second pause says why it is one now");
        assert!(before.is_none_or(|before| before.at == paused.at), "it is paused since the first one");
        let (state, shown_reason, waits_for) = shown().await;
        assert_eq!((state, shown_reason.as_deref()), (CallPoolState::Paused, reason));
        assert_eq!(waits_for, words);
    }
    client.resume_pool("Edge").await.unwrap();
    let item = fetch(&client, "Edge", 60_000).await.remove(0);
    client.fail_work(&throttled(&item, Some(3_600_000))).await.unwrap();
    let (state, _, waits_for) = shown().await;
    assert_eq!(state, CallPoolState::Throttled);
    assert!(waits_for.contains("`Edge`") && waits_for.contains("throttled"), "{waits_for}");
    client.delete_pool("Edge").await.unwrap();
    let (state, _, waits_for) = shown().await;
    assert_eq!(state, CallPoolState::Missing);
    assert!(waits_for.contains("there is no such pool any more"), "{waits_for}");
    client.fetch_work(&FetchWork { wait_ms: 60_000, ..announce }).await.unwrap().items.remove(0);
}

#[tokio::test]
async fn an_unknown_pool_is_refused_with_the_way_to_make_one() {
    let stand = Stand::open().await;
    let client = stand.client();
    let worker = FetchWork::of_pool("w", "Edge", Vec::<String>::new());
    for refused in [
        client.fetch_work(&worker).await.unwrap_err(),
        client.pool("Edge", None).await.unwrap_err(),
        client.invoke(&call("Edge", "Get-Disk", json!(1)), Duration::ZERO).await.unwrap_err(),
    ] {
        let text = refused.to_string();
        assert!(text.contains("[pools.Edge]") && text.contains("\"functions\""), "{text}");
    }
    let named = client.pool("a b", None).await.unwrap_err();
    assert_eq!((named.status(), named.code()), (Some(400), Some("invalid-name")));
    assert!(named.to_string().contains("cannot be a pool name"), "{named}");
}

#[tokio::test]
async fn a_pool_with_a_rate_hands_out_no_more() {
    let slow = json!({ "slow": { "functions": ["*"], "calls_per_second": 2 } });
    let stand = Stand::with(with_pools(&slow)).await;
    let client = stand.client();
    for _ in 0..4 {
        begin(&client, "slow", "Get-Disk").await;
    }
    let began_ns = SystemClock.monotonic_ns();
    let mut handed = 0;
    while handed < 4 {
        handed += fetch(&client, "slow", 60_000).await.len();
    }
    let took = Duration::from_nanos(SystemClock.monotonic_ns() - began_ns);
    assert!(took >= Duration::from_millis(900), "two at once, and two more in the second after");
    assert_eq!(client.pool("slow", None).await.unwrap().pool.calls_per_second, Some(2.0));
}

#[tokio::test]
async fn a_local_pool_is_run_by_the_node() {
    let here = json!({ "here": { "transport": "local", "functions": ["Echo"] } });
    let stand = Stand::with(with_pools(&here)).await;
    let client = stand.client();
    let ended = client.invoke(&call("here", "Echo", json!({ "a": 1 })), PATIENCE).await.unwrap();
    assert_eq!(ended.instance.unwrap().result.unwrap().text(), r#"{"a":1}"#);
    client.pause_pool("here", &PausePool::default()).await.unwrap();
    let refused = client.invoke(&call("here", "Echo", json!(1)), Duration::ZERO).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("pool-paused")));
}

#[tokio::test]
async fn a_call_of_a_pool_can_be_made_again() {
    let stand = Stand::with(cloud()).await;
    let client = stand.client();
    let id = begin(&client, "Cloud-01", "New-EntraUser").await;
    complete(&client, &fetch(&client, "Cloud-01", 60_000).await[0]).await;
    client.instance(&id, PATIENCE).await.unwrap();
    client.restart(&id, &Restart::default()).await.unwrap();
    let again = fetch(&client, "Cloud-01", 60_000).await.remove(0);
    assert_eq!((again.function.as_str(), again.input.text()), ("New-EntraUser", r#"{"n":1}"#));
}

#[tokio::test]
async fn callers_cannot_take_the_ids_of_rooms_and_keys() {
    let stand = Stand::open().await;
    let client = stand.client();
    let input = json!({ "name": "Ada" }).to_string();
    for id in ["runbook:step-1", "runbook-sha256:00", "invoke:x", "start:action:1"] {
        let refused = client.start(&greet(id, &input), None, Duration::ZERO).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("reserved-id")), "{id}");
    }
    for key in ["action:1:2", "recurring:1:2"] {
        let taken = Invoke { key: Some(key.to_owned()), ..Invoke::new("echo", json_of(&json!(1))) };
        let refused = client.invoke(&taken, Duration::ZERO).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("reserved-id")), "{key}");
    }
    let own = client.start(&greet("runbook", &input), None, PATIENCE).await.unwrap();
    let under = Restart { new_id: Some("runbook:step-1".to_owned()), force: true, ..Restart::default() };
    let refused = client.restart(&own.id, &under).await.unwrap_err();
    assert_eq!(refused.code(), Some("reserved-id"));
    // What a room has started can be cancelled, and is called again by the room alone.
    let engine = stand.server.client();
    let hello = segno::Orchestration::<Value, Value>::named("greet");
    engine.start(hello, json!({ "name": "Ada" })).id("default/default/runbook:step-1").await.unwrap();
    client.instance("runbook:step-1", PATIENCE).await.unwrap();
    let refused =
        client.restart("runbook:step-1", &Restart { force: true, ..Restart::default() }).await.unwrap_err();
    assert_eq!(refused.code(), Some("reserved-id"));
}

#[tokio::test]
async fn calls_that_a_rate_holds_back_are_not_fetched_at_all() {
    // Less than a call a day: longer than a call can be delayed by.
    let slow = json!({ "slow": { "functions": ["*"], "calls_per_second": 0.000_001 } });
    let stand = Stand::with(with_pools(&slow)).await;
    let client = stand.client();
    for _ in 0..3 {
        begin(&client, "slow", "Get-Disk").await;
    }
    let first = fetch(&client, "slow", 60_000).await;
    assert_eq!(first.len(), 1);
    assert!(fetch(&client, "slow", 200).await.is_empty());
    let calls = client.instances(&Default::default()).await.unwrap().instances;
    assert_eq!(calls.len(), 3);
    for call in calls.iter().filter(|call| call.id != first[0].instance) {
        let call = client.instance(&call.id, Duration::ZERO).await.unwrap().call.unwrap();
        assert_ne!(call.state, CallState::Held, "{call:?}");
        assert_eq!(call.deliveries, 0, "{call:?}");
    }
}

#[tokio::test]
async fn a_call_has_the_label_of_its_pool_and_a_key_stands_for_one_pool() {
    let pools = json!({ "a": { "functions": ["*"] }, "b": { "functions": ["*"] } });
    let stand = Stand::with(with_pools(&pools)).await;
    let client = stand.client();
    let keyed = |pool: &str| Invoke { key: Some("k".to_owned()), ..call(pool, "Get-Disk", json!(1)) };
    let made = client.invoke(&keyed("a"), Duration::ZERO).await.unwrap();
    assert_eq!(client.invoke(&keyed("a"), Duration::ZERO).await.unwrap().id, made.id);
    let refused = client.invoke(&keyed("b"), Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.status(), Some(409), "{refused}");
    assert_eq!(client.instance(&made.id, Duration::ZERO).await.unwrap().labels["pool"], "a");
}

#[tokio::test]
async fn workers_of_a_pool_are_listed_page_by_page_and_each_with_all_its_pools() {
    let pools = json!({ "Cloud-01": { "functions": ["*"] }, "Edge": { "functions": ["*"] } });
    let stand = Stand::with(with_pools(&pools)).await;
    let client = stand.client();
    let none: [&str; 0] = [];
    for worker in ["a", "b", "c"] {
        for pool in ["Cloud-01", "Edge"] {
            let fetch = FetchWork { wait_ms: 0, ..FetchWork::of_pool(worker, pool, none) };
            client.fetch_work(&fetch).await.unwrap();
        }
    }
    let page = |cursor: Option<String>| PageRequest { limit: Some(2), cursor };
    let first = client.pool("Cloud-01", page(None)).await.unwrap();
    let names = |details: &PoolDetails| -> Vec<String> {
        details.workers.iter().map(|worker| worker.worker.clone()).collect()
    };
    assert_eq!((first.pool.worker_count, names(&first)), (3, vec!["a".to_owned(), "b".to_owned()]));
    let rest = client.pool("Cloud-01", page(first.next_cursor)).await.unwrap();
    assert_eq!((names(&rest), rest.next_cursor), (vec!["c".to_owned()], None));
    let broken = client.pool("Cloud-01", page(Some("nowhere".to_owned()))).await.unwrap_err();
    assert_eq!((broken.status(), broken.code()), (Some(400), Some("invalid-request")));
    let listed = client.workers(None).await.unwrap().workers;
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|worker| worker.pools == ["Cloud-01", "Edge"]), "{listed:?}");
}
