//! DAGs, their runs, tasks and backfills over the API.

use std::time::Duration;

use reqwest::Method;
use segno::clock::{self, SystemClock};
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno_api::backfill::{Backfill, BackfillStatus, CreateBackfill};
use segno_api::client::{Expected, ListRuns, ListTasks};
use segno_api::dag::PublishDag;
use segno_api::problems::ProblemKind;
use segno_api::run::{
    CancelRun, ClearTasks, MarkTask, MarkedStatus, RerunRun, RunDetails, RunStatus, StartRun, TaskStatus,
};
use segno_api::sql::SqlQuery;
use segno_api::{Client, Json};
use segno_ledger::objects::Stores;
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::outcomes::Row;
use crate::stand::{Ground, PATIENCE, Stand, json_of, settings};

/// Two tasks after each other, and one beside them. `slow` takes as long as the run lets it.
const DIAMOND: &str = "name: diamond
params: {who: {default: Ada}}
tasks:
  - {key: extract, function: echo, input: {who: '{{ params.who }}'}}
  - {key: left, function: echo, input: '{{ tasks.extract.output.who }}', depends_on: [extract]}
  - {key: right, function: echo, input: 7, depends_on: [extract]}
  - {key: load, function: echo, input: '{{ tasks.left.output }}', depends_on: [left, right]}
";

/// Two tasks of each day, of which the second makes an asset.
const DAILY: &str = "name: one
partitions: {days: {window: daily, first: 2026-01-01}}
partitioned_by: days
assets: {sales: {partitions: days}, raw: {partitions: days}}
tasks:
  - {key: a, function: echo, input: '{{ partition.key }}', asset: raw}
  - {key: b, function: echo, input: '{{ tasks.a.output }}', depends_on: [a], asset: sales}
";

/// What runs of DAGs are called in paths.
pub struct DagRuns {
    /// A run of the DAG `one` that has ended, with the tasks `a` and `b`; `b` has logs.
    pub run: String,
    /// A backfill of it that has ended.
    pub backfill: String,
}

/// Two rows of everything that is about DAG runs, at rest.
pub async fn furnish(stand: &Stand) -> DagRuns {
    let client = stand.client();
    for text in ["", "description: new\n"] {
        publish(&client, &format!("{DAILY}{text}")).await;
        publish(&client, &format!("{DAILY}{text}").replace("name: one", "name: two")).await;
    }
    let mut run = String::new();
    for day in ["2026-01-01", "2026-01-02"] {
        let start = StartRun { partition: Some(day.to_owned()), ..of("one") };
        run = client.start_run(&start, None).await.unwrap().id;
        ended(&client, &run).await;
    }
    let mut backfill = String::new();
    for _ in 0..2 {
        let wanted = json!({ "dag": "one", "partitions": "2026-01-01..2026-01-02", "chunk_size": 1 });
        let created = client.create_backfill(&serde_json::from_value(wanted).unwrap()).await.unwrap();
        backfill = ended_backfill(&client, &created.id).await.id;
    }
    let task = client.run_task(&run, "b").await.unwrap().task;
    for attempt in 1..=2 {
        stand.keep_log(task.instance.as_deref().unwrap(), attempt).await;
    }
    DagRuns { run, backfill }
}

/// What writes about DAG runs, and what it needs.
pub async fn writes(stand: &Stand) -> Vec<Row> {
    let client = stand.client();
    let DagRuns { run, .. } = furnish(stand).await;
    // A function of workers, and no worker.
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("by-hand", &remote, Expected::Absent).await.unwrap();
    let waits = DAILY.replace("name: one", "name: waits").replace("function: echo", "function: by-hand");
    publish(&client, &waits).await;
    client.pause_dag("two").await.unwrap();
    let start = StartRun { partition: Some("2026-01-01".to_owned()), ..of("waits") };
    let [open, paused] = [(); 2].map(|()| client.start_run(&start, None));
    let (open, paused) = (open.await.unwrap().id, paused.await.unwrap().id);
    client.pause_run(&paused).await.unwrap();
    let wanted = json!({ "dag": "waits", "partitions": "2026-01-01" });
    let wanted: CreateBackfill = serde_json::from_value(wanted).unwrap();
    let [running, held] = [(); 2].map(|()| client.create_backfill(&wanted));
    let (running, held) = (running.await.unwrap().id, held.await.unwrap().id);
    client.pause_backfill(&held).await.unwrap();
    let failed = failed_backfill(&client).await;
    let rows = [
        ("/v1/dags", String::new(), json!({ "document": waits.replace("name: waits", "name: new") })),
        ("/v1/dags/{name}/pause", "/v1/dags/one/pause".to_owned(), Value::Null),
        ("/v1/dags/{name}/resume", "/v1/dags/two/resume".to_owned(), Value::Null),
        ("/v1/runs", String::new(), json!({ "dag": "waits", "partition": "2026-01-02" })),
        ("/v1/runs/{id}/rerun", format!("/v1/runs/{run}/rerun"), json!({ "from": "subset", "tasks": ["b"] })),
        ("/v1/runs/{id}/clear", format!("/v1/runs/{run}/clear"), json!({ "tasks": ["b"] })),
        (
            "/v1/runs/{id}/tasks/{task}/mark",
            format!("/v1/runs/{run}/tasks/b/mark"),
            json!({ "status": "failed" }),
        ),
        ("/v1/runs/{id}/pause", format!("/v1/runs/{open}/pause"), Value::Null),
        ("/v1/runs/{id}/resume", format!("/v1/runs/{paused}/resume"), Value::Null),
        ("/v1/runs/{id}/cancel", format!("/v1/runs/{open}/cancel"), Value::Null),
        ("/v1/backfills", String::new(), json!({ "dag": "waits", "partitions": "2026-01-02" })),
        ("/v1/backfills/{id}/pause", format!("/v1/backfills/{running}/pause"), Value::Null),
        ("/v1/backfills/{id}/resume", format!("/v1/backfills/{held}/resume"), Value::Null),
        ("/v1/backfills/{id}/retry", format!("/v1/backfills/{failed}/retry"), Value::Null),
        ("/v1/backfills/{id}/cancel", format!("/v1/backfills/{running}/cancel"), Value::Null),
    ];
    let path = |route: &str, path: String| if path.is_empty() { route.to_owned() } else { path };
    rows.into_iter().map(|(route, at, body)| (Method::POST, route, path(route, at), body)).collect()
}

pub async fn publish(client: &Client, document: &str) {
    client.publish_dag(&PublishDag { document: document.to_owned() }).await.unwrap();
}

pub fn of(dag: &str) -> StartRun {
    StartRun { dag: dag.to_owned(), ..StartRun::default() }
}

/// A backfill once it is in a final state.
async fn ended_backfill(client: &Client, id: &str) -> Backfill {
    let look = async {
        loop {
            if let Ok(backfill) = client.backfill(id).await
                && backfill.status.is_final()
            {
                return backfill;
            }
            crate::stand::look_again().await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, look).await.expect("the backfill does not end")
}

/// A backfill of the DAG `broken` whose two chunks have failed.
async fn failed_backfill(client: &Client) -> String {
    let broken = DAILY.replace("name: one", "name: broken").replace("echo", "missing");
    publish(client, &broken).await;
    let wanted = json!({ "dag": "broken", "partitions": "2026-01-01..2026-01-02", "chunk_size": 1 });
    let created = client.create_backfill(&serde_json::from_value(wanted).unwrap()).await.unwrap();
    let backfill = ended_backfill(client, &created.id).await;
    assert_eq!((backfill.status, backfill.failed_chunks), (BackfillStatus::Failed, 2));
    backfill.id
}

/// A run once it is in a final state.
pub async fn ended(client: &Client, id: &str) -> RunDetails {
    let look = async {
        loop {
            if let Ok(details) = client.run(id).await
                && details.run.status.is_final()
            {
                return details;
            }
            crate::stand::look_again().await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, look).await.expect("the run does not end")
}

#[tokio::test]
async fn a_run_is_started_runs_its_tasks_in_order_and_is_shown_with_outputs() {
    let stand = Stand::open().await;
    let client = stand.client();
    publish(&client, DIAMOND).await;
    let wanted = StartRun {
        params: json!({ "who": "Grace" }).as_object().unwrap().clone(),
        labels: [("team".to_owned(), "sales".to_owned())].into(),
        ..of("diamond")
    };
    let started = client.start_run(&wanted, None).await.unwrap();
    assert!(started.created);
    let details = ended(&client, &started.id).await;
    assert_eq!((details.run.status, details.run.tasks_succeeded), (RunStatus::Succeeded, 4));
    let keys: Vec<&str> = details.tasks.iter().map(|task| task.key.as_str()).collect();
    assert_eq!(keys, ["extract", "left", "right", "load"], "upstream before downstream");
    assert_eq!(details.tasks[3].depends_on, ["left", "right"]);
    let load = client.run_task(&started.id, "load").await.unwrap();
    assert_eq!(load.output.as_ref().unwrap().text(), r#""Grace""#);
    assert_eq!(client.run_task_output(&started.id, "extract").await.unwrap().text(), r#"{"who":"Grace"}"#);
    let instance = client.instance(load.task.instance.as_deref().unwrap(), Duration::ZERO).await.unwrap();
    assert_eq!(instance.result.unwrap().text(), r#""Grace""#);
    for (label, found) in [("team=sales", 1), ("team=other", 0)] {
        let list = ListRuns { label: Some(label.to_owned()), ..ListRuns::default() };
        assert_eq!(client.runs(&list).await.unwrap().runs.len(), found, "{label}");
    }
    let list = ListRuns { status: vec![RunStatus::Failed, RunStatus::Running], ..ListRuns::default() };
    assert!(client.runs(&list).await.unwrap().runs.is_empty());
    let list = ListTasks { status: vec![TaskStatus::Succeeded], ..ListTasks::default() };
    assert_eq!(client.run_tasks(&started.id, &list).await.unwrap().tasks.len(), 4);
    for (request, code) in [
        (client.run("run_nothing").await.err(), "unknown-run"),
        (client.run_task(&started.id, "nothing").await.err(), "unknown-task"),
        (client.start_run(&of("nothing"), None).await.err(), "unknown-dag"),
        (client.backfill("nothing").await.err(), "unknown-backfill"),
    ] {
        assert_eq!(request.unwrap().code(), Some(code));
    }
}

#[tokio::test]
async fn a_run_key_is_one_run_and_another_payload_under_it_is_refused() {
    let stand = Stand::open().await;
    let client = stand.client();
    publish(&client, DIAMOND).await;
    let wanted = StartRun { run_key: Some("monday".to_owned()), ..of("diamond") };
    let first = client.start_run(&wanted, None).await.unwrap();
    let second = client.start_run(&wanted, None).await.unwrap();
    assert_eq!((first.created, second.created), (true, false));
    assert_eq!(first.id, second.id);
    let other = StartRun { params: json!({ "who": "Bob" }).as_object().unwrap().clone(), ..wanted };
    let refused = client.start_run(&other, None).await.unwrap_err();
    assert_eq!((refused.code(), refused.status()), (Some("idempotency-mismatch"), Some(409)), "{refused}");
}

#[tokio::test]
async fn two_servers_that_race_with_one_run_key_start_one_run() {
    let ground = Ground::new().await;
    let first = Stand::on(settings(Authentication::None), &ground).await;
    let second = Stand::on(settings(Authentication::None), &ground.of_another_node().await).await;
    let client = first.client();
    publish(&client, DIAMOND).await;
    for round in 0..4 {
        let wanted = StartRun { run_key: Some(format!("round-{round}")), ..of("diamond") };
        let starts = (0..8).map(|caller| {
            let (client, wanted) = ([&first, &second][caller % 2].client(), wanted.clone());
            async move { client.start_run(&wanted, None).await.unwrap() }
        });
        let started = futures_util::future::join_all(starts).await;
        assert_eq!(started.iter().filter(|run| run.created).count(), 1, "{started:?}");
        assert!(started.iter().all(|run| run.id == started[0].id), "{started:?}");
        assert_eq!(ended(&client, &started[0].id).await.run.status, RunStatus::Succeeded);
    }
    assert_eq!(client.runs(&ListRuns::default()).await.unwrap().runs.len(), 4);
}

#[tokio::test]
async fn a_document_with_problems_is_refused_with_all_of_them() {
    let stand = Stand::open().await;
    let document = "name: broken\ntasks:\n  - {key: a, function: echo, depends_on: [b]}\n  - {key: a}\n";
    let call = crate::stand::http().post(stand.url("/v1/dags")).json(&json!({ "document": document }));
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let problem: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "invalid-dag");
    assert!(problem["errors"].as_array().unwrap().len() > 1, "{problem}");
    assert!(stand.client().dags(None).await.unwrap().dags.is_empty());
}

#[tokio::test]
async fn a_failed_task_is_rerun_marked_or_cleared() {
    let stand = Stand::open().await;
    let client = stand.client();
    let broken = "name: broken\ntasks:\n  - {key: a, function: echo, input: 1}\n  \
                  - {key: b, function: missing, depends_on: [a], retry: {attempts: 1}}\n  \
                  - {key: c, function: echo, input: 2, depends_on: [b]}\n";
    publish(&client, broken).await;
    let started = client.start_run(&of("broken"), None).await.unwrap();
    let details = ended(&client, &started.id).await;
    assert_eq!(details.run.status, RunStatus::Failed);
    let states: Vec<TaskStatus> = details.tasks.iter().map(|task| task.status).collect();
    assert_eq!(states, [TaskStatus::Succeeded, TaskStatus::Failed, TaskStatus::Skipped]);
    let again = client.rerun_run(&started.id, &RerunRun::default()).await.unwrap();
    let again = ended(&client, &again.id).await;
    assert_eq!(again.run.parent_run.as_deref(), Some(started.id.as_str()));
    assert_eq!(again.run.status, RunStatus::Failed);
    let digits = r#"{"rows":123456789012345678901234567890}"#;
    let mark = MarkTask {
        status: MarkedStatus::Succeeded,
        output: Some(Json::from_text(digits.to_owned()).unwrap()),
        reason: Some("checked by hand".to_owned()),
    };
    let endless = MarkTask { output: Some(Json::from_text("1e400".to_owned()).unwrap()), ..mark.clone() };
    let refused = client.mark_task(&started.id, "b", &endless).await.unwrap_err();
    assert_eq!(refused.code(), Some("payload-not-json"), "the rule of every door: {refused}");
    assert!(client.mark_task(&started.id, "b", &mark).await.unwrap().is_visible);
    let b = client.run_task(&started.id, "b").await.unwrap();
    assert_eq!((b.task.status, b.output.unwrap().text()), (TaskStatus::Succeeded, digits));
    // The mark may have let `c` run; only tasks that have ended are cleared.
    ended(&client, &started.id).await;
    let clear = ClearTasks { tasks: vec!["c".to_owned()], downstream: true };
    client.clear_tasks(&started.id, &clear).await.unwrap();
    let details = ended(&client, &started.id).await;
    assert_eq!(details.run.status, RunStatus::Succeeded, "{details:?}");
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_a_run_that_has_ended_not_at_all() {
    let stand = Stand::open().await;
    let client = stand.client();
    // A function of workers, and no worker.
    let remote = json_of(&json!({ "executor": "remote" }));
    client.put_function("remote-only", &remote, Expected::Absent).await.unwrap();
    publish(&client, "name: waits\ntasks:\n  - {key: a, function: remote-only}\n").await;
    let started = client.start_run(&of("waits"), None).await.unwrap();
    let reason = CancelRun { reason: Some("no longer needed".to_owned()) };
    client.cancel_run(&started.id, &reason).await.unwrap();
    let details = ended(&client, &started.id).await;
    assert_eq!(details.run.status, RunStatus::Cancelled, "{details:?}");
    let refused = client.cancel_run(&started.id, &reason).await.unwrap_err();
    assert_eq!((refused.code(), refused.status()), (Some("run-request-refused"), Some(409)), "{refused}");
}

#[tokio::test]
async fn a_backfill_runs_all_partitions_of_a_range() {
    let stand = Stand::open().await;
    let client = stand.client();
    let daily = "name: daily\npartitions: {days: {window: daily, first: 2026-01-01}}\npartitioned_by: days\n\
                 assets: {sales: {partitions: days}}\ntasks:\n  \
                 - {key: a, function: echo, input: '{{ partition.key }}', asset: sales}\n";
    publish(&client, daily).await;
    let wanted = json!({ "dag": "daily", "partitions": "2026-01-01..2026-01-05", "chunk_size": 2 });
    let created = client.create_backfill(&serde_json::from_value(wanted).unwrap()).await.unwrap();
    assert_eq!(created.total_partitions, 5);
    let backfill = ended_backfill(&client, &created.id).await;
    assert_eq!((backfill.status, backfill.completed_chunks), (BackfillStatus::Succeeded, 3));
    let chunks = client.backfill_chunks(&created.id, None).await.unwrap().chunks;
    assert_eq!(chunks.len(), 3);
    let partitions = client.asset_partitions("sales", None).await.unwrap().partitions;
    let keys: Vec<&str> = partitions.iter().map(|row| row.partition.as_str()).collect();
    assert_eq!(keys, ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]);
    let refused = client.cancel_backfill(&created.id).await.unwrap_err();
    assert_eq!(refused.code(), Some("run-request-refused"), "{refused}");
}

#[tokio::test]
async fn runs_and_their_tasks_can_be_queried() {
    let stand = Stand::open().await;
    let client = stand.client();
    publish(&client, DIAMOND).await;
    let first = client.start_run(&of("diamond"), None).await.unwrap().id;
    ended(&client, &first).await;
    let second = client.start_run(&of("diamond"), None).await.unwrap().id;
    ended(&client, &second).await;
    for (text, expected) in [
        (
            "SELECT dag, status, count(*), sum(tasks_succeeded) FROM runs GROUP BY 1, 2".to_owned(),
            "diamond succeeded 2 8",
        ),
        (
            format!("SELECT id, duration_ms >= 0, paused FROM runs WHERE id = '{first}'"),
            &format!("{first} 1 0"),
        ),
        ("SELECT count(*) FROM runs WHERE id = 'nothing' OR triggered_at < '2001-01-01'".to_owned(), "0"),
        ("SELECT count(*) FROM runs WHERE id = 'nothing'".to_owned(), "0"),
        (
            "SELECT count(*) FROM runs WHERE triggered_at > ago('1h') AND triggered_at <= now()".to_owned(),
            "2",
        ),
        ("SELECT count(*) FROM runs WHERE triggered_at < '2001-01-01'".to_owned(), "0"),
        (
            format!(
                "SELECT key, status, function, output FROM tasks WHERE run = '{second}' AND key = 'right'"
            ),
            "right succeeded echo 7",
        ),
        ("SELECT count(*), count(DISTINCT run), min(duration_ms) >= 0 FROM tasks".to_owned(), "8 2 1"),
        (
            "SELECT count(*) FROM runs r JOIN tasks t ON t.run = r.id WHERE t.status = 'succeeded'"
                .to_owned(),
            "8",
        ),
    ] {
        let query = SqlQuery { query: Some(text.clone()), ..SqlQuery::default() };
        let answer = client.sql(&query).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let cells = answer.rows.iter().flatten().map(|cell| cell.text().trim_matches('"').to_owned());
        assert_eq!(cells.collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}

#[tokio::test]
async fn the_chunks_of_a_backfill_that_failed_are_run_again_with_the_active_version() {
    let stand = Stand::open().await;
    let client = stand.client();
    let failed = failed_backfill(&client).await;
    publish(&client, &DAILY.replace("name: one", "name: broken")).await;
    let again = client.retry_backfill(&failed).await.unwrap();
    assert_eq!(again.total_partitions, 2);
    let again = ended_backfill(&client, &again.id).await;
    assert_eq!(
        (again.status, again.parent_backfill.as_deref()),
        (BackfillStatus::Succeeded, Some(failed.as_str()))
    );
    let refused = client.retry_backfill(&again.id).await.unwrap_err();
    assert_eq!((refused.code(), refused.status()), (Some("run-request-refused"), Some(409)), "{refused}");
    let unknown = client.retry_backfill("bf_nothing").await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown-backfill"));
}

#[tokio::test]
async fn a_run_of_some_tasks_has_these_alone() {
    let stand = Stand::open().await;
    let client = stand.client();
    publish(&client, DIAMOND).await;
    let select = |term: &str| StartRun { select: vec![term.to_owned()], ..of("diamond") };
    let started = client.start_run(&select("+left"), None).await.unwrap();
    let details = ended(&client, &started.id).await;
    let keys: Vec<&str> = details.tasks.iter().map(|task| task.key.as_str()).collect();
    assert_eq!((details.run.status, keys), (RunStatus::Succeeded, vec!["extract", "left"]));
    for (term, problem) in [("nothing", "nothing"), ("load", "left")] {
        let refused = client.start_run(&select(term), None).await.unwrap_err();
        assert_eq!(refused.status(), Some(400), "{refused}");
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    let keyed = |term: &str| StartRun { run_key: Some("k".to_owned()), ..select(term) };
    let first = client.start_run(&keyed("extract"), None).await.unwrap();
    assert!(!client.start_run(&keyed("extract"), None).await.unwrap().created);
    assert!(first.created);
    let other = client.start_run(&keyed("right"), None).await.unwrap_err();
    assert_ne!(other.status(), Some(201), "{other}");
}

#[tokio::test]
async fn readiness_and_problems_name_a_ledger_that_cannot_be_written() {
    let (healthy, directory) = (Stand::open().await, tempfile::tempdir().unwrap());
    let ready: Value =
        crate::stand::http().get(healthy.url("/readyz")).send().await.unwrap().json().await.unwrap();
    assert_eq!(ready["warnings"], Value::Null, "{ready}");
    let folder = directory.path().join("ledger");
    let mut ground = Ground::new().await;
    ground.ledger = Stores::directory(&folder).unwrap();
    let stand = Stand::on(settings(Authentication::None), &ground).await;
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no directory").unwrap();
    let answer = crate::stand::http().get(stand.url("/readyz")).send().await.unwrap();
    assert_eq!(answer.status(), 200, "all else is served");
    let ready: Value = answer.json().await.unwrap();
    let warnings: Vec<&str> =
        ready["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(warnings.contains(&"the ledger cannot be written"), "{warnings:?}");
    let problems: Value =
        crate::stand::http().get(stand.url("/v1/problems")).send().await.unwrap().json().await.unwrap();
    let ledger = problems["problems"].as_array().unwrap().iter().find(|problem| problem["kind"] == "ledger");
    let reason = ledger.unwrap()["items"][0]["name"].as_str().unwrap().to_owned();
    // What is no directory cannot be read either.
    assert!(reason.starts_with("the ledger cannot be "), "{reason}");
}

#[tokio::test]
async fn a_ledger_that_disappears_is_not_begun_again_and_goes_on_when_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, elsewhere) = (directory.path().join("ledger"), directory.path().join("elsewhere"));
    let mut ground = Ground::new().await;
    ground.ledger = Stores::directory(&folder).unwrap();
    let stand = Stand::on(settings(Authentication::None), &ground).await;
    let client = stand.client();
    publish(&client, DIAMOND).await;
    let first = client.start_run(&of("diamond"), None).await.unwrap().id;
    ended(&client, &first).await;
    // Folds that follow each other verify the place by themselves.
    clock::sleep(&SystemClock, Duration::from_secs(2)).await;
    std::fs::rename(&folder, &elsewhere).unwrap();
    let second = client.start_run(&of("diamond"), None).await.unwrap();
    assert!(second.created && !second.is_visible, "it is stored, and not shown");
    assert_eq!(client.run(&first).await.unwrap_err().code(), Some("ledger-unavailable"));
    assert!(!folder.exists(), "nothing was begun in the empty place");
    std::fs::rename(&elsewhere, &folder).unwrap();
    assert_eq!(ended(&client, &second.id).await.run.status, RunStatus::Succeeded);
    assert_eq!(client.run(&first).await.unwrap().run.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_sensor_that_fails_again_and_again_is_a_problem_and_is_shown_with_its_dag() {
    let ground = Ground::new().await;
    let stand = Stand::on(settings(Authentication::None), &ground).await;
    let client = stand.client();
    let document = "name: fed\nsensors: [{name: files, function: nothing, interval: 1h}]\ntasks: [{key: a, function: echo}]";
    publish(&client, document).await;
    let failed = async {
        loop {
            let sensor = client.dag("fed").await.unwrap().sensors.remove(0);
            if sensor.failures == 1 && sensor.last_error.is_some() {
                return sensor;
            }
            crate::stand::look_again().await;
        }
    };
    let failed = clock::timeout(&SystemClock, PATIENCE, failed).await.expect("no poll has failed");
    let error = failed.last_error.unwrap();
    assert!(error.contains("nothing") && !error.contains("::"), "{error}");
    assert!(failed.next_poll_at.is_some());
    let before = client.problems().await.unwrap();
    assert!(before.problems.iter().all(|problem| problem.kind != ProblemKind::SensorsFailing), "{before:?}");
    assert!(before.checked.contains(&ProblemKind::SensorsFailing), "{before:?}");
    // As two more failures leave its record.
    let request = ListRecords { kind: "dag_sensors", id_prefix: "", after_id: None, limit: 10 };
    let record = ground.store.list_records(request).await.unwrap().remove(0);
    let mut body: Value = serde_json::from_slice(&record.body).unwrap();
    body["failures"] = 3.into();
    let write = RecordWrite::Put {
        kind: "dag_sensors".to_owned(),
        id: record.id,
        expect: Expect::Anything,
        due_at_ms: record.due_at_ms,
        time_to_live: None,
        body: body.to_string().into(),
    };
    let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
    ground.store.commit_records(batch).await.unwrap();
    assert_eq!(client.dag("fed").await.unwrap().sensors[0].failures, 3);
    let found = async {
        loop {
            let report = client.problems().await.unwrap();
            if let Some(found) =
                report.problems.into_iter().find(|problem| problem.kind == ProblemKind::SensorsFailing)
            {
                return found;
            }
            crate::stand::look_again().await;
        }
    };
    let found = clock::timeout(&SystemClock, PATIENCE, found).await.expect("the sensor is no problem");
    assert_eq!((found.count, found.items[0].name.as_str()), (1, "fed:files"));
}

#[tokio::test]
async fn documents_that_are_expensive_to_check_are_refused_by_what_they_stand_for() {
    let stand = Stand::open().await;
    let client = stand.client();
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let tasks: String = (0..10_001).map(|task| format!("- {{key: t{task}, function: f}}\n")).collect();
    let steps: String =
        (0..10_000).map(|step| format!("  - {{name: s{step}, worker_id: p, function: F}}\n")).collect();
    let runbook = format!(
        "name: large\ndata_source: {{type: manual, primary_key: Id}}\nphases:\n- name: one\n  offset: T-0\n  steps:\n{steps}"
    );
    for (document, problem) in [
        (bomb.clone(), "more than 500000 values, aliases expanded"),
        (format!("name: large\ntasks:\n{tasks}"), "the list has 10001 items, the limit is 10000"),
    ] {
        let refused = client.publish_dag(&PublishDag { document }).await.unwrap_err();
        assert_eq!(refused.code(), Some("invalid-dag"));
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    for (yaml_content, problem) in [
        (bomb, "more than 100000 values, aliases expanded"),
        (runbook, "phases[0].steps: the list has 10000 items, the limit is 100"),
    ] {
        let request = serde_json::from_value(json!({ "yaml_content": yaml_content })).unwrap();
        let refused = client.publish_runbook(&request).await.unwrap_err();
        assert_eq!(refused.code(), Some("invalid-runbook"));
        assert!(refused.to_string().contains(problem), "{refused}");
    }
}

#[tokio::test]
async fn a_ledger_that_does_not_answer_at_the_start_is_driven_once_it_has_passed_its_probe() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("ledger");
    let mut ground = Ground::new().await;
    ground.ledger = Stores::directory(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no directory").unwrap();
    let stand = Stand::on(settings(Authentication::None), &ground).await;
    let client = stand.client();
    let warning = "the ledger has not passed its probe, so this node drives no DAG runs";
    let warns = async || client.ready().await.unwrap().warnings.iter().any(|found| found == warning);
    let until = async |expected| {
        let looks = async {
            while warns().await != expected {
                clock::sleep(&SystemClock, Duration::from_millis(50)).await;
            }
        };
        clock::timeout(&SystemClock, PATIENCE, looks).await.expect("readiness does not change");
    };
    until(true).await;
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    publish(&client, DIAMOND).await;
    let run = client.start_run(&of("diamond"), None).await.unwrap();
    assert_eq!(ended(&client, &run.id).await.run.status, RunStatus::Succeeded);
    until(false).await;
}
