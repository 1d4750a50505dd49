//! Actions at a time.

use std::time::Duration;

use segno::Payload;
use segno_actions::action::{Action, ActionStatus, ActionTrigger, OnRestart};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::World;

fn completed(result: Value) -> ActionStatus {
    ActionStatus::Completed { result: Payload::encode(&result).unwrap() }
}

fn failed(status: &ActionStatus) -> &str {
    match status {
        ActionStatus::Failed { reason } => reason,
        other => panic!("{other:?} is not failed"),
    }
}

#[test]
fn an_action_runs_at_its_time_and_keeps_its_result() {
    segno_testkit::run(async {
        let world = World::start().await;
        world.add(1, "note", json!({"n": 1}), 90).await;
        world.pass(89).await;
        assert_eq!(world.status(1).await, ActionStatus::Pending);
        assert!(world.calls.inputs().is_empty());
        world.pass(2).await;
        assert_eq!(world.calls.seconds(), [90]);
        let result = json!({"noted": {"n": 1}});
        assert_eq!(world.status(1).await, completed(result));
        let action = world.db.get(Uuid::from_u128(1)).await.unwrap();
        let instance = action.instance.unwrap();
        assert!(instance.starts_with("default/default/invoke:action:"), "{instance}");
        assert_eq!(
            world.env.client().instance(&instance).await.unwrap().labels["action"],
            action.id.to_string()
        );
    });
}

#[test]
fn orchestrator_two_actions_complete_in_one_tick() {
    segno_testkit::run(async {
        let world = World::start().await;
        world.add(1, "slow", json!({"seconds": 600}), 10).await;
        world.add(2, "note", json!(2), 10).await;
        world.pass(11).await;
        assert_eq!(world.status(1).await, ActionStatus::Running, "a slow one");
        assert!(matches!(world.status(2).await, ActionStatus::Completed { .. }), "is in nobody's way");
        world.pass(600).await;
        assert_eq!(world.status(1).await, completed(json!(600)));
    });
}

#[test]
fn a_webhook_action_runs_at_once() {
    segno_testkit::run(async {
        let world = World::start().await;
        let trigger = ActionTrigger::Webhook { raw_payload: vec![0xff], received_at: world.now() };
        let action = Action { trigger, ..world.action(1, "note", json!("hook"), 0) };
        world.db.insert(&action).await.unwrap();
        world.pass(1).await;
        assert_eq!(world.calls.inputs(), [json!("hook")]);
    });
}

#[test]
fn what_fails_or_cannot_be_called_says_why() {
    segno_testkit::run(async {
        let world = World::start().await;
        world.add(1, "fail", json!(null), 1).await;
        world.add(2, "missing", json!(null), 1).await;
        world.pass(2).await;
        assert!(failed(&world.status(1).await).contains("it broke"));
        assert!(failed(&world.status(2).await).contains("there is no function \"missing\""));
    });
}

#[test]
fn a_recurrence_leaves_a_row_for_each_run_and_no_failure_ends_it() {
    segno_testkit::run(async {
        let world = World::start().await;
        for (number, function) in [(1, "note"), (2, "fail")] {
            let recurrence = Some(Duration::from_secs(60));
            let action = Action { recurrence, ..world.action(number, function, json!(number as u64), 60) };
            world.db.insert(&action).await.unwrap();
        }
        world.pass(190).await;
        assert_eq!(world.calls.seconds(), [60, 120, 180]);
        let all = world.db.list_all().await.unwrap();
        let rows = |tool: &str, status: &str| {
            all.iter().filter(|action| action.tool_name == tool && action.status.name() == status).count()
        };
        assert_eq!((rows("note", "completed"), rows("note", "pending")), (3, 1));
        assert_eq!((rows("fail", "failed"), rows("fail", "pending")), (3, 1));
    });
}

#[test]
fn many_schedulers_fire_once() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        for number in 1..=50 {
            world.add(number, "note", json!(number as u64), 10).await;
        }
        for _ in 0..4 {
            world.schedule();
        }
        world.pass(60).await;
        let mut inputs: Vec<u64> = world.calls.inputs().iter().map(|n| n.as_u64().unwrap()).collect();
        inputs.sort_unstable();
        assert_eq!(inputs, (1..=50).collect::<Vec<_>>());
    });
}

#[test]
fn what_is_cancelled_or_deleted_behind_its_back_is_settled() {
    segno_testkit::run(async {
        let world = World::start().await;
        for number in [1, 2] {
            world.add(number, "hang", json!(null), 1).await;
        }
        world.pass(5).await;
        let instance = |action: Action| action.instance.unwrap();
        let first = instance(world.db.get(Uuid::from_u128(1)).await.unwrap());
        world.env.client().cancel(&first, "enough").await.unwrap();
        world.pass(2).await;
        assert!(failed(&world.status(1).await).contains("enough"));
        let second = instance(world.db.get(Uuid::from_u128(2)).await.unwrap());
        world.env.client().delete(&second, true).await.unwrap();
        world.pass(2).await;
        assert_eq!(world.status(2).await, ActionStatus::Running);
        world.pass(120).await;
        assert!(failed(&world.status(2).await).contains("deleted"));
    });
}

/// The first is begun again by whoever comes next, the second is not.
async fn run_one_to_be_resumed_and_one_to_be_given_up(world: &World) {
    let resumed = world.action(1, "slow", json!({"seconds": 600}), 1);
    world.db.insert(&Action { on_restart: OnRestart::Resume, ..resumed }).await.unwrap();
    world.add(2, "slow", json!({"seconds": 600}), 1).await;
    world.pass(120).await;
}

#[test]
fn what_runs_is_resumed_by_the_engine_or_given_up_as_it_says() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        run_one_to_be_resumed_and_one_to_be_given_up(&world).await;
        world.kill();
        world.env.crash().await;
        world.env.restart().await;
        world.schedule();
        // The lock of the node that is gone runs out.
        world.pass(60).await;
        assert_eq!(world.status(1).await, ActionStatus::Running);
        assert_eq!(failed(&world.status(2).await), "recovered from restart");
        world.pass(1_000).await;
        assert_eq!(world.status(1).await, completed(json!(600)));
        assert_eq!(failed(&world.status(2).await), "recovered from restart");
        assert_eq!(world.calls.inputs().len(), 3, "one was begun again, the other was not");
    });
}

#[test]
fn what_a_node_dropped_when_it_shut_down_is_not_begun_again_either() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        run_one_to_be_resumed_and_one_to_be_given_up(&world).await;
        world.kill();
        // The work is given back as if it had never been delivered.
        world.env.shutdown(Duration::from_secs(1)).await;
        world.env.restart().await;
        world.schedule();
        world.pass(10).await;
        assert_eq!(world.status(1).await, ActionStatus::Running);
        assert_eq!(failed(&world.status(2).await), "recovered from restart");
        assert_eq!(world.calls.inputs().len(), 3, "one was begun again, the other was not");
    });
}

#[test]
fn a_node_that_starts_gives_up_nothing_that_another_one_runs() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        world.add(1, "slow", json!({"seconds": 600}), 1).await;
        world.pass(120).await;
        world.env.add_node(segno::RuntimeOptions::default()).await;
        world.schedule();
        assert_eq!(world.db.startup_recovery(Duration::ZERO).await.unwrap(), 0);
        world.pass(400).await;
        assert_eq!(world.status(1).await, ActionStatus::Running);
        world.pass(100).await;
        assert_eq!(world.status(1).await, completed(json!(600)));
        assert_eq!(world.calls.seconds(), [1]);
    });
}

#[test]
fn what_no_node_had_begun_is_begun_after_a_restart() {
    segno_testkit::run(async {
        let mut world = World::start().await;
        world.env.crash().await;
        world.add(1, "note", json!(1), 1).await;
        world.pass(120).await;
        assert_eq!(world.status(1).await, ActionStatus::Running);
        world.env.restart().await;
        world.pass(10).await;
        assert_eq!(world.status(1).await, completed(json!({"noted": 1})));
    });
}

/// The trace of a span, told by its name.
fn trace_of_current_span() -> Option<String> {
    let name = tracing::Span::current().metadata().map(tracing::Metadata::name)?;
    let trace = match name {
        "segno.action" => 1,
        "segno.recurring" => 2,
        _ => 3,
    };
    Some(format!("00-{trace:032x}-{trace:016x}-01"))
}

#[test]
fn what_is_fired_begins_a_trace() {
    use tracing_subscriber::util::SubscriberInitExt;
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(std::io::sink);
    let _guard = subscriber.finish().set_default();
    segno_testkit::run(async {
        let mut world = World::idle().await;
        world.current_trace = Some(trace_of_current_span);
        world.schedule();
        world.add(1, "note", json!(1), 1).await;
        let new = crate::recurring::every(60, "note", json!({}));
        let recurring = world.recurring().create(&world.scope(), new).await.unwrap();
        world.pass(61).await;
        let action = world.db.get(Uuid::from_u128(1)).await.unwrap();
        let recurring = world.recurring().get(&world.scope(), &recurring.id).await.unwrap();
        for (instance, trace) in [(action.instance, 1), (recurring.last_execution_id, 2)] {
            let history = world.env.client().history(&instance.unwrap()).await.unwrap();
            let started = history.iter().find_map(|event| match &event.kind {
                segno::event::EventKind::OrchestrationStarted(started) => started.traceparent.clone(),
                _ => None,
            });
            assert_eq!(started, Some(format!("00-{trace:032x}-{trace:016x}-01")));
        }
    });
}
