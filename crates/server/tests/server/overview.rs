//! What is wrong, what happened, and what an instance waits for.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::{Context, Failure, Orchestration};
use segno_api::Client;
use segno_api::client::Expected;
use segno_api::explain::{InstanceExplanation, WaitKind, WaitState};
use segno_api::instance::{ListInstances, StartInstance, Status};
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::problems::{KnownProblem, ProblemKind, ProblemReport};
use segno_api::stats::{GetStats, Stats};
use segno_api::work::FetchWork;
use segno_server::settings::Authentication;
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;
use serde_json::json;

use crate::stand::{Ground, PATIENCE, Stand, greet, json_of, settings};

const PARENT: Orchestration<(), ()> = Orchestration::new("parent");
const WAITING: Orchestration<(), ()> = Orchestration::new("waiting");
const FAILING: Orchestration<(), ()> = Orchestration::new("failing");

async fn parent(ctx: Context, (): ()) -> Result<(), Failure> {
    // Ids in a store have the scope before them.
    ctx.child(WAITING, ()).id("default/default/kid").await
}

async fn waiting(ctx: Context, (): ()) -> Result<(), Failure> {
    ctx.mailbox::<u32>(segno::Mailbox::new("orders")).receive().await.map(drop)
}

async fn failing(_ctx: Context, (): ()) -> Result<(), Failure> {
    Err(Failure::application("there is no paint").non_retryable().code("no-paint"))
}

async fn stand() -> Stand {
    let registry = samples::registry()
        .orchestration(PARENT, parent)
        .orchestration(WAITING, waiting)
        .orchestration(FAILING, failing);
    Stand::with_registry(settings(Authentication::Keys), registry).await
}

fn start(orchestration: &str, id: &str) -> StartInstance {
    StartInstance { orchestration: orchestration.to_owned(), ..greet(id, "null") }
}

/// Looks again until it is as it should be.
async fn until<T>(look: impl AsyncFn() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let looked = async {
        loop {
            let found = look().await;
            if is_so(&found) {
                return found;
            }
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, looked).await.expect("it does not come to that")
}

async fn explained(
    client: &Client,
    id: &str,
    is_so: impl Fn(&InstanceExplanation) -> bool,
) -> InstanceExplanation {
    until(async || client.explain_instance(id).await.unwrap(), is_so).await
}

#[tokio::test]
async fn an_instance_tells_what_it_waits_for_and_when_it_wakes_up() {
    let stand = stand().await;
    let client = stand.client();
    client.start(&greet("ada", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    let ada = explained(&client, "ada", |found| found.waits.len() == 2).await;
    let kinds: Vec<_> = ada.waits.iter().map(|wait| (wait.kind, wait.name.as_deref())).collect();
    assert_eq!(kinds, [(WaitKind::Signal, Some("wave")), (WaitKind::Timer, None)]);
    assert_eq!(ada.next_wake_up, ada.waits[1].until);
    assert!(ada.next_wake_up.is_some() && ada.complete, "{ada:?}");
    assert_eq!(ada.in_words, "Waits for the signal `wave`; and a timer.");

    client.pause("ada", Some("lunch".to_owned())).await.unwrap();
    let paused = explained(&client, "ada", |found| found.waits.len() == 3).await;
    assert_eq!(paused.waits[0].kind, WaitKind::Resume);
    assert!(paused.in_words.starts_with("Waits for a resume: it is paused (lunch); and "), "{paused:?}");

    client.start(&start("parent", "mother"), None, Duration::ZERO).await.unwrap();
    let mother = explained(&client, "mother", |found| found.waits[0].kind == WaitKind::Child).await;
    assert_eq!(mother.waits[0].child.as_deref(), Some("kid"));
    let kid = explained(&client, "kid", |found| found.waits[0].kind == WaitKind::Mailbox).await;
    assert_eq!((kid.waits[0].name.as_deref(), kid.next_wake_up), (Some("orders"), None));

    let later = SystemClock.now_ms() as i64 + 3_600_000;
    let later = jiff::Timestamp::from_millisecond(later).unwrap();
    let delayed = StartInstance { start_at: Some(later), ..start("waiting", "later") };
    client.start(&delayed, None, Duration::ZERO).await.unwrap();
    let pending = explained(&client, "later", |found| found.next_wake_up.is_some()).await;
    assert_eq!((pending.waits[0].kind, pending.next_wake_up), (WaitKind::Start, Some(later)));

    client.start(&greet("done", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let done = client.explain_instance("done").await.unwrap();
    assert_eq!((done.waits.len(), done.in_words.as_str()), (0, "It has ended (completed)."));
    assert_eq!(client.explain_instance("nobody").await.unwrap_err().code(), Some("not-found"));
}

#[tokio::test]
async fn a_call_tells_whether_a_worker_has_it() {
    let stand = stand().await;
    let client = stand.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("paint", &remote, Expected::Absent).await.unwrap();
    let call = client.invoke(&Invoke::new("paint", json_of(&1)), Duration::ZERO).await.unwrap().id;
    let ready = explained(&client, &call, |found| found.waits[0].state == Some(WaitState::Ready)).await;
    assert!(ready.in_words.contains("none has announced `paint`"), "{ready:?}");
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("bob", ["paint"]) };
    client.fetch_work(&fetch).await.unwrap();
    let held = explained(&client, &call, |found| found.waits[0].state == Some(WaitState::Held)).await;
    assert_eq!(held.waits[0].worker.as_deref(), Some("bob"));
    assert_eq!((held.waits[0].attempt, held.next_wake_up), (Some(1), None), "a lease is extended");
}

fn problem(report: &ProblemReport, kind: ProblemKind) -> Option<&KnownProblem> {
    report.problems.iter().find(|problem| problem.kind == kind)
}

#[tokio::test]
async fn what_is_wrong_is_counted_and_named() {
    let stand = stand().await;
    let client = stand.client();
    let calm = client.problems().await.unwrap();
    assert_eq!((calm.problems.len(), calm.unknown.len()), (0, 0), "{calm:?}");
    for kind in [ProblemKind::Stuck, ProblemKind::Store, ProblemKind::RemovalsWaiting] {
        assert!(calm.checked.contains(&kind), "{kind:?}: {calm:?}");
    }
    for id in ["a", "b"] {
        client.start(&start("failing", id), None, PATIENCE).await.unwrap();
    }
    client.start(&greet("held", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    client.pause("held", None).await.unwrap();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("paint", &remote, Expected::Absent).await.unwrap();
    client.invoke(&Invoke::new("paint", json_of(&1)), Duration::ZERO).await.unwrap();
    stand.send_junk("default/default/held", "junk").await;
    let wanted = [
        ProblemKind::FailedRecently,
        ProblemKind::Paused,
        ProblemKind::FunctionsWithoutWorker,
        ProblemKind::DeadLetters,
    ];
    let report = until(
        async || client.problems().await.unwrap(),
        |report| wanted.iter().all(|kind| problem(report, *kind).is_some()),
    )
    .await;
    let failed = problem(&report, ProblemKind::FailedRecently).unwrap();
    assert_eq!((failed.count, failed.items[0].name.as_str()), (2, "no-paint"), "{failed:?}");
    assert_eq!(failed.link.filter["status"], "failed", "{failed:?}");
    let first = client.instance("a", PATIENCE).await.unwrap();
    // The failure has the time of its node, the creation that of the store.
    let earliest = first.created_at - Duration::from_secs(1);
    assert!(failed.oldest >= Some(earliest), "not the begin of its minute: {failed:?}");
    let orphans = problem(&report, ProblemKind::FunctionsWithoutWorker).unwrap();
    assert_eq!((orphans.count, orphans.items[0].name.as_str()), (1, "paint"));
    assert_eq!(problem(&report, ProblemKind::Paused).unwrap().count, 1);
    assert_eq!(problem(&report, ProblemKind::DeadLetters).unwrap().count, 1);
    assert!(report.unknown.is_empty(), "{report:?}");
    // A worker that asks for it ends one of them, and another tenant has none.
    client.fetch_work(&FetchWork { wait_ms: 60_000, ..FetchWork::new("bob", ["paint"]) }).await.unwrap();
    until(
        async || client.problems().await.unwrap(),
        |report| problem(report, ProblemKind::FunctionsWithoutWorker).is_none(),
    )
    .await;
    let viewer = stand.client_with(Role::Viewer, "other", "*").await.scope("other", "x");
    let other = viewer.problems().await.unwrap();
    assert_eq!(other.problems.len(), 0, "{other:?}");
    assert!(!other.checked.contains(&ProblemKind::Store), "the store is not a tenant's");
}

#[tokio::test]
async fn running_instances_without_progress_are_stuck_unless_they_wait_for_something() {
    let clock = VirtualClock::new();
    let ground = Ground::on_clock(clock.clone());
    let registry = samples::registry().orchestration(WAITING, waiting);
    let builder = Server::builder(Arc::clone(&ground.store), settings(Authentication::None));
    let builder = builder.clock(clock.clone()).registry(registry).functions(samples::functions);
    let stand = Stand::begun(builder, &ground).await;
    let client = stand.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("paint", &remote, Expected::Absent).await.unwrap();
    let call = client.invoke(&Invoke::new("paint", json_of(&1)), Duration::ZERO).await.unwrap().id;
    client.start(&start("waiting", "patient"), None, Duration::ZERO).await.unwrap();
    explained(&client, &call, |found| found.waits[0].state == Some(WaitState::Ready)).await;
    explained(&client, "patient", |found| found.waits[0].kind == WaitKind::Mailbox).await;
    assert_eq!(problem(&client.problems().await.unwrap(), ProblemKind::Stuck), None);
    clock.advance(Duration::from_secs(11 * 60));
    // The connection may be closed in the time that has passed.
    let report = match client.problems().await {
        Ok(report) => report,
        Err(_) => client.problems().await.unwrap(),
    };
    let stuck = problem(&report, ProblemKind::Stuck).unwrap_or_else(|| panic!("{report:?}"));
    let named: Vec<_> = stuck.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!((stuck.count, named), (1, vec![call.as_str()]), "a mailbox is something to wait for");
}

async fn stats_when(client: &Client, is_so: impl Fn(&Stats) -> bool) -> Stats {
    until(async || client.stats(&GetStats::default()).await.unwrap(), is_so).await
}

#[tokio::test]
async fn what_happened_is_counted_by_minute_and_name_on_all_nodes() {
    let ground = Ground::new().await;
    let node = async |ground: &Ground| {
        let registry = samples::registry().orchestration(FAILING, failing);
        let builder = Server::builder(Arc::clone(&ground.store), settings(Authentication::None));
        Stand::begun(builder.registry(registry).functions(samples::functions), ground).await
    };
    let one = node(&ground).await;
    let other = node(&ground.of_another_node().await).await;
    for (at, id) in [(&one, "a"), (&other, "b")] {
        at.client().start(&start("failing", id), None, PATIENCE).await.unwrap();
        at.client().invoke(&Invoke::new("echo", json_of(&1)), PATIENCE).await.unwrap();
    }
    // A node writes down every few seconds what it has counted.
    let stats = stats_when(&one.client(), |stats| {
        stats.points.iter().map(|point| point.started).sum::<u64>() == 4
            && stats.points.iter().map(|point| point.completed + point.failed).sum::<u64>() == 4
    })
    .await;
    assert_eq!((stats.step, stats.points.len(), stats.incomplete), (60, 60, false));
    let echo = stats.functions.iter().find(|name| name.name == "echo").unwrap();
    assert_eq!((echo.completed, echo.failed), (2, 0), "{stats:?}");
    assert!(echo.p50_ms.is_some() && echo.p50_ms <= echo.p99_ms);
    let failing = stats.orchestrations.iter().find(|name| name.name == "failing").unwrap();
    assert_eq!((failing.completed, failing.failed), (0, 2));
    assert!(stats.orchestrations.iter().all(|name| name.name != "invoke"), "{stats:?}");
    assert_eq!(stats.failures[0].code, "no-paint");
    assert_eq!(stats.failures[0].count, 2);
    // What a node has counted is there after it has stopped, and not in another tenant.
    other.shutdown().await;
    let hourly = GetStats { step: Some(3_600), minutes: Some(120) };
    let later = one.client().stats(&hourly).await.unwrap();
    assert_eq!(later.points.iter().map(|point| point.failed).sum::<u64>(), 2);
    assert!((2..=3).contains(&later.points.len()), "{}", later.points.len());
    let elsewhere = one.client().scope("default", "other").stats(&GetStats::default()).await.unwrap();
    assert_eq!((elsewhere.functions.len(), elsewhere.points.len()), (0, 60));
    for wrong in [
        GetStats { step: Some(61), minutes: None },
        GetStats { step: Some(0), minutes: None },
        GetStats { step: None, minutes: Some(0) },
        GetStats { step: None, minutes: Some(1_441) },
    ] {
        let refused = one.client().stats(&wrong).await.unwrap_err();
        assert_eq!(refused.code(), Some("invalid-request"), "{wrong:?}");
    }
}

#[tokio::test]
async fn instances_are_listed_by_failure_end_and_duration() {
    let stand = stand().await;
    let client = stand.client();
    client.start(&start("failing", "broken"), None, PATIENCE).await.unwrap();
    client.start(&greet("done", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    client.start(&greet("open", r#"{"name":"Ada","wait":true}"#), None, Duration::ZERO).await.unwrap();
    let ids = async |filter: ListInstances| -> Vec<String> {
        let page = client.instances(&filter).await.unwrap();
        let mut ids: Vec<String> = page.instances.into_iter().map(|found| found.id).collect();
        ids.sort();
        ids
    };
    let ended = client.instance("done", Duration::ZERO).await.unwrap().completed_at.unwrap();
    let after = ended + jiff::SignedDuration::from_millis(1);
    let began = client.instance("broken", Duration::ZERO).await.unwrap().created_at;
    let all = ListInstances::default;
    let failure = |code: &str| ListInstances { failure: Some(code.to_owned()), ..all() };
    for (filter, expected) in [
        (failure("no-paint"), vec!["broken"]),
        (failure("application"), vec![]),
        (ListInstances { ended_from: Some(began), ..all() }, vec!["broken", "done"]),
        (ListInstances { ended_from: Some(after), ..all() }, vec![]),
        (ListInstances { ended_before: Some(after), ..all() }, vec!["broken", "done"]),
        (ListInstances { ended_before: Some(began), ..all() }, vec![]),
        (ListInstances { longer_than_ms: Some(3_600_000), ..all() }, vec![]),
        (ListInstances { shorter_than_ms: Some(3_600_000), ..all() }, vec!["broken", "done", "open"]),
        (ListInstances { status: vec![Status::Running], ..failure("no-paint") }, vec![]),
    ] {
        assert_eq!(ids(filter.clone()).await, expected, "{filter:?}");
    }
    let first = ListInstances { limit: Some(1), shorter_than_ms: Some(3_600_000), ..all() };
    let page = client.instances(&first).await.unwrap();
    assert!(page.instances.len() == 1 && page.next_cursor.is_some());
}
