//! Actions and recurring actions that start orchestrations: what holds for functions holds for them.

use std::time::Duration;

use segno::Client;
use segno::store::InstanceQuery;
use segno_actions::OrchestrationName;
use segno_actions::action::{Action, ActionStatus, OnRestart};
use segno_actions::recurring::{Decision, NewRecurringAction, Outcome, OverlapPolicy, SkipReason};
use serde_json::{Value, json};

use crate::recurring::every;
use crate::support::World;

fn stages() -> OrchestrationName {
    OrchestrationName::new("stages").unwrap()
}

impl World {
    async fn add_stages(&self, number: u128, input: Value, due: i64) -> Action {
        let action = self.action(number, "", input, due).starting(stages());
        self.db.insert(&action).await.unwrap();
        action
    }
}

fn every_stages(seconds: u64, input: Value) -> NewRecurringAction {
    let mut new = every(seconds, "", input);
    new.action_template.orchestration = Some(stages());
    new.action_template.action_type = String::new();
    new
}

#[test]
fn an_action_starts_an_orchestration_and_knows_its_end_when_that_is_there() {
    segno_testkit::run(async {
        let world = World::start().await;
        let client = Client::new(world.store.clone());
        // Three executions of one instance: the last one ends it.
        world.add_stages(1, json!({ "seconds": 50, "more": 2 }), 10).await;
        world.pass(11).await;
        assert_eq!(world.status(1).await, ActionStatus::Running);
        let instance = world.db.get(uuid::Uuid::from_u128(1)).await.unwrap().instance.unwrap();
        assert!(instance.starts_with("default/default/start:action:"), "{instance}");
        client.wait_until_ended(&instance, Duration::from_secs(1_000)).await.unwrap();
        // No time has passed, and no scheduler has looked: both were one commit.
        assert_eq!(world.clock_seconds(), 160);
        let ActionStatus::Completed { result } = world.status(1).await else { panic!("it has ended") };
        let result: serde_json::Value = result.decode().unwrap();
        assert_eq!(result, json!({ "staged": { "seconds": 50, "more": 0 } }));
        let found = client.instance(&instance).await.unwrap();
        assert_eq!(
            found.labels.get("action").map(String::as_str),
            Some("00000000-0000-0000-0000-000000000001")
        );
    });
}

#[test]
fn a_failure_a_cancellation_and_a_recurrence_are_those_of_the_instance() {
    segno_testkit::run(async {
        let world = World::start().await;
        world.add_stages(1, json!({ "fails": true }), 10).await;
        let recurring =
            Action { recurrence: Some(Duration::from_secs(60)), ..world.action(2, "", json!({}), 10) };
        world.db.insert(&recurring.starting(stages())).await.unwrap();
        world.add_stages(3, json!({ "seconds": 3_600 }), 10).await;
        world.pass(75).await;
        let ActionStatus::Failed { reason } = world.status(1).await else { panic!("it failed") };
        assert!(reason.contains("it broke"), "{reason}");
        let page = world.db.page(None, 10).await.unwrap();
        let all: Vec<Action> = page.into_iter().filter_map(|(_, row)| row.readable()).collect();
        let done =
            all.iter().filter(|action| matches!(action.status, ActionStatus::Completed { .. })).count();
        assert_eq!((done, all.len()), (2, 5), "it is done again and again");
        assert!(all.iter().all(|action| action.orchestration == Some(stages())));
        world.db.cancel(uuid::Uuid::from_u128(3), "enough").await.unwrap();
        world.pass(1).await;
        let ActionStatus::Failed { reason } = world.status(3).await else { panic!("it was cancelled") };
        assert!(reason.contains("enough"), "{reason}");
    });
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    segno_testkit::run(async {
        let world = World::idle().await;
        let both =
            Action { tool_name: "note".to_owned(), ..world.action(1, "", json!({}), 10).starting(stages()) };
        let fail =
            Action { on_restart: OnRestart::Fail, ..world.action(1, "", json!({}), 10).starting(stages()) };
        for (action, field) in [(both, "orchestration"), (fail, "on_restart")] {
            let error = world.db.insert(&action).await.unwrap_err();
            assert!(error.to_string().starts_with(&format!("{field}: ")), "{error}");
        }
        let mut both = every_stages(60, json!({}));
        both.action_template.provider = "note".to_owned();
        let error = world.recurring().create(&world.scope(), both).await.unwrap_err();
        assert!(error.to_string().starts_with("orchestration: "), "{error}");
        assert!(OrchestrationName::new("invoke").unwrap_err().contains("built in"));
    });
}

#[test]
fn overlap_is_judged_by_the_instance_with_all_its_executions() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut ids = Vec::new();
        for policy in [OverlapPolicy::Skip, OverlapPolicy::BufferOne, OverlapPolicy::CancelOther] {
            // Two executions of 75 s each.
            let mut new = every_stages(60, json!({ "seconds": 75, "more": 1 }));
            new.policy.overlap_policy = policy;
            ids.push(world.create(new).await);
        }
        world.pass(245).await;
        let mut shapes = Vec::new();
        for action in &ids {
            let told = world.told(action).await;
            shapes.push(
                told.iter().map(|entry| (entry.decision, entry.reason, entry.outcome)).collect::<Vec<_>>(),
            );
        }
        let (done, runs) = ((Decision::Fired, None, Some(Outcome::Completed)), (Decision::Fired, None, None));
        let overlap = (Decision::Skipped, Some(SkipReason::Overlap), None);
        assert_eq!(shapes[0], [done, overlap, overlap, runs]);
        assert_eq!(shapes[1], [done, runs, overlap, (Decision::Buffered, None, None)]);
        let cancelled = (Decision::Fired, None, Some(Outcome::Cancelled));
        assert_eq!(shapes[2], [cancelled, cancelled, cancelled, runs]);
        assert_eq!(world.read(&ids[2]).await.failure_count, 0);
    });
}

#[test]
fn dedup_labels_failures_and_backfills_are_as_for_functions() {
    segno_testkit::run(async {
        let world = World::start().await;
        let mut new = every_stages(60, json!({ "fails": true }));
        new.action_template.dedup_key = Some("the same".to_owned());
        new.policy.pause_after_failures = Some(1);
        let action = world.create(new).await;
        world.pass(130).await;
        let now = world.read(&action).await;
        assert_eq!(
            (now.enabled, now.failure_count),
            (false, 1),
            "the end of the instance is that of the run"
        );
        let told = world.told(&action).await;
        let instance = told[0].instance.as_deref().unwrap();
        assert!(instance.starts_with("default/default/start:recurring:"), "{instance}");
        let client = Client::new(world.store.clone());
        let query = InstanceQuery {
            labels: [("recurring".to_owned(), action.id.clone())].into(),
            ..InstanceQuery::default()
        };
        let found = client.list(query).await.unwrap();
        assert_eq!(found.instances.len(), 1);
        assert_eq!(found.instances[0].id, instance);
        let range = segno_actions::recurring::Backfill {
            start: world.at(60),
            end: world.at(60),
            limit: 10,
            dry_run: false,
        };
        let lines = world.recurring().backfill(&world.scope(), &action.id, range).await.unwrap();
        assert_eq!(lines[0].outcome, segno_actions::recurring::BackfillOutcome::AlreadyRun);
    });
}
