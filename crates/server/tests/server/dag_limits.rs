//! How many runs of a DAG are under way, what a paused DAG starts, and runs as they happen.

use std::collections::BTreeSet;

use segno::clock::{self, SystemClock};
use segno_api::Client;
use segno_api::change::{FollowChanges, RunChange};
use segno_api::client::{EventStream, Expected, ListTasks, PageRequest, StreamEvent};
use segno_api::key::Role;
use segno_api::run::{CancelRun, RunStatus, StartRun, TaskStatus};
use segno_api::work::{CompleteWork, FetchWork};
use segno_server::settings::Authentication;
use serde_json::json;

use crate::dags::{ended, of, publish};
use crate::stand::{PATIENCE, Stand, json_of, settings};

/// A DAG whose one task runs on a worker of this test.
const SLOW: &str = "name: slow\nmax_concurrent_runs: 1\ntasks: [{key: a, function: by-hand}]\n";

async fn stand_with_worker() -> Stand {
    let stand = Stand::open().await;
    let remote = json_of(&json!({ "executor": "remote" }));
    stand.client().put_function("by-hand", &remote, Expected::Absent).await.unwrap();
    stand
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let look = async {
        while !holds().await {
            crate::stand::look_again().await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, look).await.unwrap_or_else(|| panic!("{what}"));
}

async fn started(client: &Client, dag: &str) -> String {
    client.start_run(&of(dag), None).await.unwrap().id
}

async fn why(client: &Client, run: &str) -> String {
    client.run(run).await.unwrap().waits.why
}

/// Takes the next call of a task and ends it.
async fn work(client: &Client) {
    let fetch = FetchWork { wait_ms: 60_000, ..FetchWork::new("w", ["by-hand"]) };
    let item = client.fetch_work(&fetch).await.unwrap().items.remove(0);
    client.complete_work(&CompleteWork { lease: item.lease, result: json_of(&1) }).await.unwrap();
}

#[tokio::test]
async fn runs_beyond_the_limit_of_their_dag_wait_and_begin_in_order() {
    let stand = stand_with_worker().await;
    let client = stand.client();
    publish(&client, SLOW).await;
    let first = started(&client, "slow").await;
    let [second, third] = [started(&client, "slow").await, started(&client, "slow").await];
    let waits = "1 wait until another run of the DAG ends";
    until("the second run does not wait", async || why(&client, &second).await.contains(waits)).await;
    let task = client.run_tasks(&second, &ListTasks::default()).await.unwrap().tasks.remove(0);
    assert_eq!((task.status, task.attempt), (TaskStatus::Ready, 0));
    assert!(task.waits.unwrap().why.contains("1 may be under way at a time"));
    client.cancel_run(&second, &CancelRun::default()).await.unwrap();
    work(&client).await;
    assert_eq!(ended(&client, &first).await.run.status, RunStatus::Succeeded);
    work(&client).await;
    assert_eq!(ended(&client, &third).await.run.status, RunStatus::Succeeded);
    assert_eq!(ended(&client, &second).await.run.tasks_cancelled, 1);
}

#[tokio::test]
async fn a_published_version_without_the_limit_lets_all_runs_in() {
    let stand = stand_with_worker().await;
    let client = stand.client();
    publish(&client, SLOW).await;
    let runs = [started(&client, "slow").await, started(&client, "slow").await];
    publish(&client, &SLOW.replace("max_concurrent_runs: 1\n", "")).await;
    for _ in &runs {
        work(&client).await;
    }
    for run in &runs {
        assert_eq!(ended(&client, run).await.run.status, RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn a_paused_dag_starts_no_chunks_of_its_backfills_until_it_is_resumed() {
    let stand = Stand::open().await;
    let client = stand.client();
    publish(
        &client,
        "name: daily\npartitions: {days: {window: daily, first: 2026-01-01}}\npartitioned_by: days\n\
         tasks: [{key: a, function: echo, input: '{{ partition.key }}'}]\n",
    )
    .await;
    client.pause_dag("daily").await.unwrap();
    let wanted = json!({ "dag": "daily", "partitions": "2026-01-01..2026-01-03", "chunk_size": 1 });
    let id = client.create_backfill(&serde_json::from_value(wanted).unwrap()).await.unwrap().id;
    // A run by hand ends meanwhile, so the driver has looked at the backfill.
    let start = StartRun { partition: Some("2026-01-01".to_owned()), ..of("daily") };
    ended(&client, &client.start_run(&start, None).await.unwrap().id).await;
    let backfill = client.backfill(&id).await.unwrap();
    assert_eq!((backfill.planned_chunks, backfill.status.is_final()), (0, false));
    client.resume_dag("daily").await.unwrap();
    until("the backfill does not end", async || {
        client.backfill(&id).await.is_ok_and(|backfill| backfill.status.is_final())
    })
    .await;
    assert_eq!(client.backfill(&id).await.unwrap().completed_chunks, 3);
}

async fn next(stream: &mut EventStream) -> StreamEvent {
    let event = clock::timeout(&SystemClock, PATIENCE, stream.next()).await;
    event.unwrap().unwrap().unwrap()
}

async fn listen(client: &Client, filter: &FollowChanges) -> EventStream {
    let mut stream = client.changes(filter, None).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    stream
}

/// Changes of runs until one of them has ended.
async fn until_ended(stream: &mut EventStream) -> Vec<RunChange> {
    let mut changes: Vec<RunChange> = Vec::new();
    while changes.last().is_none_or(|change| !change.status.is_final()) {
        let event = next(stream).await;
        if event.name == "run" {
            changes.push(serde_json::from_str(&event.data).unwrap());
        }
    }
    changes
}

#[tokio::test]
async fn the_life_of_a_run_is_on_the_event_stream() {
    let stand = stand_with_worker().await;
    let client = stand.client();
    publish(
        &client,
        "name: two\ntasks:\n  - {key: a, function: echo}\n  - {key: b, function: by-hand, depends_on: [a]}\n",
    )
    .await;
    let mut all = listen(&client, &FollowChanges::default()).await;
    let run = started(&client, "two").await;
    let other = started(&client, "two").await;
    let of_run = FollowChanges { run: Some(run.clone()), ..FollowChanges::default() };
    let mut one = listen(&client, &of_run).await;
    work(&client).await;
    work(&client).await;
    let changes = until_ended(&mut one).await;
    assert!(changes.iter().all(|change| change.run == run && change.dag.as_deref() == Some("two")));
    let last = changes.last().unwrap();
    assert_eq!(last.status, RunStatus::Succeeded);
    assert_eq!((last.tasks[0].key.as_str(), last.tasks[0].status), ("b", TaskStatus::Succeeded));
    let mut both = until_ended(&mut all).await;
    both.extend(until_ended(&mut all).await);
    let runs: BTreeSet<&str> = both.iter().map(|change| change.run.as_str()).collect();
    assert_eq!(runs, [run.as_str(), other.as_str()].into());
    let states: BTreeSet<TaskStatus> =
        both.iter().flat_map(|change| &change.tasks).map(|task| task.status).collect();
    for status in [TaskStatus::Blocked, TaskStatus::Ready, TaskStatus::Dispatched, TaskStatus::Succeeded] {
        assert!(states.contains(&status), "{status:?}: {states:?}");
    }
    for wrong in [
        FollowChanges { prefix: Some("x".to_owned()), ..of_run.clone() },
        FollowChanges { batch: Some(1), ..of_run.clone() },
    ] {
        let refused = client.changes(&wrong, None).await.err().unwrap();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")));
    }
}

#[tokio::test]
async fn a_tenant_gets_no_events_of_runs_of_another() {
    let stand = Stand::with(settings(Authentication::Keys)).await;
    let eu = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let us = stand.client_with(Role::Operator, "shop", "us").await.scope("shop", "us");
    let mut heard = listen(&us, &FollowChanges::default()).await;
    for client in [&eu, &us] {
        publish(client, "name: one\ntasks: [{key: a, function: echo}]\n").await;
    }
    let theirs = started(&eu, "one").await;
    let of_theirs = FollowChanges { run: Some(theirs.clone()), ..FollowChanges::default() };
    let mut silent = listen(&us, &of_theirs).await;
    ended(&eu, &theirs).await;
    let ours = started(&us, "one").await;
    let changes = until_ended(&mut heard).await;
    assert!(changes.iter().all(|change| change.run == ours), "{changes:?}");
    // The stream ends with the server, and nothing was sent to it before.
    stand.shutdown().await;
    let next = silent.next().await;
    assert!(!matches!(next, Ok(Some(_))), "{next:?}");
}

#[tokio::test]
async fn tasks_of_a_run_are_listed_by_key_and_state_in_pages() {
    let stand = Stand::open().await;
    let client = stand.client();
    let tasks: String =
        (0..25).map(|number| format!("  - {{key: t{number:02}, function: echo}}\n")).collect();
    publish(&client, &format!("name: wide\ntasks:\n{tasks}  - {{key: last, function: missing, depends_on: [t00, t24], retry: {{attempts: 1}}}}\n"))
        .await;
    let run = started(&client, "wide").await;
    ended(&client, &run).await;
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let list = ListTasks { page: PageRequest { limit: Some(10), cursor }, ..ListTasks::default() };
        let page = client.run_tasks(&run, &list).await.unwrap();
        assert!(page.tasks.len() <= 10);
        keys.extend(page.tasks.into_iter().map(|task| task.key));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut wanted: Vec<String> = (0..25).map(|number| format!("t{number:02}")).collect();
    wanted.insert(0, "last".to_owned());
    assert_eq!(keys, wanted);
    let failed = ListTasks { status: vec![TaskStatus::Failed], ..ListTasks::default() };
    let failed = client.run_tasks(&run, &failed).await.unwrap().tasks;
    assert_eq!(
        (failed.len(), failed[0].depends_on.as_slice()),
        (1, ["t00".to_owned(), "t24".to_owned()].as_slice())
    );
    assert!(failed[0].started_at.is_some(), "{failed:?}");
}
