//! Dispatches and timers.

use jiff::Timestamp;

use super::world::{World, enqueued, finished, heartbeat, requested, started, task};
use crate::event::{Outcome, PlannedTask, PoolDefined, TimerEnqueued, TimerFired, TimerRequested};
use crate::fold::fold;
use crate::ids::{TimerName, TimerPurpose};
use crate::tables::{OutboxStatus, TimerState, TimerType};

#[test]
fn a_dispatch_has_a_row_until_a_worker_takes_it_up() {
    let mut world = World::with(vec![task("a", "")]);
    assert!(world.send(requested("a", 1)));
    let row = world.state.pending_dispatches().next().unwrap().clone();
    assert_eq!((row.status, row.attempt, &*row.task_key), (OutboxStatus::Pending, 1, "a"));
    assert!(world.send(enqueued("a", 1, 0)));
    assert!(world.state.pending_dispatches().next().is_none());
    let created = world.state.dispatch(&row.dispatch_id).unwrap();
    assert_eq!((created.status, created.cloud_task_id.as_deref()), (OutboxStatus::Created, Some("queue-0")));
    assert!(world.send(started("a", 1)));
    assert!(world.state.dispatch(&row.dispatch_id).is_none());
    assert!(!world.send(requested("a", 1)), "the attempt is under way");
    assert!(!world.send(enqueued("a", 1, 1)), "and its dispatch does not come back");
    assert!(world.state.dispatch(&row.dispatch_id).is_none());
}

#[test]
fn test_dispatch_out_of_order_fills_attempt_id() {
    let mut world = World::with(vec![task("a", "")]);
    assert!(world.send(enqueued("a", 1, 0)));
    assert_eq!(world.states("a"), "r");
    assert!(world.send(requested("a", 1)));
    let row = world.state.rows().dispatch_outbox.pop().unwrap();
    assert_eq!((row.status, row.cloud_task_id.as_deref()), (OutboxStatus::Created, Some("queue-0")));
    assert_eq!(&*row.attempt_id, world.task("a").attempt_id.as_deref().unwrap());
    assert_eq!(&*row.worker_queue, "default-queue");
}

#[test]
fn test_two_ready_dispatch_instances_converge_on_single_outbox_entry() {
    let mut world = World::with(vec![task("a", "")]);
    assert!(world.send(requested("a", 1)));
    assert!(!world.send(requested("a", 1)));
    assert_eq!(world.state.rows().dispatch_outbox.len(), 1);
}

#[test]
fn a_repair_refreshes_the_age_of_its_dispatch_and_an_old_acceptance_does_not() {
    let mut world = World::with(vec![task("a", "")]);
    world.send_all([requested("a", 1).into(), enqueued("a", 1, 0).into()]);
    world.now_ms += 600_000;
    assert!(world.send(enqueued("a", 1, 1)));
    let row = world.state.rows().dispatch_outbox.pop().unwrap();
    assert_eq!((row.enqueued_at, row.repairs), (Some(world.now_ms as i64), 1));
    assert!(!world.send(enqueued("a", 1, 0)));
    assert!(!world.send(enqueued("a", 1, 1)));
    assert_eq!(world.state.rows().dispatch_outbox.pop().unwrap().row_version, row.row_version);
}

#[test]
fn rejected_events_do_not_take_the_key_of_their_successors() {
    // An acceptance by a stale attempt id and a cancel of another generation are refused; the right
    // ones count.
    let mut world = World::with(vec![task("a", "")]);
    world.send_all([requested("a", 1).into(), started("a", 1).into()]);
    let mut wrong = finished("a", 1, Outcome::Succeeded);
    wrong.attempt.attempt_id = "att_guessed".into();
    assert!(!world.send(wrong));
    assert!(world.send(finished("a", 1, Outcome::Succeeded)));
    let keys = world.state.rows().idempotency_keys;
    let types: Vec<&str> = keys.iter().map(|row| &*row.event_type).collect();
    assert_eq!(types, ["PlanCreated", "RunTriggered"]);
}

#[test]
fn a_pool_is_never_over_its_slots_however_many_request_at_once() {
    let in_pool = |key: &str| PlannedTask { pool: Some("db".into()), ..task(key, "") };
    let mut world = World::with(vec![in_pool("a"), in_pool("b"), in_pool("c")]);
    assert!(world.send(requested("a", 1)));
    assert!(!world.send(requested("b", 1)), "a pool that was not defined has one slot");
    let pool = |slots, request: &str| PoolDefined {
        pool: "db".into(),
        slots,
        request_id: request.into(),
        requested_by: "ada".into(),
    };
    assert!(world.send(pool(2, "1")));
    assert!(world.send(requested("b", 1)), "the refusal did not take its key");
    assert!(!world.send(requested("c", 1)));
    world.send_all([started("a", 1).into(), finished("a", 1, Outcome::Failed).into()]);
    assert!(world.send(requested("c", 1)), "a task that waits holds no slot");
    assert!(!world.send(requested("a", 2)));
    assert!(world.send(pool(0, "2")));
    world.send_all([started("c", 1).into(), finished("c", 1, Outcome::Succeeded).into()]);
    assert!(!world.send(requested("a", 2)), "a pool without slots lets nothing through");
}

#[test]
fn heartbeats_move_the_time_at_which_an_attempt_counts_as_lost() {
    let mut world = World::with(vec![PlannedTask { heartbeat_timeout_sec: 60, ..task("a", "") }]);
    world.send_all([requested("a", 1).into(), started("a", 1).into()]);
    let lost_at = |world: &World| world.state.running().next().unwrap().0;
    let start = world.now_ms as i64;
    assert_eq!(lost_at(&world), start + 90_000);
    world.now_ms += 20_000;
    assert!(world.send(heartbeat("a", 1, world.now_ms)));
    assert_eq!(lost_at(&world), start + 110_000);
    assert!(!world.send(heartbeat("a", 1, world.now_ms - 5_000)), "an older one comes late");
    assert_eq!(lost_at(&world), start + 110_000);
}

fn retry_timer(world: &World, task_key: &str) -> (String, TimerRequested) {
    let fire_at = Timestamp::from_second((world.now_ms / 1_000) as i64 + 60).unwrap();
    let timer_id = TimerName::Attempt {
        purpose: TimerPurpose::Retry,
        run_id: "run1".to_owned(),
        task_key: task_key.to_owned(),
        attempt: 1,
        epoch_s: fire_at.as_second(),
    }
    .to_string();
    let request = TimerRequested {
        timer_id: timer_id.as_str().into(),
        timer_type: TimerType::Retry,
        run_id: Some("run1".into()),
        task_key: Some(task_key.into()),
        attempt: Some(1),
        fire_at,
        payload: None,
    };
    (timer_id, request)
}

fn accepted(timer_id: &str) -> TimerEnqueued {
    TimerEnqueued {
        timer_id: timer_id.into(),
        run_id: None,
        task_key: None,
        attempt: None,
        cloud_task_id: "t_1".into(),
    }
}

fn fired(timer_id: &str) -> TimerFired {
    TimerFired {
        timer_id: timer_id.into(),
        timer_type: TimerType::Retry,
        run_id: None,
        task_key: None,
        attempt: None,
    }
}

#[test]
fn fired_timers_are_consumed_and_do_not_come_back() {
    // A key with colons: nothing is found by splitting.
    let mut world = World::with(vec![task("a:b:1", "")]);
    world.run("a:b:1", 1, Outcome::Failed);
    let (timer_id, request) = retry_timer(&world, "a:b:1");
    assert!(world.send(request.clone()));
    assert_eq!(world.task("a:b:1").retry_not_before, Some(request.fire_at.as_millisecond()));
    assert_eq!(world.state.timers().next().unwrap().state, TimerState::Scheduled);
    assert!(world.send(accepted(&timer_id)));
    assert_eq!(world.state.timers().next().unwrap().state, TimerState::Enqueued);
    assert!(world.state.requested_timers().next().is_none());
    assert!(world.send(fired(&timer_id)));
    assert!(world.state.timers().next().is_none());
    for late in [world.send(request), world.send(accepted(&timer_id)), world.send(fired(&timer_id))] {
        assert!(!late);
    }
    assert!(world.state.timers().next().is_none());
}

#[test]
fn a_timer_may_be_accepted_or_fire_before_it_is_requested() {
    let mut world = World::with(vec![task("a", "")]);
    world.run("a", 1, Outcome::Failed);
    let (timer_id, request) = retry_timer(&world, "a");
    assert!(world.send(accepted(&timer_id)));
    let row = world.state.timers().next().unwrap();
    assert_eq!((row.task_key.as_deref(), row.attempt), (Some("a"), Some(1)), "read from the id");
    assert_eq!(row.fire_at, request.fire_at.as_millisecond());
    assert!(world.send(fired(&timer_id)));
    assert!(!world.send(request), "it fired already");
    assert!(world.state.timers().next().is_none());
}

#[test]
fn timers_end_with_what_they_wait_for() {
    let mut world = World::with(vec![task("a", "")]);
    world.run("a", 1, Outcome::Failed);
    let (_, request) = retry_timer(&world, "a");
    assert!(world.send(request.clone()));
    world.run("a", 2, Outcome::Succeeded);
    assert!(world.state.timers().next().is_none());
    assert!(!world.send(request));
}

#[test]
fn dispatches_of_another_scope_are_ignored() {
    let mut world = World::with(vec![task("a", "")]);
    let mut envelope = world.envelope(requested("a", 1));
    envelope.tenant_id = "other".into();
    let report = fold(&mut world.state, &[envelope]);
    assert_eq!((report.applied, report.ignored), (0, 1));
    assert_eq!(world.states("a"), "r");
}
