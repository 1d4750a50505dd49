//! Which node does what: tags and sessions route work, versions pin instances across a rolling upgrade, and what a dead
//! node held is taken over within its lock time.

#![expect(clippy::unwrap_used, reason = "tests and their helpers")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::store::{Provider, TagFilter, WatchUntil};
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, Registry, RegistryBuilder, Runtime,
    RuntimeOptions, Signal,
};
use segno_postgres::PostgresStore;
use support::Schema;

/// What a session or tag is called; everywhere, where there is none.
const VISIT: Orchestration<(Option<String>, Option<String>), Vec<String>> = Orchestration::new("visit");
const WHERE: Activity<u32, String> = Activity::new("where");
const FLOW: Orchestration<u32, String> = Orchestration::new("flow");
const GO: Signal<u32> = Signal::new("go");
const STUCK: Orchestration<u32, String> = Orchestration::new("stuck");

/// Short, so that what a dead node held is taken over soon.
const LOCK: Duration = Duration::from_secs(2);

/// Visits of a session or tag, one after the other.
const VISITS: u32 = 5;

fn visits() -> RegistryBuilder {
    let visit =
        async |ctx: Context, (session, tag): (Option<String>, Option<String>)| -> Result<_, Failure> {
            let mut nodes = Vec::new();
            for number in 0..VISITS {
                let mut call = ctx.activity(WHERE, number);
                if let Some(session) = &session {
                    call = call.session(session.clone());
                }
                if let Some(tag) = &tag {
                    call = call.tag(tag.clone());
                }
                nodes.push(call.await?);
            }
            Ok(nodes)
        };
    let here =
        async |ctx: ActivityContext, _: u32| -> Result<String, Failure> { Ok(ctx.worker_id().to_owned()) };
    Registry::builder().orchestration(VISIT, visit).activity(WHERE, here)
}

/// One version of the flow: it waits for a signal, and then says which code it is.
fn version(registry: RegistryBuilder, version: &'static str) -> RegistryBuilder {
    registry.orchestration(FLOW.at(version), move |ctx: Context, _: u32| async move {
        let number = ctx.signal(GO).await?;
        Ok::<String, Failure>(format!("{version} {number}"))
    })
}

async fn node(schema: &Schema, registry: Registry, options: RuntimeOptions) -> (Arc<PostgresStore>, Runtime) {
    let store = schema.open(schema.options()).await;
    let runtime = Runtime::builder(Arc::clone(&store) as _).registry(registry).options(options).start().await;
    (store, runtime.unwrap())
}

fn named(name: &str, tag_filter: TagFilter) -> RuntimeOptions {
    RuntimeOptions {
        node_id: Some(name.to_owned()),
        tag_filter,
        orchestrator_lock_timeout: LOCK,
        worker_lock_timeout: LOCK,
        ..RuntimeOptions::default()
    }
}

async fn soon<T>(answer: impl IntoFuture<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    segno::clock::timeout(&SystemClock, limit, answer.into_future()).await.expect("an answer within 60 s")
}

/// Where the visits of some instances took place.
async fn visited(
    node: &Runtime,
    inputs: impl IntoIterator<Item = (Option<String>, Option<String>)>,
) -> Vec<BTreeSet<String>> {
    let mut runs = tokio::task::JoinSet::new();
    for input in inputs {
        let client = node.client().clone();
        runs.spawn(async move { client.start(VISIT, input).result().await.unwrap() });
    }
    soon(runs.join_all()).await.into_iter().map(|nodes| nodes.into_iter().collect()).collect()
}

#[tokio::test]
async fn work_with_a_tag_runs_on_the_nodes_that_take_it() {
    let schema = Schema::take().await;
    let gpu = TagFilter::Tags(BTreeSet::from(["gpu".to_owned()]));
    let (_one, plain) =
        node(&schema, visits().build().unwrap(), named("plain", TagFilter::DefaultOnly)).await;
    let (_two, tagged) = node(&schema, visits().build().unwrap(), named("tagged", gpu)).await;
    let tag = Some("gpu".to_owned());
    for (tag, expected) in [(None, "plain"), (tag, "tagged")] {
        let inputs = std::iter::repeat_n((None, tag), 10);
        for nodes in visited(&plain, inputs).await {
            assert_eq!(nodes, BTreeSet::from([expected.to_owned()]));
        }
    }
    for node in [plain, tagged] {
        node.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn all_work_of_a_session_runs_on_one_node_whoever_started_it() {
    const SESSIONS: usize = 6;
    let schema = Schema::take().await;
    let (_one, one) = node(&schema, visits().build().unwrap(), named("one", TagFilter::DefaultOnly)).await;
    let (_two, two) = node(&schema, visits().build().unwrap(), named("two", TagFilter::DefaultOnly)).await;
    let sessions = || (0..SESSIONS).map(|number| (Some(format!("s{number}")), None));
    let (first, second) = tokio::join!(visited(&one, sessions()), visited(&two, sessions()));
    assert_eq!((first.len(), second.len()), (SESSIONS, SESSIONS));
    for nodes in first.iter().chain(&second) {
        assert_eq!(nodes.len(), 1, "a session moved: {nodes:?}");
    }
    // The sessions are still owned: the same one is where it was, also for an instance that starts now.
    for number in 0..SESSIONS {
        let again = || std::iter::once((Some(format!("s{number}")), None));
        assert_eq!(visited(&one, again()).await, visited(&two, again()).await);
    }
    for node in [one, two] {
        node.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn an_instance_keeps_its_version_across_a_rolling_upgrade() {
    let schema = Schema::take().await;
    let old = version(Registry::builder(), "1.0.0").build().unwrap();
    let new = version(version(Registry::builder(), "1.0.0"), "2.0.0").build().unwrap();
    let only_new = version(Registry::builder(), "2.0.0").build().unwrap();
    let (one, old_node) = node(&schema, old, named("old", TagFilter::DefaultOnly)).await;
    old_node.client().start(FLOW, 0).id("before").await.unwrap();
    // It has a version once it has had a turn.
    let info =
        one.watch_instance("before", WatchUntil::RevisionAfter(0), Duration::from_secs(60)).await.unwrap();
    assert_eq!(info.unwrap().orchestration_version.as_deref(), Some("1.0.0"));
    // The next build starts beside the old one, which then goes.
    let (store, new_node) = node(&schema, new, named("new", TagFilter::DefaultOnly)).await;
    old_node.shutdown(Duration::from_secs(5)).await;
    let client = segno::Client::new(store);
    // Who runs an instance first chooses its version.
    client.start(FLOW, 0).id("after").await.unwrap();
    // A node without the old code takes what it can and leaves the rest.
    let (_three, next_node) = node(&schema, only_new, named("next", TagFilter::DefaultOnly)).await;
    for (id, number) in [("before", 1), ("after", 2)] {
        client.signal(id, GO, number).await.unwrap();
    }
    for (id, expected) in [("before", "1.0.0 1"), ("after", "2.0.0 2")] {
        assert_eq!(soon(client.result(FLOW, id)).await.unwrap(), expected, "{id}");
    }
    for node in [new_node, next_node] {
        node.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn what_a_dead_node_held_is_taken_over_within_its_lock_time() {
    let schema = Schema::take().await;
    let begun = Arc::new(tokio::sync::Notify::new());
    let stuck = |begun: &Arc<tokio::sync::Notify>| {
        let begun = Arc::clone(begun);
        let work = async |ctx: Context, number: u32| -> Result<String, Failure> {
            ctx.activity(WHERE, number).await
        };
        Registry::builder()
            .orchestration(STUCK, work)
            .activity(WHERE, move |_: ActivityContext, _: u32| {
                begun.notify_one();
                std::future::pending::<Result<String, Failure>>()
            })
            .build()
            .unwrap()
    };
    let (dying, node_one) = node(&schema, stuck(&begun), named("one", TagFilter::DefaultOnly)).await;
    let client = segno::Client::new(schema.open(schema.options()).await);
    client.start(STUCK, 0).id("i").await.unwrap();
    soon(begun.notified()).await;
    let helper = visits()
        .orchestration(STUCK, async |ctx: Context, number: u32| -> Result<String, Failure> {
            ctx.activity(WHERE, number).await
        })
        .build()
        .unwrap();
    let (_two, node_two) = node(&schema, helper, named("two", TagFilter::DefaultOnly)).await;
    // As if the process had been killed: nothing is given back, and nothing is renewed any more.
    dying.close();
    let died_ns = SystemClock.monotonic_ns();
    assert_eq!(soon(client.result(STUCK, "i")).await.unwrap(), "two");
    let took = Duration::from_nanos(SystemClock.monotonic_ns() - died_ns);
    // A busy machine may be late, but not by a slow poll of 5 s on top of the lock.
    assert!(took < LOCK + Duration::from_secs(4), "it took {took:?}");
    drop(node_one);
    node_two.shutdown(Duration::from_secs(5)).await;
}
