//! Slots of the runs of a DAG.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::{World, planned, scope, task, triggered};
use crate::controllers::{Freshness, OrchestrationController, ReadyDispatch};
use crate::event::{
    Attempt, EventData, Outcome, PoolDefined, RunCancelRequested, RunTriggered, TaskCleared, TaskFinished,
    TaskStarted,
};
use crate::fold::{NO_LIMIT, State, runs_pool};
use crate::ids::{attempt_id, dispatch_id};
use crate::tables::RunState;

fn limit(slots: u32, request: &str) -> PoolDefined {
    PoolDefined {
        pool: runs_pool("daily").into(),
        slots,
        request_id: request.into(),
        requested_by: "ada".into(),
    }
}

/// A run of the DAG with two tasks after each other.
fn run(world: &mut World, run_id: &str) {
    world.now_ms += 1;
    let triggered = RunTriggered { dag: Some("daily".into()), ..triggered(run_id) };
    world.send_all([triggered.into(), planned(run_id, vec![task("a", ""), task("b", "a")]).into()]);
}

/// What is requested to be dispatched now, as `run task`.
fn wanted(state: &State) -> Vec<String> {
    let actions = ReadyDispatch.reconcile(state, 0, Freshness { complete_at: 0, tail_checked_at: 0 });
    let mut events = Vec::new();
    for action in actions {
        if let crate::controllers::Action::Append(appended) = action {
            events.extend(appended);
        }
    }
    let name = |event: EventData| match event {
        EventData::DispatchRequested(event) => format!("{} {}", event.run_id, event.task_key),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(name).collect()
}

fn attempt(run_id: &str, task_key: &str, number: u32) -> Attempt {
    let id = attempt_id(&dispatch_id(run_id, task_key, number)).into();
    Attempt { run_id: run_id.into(), task_key: task_key.into(), attempt: number, attempt_id: id }
}

fn finished(attempt: Attempt, outcome: Outcome) -> TaskFinished {
    TaskFinished { attempt, outcome, ..super::world::finished("a", 1, outcome) }
}

/// Runs a task to its end.
fn task_runs(world: &mut World, run_id: &str, task_key: &str) {
    let attempt = attempt(run_id, task_key, 1);
    let started = TaskStarted { attempt: attempt.clone(), worker_id: "w".into() };
    world.send_all([started.into(), finished(attempt, Outcome::Succeeded).into()]);
}

/// Which runs wait, in a state and in one that was loaded from its rows.
fn held(world: &World) -> BTreeSet<Arc<str>> {
    let of = |state: &State| {
        let runs = state.runs().map(|run| Arc::clone(&run.run_id));
        runs.filter(|run_id| state.is_held(run_id)).collect::<BTreeSet<_>>()
    };
    let loaded = State::load(scope(), world.state.rows(), world.state.watermark());
    assert_eq!(of(&loaded), of(&world.state), "a state that was loaded admits the same runs");
    assert_eq!(wanted(&loaded), wanted(&world.state));
    of(&world.state)
}

fn names(names: &str) -> BTreeSet<Arc<str>> {
    names.split_whitespace().map(Arc::from).collect()
}

#[test]
fn a_dag_has_so_many_runs_under_way_and_the_next_begins_when_one_ends() {
    let mut world = World::new();
    world.send(limit(1, "1"));
    for id in ["run1", "run2", "run3"] {
        run(&mut world, id);
    }
    assert_eq!((held(&world), wanted(&world.state)), (names("run2 run3"), vec!["run1 a".to_owned()]));
    task_runs(&mut world, "run1", "a");
    assert_eq!(wanted(&world.state), ["run1 b"]);
    task_runs(&mut world, "run1", "b");
    assert_eq!(world.state.run("run1").unwrap().state, RunState::Succeeded);
    assert_eq!((held(&world), wanted(&world.state)), (names("run3"), vec!["run2 a".to_owned()]));
    let cancel =
        RunCancelRequested { run_id: "run2".into(), reason: None, requested_by: "ada".into(), generation: 0 };
    world.send(cancel);
    assert_eq!((held(&world), wanted(&world.state)), (names(""), vec!["run3 a".to_owned()]));
}

#[test]
fn a_limit_that_changes_lets_runs_in_and_keeps_none_that_has_begun() {
    let mut world = World::new();
    for id in ["run1", "run2", "run3"] {
        run(&mut world, id);
    }
    assert_eq!(held(&world), names(""), "without a limit all of them run");
    task_runs(&mut world, "run2", "a");
    world.send(limit(1, "1"));
    assert_eq!((held(&world), wanted(&world.state)), (names("run1 run3"), vec!["run2 b".to_owned()]));
    world.send(limit(2, "2"));
    assert_eq!(held(&world), names("run3"));
    world.send(limit(NO_LIMIT, "3"));
    assert_eq!((held(&world), wanted(&world.state).len()), (names(""), 3));
}

#[test]
fn a_run_that_waits_cannot_be_dispatched_and_one_that_runs_again_holds_its_slot() {
    let mut world = World::new();
    world.send(limit(1, "1"));
    run(&mut world, "run1");
    task_runs(&mut world, "run1", "a");
    task_runs(&mut world, "run1", "b");
    run(&mut world, "run2");
    assert_eq!(held(&world), names(""));
    let cleared = TaskCleared {
        run_id: "run1".into(),
        task_keys: vec!["b".into()],
        downstream: true,
        request_id: "1".into(),
        requested_by: "ada".into(),
    };
    world.send(cleared);
    assert_eq!(held(&world), names("run2"));
    let late = crate::event::DispatchRequested {
        run_id: "run2".into(),
        dispatch_id: dispatch_id("run2", "a", 1).into(),
        attempt_id: attempt("run2", "a", 1).attempt_id,
        ..super::world::requested("a", 1)
    };
    assert!(!world.send(late), "requested by a controller that had not seen that run1 runs again");
}
