//! The order of events, duplicates, splits, stragglers, and the changes that are taken.

use super::world::{
    World, enqueued, finished, heartbeat, planned, requested, scope, started, task, triggered,
};
use crate::event::{Envelope, EventData, Outcome, PlannedTask};
use crate::fold::{State, fold, rebuild_run};
use crate::ids::Ulid;
use crate::tables::{Row, TaskState, merge_rows};

fn folded(events: &[Envelope]) -> State {
    let mut state = State::new(scope());
    fold(&mut state, events);
    state
}

/// A log in which much happens.
fn eventful() -> World {
    let mut world = World::with(vec![
        PlannedTask { max_attempts: 2, ..task("a", "") },
        task("b", "a"),
        PlannedTask { max_attempts: 1, ..task("c", "") },
        task("d", "c"),
    ]);
    for event in eventful_tail() {
        world.now_ms += 700;
        world.send(event);
    }
    world
}

fn eventful_tail() -> Vec<EventData> {
    vec![
        requested("a", 1).into(),
        enqueued("a", 1, 0).into(),
        requested("c", 1).into(),
        started("a", 1).into(),
        heartbeat("a", 1, 1_705_340_003_000).into(),
        started("c", 1).into(),
        finished("a", 1, Outcome::Failed).into(),
        finished("c", 1, Outcome::Failed).into(),
        requested("a", 2).into(),
        started("a", 2).into(),
        finished("a", 2, Outcome::Succeeded).into(),
        requested("b", 1).into(),
        enqueued("b", 1, 0).into(),
    ]
}

#[test]
fn test_order_independence() {
    let world = eventful();
    let mut reversed = world.log.clone();
    reversed.reverse();
    assert_eq!(folded(&reversed).rows(), world.state.rows());
}

#[test]
fn test_duplicate_event_is_noop() {
    let world = eventful();
    let doubled: Vec<Envelope> = world.log.iter().chain(&world.log).cloned().collect();
    assert_eq!(folded(&doubled).rows(), world.state.rows());
}

#[test]
fn an_event_appended_again_under_a_new_id_is_noop() {
    let mut world = eventful();
    let before = world.state.rows();
    for envelope in world.log.clone() {
        let again = Envelope { event_id: world.next_id(), ..envelope };
        assert_eq!(fold(&mut world.state, std::slice::from_ref(&again)).applied, 0, "{again:?}");
    }
    assert_eq!(world.state.rows(), before);
}

#[test]
fn incremental_folds_match_full_replay_of_event_chain() {
    let world = eventful();
    assert_eq!(folded(&world.log).rows(), world.state.rows());
    for split in 0..world.log.len() {
        let mut state = folded(&world.log[..split]);
        // Stored and loaded between the two folds.
        let mut state = {
            let rows = state.rows();
            state.take_changes();
            State::load(scope(), rows, state.watermark())
        };
        fold(&mut state, &world.log[split..]);
        assert_eq!(state.rows(), world.state.rows(), "split at {split}");
    }
}

#[test]
fn test_fold_uses_event_id_order_when_producer_timestamps_are_skewed() {
    let mut world = eventful();
    let expected = world.state.rows();
    let count = world.log.len();
    for (place, envelope) in world.log.iter_mut().enumerate() {
        envelope.timestamp = jiff::Timestamp::from_second((count - place) as i64).unwrap();
    }
    assert_eq!(folded(&world.log).rows(), expected);
}

#[test]
fn a_straggler_rebuilds_its_run_and_leaves_other_runs_untouched() {
    let mut world = World::new();
    world.send_all([triggered("run1").into(), planned("run1", vec![task("a", ""), task("b", "a")]).into()]);
    world.send_all([triggered("run2").into(), planned("run2", vec![task("a", "")]).into()]);
    world.send_all([requested("a", 1).into()]);
    // Its writer's clock is behind: it drew its id now, and it becomes visible later.
    let late = world.envelope(started("a", 1));
    world.now_ms += 10_000;
    world.send_all([triggered("run3").into()]);
    world.state.take_changes();
    let report = fold(&mut world.state, std::slice::from_ref(&late));
    assert_eq!(report.stragglers.iter().map(|run| &**run).collect::<Vec<_>>(), ["run1"]);
    assert_eq!(world.states("a"), "d", "it is not applied out of order");
    world.log.push(late);
    rebuild_run(&mut world.state, "run1", &world.log);
    assert_eq!(world.states("a b"), "Rb");
    assert_eq!(world.state.rows(), folded(&world.log).rows());
    let changes = world.state.take_changes();
    assert!(changes.tasks.upserted.iter().all(|row| &*row.run_id == "run1"));
    assert_eq!(changes.dispatch_outbox.deleted.len(), 1);
    assert!(world.send(finished("a", 1, Outcome::Succeeded)));
}

#[test]
fn a_straggler_that_arrives_before_any_of_its_run_is_rebuilt_too() {
    let mut world = World::new();
    let (first, second) =
        (world.envelope(triggered("run1")), world.envelope(planned("run1", vec![task("a", "")])));
    world.now_ms += 1_000;
    world.send_all([triggered("run2").into()]);
    let report = fold(&mut world.state, &[first.clone(), second.clone()]);
    assert_eq!((report.applied, report.stragglers.len()), (0, 1));
    rebuild_run(&mut world.state, "run1", &[second, first]);
    assert_eq!(world.states("a"), "r");
}

#[test]
fn changes_are_each_row_once_in_its_last_version() {
    let mut world = World::with(vec![task("a", ""), task("b", "a")]);
    let changes = world.state.take_changes();
    assert_eq!((changes.runs.upserted.len(), changes.tasks.upserted.len()), (1, 2));
    assert!(world.state.take_changes().is_empty());
    world.send_all([requested("a", 1).into(), enqueued("a", 1, 0).into()]);
    let changes = world.state.take_changes();
    assert_eq!(changes.dispatch_outbox.upserted.len(), 1);
    assert_eq!(changes.tasks.upserted.len(), 1, "b did not change");
    world.send_all([started("a", 1).into(), finished("a", 1, Outcome::Succeeded).into()]);
    let changes = world.state.take_changes();
    assert_eq!(changes.dispatch_outbox.deleted.len(), 1);
    let states: Vec<TaskState> = changes.tasks.upserted.iter().map(|row| row.state).collect();
    assert_eq!(states, [TaskState::Succeeded, TaskState::Ready]);
}

#[test]
fn deleted_dispatch_outbox_rows_do_not_resurrect_from_l0_deltas() {
    let mut world = World::with(vec![task("a", "")]);
    let mut files = Vec::new();
    world.send_all([requested("a", 1).into()]);
    files.push(world.state.take_changes());
    world.send_all([started("a", 1).into()]);
    files.push(world.state.take_changes());
    let mut rows = std::collections::BTreeMap::new();
    for changes in files {
        for key in changes.dispatch_outbox.deleted {
            rows.remove(&key);
        }
        rows.extend(changes.dispatch_outbox.upserted.into_iter().map(|row| (row.key(), row)));
    }
    assert!(rows.is_empty());
    // Within one fold the row comes and goes, and no file ever has it.
    world.send_all([finished("a", 1, Outcome::Failed).into()]);
    world.state.take_changes();
    world.send_all([requested("a", 2).into(), started("a", 2).into()]);
    assert!(world.state.take_changes().dispatch_outbox.is_empty());
}

#[test]
fn test_merge_prefers_the_later_version_and_of_equals_the_higher_rank() {
    let world = World::with(vec![task("a", "")]);
    let row = |at: u64, state| {
        let mut row = world.task("a").clone();
        row.row_version = Ulid::at(at, 0);
        row.state = state;
        row
    };
    let merged = |left: crate::tables::TaskRow, right| merge_rows(left, right).state;
    use TaskState::{Failed, Ready, Running, Succeeded};
    assert_eq!(merged(row(2, Ready), row(1, Succeeded)), Ready);
    assert_eq!(merged(row(1, Succeeded), row(2, Ready)), Ready);
    assert_eq!(merged(row(1, Running), row(1, Failed)), Failed);
    assert_eq!(merged(row(1, Failed), row(1, Running)), Failed);
    assert_eq!(merged(row(1, Succeeded), row(1, Failed)), Succeeded);
}

#[test]
fn an_event_that_cannot_be_read_is_skipped() {
    let mut world = World::with(vec![task("a", "")]);
    let envelope = world.envelope(requested("a", 1));
    let mut json: serde_json::Value = serde_json::from_slice(&Envelope::encode_batch(&[envelope])).unwrap();
    json[0]["data"]["type"] = "task_postponed".into();
    let batch = Envelope::decode_batch(json.to_string().as_bytes()).unwrap();
    let report = fold(&mut world.state, &batch);
    assert_eq!((report.applied, report.unread), (0, 1));
    assert_eq!(world.state.watermark(), Some(batch[0].event_id), "it counts as folded");
}
