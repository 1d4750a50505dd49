//! Lists, cleared tasks and marked tasks.

use std::sync::Arc;

use super::world::{World, finished, requested, started, task};
use crate::event::{
    ForEach, MarkedState, Outcome, PlannedTask, RunCancelRequested, TaskCleared, TaskMarked, TasksAdded,
};
use crate::tables::RunState;

fn clear(task_keys: &str, downstream: bool, request: &str) -> TaskCleared {
    TaskCleared {
        run_id: "run1".into(),
        task_keys: task_keys.split_whitespace().map(Arc::from).collect(),
        downstream,
        request_id: request.into(),
        requested_by: "ada".into(),
    }
}

fn mark(task_key: &str, state: MarkedState, request: &str) -> TaskMarked {
    TaskMarked {
        run_id: "run1".into(),
        task_key: task_key.into(),
        state,
        output: None,
        reason: None,
        request_id: request.into(),
        requested_by: "ada".into(),
    }
}

fn once(key: &str, depends_on: &str) -> PlannedTask {
    PlannedTask { max_attempts: 1, ..task(key, depends_on) }
}

fn list(key: &str, depends_on: &str) -> PlannedTask {
    let for_each = Some(ForEach { items: "{{ tasks.a.output }}".into(), max_items: None });
    PlannedTask { for_each, ..task(key, depends_on) }
}

fn added(task_key: &str, attempt: u32, items: &str) -> TasksAdded {
    let tasks = items.split_whitespace().map(|item| once(item, "")).collect();
    TasksAdded { run_id: "run1".into(), task_key: task_key.into(), attempt, tasks, error: None }
}

#[test]
fn a_cleared_task_runs_again_with_everything_behind_it() {
    let mut world = World::with(vec![once("a", ""), once("b", "a"), once("c", "b"), once("d", "")]);
    world.run("a", 1, Outcome::Succeeded);
    world.run("b", 1, Outcome::Failed);
    world.run("d", 1, Outcome::Succeeded);
    assert_eq!((world.states("a b c d").as_str(), world.run_state()), ("SfsS", RunState::Failed));
    assert!(world.send(clear("b", true, "1")));
    assert!(!world.send(clear("b", true, "1")), "one request is one correction");
    assert_eq!((world.states("a b c d").as_str(), world.run_state()), ("SrbS", RunState::Running));
    let run = world.run_row();
    assert_eq!((run.tasks_completed, run.tasks_failed, run.tasks_skipped), (2, 0, 0));
    assert_eq!(world.state.ready().next().unwrap().tasks().count(), 1);
    assert!(!world.send(finished("b", 1, Outcome::Succeeded)), "its former attempt is over");
    assert!(!world.send(requested("b", 1)), "and its number is not used again");
    world.run("b", 2, Outcome::Succeeded);
    world.run("c", 1, Outcome::Succeeded);
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn clearing_grants_all_attempts_again() {
    let mut world = World::with(vec![PlannedTask { max_attempts: 2, ..task("a", "") }]);
    world.run("a", 1, Outcome::Failed);
    world.run("a", 2, Outcome::Failed);
    assert_eq!(world.states("a"), "f");
    assert!(world.send(clear("a", true, "1")));
    world.run("a", 3, Outcome::Failed);
    assert_eq!(world.states("a"), "W");
    world.run("a", 4, Outcome::Failed);
    assert_eq!(world.states("a"), "f");
}

#[test]
fn clearing_without_downstream_reruns_only_what_was_left_out() {
    let mut world = World::with(vec![once("a", ""), once("b", "a"), once("c", "a")]);
    world.run("a", 1, Outcome::Succeeded);
    world.run("b", 1, Outcome::Succeeded);
    world.run("c", 1, Outcome::Failed);
    assert!(world.send(clear("a", false, "1")));
    assert_eq!(world.states("a b c"), "rSf");
    world.run("a", 2, Outcome::Succeeded);
    assert_eq!((world.states("a b c").as_str(), world.run_state()), ("SSf", RunState::Failed));
}

#[test]
fn a_cleared_run_can_be_cancelled_again() {
    let cancel = |generation| RunCancelRequested {
        run_id: "run1".into(),
        reason: None,
        requested_by: "ada".into(),
        generation,
    };
    let mut world = World::with(vec![once("a", "")]);
    assert!(world.send(cancel(0)));
    assert_eq!(world.run_state(), RunState::Cancelled);
    assert!(world.send(clear("a", true, "1")));
    assert_eq!((world.states("a").as_str(), world.run_state()), ("r", RunState::Running));
    assert!(!world.send(cancel(0)), "it is about the run before");
    assert!(world.send(cancel(1)));
    assert_eq!(world.run_state(), RunState::Cancelled);
}

#[test]
fn a_correction_of_a_run_under_way_does_not_swallow_a_cancellation_nor_undo_one() {
    let cancel =
        RunCancelRequested { run_id: "run1".into(), reason: None, requested_by: "ada".into(), generation: 0 };
    let mut world = World::with(vec![once("a", ""), once("b", "")]);
    assert!(world.send(mark("a", MarkedState::Skipped, "1")));
    world.send_all([requested("b", 1).into(), started("b", 1).into()]);
    assert!(world.send(cancel), "it was on its way when the task was marked");
    assert!(world.send(mark("b", MarkedState::Succeeded, "2")));
    assert!(world.run_row().cancel_requested);
    assert_eq!(world.run_state(), RunState::Succeeded, "nothing was left to cancel");
}

#[test]
fn nothing_is_cleared_while_an_attempt_is_under_way() {
    let mut world = World::with(vec![once("a", "")]);
    world.send_all([requested("a", 1).into(), started("a", 1).into()]);
    assert!(!world.send(clear("a", true, "1")));
    assert!(!world.send(clear("x", true, "2")));
    assert_eq!(world.states("a"), "R");
}

#[test]
fn a_task_marked_as_succeeded_lets_what_waited_for_it_begin() {
    let mut world = World::with(vec![once("a", ""), once("b", "a"), once("c", "b")]);
    world.run("a", 1, Outcome::Failed);
    assert_eq!((world.states("a b c").as_str(), world.run_state()), ("fss", RunState::Failed));
    assert!(world.send(mark("a", MarkedState::Succeeded, "1")));
    assert_eq!((world.states("a b c").as_str(), world.run_state()), ("Srb", RunState::Running));
    assert_eq!(world.task("a").marked_by.as_deref(), Some("ada"));
    assert!(!world.send(mark("a", MarkedState::Succeeded, "2")), "it is so already");
    world.send_all([requested("b", 1).into(), started("b", 1).into()]);
    assert!(world.send(mark("b", MarkedState::Skipped, "3")));
    assert!(!world.send(finished("b", 1, Outcome::Succeeded)), "the attempt no longer counts");
    assert_eq!((world.states("a b c").as_str(), world.run_state()), ("Sss", RunState::Succeeded));
}

#[test]
fn a_list_adds_tasks_once_and_joins_them() {
    let mut world = World::with(vec![once("a", ""), list("f", "a"), once("z", "f")]);
    world.run("a", 1, Outcome::Succeeded);
    assert_eq!(world.state.expansions().count(), 1);
    assert!(!world.send(requested("f", 1)), "it is expanded and not dispatched");
    assert!(world.send(added("f", 1, "f[0] f[1]")));
    assert!(!world.send(added("f", 1, "f[0] f[1] f[2]")), "once per task and run");
    assert_eq!(world.states("f f[0] f[1] z"), "brrb");
    assert_eq!((world.run_row().tasks_total, world.task("f").deps_total), (5, 3));
    world.run("f[0]", 1, Outcome::Succeeded);
    world.run("f[1]", 1, Outcome::Succeeded);
    assert_eq!(world.states("f z"), "Sr");
    world.run("z", 1, Outcome::Succeeded);
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn lists_may_be_empty_or_broken_or_have_failing_items() {
    let mut world = World::with(vec![list("f", ""), once("z", "f")]);
    assert!(world.send(added("f", 1, "")));
    assert_eq!(world.states("f z"), "Sr");

    let mut world = World::with(vec![list("f", ""), once("z", "f")]);
    let error = Some("not a list".into());
    assert!(world.send(TasksAdded { error, ..added("f", 1, "") }));
    assert_eq!((world.states("f z").as_str(), world.run_state()), ("fs", RunState::Failed));

    let mut world = World::with(vec![list("f", ""), once("z", "f")]);
    assert!(world.send(added("f", 1, "z")), "a key of the plan");
    assert_eq!((world.states("f z").as_str(), world.run_state()), ("fs", RunState::Failed));

    let mut world = World::with(vec![list("f", ""), once("z", "f")]);
    assert!(world.send(added("f", 1, "f[0] f[1]")));
    world.run("f[0]", 1, Outcome::Failed);
    assert_eq!(world.states("f z"), "bb", "the others go on");
    world.run("f[1]", 1, Outcome::Succeeded);
    assert_eq!((world.states("f z").as_str(), world.run_state()), ("fs", RunState::Failed));
    assert_eq!(world.task("f").error_message.as_deref(), Some("1 of 2 items failed"));
}

#[test]
fn clearing_an_item_reruns_it_alone_and_joins_again() {
    let mut world = World::with(vec![list("f", ""), once("z", "f")]);
    assert!(world.send(added("f", 1, "f[0] f[1]")));
    world.run("f[0]", 1, Outcome::Failed);
    world.run("f[1]", 1, Outcome::Succeeded);
    assert!(world.send(clear("f[0]", true, "1")));
    assert_eq!(world.states("f f[0] f[1] z"), "brSb");
    world.run("f[0]", 2, Outcome::Succeeded);
    assert_eq!(world.states("f f[0] f[1] z"), "SSSr");
}

#[test]
fn clearing_a_list_makes_it_again() {
    let mut world = World::with(vec![once("a", ""), list("f", "a"), once("z", "f")]);
    world.run("a", 1, Outcome::Succeeded);
    assert!(world.send(added("f", 1, "f[0] f[1]")));
    world.run("f[0]", 1, Outcome::Succeeded);
    world.run("f[1]", 1, Outcome::Succeeded);
    world.run("z", 1, Outcome::Succeeded);
    assert!(world.send(clear("a", true, "1")));
    assert_eq!(world.states("a f f[0] f[1] z"), "rbppb");
    world.run("a", 2, Outcome::Succeeded);
    assert_eq!(world.state.expansions().count(), 1);
    assert!(!world.send(added("f", 1, "f[0]")), "the former attempt");
    assert!(world.send(added("f", 2, "f[1] f[2]")));
    assert_eq!(world.states("f f[0] f[1] f[2] z"), "bsrrb", "an item that is gone is left out");
    world.run("f[1]", 2, Outcome::Succeeded);
    world.run("f[2]", 1, Outcome::Succeeded);
    world.run("z", 2, Outcome::Succeeded);
    assert_eq!((world.states("f z").as_str(), world.run_state()), ("SS", RunState::Succeeded));
}

#[test]
fn items_of_a_cleared_list_end_with_the_list() {
    let mut world = World::with(vec![once("a", ""), list("f", "a")]);
    world.run("a", 1, Outcome::Succeeded);
    assert!(world.send(added("f", 1, "f[0]")));
    world.run("f[0]", 1, Outcome::Succeeded);
    assert!(world.send(clear("a", true, "1")));
    world.run("a", 2, Outcome::Failed);
    assert_eq!((world.states("a f f[0]").as_str(), world.run_state()), ("fss", RunState::Failed));
}
