//! Sensors, notices and the freshness of assets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::world::{Reply, World, all_succeed};
use crate::drive::RunQuery;
use crate::tables::{RunRow, RunState};

async fn runs_of(world: &World, dag: &str) -> Vec<RunRow> {
    let query = RunQuery { dag: Some(dag.to_owned()), limit: 100, ..RunQuery::default() };
    world.ledger.runs().list(&world.scope, &query).await.unwrap().runs
}

/// The calls that were begun whose jobs begin like this, with their inputs.
fn calls(world: &World, prefix: &str) -> Vec<(String, Value)> {
    let seen = world.seen.lock().unwrap();
    let of = seen.inputs.iter().filter(|(job, _)| job.starts_with(prefix));
    of.map(|(job, input)| (job.clone(), input.clone())).collect()
}

const FED: &str = "
name: fed
params: {file: {default: none}}
sensors: [{name: files, function: work, interval: 1m, input: {folder: /in}}]
tasks: [{key: load, function: work, input: '{{ params.file }}'}]
";

/// A folder with three files: a poll finds two, then the second again and the third.
fn folder(job: &str, input: &Value) -> Reply {
    if !job.starts_with("sensor:") {
        return Reply::Done(json!({}));
    }
    let file = |key: &str| json!({ "run_key": key, "params": { "file": key } });
    Reply::Done(match input["cursor"].as_str() {
        None => json!({ "cursor": "2", "runs": [file("a"), file("b"), file("a")] }),
        Some("2") => json!({ "cursor": "3", "runs": [file("b"), file("c")] }),
        Some(_) => Value::Null,
    })
}

#[test]
fn a_sensor_is_polled_with_its_cursor_and_each_run_key_is_one_run() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(folder));
        let _process = world.process("a").await;
        world.publish(FED).await;
        world.until("three runs", async || runs_of(&world, "fed").await.len() == 3).await;
        world.pass(5 * 60).await;
        let runs = runs_of(&world, "fed").await;
        assert_eq!(runs.len(), 3, "{runs:?}");
        assert!(runs.iter().all(|run| run.state == RunState::Succeeded), "{runs:?}");
        let mut files: Vec<String> =
            calls(&world, "dispatch:").iter().map(|(_, input)| input.as_str().unwrap().to_owned()).collect();
        files.sort();
        assert_eq!(files, ["a", "b", "c"]);
        let polls = calls(&world, "sensor:fed:files:");
        assert_eq!(polls[0].1["input"], json!({ "folder": "/in" }));
        let dags = world.ledger.dags();
        let sensor = dags.list_sensors(&world.scope, "fed").await.unwrap().remove(0);
        let state = sensor.state.unwrap();
        assert_eq!((state.cursor.as_deref(), &*state.status), (Some("3"), r#"{"type":"no_new_data"}"#));
        assert!(sensor.next_poll_at.is_some());
        dags.pause(&world.scope, "fed", None).await.unwrap();
        let sensor = dags.list_sensors(&world.scope, "fed").await.unwrap().remove(0);
        assert_eq!(sensor.next_poll_at, None);
        let polled = calls(&world, "sensor:").len();
        world.pass(10 * 60).await;
        assert_eq!(calls(&world, "sensor:").len(), polled, "a paused DAG is not polled for");
        dags.resume(&world.scope, "fed", None).await.unwrap();
        world.until("another poll", async || calls(&world, "sensor:").len() > polled).await;
        world.publish("{name: fed, tasks: [{key: load, function: work}]}").await;
        assert!(dags.list_sensors(&world.scope, "fed").await.unwrap().is_empty());
    });
}

#[test]
fn a_poll_that_fails_or_returns_something_else_moves_no_cursor() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|job: &str, _: &Value| match job.contains(":broken:") {
            true => Reply::Fail("no connection"),
            false => Reply::Done(json!({ "files": 3 })),
        }));
        let _process = world.process("a").await;
        let sensor = |name: &str| format!("{{name: {name}, function: work}}");
        let sensors = [sensor("broken"), sensor("odd")].join(", ");
        world
            .publish(&format!("{{name: d, sensors: [{sensors}], tasks: [{{key: a, function: work}}]}}"))
            .await;
        let polled = async || {
            let sensors = world.ledger.dags().list_sensors(&world.scope, "d").await.unwrap();
            sensors.iter().all(|sensor| sensor.state.is_some())
        };
        world.until("both polls", polled).await;
        let sensors = world.ledger.dags().list_sensors(&world.scope, "d").await.unwrap();
        for (sensor, problem) in sensors.iter().zip(["no connection", "it returned something else than"]) {
            let state = sensor.state.as_ref().unwrap();
            assert!(state.status.contains(problem), "{}", state.status);
            assert_eq!((state.cursor.as_deref(), state.state_version), (None, 0));
        }
        assert!(runs_of(&world, "d").await.is_empty());
    });
}

#[test]
fn a_sensor_that_fails_is_polled_less_and_less_also_by_another_process_until_it_succeeds() {
    segno_testkit::run(async {
        let is_up = Arc::new(AtomicBool::new(false));
        let up = Arc::clone(&is_up);
        let world = World::new(Arc::new(move |_: &str, _: &Value| match up.load(Ordering::Relaxed) {
            true => Reply::Done(Value::Null),
            false => Reply::Fail("no connection"),
        }));
        let process = world.process("a").await;
        world
            .publish("{name: d, sensors: [{name: s, function: work, interval: 1m}], tasks: [{key: a, function: work}]}")
            .await;
        let sensor = async || {
            let mut sensors = world.ledger.dags().list_sensors(&world.scope, "d").await.unwrap();
            sensors.remove(0)
        };
        world.until("four failures", async || sensor().await.sensor.failures == 4).await;
        let wait_ms = async || {
            let next = sensor().await.next_poll_at.unwrap().as_millisecond();
            u64::try_from(next).unwrap().saturating_sub(world.clock.now_ms())
        };
        let minutes = wait_ms().await / 60_000;
        assert!((6..=8).contains(&minutes), "{minutes}");
        drop(process);
        is_up.store(true, Ordering::Relaxed);
        let _process = world.process("b").await;
        let polls = calls(&world, "sensor:").len();
        world.pass(4 * 60).await;
        assert_eq!(
            (calls(&world, "sensor:").len(), sensor().await.sensor.failures),
            (polls, 4),
            "it still waits"
        );
        world.until("a success", async || sensor().await.sensor.failures == 0).await;
        assert!(wait_ms().await <= 60_000);
    });
}

#[test]
fn the_function_of_a_dag_is_told_once_of_each_failure() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|job: &str, _: &Value| match job.contains(":refuse:") {
            true if job.starts_with("dispatch:") => Reply::Refuse("never"),
            _ => Reply::Done(json!({})),
        }));
        let _process = world.process("a").await;
        let dag = |name: &str, on: &str| {
            format!(
                "{{name: {name}, notify: {{function: work{on}}}, tasks: [{{key: refuse, function: work}}]}}"
            )
        };
        world.publish(&dag("all", "")).await;
        world.publish(&dag("runs", ", on: [run_failed]")).await;
        let (all, runs) = (world.start("all").await, world.start("runs").await);
        for run_id in [&all, &runs] {
            assert_eq!(world.until_ended(run_id).await.state, RunState::Failed);
        }
        world.pass(5 * 60).await;
        let told = calls(&world, "notify:");
        let jobs: Vec<&str> = told.iter().map(|(job, _)| job.as_str()).collect();
        let mut wanted =
            [format!("notify:{all}:0"), format!("notify:{all}:refuse:1"), format!("notify:{runs}:0")];
        wanted.sort();
        assert_eq!(jobs, wanted);
        let seen = world.seen.lock().unwrap();
        assert!(jobs.iter().all(|job| seen.begun[*job] == 1), "{:?}", seen.begun);
        let about = |job: String| &seen.inputs[&job];
        let run = about(format!("notify:{all}:0"));
        assert_eq!(
            (&run["event"], &run["dag"], &run["tasks_failed"]),
            (&json!("run_failed"), &json!("all"), &json!(1))
        );
        let task = about(format!("notify:{all}:refuse:1"));
        assert_eq!(
            (&task["event"], &task["task"], &task["error"]),
            (&json!("task_failed"), &json!("refuse"), &json!("never"))
        );
        assert_eq!((&task["namespace"], &task["tenant"]), (&json!("eu"), &json!("acme")));
        assert_eq!((&run["dag_version"], &task["dag_version"]), (&json!(1), &json!(1)), "numbers");
        assert_eq!(run["reason"], "task refuse failed: never");
    });
}

#[test]
fn the_notice_of_a_run_names_its_first_failure_also_when_other_tasks_end_later() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|job: &str, _: &Value| match job {
            job if job.contains(":early:") => Reply::Refuse("no disk"),
            job if job.contains(":late:") => Reply::Later(90_000, json!({})),
            job if job.contains(":last:") => Reply::Refuse("no network"),
            _ => Reply::Done(json!({})),
        }));
        let _process = world.process("a").await;
        world
            .publish(
                "{name: d, notify: {function: work, on: [run_failed]}, tasks: [{key: early, function: work}, \
                 {key: late, function: work}, {key: last, function: work, depends_on: [late]}]}",
            )
            .await;
        let run_id = world.start("d").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Failed);
        world.pass(60).await;
        let (_, told) = calls(&world, "notify:").remove(0);
        assert_eq!(told["reason"], "task early failed: no disk (and 1 other task failed)");
    });
}

#[test]
fn an_asset_that_is_not_made_in_time_is_told_of_once_until_it_is_made_again() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        let dag = "{name: d, assets: {sales: {freshness: 1h}}, notify: {function: work}, tasks: [{key: a, function: work, asset: sales}]}";
        world.publish(dag).await;
        let told = || calls(&world, "stale:d:sales:");
        world.pass(3_500).await;
        assert!(told().is_empty());
        world.pass(3 * 3_600).await;
        assert_eq!(told().len(), 1, "never made, since it was published: {:?}", told());
        assert_eq!(told()[0].1["last_materialization_at"], Value::Null);
        let run = world.start("d").await;
        world.until_ended(&run).await;
        world.pass(3_500).await;
        assert_eq!(told().len(), 1);
        world.pass(3 * 3_600).await;
        assert_eq!(told().len(), 2, "{:?}", told());
        assert!(told()[1].1["last_materialization_at"].is_string());
        world.ledger.dags().delete(&world.scope, "d", None).await.unwrap();
        world.pass(24 * 3_600).await;
        assert_eq!(told().len(), 2);
    });
}
