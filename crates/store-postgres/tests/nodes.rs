//! Several nodes on one database: they wake each other, take over from each other, and start side by side.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests and their helpers")]

mod support;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::store::{
    AckOrchestrationItem, DueRecords, ErrorKind, ExecutionMetadata, ExecutionStatus, Expect,
    FetchOrchestrationItems, OrchestratorMessage, Provider, ProviderAdmin, Record, RecordBatch, RecordWrite,
    Records, StartGuard, StoredEvent, TagFilter, WatchUntil,
};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};
use segno_postgres::{OpenError, Pooler, PostgresOptions, PostgresStore};
use segno_testkit::conformance::SteppedClock;
use support::{Schema, SchemaClock, connect, url};
use tokio::task::JoinHandle;

/// A wait or lock that no test outlives.
const LONG: Duration = Duration::from_secs(3_600);

const HELLO: Orchestration<u32, u32> = Orchestration::new("hello");
const NOTHING: Activity<u32, u32> = Activity::new("nothing");

fn registry() -> Registry {
    let hello =
        async |ctx: Context, number: u32| -> Result<u32, Failure> { ctx.activity(NOTHING, number).await };
    let nothing = async |_: ActivityContext, number: u32| -> Result<u32, Failure> { Ok(number) };
    Registry::builder().orchestration(HELLO, hello).activity(NOTHING, nothing).build().unwrap()
}

/// Two nodes on one schema whose clock stands still, so that no poll comes to the rescue of a notification.
async fn two_nodes() -> (Schema, Arc<SchemaClock>, Arc<PostgresStore>, Arc<PostgresStore>) {
    let schema = Schema::take().await;
    let clock = schema.stop_clock().await;
    let one = schema.open(schema.options().clock(clock.local())).await;
    let other = schema.open(schema.options().clock(clock.local())).await;
    (schema, clock, one, other)
}

fn fetch(store: &Arc<PostgresStore>) -> JoinHandle<Vec<String>> {
    let store = Arc::clone(store);
    tokio::spawn(async move {
        let request = FetchOrchestrationItems { poll_timeout: LONG, ..FetchOrchestrationItems::one(LONG) };
        let items = store.fetch_orchestration_items(request).await.unwrap();
        items.into_iter().map(|item| item.instance.to_string()).collect()
    })
}

/// The answer, or a failure after a real time that only a failing test takes.
async fn soon<T>(answer: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    segno::clock::timeout(&segno::clock::SystemClock, limit, answer).await.expect("an answer within 20 s")
}

fn turn(token: segno::store::LockToken, status: ExecutionStatus) -> AckOrchestrationItem {
    AckOrchestrationItem {
        history_delta: vec![StoredEvent { event_id: 1, data: Bytes::from_static(b"e") }],
        metadata: ExecutionMetadata {
            status: Some(status),
            orchestration_name: Some("Flow".into()),
            ..ExecutionMetadata::default()
        },
        ..AckOrchestrationItem::empty(token, 1)
    }
}

#[tokio::test]
async fn a_message_from_one_node_wakes_a_fetch_on_another() {
    let (_schema, _clock, one, other) = two_nodes().await;
    for round in 0..5 {
        let fetching = fetch(&other);
        let instance = format!("i{round}");
        one.enqueue_for_orchestrator(OrchestratorMessage::new(&*instance, "go"), None).await.unwrap();
        assert_eq!(soon(fetching).await.unwrap(), [instance]);
    }
}

#[tokio::test]
async fn a_watch_on_one_node_is_answered_by_a_commit_on_another() {
    let (_schema, _clock, one, other) = two_nodes().await;
    let watching = {
        let other = Arc::clone(&other);
        tokio::spawn(async move { other.watch_instance("i1", WatchUntil::Terminal, LONG).await.unwrap() })
    };
    one.enqueue_for_orchestrator(OrchestratorMessage::new("i1", "go"), None).await.unwrap();
    let item = one.fetch_orchestration_item(LONG, Duration::ZERO, None).await.unwrap().unwrap();
    one.ack_orchestration_item(Arc::new(turn(item.lock_token, ExecutionStatus::Completed))).await.unwrap();
    assert_eq!(soon(watching).await.unwrap().unwrap().status, ExecutionStatus::Completed);
}

#[tokio::test]
async fn a_due_record_written_on_one_node_is_seen_by_another_that_waits() {
    let (_schema, _clock, one, other) = two_nodes().await;
    let wait = |id_prefix: &'static str| {
        let other = Arc::clone(&other);
        tokio::spawn(async move {
            let request = DueRecords { kind: "k", id_prefix, limit: 1, poll_timeout: LONG, now_ms: None };
            other.due_records(request).await.unwrap()
        })
    };
    let (any, own, foreign) = (wait(""), wait("batch/7/"), wait("batch/8/"));
    let write = |id: &str| {
        let write = RecordWrite::Put {
            kind: "k".to_owned(),
            id: id.to_owned(),
            expect: Default::default(),
            due_at_ms: Some(1),
            time_to_live: None,
            body: Bytes::new(),
        };
        one.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() })
    };
    write("batch/7/a").await.unwrap();
    for waiting in [any, own] {
        let due: Vec<Record> = soon(waiting).await.unwrap();
        assert_eq!(due[0].id, "batch/7/a");
    }
    assert!(!foreign.is_finished());
    write("batch/8/a").await.unwrap();
    assert_eq!(soon(foreign).await.unwrap()[0].id, "batch/8/a");
}

#[tokio::test]
async fn a_node_that_waits_elsewhere_is_not_kept_busy_by_due_records() {
    let (_schema, _clock, one, other) = two_nodes().await;
    let waiting = {
        let other = Arc::clone(&other);
        tokio::spawn(async move {
            let request =
                DueRecords { kind: "k", id_prefix: "own/", limit: 1, poll_timeout: LONG, now_ms: None };
            other.due_records(request).await.unwrap()
        })
    };
    let put = |kind: &str, id: String| RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect: Default::default(),
        due_at_ms: Some(1),
        time_to_live: None,
        body: Bytes::new(),
    };
    // The first answer of the other node says that it listens, and that it has looked.
    let listens = put("k", "own/first".to_owned());
    one.commit_records(RecordBatch { writes: vec![listens], ..RecordBatch::default() }).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().len(), 1);
    let wait = {
        let other = Arc::clone(&other);
        tokio::spawn(async move {
            let request =
                DueRecords { kind: "k", id_prefix: "mine/", limit: 1, poll_timeout: LONG, now_ms: None };
            other.due_records(request).await.unwrap()
        })
    };
    let before = other.statistics().reads;
    for number in 0..40 {
        let told = one.statistics().notifications;
        let writes = vec![put("k", format!("own/{number}")), put("other", format!("mine/{number}"))];
        one.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
        while one.statistics().notifications == told {
            tokio::task::yield_now().await;
        }
    }
    let last = put("k", "mine/x".to_owned());
    one.commit_records(RecordBatch { writes: vec![last], ..RecordBatch::default() }).await.unwrap();
    assert_eq!(soon(wait).await.unwrap()[0].id, "mine/x");
    let reads = other.statistics().reads - before;
    assert!(reads < 15, "{reads} reads for one record");
}

#[tokio::test]
async fn the_work_of_a_dead_node_is_taken_over_after_its_lock_and_its_late_commit_is_refused() {
    let (_schema, clock, one, other) = two_nodes().await;
    one.enqueue_for_orchestrator(OrchestratorMessage::new("i1", "go"), None).await.unwrap();
    let lock = Duration::from_secs(30);
    let held = one.fetch_orchestration_item(lock, Duration::ZERO, None).await.unwrap().unwrap();
    let fetching = fetch(&other);
    clock.advance(lock - Duration::from_millis(1)).await;
    assert_eq!(other.get_queue_depths().await.unwrap().locked, 1);
    assert!(!fetching.is_finished());
    clock.advance(Duration::from_millis(1)).await;
    assert_eq!(soon(fetching).await.unwrap(), ["i1"]);
    let late = one.ack_orchestration_item(Arc::new(turn(held.lock_token, ExecutionStatus::Completed))).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::LockLost);
    assert!(one.list_instances().await.unwrap().is_empty(), "a late commit changes nothing");
}

#[tokio::test]
async fn many_nodes_share_the_work_and_do_each_piece_once() {
    const INSTANCES: usize = 60;
    let schema = Schema::take().await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let store = schema.open(schema.options()).await;
        nodes.push(Runtime::builder(store).registry(registry()).start().await.unwrap());
    }
    let client = nodes[0].client().clone();
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..INSTANCES {
        let client = client.clone();
        runs.spawn(async move {
            client.start(HELLO, number as u32).id(format!("i{number}")).result().await.unwrap()
        });
    }
    let mut results = soon(runs.join_all()).await;
    results.sort_unstable();
    assert_eq!(results, (0..INSTANCES as u32).collect::<Vec<_>>());
    segno_testkit::invariants::check(&client).await.unwrap();
    for node in nodes {
        node.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn one_hello_alone_takes_at_most_five_transactions() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let runtime = Runtime::builder(Arc::clone(&store) as _).registry(registry()).start().await.unwrap();
    soon(runtime.client().start(HELLO, 1).result()).await.unwrap();
    let before = store.statistics();
    const RUNS: u64 = 20;
    for number in 0..RUNS {
        soon(runtime.client().start(HELLO, number as u32).result()).await.unwrap();
    }
    let after = store.statistics();
    let transactions = (after.exchanges + after.reads) - (before.exchanges + before.reads);
    assert!(transactions <= 5 * RUNS + 5, "{transactions} transactions for {RUNS} runs: {after:?}");
    runtime.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn records_that_are_asked_for_at_once_are_read_together_and_each_is_the_right_one() {
    const RECORDS: u64 = 1_000;
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let put = |number: u64| RecordWrite::Put {
        kind: "k".to_owned(),
        id: format!("r{number}"),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::from(number.to_string()),
    };
    let writes = (0..RECORDS).filter(|number| number % 3 > 0).map(put).collect();
    store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    let before = store.statistics();
    let mut reads = tokio::task::JoinSet::new();
    for number in 0..RECORDS {
        let store = Arc::clone(&store);
        reads.spawn(async move {
            let id = if number == 500 { "with \0 in it".to_owned() } else { format!("r{number}") };
            (number, store.get_record("k", &id).await)
        });
    }
    for (number, found) in soon(reads.join_all()).await {
        match (number, found) {
            (500, found) => assert_eq!(found.unwrap_err().kind(), ErrorKind::Invalid),
            (_, found) => {
                let expected = (number % 3 > 0).then(|| Bytes::from(number.to_string()));
                assert_eq!(found.unwrap().map(|record| record.body), expected, "{number}");
            }
        }
    }
    let statements = store.statistics().reads - before.reads;
    assert!(statements < 20, "{statements} statements for {RECORDS} reads");
    store.close();
    assert_eq!(store.get_record("k", "r1").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_fails_alone() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let mut sends = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&store);
        sends.spawn(async move {
            let id = if number == 7 { "with \0 in it".to_owned() } else { format!("i{number}") };
            store.enqueue_for_orchestrator(OrchestratorMessage::new(id, "go"), None).await
        });
    }
    let outcomes = soon(sends.join_all()).await;
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].kind(), ErrorKind::Invalid);
    assert!(refused[0].message().contains("U+0000"), "{}", refused[0]);
    assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 19);
}

#[tokio::test]
async fn nodes_that_start_at_once_make_one_schema() {
    let schema = Schema::take().await;
    schema.client.batch_execute(&format!("DROP SCHEMA {} CASCADE", schema.name)).await.unwrap();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let options = schema.options();
        opening.spawn(async move { PostgresStore::open_with(options).await.map(drop) });
    }
    for outcome in soon(opening.join_all()).await {
        outcome.unwrap();
    }
    let sql = format!("SELECT count(*), max(number)::bigint FROM {}.migration", schema.name);
    let row = schema.client.query_one(&sql, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), row.get::<_, i64>(1), "each migration once");
}

#[tokio::test]
async fn a_schema_of_a_newer_build_is_refused() {
    let schema = Schema::take().await;
    let note = format!("INSERT INTO {}.migration (number, name) VALUES (999, 'future')", schema.name);
    schema.client.batch_execute(&note).await.unwrap();
    let refused = PostgresStore::open_with(schema.options()).await.unwrap_err();
    schema.client.batch_execute(&format!("DROP SCHEMA {} CASCADE", schema.name)).await.unwrap();
    assert!(matches!(refused, OpenError::TooNew { found: 999, .. }), "{refused}");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_explained() {
    for (url, reason) in [
        ("postgres://segno@localhost:1/none?sslmode=disable".to_owned(), "cannot be reached"),
        (url().replace("/postgres", "/no_such_database"), "no_such_database"),
    ] {
        let error = PostgresStore::open(&url).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn work_goes_on_without_listening_as_behind_a_pooler() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options().pooler(Pooler::Transaction)).await;
    let runtime = Runtime::builder(store).registry(registry()).start().await.unwrap();
    assert_eq!(soon(runtime.client().start(HELLO, 3).result()).await.unwrap(), 3);
    // Another node, which nobody can notify.
    let other = schema.open(schema.options().pooler(Pooler::Transaction)).await;
    let client = segno::Client::new(other);
    assert_eq!(soon(client.start(HELLO, 4).result()).await.unwrap(), 4);
    runtime.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn the_views_show_what_is_there() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let runtime = Runtime::builder(Arc::clone(&store) as _).registry(registry()).start().await.unwrap();
    soon(runtime.client().start(HELLO, 3).id("i1").label("team", "blue").result()).await.unwrap();
    runtime.shutdown(Duration::from_secs(5)).await;
    let guarded =
        OrchestratorMessage { guard: StartGuard::IfAbsent, ..OrchestratorMessage::new("i2", "start") };
    store.enqueue_for_orchestrator(guarded, Some(LONG)).await.unwrap();
    let name = &schema.name;
    for (sql, expected) in [
        (
            format!("SELECT status || ' ' || name || ' ' || labels FROM {name}.instances"),
            r#"Completed hello {"team": "blue"}"#,
        ),
        (
            format!(
                "SELECT execution_id || ' ' || status || ' ' || (event_count > 3) FROM {name}.executions"
            ),
            "1 Completed true",
        ),
        (
            format!(
                "SELECT count(*) || ' ' || min(event_id) FROM {name}.history WHERE instance_id = 'i1' AND event_id = 1"
            ),
            "1 1",
        ),
        (
            format!(
                "SELECT orchestrator_queue || ' ' || worker_queue || ' ' || delayed || ' ' || locked FROM {name}.queue_depths"
            ),
            "0 0 1 0",
        ),
        // Besides the names that the node publishes.
        (format!("SELECT count(*)::text FROM {name}.records WHERE kind <> 'segno.orchestration'"), "0"),
    ] {
        let row = schema.client.query_one(&sql, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), expected, "{sql}");
    }
}

#[tokio::test]
async fn a_fetch_whose_answer_nobody_takes_gives_its_locks_back() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let mut found = 0;
    for round in 0..30 {
        store
            .enqueue_for_orchestrator(OrchestratorMessage::new(format!("i{round}"), "go"), None)
            .await
            .unwrap();
        let fetching = fetch(&store);
        // Somewhere between the question and the answer.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        fetching.abort();
        // It may have been quicker.
        found += fetching.await.map_or(0, |instances| instances.len());
    }
    let all = async {
        while found < 30 {
            let request = FetchOrchestrationItems {
                max_items: 30,
                poll_timeout: LONG,
                ..FetchOrchestrationItems::one(LONG)
            };
            let items = store.fetch_orchestration_items(request).await.unwrap();
            assert!(
                items.iter().all(|item| item.attempt_count == 1),
                "a fetch that nobody saw is no attempt"
            );
            found += items.len();
        }
    };
    soon(all).await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let schema = Schema::take().await;
    let store = schema.open(schema.options()).await;
    let waiting = fetch_error(&store);
    tokio::task::yield_now().await;
    store.close();
    assert_eq!(soon(waiting).await.unwrap(), ErrorKind::Closed);
    let message = OrchestratorMessage::new("i", "go");
    assert_eq!(store.enqueue_for_orchestrator(message, None).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(store.read("i").await.unwrap_err().kind(), ErrorKind::Closed);
    let work = store.fetch_work_item(LONG, LONG, None, &TagFilter::Any).await;
    assert_eq!(work.unwrap_err().kind(), ErrorKind::Closed);
}

fn fetch_error(store: &Arc<PostgresStore>) -> JoinHandle<ErrorKind> {
    let store = Arc::clone(store);
    tokio::spawn(async move {
        match store.fetch_orchestration_item(LONG, LONG, None).await {
            Ok(item) => panic!("expected an error, got {item:?}"),
            Err(error) => error.kind(),
        }
    })
}

#[tokio::test]
async fn backends_that_are_terminated_are_replaced_and_nothing_is_lost() {
    let schema = Schema::take().await;
    let name = format!("chaos {}", schema.name);
    let options =
        PostgresOptions::from_url(&format!("{}?application_name={}", url(), name.replace(' ', "%20")));
    // However slow the machine is, a call gives up only when the store does.
    let options = options.unwrap().schema(&schema.name).unwrap().retry_for(LONG);
    let store = schema.open(options).await;
    let killer = connect(&url()).await;
    let (sent, mut progress) = tokio::sync::watch::channel(0);
    let sending = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in 0..300 {
                let message = OrchestratorMessage::new("i1", format!("{number}"));
                store.enqueue_for_orchestrator(message, None).await.unwrap();
                sent.send_replace(number + 1);
            }
        })
    };
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    let mut killed = 0;
    let mut next = 0;
    // By what was sent and not by time, or on a slow machine no connection would live long enough to send anything.
    while next < 300 && progress.wait_for(|sent| *sent >= next).await.is_ok() {
        let backends = killer.query(kill, &[&name]).await.unwrap().len();
        killed += usize::from(backends > 0);
        next = *progress.borrow() + 10;
    }
    sending.await.unwrap();
    assert!(killed >= 10, "the connections were cut {killed} times");
    // By another store: the last connections may still be about to end, and the outcome of a fetch on one of them is unknown.
    let reader = schema.open(schema.options()).await;
    let item = soon(reader.fetch_orchestration_item(LONG, LONG, None)).await.unwrap().unwrap();
    let bodies: Vec<String> =
        item.messages.iter().map(|message| String::from_utf8(message.body.to_vec()).unwrap()).collect();
    assert_eq!(bodies, (0..300).map(|number| number.to_string()).collect::<Vec<_>>(), "each once, in order");
    assert!(store.statistics().reconnects > 0, "the connections were cut");
}

/// Between the check that a record is absent and its insertion, the other node may insert it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_must_be_absent_is_made_by_one_of_two_nodes() {
    let (_schema, _clock, one, other) = two_nodes().await;
    for round in 0..50 {
        let claims = (0..8).map(|caller| {
            let store = Arc::clone([&one, &other][caller % 2]);
            let claim = RecordWrite::Put {
                kind: "claim".to_owned(),
                id: round.to_string(),
                expect: Expect::Absent,
                due_at_ms: None,
                time_to_live: Some(LONG),
                body: caller.to_string().into(),
            };
            tokio::spawn(async move {
                let writes = vec![claim];
                store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.map(|_| caller)
            })
        });
        let mut won = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            match claim.await.unwrap() {
                Ok(caller) => won.push(caller),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        let stored = one.get_record("claim", &round.to_string()).await.unwrap().unwrap();
        assert_eq!(stored.body, won[0].to_string(), "round {round}");
    }
}

/// A deletion that expects no record is no way around that: what another node has just made stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_expects_absence_deletes_nothing_that_another_node_makes() {
    let (_schema, _clock, one, other) = two_nodes().await;
    for round in 0..50 {
        let (kind, id) = ("claim".to_owned(), round.to_string());
        let claim = RecordWrite::Put {
            kind: kind.clone(),
            id: id.clone(),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(LONG),
            body: Bytes::from_static(b"made"),
        };
        let deletion = RecordWrite::Delete { kind, id: id.clone(), expect: Expect::Absent };
        let commits = (0..8).map(|caller| {
            let (store, write) = match caller % 2 {
                0 => (Arc::clone(&one), claim.clone()),
                _ => (Arc::clone(&other), deletion.clone()),
            };
            tokio::spawn(async move {
                let writes = vec![write];
                (caller, store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await)
            })
        });
        let mut made = 0;
        for commit in commits.collect::<Vec<_>>() {
            match commit.await.unwrap() {
                (caller, Ok(_)) => made += usize::from(caller % 2 == 0),
                (_, Err(error)) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        assert_eq!(made, 1, "round {round}");
        let stored = other.get_record("claim", &id).await.unwrap();
        assert_eq!(stored.map(|record| record.body), Some("made".into()), "round {round}");
    }
}

/// A commit checks what its writes expect before it makes them. Here the record was written between
/// the two.
#[tokio::test]
async fn what_is_written_behind_the_check_fails_the_writes_that_expect_absence() {
    let (schema, _clock, one, _other) = two_nodes().await;
    let there = RecordWrite::Put {
        kind: "claim".to_owned(),
        id: "there".to_owned(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::from_static(b"made"),
    };
    let writes = vec![there];
    one.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    let name = &schema.name;
    for (id, gone, is_done) in
        [("there", true, false), ("there", false, false), ("new", true, true), ("new", false, true)]
    {
        let sql = format!(
            "SELECT {name}.store_records(1, '{{0}}', ROW('{{1}}', '{{claim}}', '{{{id}}}', '{{1}}', '{{0}}', '{{{gone}}}',
                '{{NULL}}', '{{NULL}}', ARRAY['other'::bytea])::{name}.record_list)"
        );
        let written = schema.client.query_one(&sql, &[]).await;
        let code = written.as_ref().err().and_then(|error| error.code()).map(|code| code.code().to_owned());
        assert_eq!(code.as_deref(), (!is_done).then_some("40001"), "{id}, gone {gone}: {written:?}");
    }
    let body = async |id: &str| one.get_record("claim", id).await.unwrap().map(|record| record.body);
    assert_eq!((body("there").await, body("new").await), (Some("made".into()), Some("other".into())));
}
