//! Ends of runs: many at once, while no scheduler runs, and of actions that are gone.

use std::sync::Arc;
use std::time::Duration;

use segno::RuntimeOptions;
use segno::store::{ListRecords, Store};
use segno_actions::recurring::{Decision, MissedPolicy, Outcome, OverlapPolicy};
use segno_testkit::faults::{Fault, FaultStore, Plan};
use serde_json::json;

use crate::recurring::every;
use crate::support::World;

const RUN_END_KIND: &str = "segno.recurring-end";

/// How long the commit of a turn takes on a slow store.
const COMMIT: Duration = Duration::from_millis(200);

impl World {
    /// How many ends wait for their actions.
    async fn waiting_ends(&self) -> usize {
        let request = ListRecords { kind: RUN_END_KIND, id_prefix: "", after_id: None, limit: 1_000 };
        self.store.list_records(request).await.unwrap().len()
    }
}

fn slow_commits(store: Arc<dyn Store>, clock: Arc<segno_testkit::clock::VirtualClock>) -> Arc<dyn Store> {
    let plan: Plan = Box::new(|point| match point.operation {
        "ack_orchestration_item" => Fault::Delay(COMMIT),
        _ => Fault::None,
    });
    FaultStore::new(store, clock, plan)
}

#[test]
fn runs_that_end_at_once_on_two_nodes_do_not_wait_for_one_another() {
    segno_testkit::run(async {
        let mut world = World::idle_behind(slow_commits).await;
        world.env.add_node(RuntimeOptions::default()).await;
        let mut new = every(1, "note", json!({}));
        new.policy.missed = MissedPolicy::All;
        new.policy.overlap_policy = OverlapPolicy::Allow;
        let action = world.create(new).await;
        // Nothing fires for a while, and then everything at once.
        world.pass(50).await;
        world.schedule();
        world.schedule();
        world.pass(2).await;
        world.kill();
        world.pass(2).await;
        let told = world.told(&action).await;
        assert!(told.len() >= 50, "{told:#?}");
        let caught_up: Vec<_> = told.iter().take(50).collect();
        let fired_at = caught_up.iter().map(|entry| entry.decided_at).max().unwrap();
        for entry in caught_up {
            assert_eq!(entry.outcome, Some(Outcome::Completed), "{entry:?}");
            // One commit starts the call and one ends it, or takes the result of its activity
            // first.
            let took = entry.ended_at.unwrap().duration_since(fired_at);
            assert!(took.unsigned_abs() <= COMMIT * 4, "{took:?}: {entry:?}");
        }
        world.schedule();
        world.pass(1).await;
        let now = world.read(&action).await;
        assert!(now.progress.running.len() <= 1, "{:?}", now.progress.running);
        assert_eq!((now.failure_count, now.progress.buffered), (0, None));
    });
}

#[test]
fn an_end_that_waits_is_taken_in_before_the_next_occurrence_is_judged() {
    for policy in [OverlapPolicy::Skip, OverlapPolicy::BufferOne] {
        segno_testkit::run(async {
            let mut world = World::start().await;
            let mut new = every(60, "slow", json!({"seconds": 10}));
            new.policy.overlap_policy = policy;
            let action = world.create(new).await;
            world.pass(65).await;
            world.kill();
            world.pass(60).await;
            assert_eq!(world.waiting_ends().await, 1);
            assert_eq!(world.read(&action).await.progress.running.len(), 1);
            world.schedule();
            world.pass(1).await;
            let told: Vec<_> = world.told(&action).await.iter().map(|entry| entry.decision).collect();
            assert_eq!(told, [Decision::Fired, Decision::Fired], "{policy:?}");
            assert_eq!(world.waiting_ends().await, 0);
        });
    }
}

#[test]
fn failures_that_wait_count_once_each_and_pause_the_action() {
    // More than one fold takes in.
    const RUNS: u32 = 300;
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let mut new = every(3_600, "fail", json!({}));
        new.policy.overlap_policy = OverlapPolicy::Allow;
        new.policy.pause_after_failures = Some(10);
        let action = world.create(new).await;
        for run in 0..RUNS {
            world.recurring().run(&world.scope(), &action.id, &run.to_string()).await.unwrap();
        }
        world.pass(5).await;
        assert_eq!(world.waiting_ends().await, RUNS as usize);
        assert_eq!(world.read(&action).await.failure_count, 0);
        world.schedule();
        world.schedule();
        world.pass(5).await;
        let now = world.read(&action).await;
        assert_eq!((now.failure_count, now.consecutive_failures), (u64::from(RUNS), RUNS));
        assert_eq!(now.disabled_reason.as_deref(), Some("paused after 10 failures in a row"));
        assert!(!now.enabled && now.progress.running.is_empty());
        assert!(now.last_error.unwrap().contains("it broke"));
        assert_eq!(world.waiting_ends().await, 0);
        let newest = world.told(&action).await;
        let paused = newest.iter().filter(|entry| entry.decision == Decision::Disabled).count();
        assert_eq!(paused, 1);
        // Nothing is counted again when the runs are looked after.
        world.pass(600).await;
        assert_eq!(world.read(&action).await.failure_count, u64::from(RUNS));
    });
}

#[test]
fn the_ends_of_an_action_that_is_gone_are_removed() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let action = world.create(every(60, "note", json!({}))).await;
        world.recurring().run(&world.scope(), &action.id, "one").await.unwrap();
        world.pass(1).await;
        world.recurring().delete(&world.scope(), &action.id).await.unwrap();
        assert_eq!(world.waiting_ends().await, 1);
        world.schedule();
        world.pass(1).await;
        assert_eq!(world.waiting_ends().await, 0);
    });
}
