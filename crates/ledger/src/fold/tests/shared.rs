//! Schedules, sensors, run keys, backfills, partitions, retention.

use jiff::Timestamp;

use super::world::{World, finished, planned, requested, started, task, triggered};
use crate::event::{
    BackfillChunkPlanned, BackfillCreated, BackfillStateChanged, EvalSource, EvalStatus, Outcome,
    PartitionSelector, PlannedTask, RunRequested, RunSource, RunTriggered, ScheduleDefinitionUpserted,
    ScheduleTicked, SensorEvaluated, TickStatus,
};
use crate::tables::{BackfillState, ChunkState};

const DAY_MS: u64 = 86_400_000;

fn request(run_key: &str, fingerprint: &str, source: RunSource) -> RunRequested {
    RunRequested {
        run_key: run_key.into(),
        run_id: "run1".into(),
        request_fingerprint: fingerprint.into(),
        asset_selection: Vec::new(),
        partition_selection: None,
        trigger_source_ref: source,
        labels: Default::default(),
        code_version: None,
        dag: None,
        params: None,
    }
}

fn manual() -> RunSource {
    RunSource::Manual { user_id: "ada".into(), request_id: "1".into() }
}

fn keyed(run_key: &str) -> RunTriggered {
    RunTriggered { run_key: Some(run_key.into()), ..triggered("run1") }
}

#[test]
fn a_run_key_is_one_run_and_another_request_for_it_is_a_conflict() {
    let mut world = World::new();
    assert!(world.send(request("k", "f1", manual())));
    assert!(!world.send(request("k", "f1", manual())));
    assert_eq!(world.state.requested_runs().count(), 1);
    assert!(world.send(request("k", "f2", manual())));
    let rows = world.state.rows();
    assert_eq!(rows.run_key_index.len(), 1);
    let conflict = &rows.run_key_conflicts[0];
    assert_eq!((&*conflict.existing_fingerprint, &*conflict.conflicting_fingerprint), ("f1", "f2"));
    assert!(world.send(keyed("k")));
    assert_eq!(world.state.requested_runs().count(), 0);
    let again = RunTriggered { run_id: "run2".into(), ..keyed("k") };
    assert!(!world.send(again), "the key has its run");
}

#[test]
fn poll_cas_mismatch_noops_cursor_and_drops_run_requested_end_to_end() {
    let eval = |eval_id: &str, expected, cursor: &str| SensorEvaluated {
        sensor_id: "files".into(),
        eval_id: eval_id.into(),
        cursor_before: None,
        cursor_after: Some(cursor.into()),
        expected_state_version: expected,
        trigger_source: EvalSource::Push { message_id: eval_id.into() },
        run_requests: Vec::new(),
        status: EvalStatus::Triggered,
    };
    let source = |eval_id: &str| RunSource::Sensor { sensor_id: "files".into(), eval_id: eval_id.into() };
    let mut world = World::new();
    world.send_all([eval("e1", Some(0), "a").into(), eval("e2", Some(0), "b").into()]);
    let state = world.state.sensor_state("files").unwrap();
    assert_eq!((state.cursor.as_deref(), state.state_version), (Some("a"), 1));
    let stale = world.state.rows().sensor_evals.into_iter().find(|row| &*row.eval_id == "e2").unwrap();
    assert!(stale.status.contains("skipped_stale_cursor"));
    assert!(!world.send(request("files:b", "f", source("e2"))));
    assert!(world.send(request("files:a", "f", source("e1"))));
    assert!(world.send(eval("e3", None, "c")), "a push has no version to compare");
    assert_eq!(world.state.sensor_state("files").unwrap().cursor.as_deref(), Some("c"));
    world.now_ms += 31 * DAY_MS;
    world.send(triggered("other"));
    assert!(world.state.rows().sensor_evals.is_empty(), "evaluations are kept for 30 days");
}

#[test]
fn a_schedule_defined_twice_the_same_way_may_change_back() {
    let definition = |cron: &str| ScheduleDefinitionUpserted {
        schedule_id: "daily".into(),
        cron_expression: cron.into(),
        timezone: "UTC".into(),
        catchup_window_minutes: 0,
        asset_selection: Vec::new(),
        code_version: None,
        max_catchup_ticks: 1,
        enabled: true,
        spec: None,
    };
    let mut world = World::new();
    world.send_all([definition("a").into(), definition("b").into()]);
    assert!(!world.send(definition("a")), "the same content has the same key");
    let mut back = world.envelope(definition("a"));
    back.idempotency_key = "sched_def:daily:request-3".into();
    crate::fold::fold(&mut world.state, &[back]);
    assert_eq!(&*world.state.schedules().next().unwrap().cron_expression, "a", "a key of the API's own");
}

#[test]
fn ticks_move_their_schedule_ahead_only() {
    let tick = |second: i64| ScheduleTicked {
        schedule_id: "daily".into(),
        scheduled_for: Timestamp::from_second(1_705_340_000 + second).unwrap(),
        tick_id: format!("daily:{second}").into(),
        definition_version: "1".into(),
        asset_selection: Vec::new(),
        partition_selection: None,
        status: TickStatus::Triggered,
        run_key: Some(format!("sched:daily:{second}").into()),
        request_fingerprint: None,
    };
    let mut world = World::new();
    world.send_all([tick(60).into(), tick(0).into()]);
    assert!(!world.send(tick(60)));
    let state = world.state.schedule_state("daily").unwrap();
    assert_eq!(state.last_tick_id.as_deref(), Some("daily:60"));
    assert_eq!(world.state.rows().schedule_ticks.len(), 2);
    let source = RunSource::Schedule { schedule_id: "daily".into(), tick_id: "daily:60".into() };
    assert!(world.send(request("sched:daily:60", "f", source)));
    assert_eq!(world.state.schedule_tick("daily:60").unwrap().run_id.as_deref(), Some("run1"));
}

fn backfill(client_request_id: &str) -> BackfillCreated {
    BackfillCreated {
        backfill_id: "b".into(),
        client_request_id: client_request_id.into(),
        asset_selection: Vec::new(),
        code_version: None,
        partition_selector: PartitionSelector::Explicit { keys: vec!["p0".into(), "p1".into()] },
        total_partitions: 2,
        chunk_size: 1,
        max_concurrent_runs: 1,
        parent_backfill_id: None,
        dag: None,
        params: None,
    }
}

fn chunk(chunk_index: u32) -> BackfillChunkPlanned {
    BackfillChunkPlanned {
        backfill_id: "b".into(),
        chunk_id: format!("b:{chunk_index}").into(),
        chunk_index,
        partition_keys: vec![format!("p{chunk_index}").into()],
        run_key: format!("backfill:b:chunk:{chunk_index}").into(),
        request_fingerprint: "f".into(),
    }
}

#[test]
fn chunks_follow_their_runs_and_backfills_count_them() {
    let mut world = World::new();
    world.send_all([backfill("1").into(), chunk(1).into()]);
    assert!(!world.send(backfill("2")));
    assert_eq!(world.state.backfill("b").unwrap().planned_chunks, 0, "the first is missing");
    world.send_all([chunk(0).into()]);
    assert_eq!(world.state.backfill("b").unwrap().planned_chunks, 2);
    let source = RunSource::Backfill { backfill_id: "b".into(), chunk_id: "b:0".into() };
    world.send_all([request("backfill:b:chunk:0", "f", source).into(), keyed("backfill:b:chunk:0").into()]);
    assert_eq!(world.state.chunk("b:0").unwrap().state, ChunkState::Running);
    world.send_all([planned("run1", vec![task("a", "")]).into()]);
    world.run("a", 1, Outcome::Succeeded);
    assert_eq!(world.state.chunk("b:0").unwrap().state, ChunkState::Succeeded);
    let row = world.state.backfill("b").unwrap();
    assert_eq!((row.completed_chunks, row.failed_chunks), (1, 0));
    assert_eq!(world.state.open_chunks("b").count(), 1);
}

#[test]
fn of_two_changes_of_a_backfill_at_once_one_counts() {
    let change = |from_state, to_state, state_version| BackfillStateChanged {
        backfill_id: "b".into(),
        from_state,
        to_state,
        state_version,
        changed_by: None,
    };
    use BackfillState::{Cancelled, Paused, Running, Succeeded};
    let mut world = World::new();
    world.send_all([backfill("1").into(), change(Running, Paused, 2).into()]);
    assert!(!world.send(change(Running, Cancelled, 2)));
    assert!(!world.send(change(Paused, Succeeded, 3)), "not a legal edge");
    assert!(!world.send(change(Paused, Running, 4)), "not the next number");
    assert!(world.send(change(Paused, Running, 3)));
    assert!(world.send(change(Running, Succeeded, 4)));
    assert!(world.state.open_backfills().next().is_none());
}

#[test]
fn a_backfill_leaves_with_its_chunks_90_days_after_its_last_change() {
    let mut world = World::new();
    world.send_all([backfill("1").into(), chunk(0).into(), chunk(1).into()]);
    let source = RunSource::Backfill { backfill_id: "b".into(), chunk_id: "b:0".into() };
    world.send_all([request("backfill:b:chunk:0", "f", source).into(), keyed("backfill:b:chunk:0").into()]);
    world.send_all([planned("run1", vec![task("a", "")]).into()]);
    assert!(world.send(BackfillStateChanged {
        backfill_id: "b".into(),
        from_state: BackfillState::Running,
        to_state: BackfillState::Cancelled,
        state_version: 2,
        changed_by: None,
    }));
    // Two chunks are open; one of them never gets a run.
    world.now_ms += 100 * DAY_MS;
    world.run("a", 1, Outcome::Succeeded);
    assert!(world.state.backfill("b").is_some(), "a chunk is open");
    let source = RunSource::Backfill { backfill_id: "b".into(), chunk_id: "b:1".into() };
    let second = crate::event::RunTriggered { run_id: "run2".into(), ..keyed("backfill:b:chunk:1") };
    let requested = RunRequested { run_id: "run2".into(), ..request("backfill:b:chunk:1", "f", source) };
    world.send_all([requested.into(), second.into(), planned("run2", Vec::new()).into()]);
    assert_eq!(world.state.open_chunks("b").count(), 0);
    world.now_ms += 89 * DAY_MS;
    assert!(world.send(triggered("third")));
    assert!(world.state.backfill("b").is_some());
    // A state that was loaded removes it at the same time.
    let rows = world.state.rows();
    world.state = crate::fold::State::load(super::world::scope(), rows, world.state.watermark());
    world.now_ms += 2 * DAY_MS;
    assert!(world.send(triggered("fourth")));
    let rows = world.state.rows();
    assert_eq!((rows.backfills.len(), rows.backfill_chunks.len()), (0, 0));
    let changes = world.state.take_changes();
    assert_eq!((changes.backfills.deleted.len(), changes.backfill_chunks.deleted.len()), (1, 2));
}

#[test]
fn a_partition_knows_its_last_materialization_and_its_last_attempt() {
    let made = |key: &str| PlannedTask {
        asset_key: Some("sales".into()),
        partition_key: Some("day1".into()),
        ..task(key, "")
    };
    let mut world = World::with(vec![made("a"), PlannedTask { max_attempts: 1, ..made("b") }]);
    world.run("a", 1, Outcome::Succeeded);
    let made_at = world.now_ms as i64;
    world.now_ms += 1_000;
    world.run("b", 1, Outcome::Failed);
    let row = world.state.partition("sales", "day1").unwrap();
    assert_eq!(row.last_materialization_at, Some(made_at));
    assert_eq!(row.last_attempt_at, Some(world.now_ms as i64));
    assert_eq!(row.last_attempt_outcome.as_deref(), Some("failed"));
}

#[test]
fn keys_are_remembered_for_30_days_and_runs_for_90() {
    let mut world = World::with(vec![task("a", "")]);
    world.run("a", 1, Outcome::Succeeded);
    world.state.take_changes();
    world.now_ms += 31 * DAY_MS;
    assert!(world.send(triggered("other")));
    assert_eq!(world.state.rows().idempotency_keys.len(), 1, "those of run1 are gone");
    assert!(!world.send(triggered("run1")), "the run still exists");
    world.now_ms += 60 * DAY_MS;
    assert!(world.send(triggered("third")));
    assert!(world.state.run("run1").is_none());
    let changes = world.state.take_changes();
    assert_eq!((changes.runs.deleted.len(), changes.tasks.deleted.len()), (1, 1));
}

#[test]
fn a_run_that_ended_leaves_for_its_day_partition_and_comes_back_to_be_cleared() {
    let mut world = World::with(vec![PlannedTask { max_attempts: 1, ..task("a", "") }, task("b", "a")]);
    assert!(world.state.retire_run("run1").is_none(), "it has not ended");
    world.run("a", 1, Outcome::Failed);
    let before = world.state.rows();
    world.state.take_changes();
    let rows = world.state.retire_run("run1").unwrap();
    assert_eq!((rows.runs.len(), rows.tasks.len(), rows.dep_satisfaction.len()), (1, 2, 1));
    assert_eq!(world.state.take_changes().tasks.deleted.len(), 2);
    assert_eq!(world.state.finished_runs().count(), 0);
    assert!(!world.send(triggered("run1")), "its key is still taken");
    assert!(!world.send(started("a", 1)));
    let clear = crate::event::TaskCleared {
        run_id: "run1".into(),
        task_keys: vec!["a".into()],
        downstream: true,
        request_id: "1".into(),
        requested_by: "ada".into(),
    };
    let envelope = world.envelope(clear);
    let absent = world.state.absent_runs(std::slice::from_ref(&envelope));
    assert_eq!(absent.iter().map(|run| &**run).collect::<Vec<_>>(), ["run1"]);
    world.state.restore(rows);
    assert_eq!(world.state.rows(), before);
    crate::fold::fold(&mut world.state, &[envelope]);
    assert_eq!(world.states("a b"), "rb");
    world.send_all([requested("a", 2).into(), started("a", 2).into()]);
    assert!(world.send(finished("a", 2, Outcome::Succeeded)));
}
