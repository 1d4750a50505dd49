//! Runs: plans, edges, ends, retries, cancellation.

use super::world::{World, finished, heartbeat, planned, requested, started, task, triggered};
use crate::event::{
    Outcome, OutputVisibility, PlannedTask, RunCancelRequested, RunPaused, RunResumed,
    TaskCompletionRecorded, TaskError, TaskOutputVisibilityChanged, VisibilityState,
};
use crate::tables::{Resolution, RunState, TriggerRule};

fn cancel(generation: u32) -> RunCancelRequested {
    RunCancelRequested { run_id: "run1".into(), reason: None, requested_by: "ada".into(), generation }
}

#[test]
fn a_chain_runs_task_by_task_to_its_end() {
    let mut world = World::with(vec![task("a", ""), task("b", "a"), task("c", "b")]);
    assert_eq!(world.states("a b c"), "rbb");
    world.run("a", 1, Outcome::Succeeded);
    assert_eq!(world.states("a b c"), "Srb");
    world.run("b", 1, Outcome::Succeeded);
    assert_eq!(world.run_state(), RunState::Running);
    world.run("c", 1, Outcome::Succeeded);
    assert_eq!(world.run_state(), RunState::Succeeded);
    let run = world.run_row();
    assert_eq!((run.tasks_total, run.tasks_completed, run.tasks_succeeded), (3, 3, 3));
    assert_eq!(run.completed_at, Some(world.now_ms as i64));
}

#[test]
fn a_plan_may_come_before_its_run() {
    let mut world = World::new();
    assert!(world.send(planned("run1", vec![task("a", "")])));
    assert_eq!(world.state.ready().count(), 0, "a run that does not exist dispatches nothing");
    assert!(world.send(triggered("run1")));
    assert_eq!(world.run_row().tasks_total, 1);
    assert_eq!(world.run_state(), RunState::Running);
    assert_eq!(world.state.ready().count(), 1);
}

#[test]
fn a_run_without_tasks_succeeds_at_once() {
    let world = World::with(Vec::new());
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_plan_that_cannot_be_run_fails_its_run_and_says_why() {
    let cases = [
        (vec![task("a", "b"), task("b", "a"), task("c", "")], "cycle"),
        (vec![task("a", "a")], "cycle"),
        (vec![task("a", "x")], "does not have"),
        (vec![task("a", ""), task("a", "")], "two tasks"),
        (vec![task("a", ""), task("b", "a a")], "twice"),
    ];
    for (tasks, expected) in cases {
        let world = World::with(tasks);
        assert_eq!(world.run_state(), RunState::Failed);
        let reason = world.run_row().reason.as_deref().unwrap_or_default();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn test_upstream_failure_skips_downstream() {
    let mut world =
        World::with(vec![PlannedTask { max_attempts: 1, ..task("a", "") }, task("b", "a"), task("c", "b")]);
    world.run("a", 1, Outcome::Failed);
    assert_eq!(world.states("a b c"), "fss");
    assert_eq!(world.run_state(), RunState::Failed);
    let edges: Vec<_> = world.state.edges_of("run1").collect();
    assert!(edges.iter().all(|edge| !edge.satisfied && edge.resolution.is_some()));
    assert_eq!(edges[0].resolution, Some(Resolution::Failed));
    assert_eq!(world.task("b").deps_satisfied_count, 0);
}

#[test]
fn test_cancelled_task_cascades_and_cancels_run() {
    let mut world = World::with(vec![task("a", ""), task("b", "a"), task("c", "b"), task("d", "")]);
    world.run("a", 1, Outcome::Cancelled);
    assert_eq!(world.states("a b c d"), "cccr");
    world.run("d", 1, Outcome::Succeeded);
    assert_eq!(world.run_state(), RunState::Cancelled);
}

#[test]
fn ends_propagate_through_a_plan_of_any_depth() {
    let key = |place: usize| format!("t{place}");
    let depth = 50_000;
    let mut tasks = vec![PlannedTask { max_attempts: 1, ..task(&key(0), "") }];
    tasks.extend((1..depth).map(|place| task(&key(place), &key(place - 1))));
    let mut world = World::with(tasks);
    world.run("t0", 1, Outcome::Failed);
    assert_eq!(world.run_state(), RunState::Failed);
    assert_eq!(world.run_row().tasks_skipped, depth as u32 - 1);
}

#[test]
fn an_edge_counts_once() {
    let mut world = World::with(vec![task("a", ""), task("b", ""), task("c", "a b")]);
    world.run("a", 1, Outcome::Succeeded);
    assert!(!world.send(finished("a", 1, Outcome::Succeeded)));
    assert_eq!(world.task("c").deps_satisfied_count, 1);
    assert_eq!(world.states("c"), "b");
}

#[test]
fn deps_satisfied_count_never_changes_without_row_version() {
    let mut world = World::with(vec![task("a", ""), task("b", ""), task("c", "a b")]);
    let before = world.task("c").clone();
    world.run("a", 1, Outcome::Succeeded);
    let after = world.task("c");
    assert_eq!((before.deps_satisfied_count, after.deps_satisfied_count), (0, 1));
    assert!(after.row_version > before.row_version);
}

#[test]
fn a_failed_attempt_waits_and_runs_again_until_attempts_are_used_up() {
    let mut world = World::with(vec![PlannedTask { max_attempts: 2, ..task("a", "") }]);
    world.now_ms += 5_000;
    world.run("a", 1, Outcome::Failed);
    assert_eq!(world.states("a"), "W");
    let end = i64::try_from(world.now_ms).unwrap();
    assert_eq!(world.task("a").retry_not_before, Some(end + 30_000), "counted from the time in the event id");
    world.run("a", 2, Outcome::Failed);
    assert_eq!(world.states("a"), "f");
    assert_eq!(world.task("a").error_message.as_deref(), Some("broken"));
    assert_eq!(world.run_state(), RunState::Failed);
}

#[test]
fn errors_that_cannot_be_retried_fail_the_task_at_once() {
    let error = |category: Option<&str>, retryable| TaskError {
        category: category.map(Into::into),
        message: "broken".into(),
        stack_trace: None,
        retryable,
    };
    let cases = [
        (error(Some("DATA_QUALITY"), None), "f"),
        (error(Some("CONFIGURATION"), None), "f"),
        (error(Some("CANCELLED"), None), "f"),
        (error(Some("TIMEOUT"), None), "W"),
        (error(Some("OUR_OWN"), None), "W"),
        (error(None, None), "W"),
        (error(Some("DATA_QUALITY"), Some(true)), "W"),
        (error(Some("USER_CODE"), Some(false)), "f"),
    ];
    for (error, expected) in cases {
        let mut world = World::with(vec![task("a", "")]);
        world.send_all([requested("a", 1).into(), started("a", 1).into()]);
        let mut end = finished("a", 1, Outcome::Failed);
        end.error = Some(error.clone());
        assert!(world.send(end));
        assert_eq!(world.states("a"), expected, "{error:?}");
    }
}

#[test]
fn test_stale_attempt_event_is_rejected() {
    let mut world = World::with(vec![task("a", "")]);
    world.run("a", 1, Outcome::Failed);
    assert!(!world.send(started("a", 1)), "it waits for its next attempt");
    assert!(!world.send(finished("a", 1, Outcome::Succeeded)));
    world.send_all([requested("a", 2).into(), started("a", 2).into()]);
    assert!(!world.send(finished("a", 1, Outcome::Succeeded)));
    assert!(!world.send(heartbeat("a", 1, world.now_ms)));
    let mut foreign = finished("a", 2, Outcome::Succeeded);
    foreign.attempt.attempt_id = "att_other".into();
    assert!(!world.send(foreign), "another attempt id");
    assert_eq!(world.states("a"), "R");
    assert!(world.send(finished("a", 2, Outcome::Succeeded)));
    assert!(!world.send(finished("a", 2, Outcome::Failed)), "it has ended");
    assert_eq!(world.run_state(), RunState::Succeeded);
}

#[test]
fn a_task_whose_upstream_tasks_have_not_ended_cannot_be_started() {
    let mut world = World::with(vec![task("a", ""), task("b", "a")]);
    assert!(!world.send(requested("b", 1)));
    assert!(!world.send(started("b", 1)));
    assert!(!world.send(finished("b", 1, Outcome::Succeeded)));
    assert_eq!(world.states("a b"), "rb");
}

#[test]
fn test_run_cancel_requested_ends_what_does_not_run() {
    let mut world =
        World::with(vec![task("a", ""), task("b", ""), task("c", ""), task("d", "a"), task("e", "")]);
    world.send_all([requested("a", 1).into(), started("a", 1).into(), requested("b", 1).into()]);
    world.run("c", 1, Outcome::Failed);
    assert!(world.send(cancel(0)));
    assert_eq!(world.states("a b c d e"), "Rcccc");
    assert!(world.state.pending_dispatches().next().is_none(), "nothing is left to dispatch");
    assert_eq!(world.run_state(), RunState::Running, "an attempt is still under way");
    assert!(world.run_row().cancel_requested);
    assert!(world.send(finished("a", 1, Outcome::Cancelled)));
    assert_eq!(world.run_state(), RunState::Cancelled);
    assert!(!world.send(cancel(0)), "it has ended");
}

#[test]
fn a_task_that_fails_after_cancel_does_not_retry() {
    let mut world = World::with(vec![task("a", ""), task("b", "a")]);
    world.send_all([requested("a", 1).into(), started("a", 1).into(), cancel(0).into()]);
    assert!(world.send(finished("a", 1, Outcome::Failed)));
    assert_eq!(world.states("a b"), "fc");
    assert_eq!(world.run_state(), RunState::Cancelled);
}

#[test]
fn a_run_without_a_plan_can_be_cancelled() {
    let mut world = World::new();
    world.send_all([triggered("run1").into(), cancel(0).into()]);
    assert_eq!(world.run_state(), RunState::Cancelled);
    assert!(!world.send(planned("run1", vec![task("a", "")])));
}

#[test]
fn a_paused_run_offers_nothing_until_it_is_resumed() {
    let mut world = World::with(vec![task("a", ""), task("b", "")]);
    let (run_id, requested_by) = ("run1".into(), "ada".into());
    world.send_all([RunPaused { run_id, request_id: "1".into(), requested_by }.into()]);
    assert_eq!(world.state.ready().count(), 0);
    let (run_id, requested_by) = ("run1".into(), "ada".into());
    world.send_all([RunResumed { run_id, request_id: "2".into(), requested_by }.into()]);
    assert_eq!(world.state.ready().next().unwrap().tasks().count(), 2);
}

#[test]
fn trigger_rules_decide_about_downstream_tasks() {
    let rules = [
        (TriggerRule::AllSuccess, "s"),
        (TriggerRule::AllDone, "r"),
        (TriggerRule::OneSuccess, "r"),
        (TriggerRule::OneFailed, "r"),
        (TriggerRule::NoneFailed, "s"),
    ];
    for (trigger_rule, expected) in rules {
        let mut world = World::with(vec![
            PlannedTask { max_attempts: 1, ..task("a", "") },
            task("b", ""),
            PlannedTask { trigger_rule, ..task("c", "a b") },
        ]);
        world.run("b", 1, Outcome::Succeeded);
        world.run("a", 1, Outcome::Failed);
        assert_eq!(world.states("c"), expected, "{trigger_rule:?}");
    }
}

#[test]
fn downstream_tasks_wait_until_a_required_output_is_visible() {
    let visible =
        |visibility_state| OutputVisibility { visibility_state, published_at: None, publish_error: None };
    let cases = [(VisibilityState::Visible, "Sr"), (VisibilityState::Failed, "Ss")];
    for (state, expected) in cases {
        let upstream = PlannedTask { requires_visible_output: true, ..task("a", "") };
        let mut world = World::with(vec![upstream.clone(), task("b", "a")]);
        world.run("a", 1, Outcome::Succeeded);
        assert_eq!(world.states("a b"), "Sb");
        let attempt = super::world::attempt("a", 1);
        let change = TaskOutputVisibilityChanged { attempt, visibility: visible(state) };
        assert!(world.send(change.clone()));
        assert!(!world.send(change));
        assert_eq!(world.states("a b"), expected);

        let mut world = World::with(vec![upstream, task("b", "a")]);
        world.send_all([requested("a", 1).into(), started("a", 1).into()]);
        let end = finished("a", 1, Outcome::Succeeded);
        let end = TaskCompletionRecorded { finished: end, output_visibility: Some(visible(state)) };
        assert!(world.send(end));
        assert_eq!(world.states("a b"), expected, "end and visibility as one fact");
    }
}
