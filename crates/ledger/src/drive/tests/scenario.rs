//! Runs from start to end: order, inputs, retries, failures, cancellation, corrections, lists, backfills, schedules.

use std::sync::Arc;

use segno::Payload;
use serde_json::{Value, json};

use super::world::{Reply, World, all_succeed};
use crate::drive::{ClearTasks, MarkTask, NewBackfill, Request, Rerun, RunQuery, StartRun, WaitReason};
use crate::event::MarkedState;
use crate::snapshot::Days;
use crate::tables::{BackfillState, RunRow, RunState, TaskState};

const CHAIN: &str = "
name: chain
params:
  day: {default: monday}
tasks:
  - {key: extract, function: work, input: {day: '{{ params.day }}'}}
  - {key: clean, function: work, depends_on: [extract], input: {of: '{{ tasks.extract.output.got.day }}'}}
  - {key: load, function: work, depends_on: [clean]}
";

fn run(dag: &str) -> StartRun {
    StartRun::new(dag)
}

#[test]
fn starts_at_the_same_time_with_one_run_key_all_get_the_run() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        // No process publishes the events yet, so each start looks for its run until its time limit.
        world.publish(CHAIN).await;
        let wanted = || StartRun { run_key: Some("monday".to_owned()), ..run("chain") };
        let runs = world.ledger.runs();
        let start = || runs.start(&world.scope, wanted());
        let (a, b, c) = futures_util::join!(start(), start(), start());
        let started = [a.unwrap(), b.unwrap(), c.unwrap()];
        assert_eq!(started.iter().filter(|run| run.is_new).count(), 1, "{started:?}");
        assert!(started.iter().all(|run| run.run_id == started[0].run_id && !run.visible), "{started:?}");
        let _process = world.process("a").await;
        let ended = world.until_ended(&started[0].run_id).await;
        assert_eq!(ended.state, RunState::Succeeded);
    });
}

#[test]
fn a_run_calls_its_tasks_in_order_with_the_outputs_of_upstream_tasks() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        world.publish(CHAIN).await;
        let started = world.ledger.runs().start(&world.scope, run("chain")).await.unwrap();
        assert!(started.is_new && started.visible, "{started:?}");
        let ended = world.until_ended(&started.run_id).await;
        assert_eq!((ended.state, ended.tasks_succeeded), (RunState::Succeeded, 3));
        let seen = world.seen.lock().unwrap();
        let input = |task: &str| seen.inputs[&format!("dispatch:{}:{task}:1", started.run_id)].clone();
        assert_eq!(input("extract"), json!({ "day": "monday" }));
        assert_eq!(input("clean"), json!({ "of": "monday" }));
        assert_eq!(input("load"), Value::Null);
        assert!(seen.begun.values().all(|count| *count == 1), "{:?}", seen.begun);
    });
}

#[test]
fn folds_of_a_scope_are_as_far_apart_as_the_options_have_it() {
    // Seven folds: the run, and for each of its tasks the dispatch and the end.
    for (interval_s, least_ms, most_ms) in [(0, 0, 5_000), (5, 25_000, 45_000)] {
        segno_testkit::run(async {
            let mut world = World::new(all_succeed());
            world.options.fold_interval = std::time::Duration::from_secs(interval_s);
            let _process = world.process("a").await;
            world.publish(CHAIN).await;
            let run_id = world.start("chain").await;
            let ended = world.until_ended(&run_id).await;
            assert_eq!(ended.state, RunState::Succeeded);
            let took_ms = ended.completed_at.unwrap() - ended.triggered_at;
            assert!((least_ms..=most_ms).contains(&took_ms), "{interval_s} s: {took_ms} ms");
        });
    }
}

#[test]
fn the_same_key_is_the_same_run_and_another_request_under_it_is_refused() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(CHAIN).await;
        let runs = world.ledger.runs();
        let keyed = || StartRun { run_key: Some("monday".to_owned()), ..run("chain") };
        let first = runs.start(&world.scope, keyed()).await.unwrap();
        let again = runs.start(&world.scope, keyed()).await.unwrap();
        assert_eq!((first.is_new, again.is_new, &first.run_id), (true, false, &again.run_id));
        assert!(!first.visible, "no node drives the ledger");
        let params = json!({ "day": "tuesday" }).as_object().cloned().unwrap();
        let other = runs.start(&world.scope, StartRun { params, ..keyed() }).await.unwrap_err();
        assert_eq!(other.code(), "idempotency-mismatch");
        let _process = world.process("a").await;
        assert_eq!(world.until_ended(&first.run_id).await.state, RunState::Succeeded);
        let listed = runs.list(&world.scope, &RunQuery { limit: 10, ..RunQuery::default() }).await.unwrap();
        assert_eq!(listed.runs.len(), 1);
    });
}

#[test]
fn a_key_is_answered_with_its_run_also_when_that_has_left_the_active_rows() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        world.publish(CHAIN).await;
        let runs = world.ledger.runs();
        let keyed = || StartRun { run_key: Some("monday".to_owned()), ..run("chain") };
        let first = runs.start(&world.scope, keyed()).await.unwrap();
        world.until_ended(&first.run_id).await;
        let has_left = async || {
            // Folds of later runs move those that have ended.
            world.until_ended(&world.start("chain").await).await;
            let snapshot = world.ledger.snapshot(&world.scope).await.unwrap().unwrap();
            let key = [first.run_id.as_str().into()];
            snapshot.row::<RunRow>(&key, Days::None).await.unwrap().is_none()
        };
        world.until("the run has left the active rows", has_left).await;
        let before_ms = world.clock.now_ms();
        let again = runs.start(&world.scope, keyed()).await.unwrap();
        assert_eq!((again.run_id, again.is_new, again.visible), (first.run_id, false, true));
        assert!(world.clock.now_ms() - before_ms < 1_000, "it was found at the first look");
    });
}

#[test]
fn failed_attempts_are_retried_by_the_ledger_and_what_follows_a_failure_is_skipped() {
    segno_testkit::run(async {
        let workers = Arc::new(|dispatch: &str, _: &Value| match dispatch {
            dispatch if dispatch.ends_with("extract:1") => Reply::Fail("no network"),
            dispatch if dispatch.contains(":clean:") => Reply::Refuse("bad data"),
            _ => Reply::Done(json!({ "got": { "day": "x" } })),
        });
        let world = World::new(workers);
        let _process = world.process("a").await;
        world.publish(CHAIN).await;
        let run_id = world.start("chain").await;
        let ended = world.until_ended(&run_id).await;
        assert_eq!(ended.state, RunState::Failed);
        assert_eq!(world.states(&run_id).await, ["clean FAILED", "extract SUCCEEDED", "load SKIPPED"]);
        assert_eq!(world.task(&run_id, "extract").await.attempt, 2);
        let clean = world.task(&run_id, "clean").await;
        assert_eq!((clean.attempt, clean.error_message.as_deref()), (1, Some("bad data")));
        world.check_attempts();
    });
}

#[test]
fn a_cancelled_run_ends_its_calls() {
    segno_testkit::run(async {
        let slow = Arc::new(|_: &str, _: &Value| Reply::Later(3_600_000, json!({})));
        let world = World::new(slow);
        let _process = world.process("a").await;
        world.publish(CHAIN).await;
        let run_id = world.start("chain").await;
        let runs = world.ledger.runs();
        world
            .until("the task runs", async || world.task(&run_id, "extract").await.state == TaskState::Running)
            .await;
        let waits = world.show(&run_id).await.waits;
        let reason = |key: &str| waits.iter().find(|wait| &*wait.task_key == key).unwrap().reason.clone();
        assert_eq!(reason("extract"), WaitReason::Runs);
        assert_eq!(reason("clean"), WaitReason::Upstream(vec!["extract".into()]));
        let before_ms = world.clock.now_ms();
        let by =
            Request { by: Some("ada".to_owned()), reason: Some("wrong day".to_owned()), request_id: None };
        assert!(runs.cancel(&world.scope, &run_id, by).await.unwrap().visible);
        let ended = world.until_ended(&run_id).await;
        assert_eq!(ended.state, RunState::Cancelled);
        assert!(world.clock.now_ms() - before_ms < 600_000, "the call was cancelled and not waited for");
        let refused = runs.cancel(&world.scope, &run_id, Request::default()).await.unwrap_err();
        assert_eq!(refused.code(), "run-request-refused");
    });
}

#[test]
fn tasks_are_cleared_marked_and_rerun() {
    segno_testkit::run(async {
        let workers = Arc::new(|dispatch: &str, input: &Value| match dispatch {
            dispatch if dispatch.ends_with(":clean:1") => Reply::Refuse("bad data"),
            _ => Reply::Done(json!({ "got": input })),
        });
        let world = World::new(workers);
        let _process = world.process("a").await;
        world.publish(CHAIN).await;
        let (runs, scope) = (world.ledger.runs(), &world.scope);
        let run_id = world.start("chain").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Failed);
        // A new run of what failed takes the output of the task that succeeded.
        let rerun = runs.rerun(scope, &run_id, Rerun::FromFailure, Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&rerun.run_id).await.state, RunState::Failed, "it is refused again");
        assert_eq!(world.task(&rerun.run_id, "extract").await.state, TaskState::Succeeded);
        let clear = ClearTasks { tasks: vec!["clean".to_owned()], downstream: true };
        runs.clear(scope, &run_id, clear, Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        let mark = MarkTask {
            task: "clean".to_owned(),
            state: MarkedState::Succeeded,
            output: Payload::encode(&1).ok(),
        };
        runs.mark(scope, &rerun.run_id, mark.clone(), Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&rerun.run_id).await.state, RunState::Succeeded);
        let again = runs.mark(scope, &rerun.run_id, mark, Request::default()).await.unwrap_err();
        assert_eq!(again.code(), "run-request-refused");
        let unknown = ClearTasks { tasks: vec!["x".to_owned()], downstream: false };
        let unknown = runs.clear(scope, &run_id, unknown, Request::default()).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-task");
        world.check_attempts();
    });
}

#[test]
fn a_list_adds_tasks_and_an_orchestration_is_followed_to_its_end() {
    segno_testkit::run(async {
        let workers = Arc::new(|dispatch: &str, input: &Value| match dispatch {
            dispatch if dispatch.contains(":list:") => Reply::Done(json!({ "files": ["a", "b", "c"] })),
            _ => Reply::Done(input.clone()),
        });
        let world = World::new(workers);
        let _process = world.process("a").await;
        world
            .publish(
                "
name: files
tasks:
  - {key: list, function: work}
  - key: load
    function: work
    depends_on: [list]
    for_each: {items: '{{ tasks.list.output.files }}'}
    input: {file: '{{ item }}'}
  - {key: greet, orchestration: Greet, depends_on: [load], input: {files: '{{ tasks.load.output }}'}}
",
            )
            .await;
        let run_id = world.start("files").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        let states = world.states(&run_id).await;
        let expected = [
            "greet SUCCEEDED",
            "list SUCCEEDED",
            "load SUCCEEDED",
            "load[0] SUCCEEDED",
            "load[1] SUCCEEDED",
            "load[2] SUCCEEDED",
        ];
        assert_eq!(states, expected);
        let greet = world.task(&run_id, "greet").await;
        let loaded = r#"{"greeted":{"files":[{"file":"a"},{"file":"b"},{"file":"c"}]}}"#;
        assert_eq!(greet.output.as_deref(), Some(loaded));
        let again = Rerun::Tasks { tasks: vec!["greet".to_owned()], downstream: false };
        let again =
            world.ledger.runs().rerun(&world.scope, &run_id, again, Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&again.run_id).await.state, RunState::Succeeded);
        let greet = world.task(&again.run_id, "greet").await;
        assert_eq!(
            greet.output.as_deref(),
            Some(loaded),
            "the outputs of the items are those of the earlier run"
        );
    });
}

#[test]
fn outputs_of_a_list_that_do_not_fit_into_an_input_fail_the_task_with_the_reason() {
    segno_testkit::run(async {
        let workers = Arc::new(|dispatch: &str, _: &Value| match dispatch {
            dispatch if dispatch.contains(":load") => Reply::Done(json!("x".repeat(300_000))),
            _ => Reply::Done(Value::Null),
        });
        let world = World::new(workers);
        let _process = world.process("a").await;
        world
            .publish(
                "
name: large
tasks:
  - {key: load, function: work, for_each: {items: [1, 2, 3, 4]}}
  - {key: join, function: work, depends_on: [load], input: '{{ tasks.load.output }}'}
",
            )
            .await;
        let run_id = world.start("large").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Failed);
        let problem = world.task(&run_id, "join").await.error_message.unwrap();
        assert!(
            problem.contains("the outputs of the items of \"load\" have more than 1048576 bytes"),
            "{problem}"
        );
    });
}

#[test]
fn a_backfill_whose_runs_would_have_too_many_tasks_is_refused() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let tasks: String =
            (0..100).map(|number| format!("  - {{key: t{number}, function: work}}\n")).collect();
        let partitions = "partitions: {day: {window: daily, first: '2020-01-01'}}\npartitioned_by: day";
        world.publish(&format!("name: wide\n{partitions}\ntasks:\n{tasks}")).await;
        let new = NewBackfill { chunk_size: 1_000, ..NewBackfill::new("wide", "2020-01-01..2020-12-31") };
        let refused = world.ledger.backfills().create(&world.scope, new).await.unwrap_err();
        assert_eq!(refused.code(), "invalid-run");
        let expected =
            "a run of 366 partitions with 100 tasks each would have more than 25000 tasks; use 1 to 250";
        assert!(refused.to_string().contains(expected), "{refused}");
    });
}

#[test]
fn a_task_that_cannot_be_called_fails_with_the_reason() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        world.publish("{name: odd, tasks: [{key: a, function: nothing}]}").await;
        let run_id = world.start("odd").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Failed);
        let task = world.task(&run_id, "a").await;
        assert_eq!((task.attempt, task.error_category.as_deref()), (1, Some("CONFIGURATION")));
        assert!(task.error_message.unwrap().contains("nothing"));
    });
}

#[test]
fn a_backfill_runs_every_partition_once_and_ends() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        world
            .publish(
                "
name: daily
partitions: {day: {window: daily, first: '2026-01-01'}}
partitioned_by: day
tasks:
  - {key: extract, function: work, input: {day: '{{ partition.key }}'}}
  - {key: load, function: work, depends_on: [extract], input: {of: '{{ tasks.extract.output.got.day }}'}}
",
            )
            .await;
        let backfills = world.ledger.backfills();
        let new = NewBackfill { chunk_size: 3, ..NewBackfill::new("daily", "2026-01-01..2026-01-10") };
        let created = backfills.create(&world.scope, new).await.unwrap();
        assert_eq!((created.total_partitions, created.visible), (10, true));
        let is_ended = async || {
            let detail = backfills.show(&world.scope, &created.backfill_id).await.unwrap();
            detail.backfill.state.is_final()
        };
        world.until("the end of the backfill", is_ended).await;
        let detail = backfills.show(&world.scope, &created.backfill_id).await.unwrap();
        assert_eq!((detail.backfill.state, detail.chunks.len()), (BackfillState::Succeeded, 4));
        let seen = world.seen.lock().unwrap();
        let mut days: Vec<String> =
            seen.inputs.values().filter_map(|input| input["of"].as_str().map(str::to_owned)).collect();
        days.sort();
        let expected: Vec<String> = (1..=10).map(|day| format!("2026-01-{day:02}")).collect();
        assert_eq!(days, expected);
    });
}

#[test]
fn a_run_of_several_partitions_is_run_again_for_those_that_failed() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|_: &str, input: &Value| match input == "2026-01-02" {
            true => Reply::Refuse("no data"),
            false => Reply::Done(json!({ "got": input })),
        }));
        let _process = world.process("a").await;
        let dag = "
name: daily
partitions: {day: {window: daily, first: '2026-01-01'}}
partitioned_by: day
tasks:
  - {key: list, function: work, input: [1, 2]}
  - {key: each, function: work, depends_on: [list], for_each: '{{ tasks.list.output.got }}', input: '{{ partition.key }}'}
  - {key: load, function: work, depends_on: [each], input: {of: '{{ tasks.each.output }}'}}
";
        world.publish(dag).await;
        let backfills = world.ledger.backfills();
        let new = NewBackfill::new("daily", "2026-01-01..2026-01-03");
        let created = backfills.create(&world.scope, new).await.unwrap();
        let is_ended = async || {
            let detail = backfills.show(&world.scope, &created.backfill_id).await.unwrap();
            detail.backfill.state.is_final()
        };
        world.until("the end of the backfill", is_ended).await;
        let chunk = backfills.show(&world.scope, &created.backfill_id).await.unwrap().chunks.remove(0);
        let run_id = chunk.run_id.unwrap();
        let failed = world.show(&run_id).await;
        assert_eq!((failed.run.state, failed.run.tasks_failed), (RunState::Failed, 3));
        let runs = world.ledger.runs();
        let rerun = |rerun| runs.rerun(&world.scope, &run_id, rerun, Request::default());
        let again = rerun(Rerun::FromFailure).await.unwrap().run_id;
        assert_eq!(world.until_ended(&again).await.state, RunState::Failed, "there is still no data");
        let keys: Vec<String> =
            world.show(&again).await.tasks.iter().map(|task| task.task_key.to_string()).collect();
        assert_eq!(
            keys,
            [
                "each@2026-01-02",
                "each@2026-01-02[0]",
                "each@2026-01-02[1]",
                "list@2026-01-02",
                "load@2026-01-02"
            ]
        );
        let named = |task: &str| Rerun::Tasks { tasks: vec![task.to_owned()], downstream: false };
        let one = rerun(named("load@2026-01-03")).await.unwrap().run_id;
        assert_eq!(world.until_ended(&one).await.state, RunState::Succeeded);
        let input = world.seen.lock().unwrap().inputs[&format!("dispatch:{one}:load@2026-01-03:1")].clone();
        assert_eq!(input, json!({ "of": [{ "got": "2026-01-03" }, { "got": "2026-01-03" }] }));
        let unknown = rerun(named("load@2026-02-01")).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-task");
    });
}

#[test]
fn a_schedule_starts_runs_while_it_is_not_paused_also_of_a_ledger_at_rest() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let _process = world.process("a").await;
        world
            .publish("{name: hourly, schedule: {cron_expr: '0 * * * *'}, tasks: [{key: a, function: work}]}")
            .await;
        let runs = world.ledger.runs();
        let all = RunQuery { dag: Some("hourly".to_owned()), limit: 100, ..RunQuery::default() };
        let count = async |state: RunState| {
            let listed = runs.list(&world.scope, &all).await.unwrap().runs;
            listed.iter().filter(|run| run.state == state).count()
        };
        // The first tick is within the hour; between two of them the ledger is released.
        world.pass(3 * 3_600).await;
        assert_eq!(count(RunState::Succeeded).await, 3);
        world.ledger.dags().pause(&world.scope, "hourly", None).await.unwrap();
        let before = count(RunState::Succeeded).await;
        world.pass(5 * 3_600).await;
        assert_eq!(count(RunState::Succeeded).await, before);
        world.ledger.dags().resume(&world.scope, "hourly", None).await.unwrap();
        world.publish("{name: hourly, schedule: {every: 30m}, tasks: [{key: a, function: work}]}").await;
        let before = count(RunState::Succeeded).await;
        world.pass(2 * 3_600).await;
        let after = count(RunState::Succeeded).await;
        assert!((4..=5).contains(&(after - before)), "{before} {after}");
        world.publish("{name: hourly, tasks: [{key: a, function: work}]}").await;
        let before = count(RunState::Succeeded).await;
        world.pass(2 * 3_600).await;
        assert_eq!(count(RunState::Succeeded).await, before, "a version without a schedule starts no runs");
    });
}

#[test]
fn runs_beyond_the_limit_of_their_dag_begin_one_after_the_other() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|_, _| Reply::Later(5_000, json!(1))));
        let _process = world.process("a").await;
        world.publish("{name: d, max_concurrent_runs: 2, tasks: [{key: a, function: work}]}").await;
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(world.start("d").await);
        }
        for run_id in &runs {
            assert_eq!(world.until_ended(run_id).await.state, RunState::Succeeded);
        }
        let mut spans = Vec::new();
        for run_id in &runs {
            let task = world.task(run_id, "a").await;
            spans.push((task.dispatched_at.unwrap(), task.completed_at.unwrap()));
        }
        assert!(spans.is_sorted(), "in the order of their triggers: {spans:?}");
        for (begun, _) in &spans {
            let at_once = spans.iter().filter(|(from, to)| from <= begun && begun < to).count();
            assert!(at_once <= 2, "{at_once} at once: {spans:?}");
        }
    });
}
