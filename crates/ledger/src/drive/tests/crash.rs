//! Crashes before and after every commit and at every object put, nodes that race, and an object store that fails now and
//! then: every run ends as it does without faults, and no task runs twice at once.

use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use segno::store::{ListRecords, Store};
use segno_testkit::faults::{self, Fault, FaultStore};
use serde_json::{Value, json};

use super::world::{Reply, Workers, World};
use crate::drive::{OUTBOX, Request, RunQuery, StartRun};
use crate::ids::Ulid;
use crate::objects::Stores;
use crate::objects::faulty::{Faults, Faulty};
use crate::tables::{RunRow, RunState, TaskState};

/// Two branches that meet; one of them fails once, the other takes a while.
const DIAMOND: &str = "
name: diamond
tasks:
  - {key: begin, function: work}
  - {key: left, function: work, depends_on: [begin], retry: {attempts: 3, initial_delay: 2s}}
  - {key: right, function: work, depends_on: [begin]}
  - {key: end, function: work, depends_on: [left, right]}
";

/// A task that cannot succeed, and a function that is told.
const BROKEN: &str = "
name: broken
notify: {function: work}
tasks:
  - {key: begin, function: work}
  - {key: refuse, function: work, depends_on: [begin]}
  - {key: after, function: work, depends_on: [refuse]}
";

/// A sensor that finds one file, once.
const FED: &str = "
name: fed
sensors: [{name: files, function: work, interval: 30s}]
tasks: [{key: begin, function: work}]
";

/// What is expected of every run, whatever happens.
const EXPECTED: [(&str, RunState); 3] =
    [("diamond", RunState::Succeeded), ("broken", RunState::Failed), ("slow", RunState::Cancelled)];

fn workers() -> Workers {
    Arc::new(|dispatch: &str, input: &Value| match dispatch {
        dispatch if dispatch.starts_with("sensor:") && input["cursor"].is_null() => {
            Reply::Done(json!({ "cursor": "1", "runs": [{ "run_key": "file" }] }))
        }
        dispatch if dispatch.starts_with("sensor:") => Reply::Done(Value::Null),
        dispatch if dispatch.ends_with(":left:1") => Reply::Fail("not yet"),
        dispatch if dispatch.contains(":right:") => Reply::Later(3_000, json!({})),
        dispatch if dispatch.contains(":refuse:") => Reply::Refuse("never"),
        dispatch if dispatch.contains(":wait:") => Reply::Later(3_600_000, json!({})),
        _ => Reply::Done(json!({})),
    })
}

/// Publishes and starts all runs, and cancels one of them once it runs. Repeating it is harmless.
async fn play(world: &World) {
    for yaml in [DIAMOND, BROKEN, FED, "{name: slow, tasks: [{key: wait, function: work}]}"] {
        world.publish(yaml).await;
    }
    let mut runs = Vec::new();
    for (dag, _) in EXPECTED {
        let wanted = StartRun { run_key: Some(dag.to_owned()), ..StartRun::new(dag) };
        runs.push(world.ledger.runs().start(&world.scope, wanted).await.unwrap().run_id);
    }
    let slow = &runs[2];
    let runs_now = async || match world.ledger.runs().show(&world.scope, slow).await {
        Ok(detail) => {
            detail.run.state.is_final() || detail.tasks.iter().any(|task| task.state == TaskState::Running)
        }
        Err(_) => false,
    };
    world.until("the slow task runs", runs_now).await;
    let cancelled = world.ledger.runs().cancel(&world.scope, slow, Request::default()).await;
    assert!(cancelled.is_ok() || world.show(slow).await.run.state.is_final());
    for ((dag, state), run_id) in EXPECTED.into_iter().zip(&runs) {
        assert_eq!(world.until_ended(run_id).await.state, state, "{dag}");
    }
    let is_fed = async || {
        let fed = runs_of(world, "fed").await;
        fed.first().is_some_and(|run| run.state == RunState::Succeeded)
    };
    world.until("the run of the sensor", is_fed).await;
    let notices = [format!("notify:{}:0", runs[1]), format!("notify:{}:refuse:1", runs[1])];
    let are_sent = async || {
        let seen = world.seen.lock().unwrap();
        notices.iter().all(|notice| seen.begun.contains_key(notice))
    };
    world.until("the notices of the run that failed", are_sent).await;
}

async fn runs_of(world: &World, dag: &str) -> Vec<RunRow> {
    let query = RunQuery { dag: Some(dag.to_owned()), limit: 10, ..RunQuery::default() };
    world.ledger.runs().list(&world.scope, &query).await.map(|page| page.runs).unwrap_or_default()
}

/// Nothing waits any more, and nothing ran twice at once.
async fn check(world: &World) {
    let empty = async || {
        let all = ListRecords { kind: OUTBOX, limit: 10, ..ListRecords::default() };
        world.store.list_records(all).await.unwrap().is_empty()
    };
    world.until("an empty outbox", empty).await;
    assert_eq!(runs_of(world, "fed").await.len(), 1, "one file is one run");
    world.check_attempts();
}

/// Plays with a crash of the first node at a commit; another node takes over. Returns the number of commits.
fn crash_at_commit(crash: Option<(u64, Fault)>) -> u64 {
    segno_testkit::run(async {
        let world = World::new(workers());
        let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), faults::script(crash));
        let first = world.process_on(faulty.clone() as Arc<dyn Store>, world.objects.clone(), "a").await;
        let played = play(&world);
        tokio::pin!(played);
        tokio::select! {
            biased;
            () = &mut played => {}
            () = faulty.died() => {
                drop(first);
                let _second = world.process("b").await;
                played.await;
                check(&world).await;
                return faulty.commits();
            }
        }
        check(&world).await;
        faulty.commits()
    })
}

/// Every so many crash points are tried by the usual tests; those that are ignored try all.
const SAMPLE: usize = 15;

fn crash_at_commits(step: usize) {
    let commits = crash_at_commit(None);
    assert!(commits > 20, "{commits}");
    let faults = [Fault::CrashBefore, Fault::CrashAfter];
    let points = (1..=commits).flat_map(|number| faults.map(|fault| (number, fault)));
    for point in points.step_by(step) {
        crash_at_commit(Some(point));
    }
}

#[test]
fn a_node_that_dies_at_a_commit_loses_nothing_and_runs_nothing_twice() {
    crash_at_commits(SAMPLE);
}

#[test]
#[ignore = "takes minutes: run it after a change of the driver"]
fn a_node_that_dies_at_any_commit_loses_nothing_and_runs_nothing_twice() {
    crash_at_commits(1);
}

/// Plays with a crash of the first node after so many object puts. Returns how many there are without one.
fn crash_at_put(after: Option<u64>) -> u64 {
    segno_testkit::run(async {
        let inner = Arc::new(InMemory::new());
        let mut world = World::new(workers());
        world = World::on(world.store, Stores::shared(inner.clone()), world.clock, world.workers);
        let faulty = Faulty::new(inner, Faults::NONE, 1);
        if let Some(after) = after {
            faulty.crash_after(after);
        }
        let first = world.process_on(world.store.clone(), Stores::shared(faulty.clone()), "a").await;
        let played = play(&world);
        tokio::pin!(played);
        let crashed = async {
            let Some(after) = after else { return std::future::pending().await };
            while faulty.writes() < after {
                segno::clock::sleep(&*world.clock, Duration::from_millis(200)).await;
            }
            segno::clock::sleep(&*world.clock, Duration::from_secs(1)).await;
        };
        tokio::select! {
            biased;
            () = &mut played => {}
            () = crashed => {
                drop(first);
                let _second = world.process("b").await;
                played.await;
                check(&world).await;
                return 0;
            }
        }
        check(&world).await;
        faulty.writes()
    })
}

fn crash_at_puts(step: usize) {
    let puts = crash_at_put(None);
    assert!(puts > 20, "{puts}");
    for after in (0..puts).step_by(step) {
        crash_at_put(Some(after));
    }
}

#[test]
fn a_node_that_dies_between_two_object_puts_loses_nothing_and_runs_nothing_twice() {
    crash_at_puts(SAMPLE);
}

#[test]
#[ignore = "takes minutes: run it after a change of the driver"]
fn a_node_that_dies_between_any_two_object_puts_loses_nothing_and_runs_nothing_twice() {
    crash_at_puts(1);
}

#[test]
fn nodes_that_race_on_an_object_store_with_faults_end_every_run_as_it_should() {
    for seed in 0..8 {
        segno_testkit::run(async {
            let inner = Arc::new(InMemory::new());
            let mut world = World::new(workers());
            world = World::on(world.store, Stores::shared(inner.clone()), world.clock, world.workers);
            let faulty = |seed| Stores::shared(Faulty::new(inner.clone(), Faults::ALL, seed));
            let _first = world.process_on(world.store.clone(), faulty(seed), "a").await;
            let _second = world.process_on(world.store.clone(), faulty(seed + 1_000), "b").await;
            play(&world).await;
            check(&world).await;
        });
    }
}

/// The newest event that is folded.
async fn watermark(world: &World) -> Ulid {
    let snapshot = world.ledger.snapshot(&world.scope).await.unwrap().unwrap();
    snapshot.manifest().watermarks.events_processed_through.unwrap()
}

#[test]
fn a_writer_whose_clock_is_ten_seconds_behind_draws_ids_above_those_of_the_one_before() {
    segno_testkit::run(async {
        let mut world = World::new(Arc::new(|_, _| Reply::Done(json!({}))));
        world.options.lease = Duration::from_secs(2);
        world.ahead_ms = 10_000;
        let first = world.process("a").await;
        world.publish("{name: quick, tasks: [{key: work, function: work}]}").await;
        let run_id = world.start("quick").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        let of_first = watermark(&world).await;
        drop(first);
        world.ahead_ms = 0;
        let _second = world.process("b").await;
        let run_id = world.start("quick").await;
        let is_shown = async || world.ledger.runs().show(&world.scope, &run_id).await.is_ok();
        world.until("the run in the tables", is_shown).await;
        let now_ms = world.clock.now_ms();
        assert!(
            of_first.time_ms() > now_ms as i64,
            "the second writer draws its ids while its clock is behind"
        );
        let run = world.show(&run_id).await.run;
        assert!(run.row_version > of_first, "{} is not above {of_first}", run.row_version);
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
    });
}
