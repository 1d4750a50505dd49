//! What publishing does to open batches is told before and after; runbooks and versions that
//! nothing uses can be deleted.

use jiff::SignedDuration;

use super::world::{World, all_succeed, entry, small_runbook};
use crate::drive::{NewBatch, PhaseTransition, PublishOptions, PublishPlan, Transition};
use crate::message::{Action, OverdueBehavior};
use crate::rows::{BatchStatus, PhaseStatus};

/// Two phases: one that is due a day before the start, and one at the start, which needs an
/// approval.
fn two_phases(approval: &str) -> String {
    let text = small_runbook(&[&["one"], &["two"]]).replacen("offset: T-0", "offset: T-1d", 1);
    text.replace("phase1, offset: T-0", &format!("phase1, offset: T-0, approval: {approval}"))
}

async fn plan(world: &World, yaml: &str, overdue_behavior: OverdueBehavior) -> PublishPlan {
    let zones = world.runbooks.definitions().zones();
    let parsed = crate::yaml::parse(yaml.as_bytes(), zones).unwrap();
    let options = PublishOptions { overdue_behavior, ..PublishOptions::default() };
    world.runbooks.plan_publishing(&world.scope, yaml.as_bytes(), parsed, &options).await.unwrap()
}

#[test]
fn what_a_version_does_to_open_batches_is_told_before_and_after() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        let first = two_phases("true");
        assert_eq!(plan(&world, &first, OverdueBehavior::Rerun).await.transition, Transition::default());
        world.publish(&first).await;
        assert!(!plan(&world, &first, OverdueBehavior::Rerun).await.is_new);
        // Its first phase is done, the second one was approved early; another batch is advanced by
        // hand.
        let batch = world.create(Some(world.now() + SignedDuration::from_hours(5)), &["a", "b"]).await;
        world.create(None, &["c"]).await;
        let done = async || world.phase(batch, "phase0").await.status == PhaseStatus::Completed;
        world.until("the end of the first phase", done).await;
        let phase_execution_id = world.phase(batch, "phase1").await.id;
        world.request(batch, "yes", Action::ApprovePhase { phase_execution_id }).await;
        world.until_answered(batch, "yes").await;

        let same_decision = first.replace("name: two", "name: zwei");
        let again = PhaseTransition { runs_again: 1, members: 2, ..named("phase0") };
        let expected = Transition {
            batches: 1,
            members: 2,
            staying: 1,
            phases: vec![again.clone()],
            ..Transition::default()
        };
        let planned = plan(&world, &same_decision, OverdueBehavior::Rerun).await;
        assert_eq!((planned.version, planned.is_new, planned.transition), (2, true, expected));
        let skipped = plan(&world, &same_decision, OverdueBehavior::Ignore).await.transition;
        assert_eq!(skipped.phases, [PhaseTransition { skipped: 1, ..named("phase0") }]);
        let other_decision = two_phases("{message: sure?}");
        let wanted = PhaseTransition { approval_again: 1, ..named("phase1") };
        let planned = plan(&world, &other_decision, OverdueBehavior::Rerun).await.transition;
        assert_eq!(planned.phases, [again, wanted]);
        assert_eq!(world.batch(batch).await.runbook_version, 1, "nothing was changed");
        assert!(world.runbooks.version(&world.scope, "migrate", Some(2)).await.is_err());

        let published =
            world.runbooks.publish(&world.scope, other_decision.as_bytes(), PublishOptions::default());
        assert_eq!(published.await.unwrap().transition, planned);
        drop(process);
    });
}

fn named(phase: &str) -> PhaseTransition {
    PhaseTransition { phase_name: phase.to_owned(), ..PhaseTransition::default() }
}

#[test]
fn versions_and_runbooks_are_deleted_once_no_batch_uses_them() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        let unknown = runbooks.delete_runbook(scope, "migrate").await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-runbook");
        world.publish(&small_runbook(&[&["one"]])).await;
        let old = world.create(None, &["a"]).await;
        world.publish(&small_runbook(&[&["one", "two"]])).await;
        world.publish(&small_runbook(&[&["one", "two", "three"]])).await;
        let code = async |version| match runbooks.delete_version(scope, "migrate", version).await {
            Ok(()) => "deleted".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(code(1).await.contains("batch 1 uses version 1"), "{}", code(1).await);
        assert!(code(3).await.contains("is the active one"));
        assert_eq!(code(2).await, "deleted");
        assert!(code(2).await.contains("unknown-runbook"));
        let new = NewBatch {
            runbook: "migrate".to_owned(),
            version: Some(2),
            members: vec![entry("b")],
            ..NewBatch::default()
        };
        assert_eq!(runbooks.create_batch(scope, new).await.unwrap_err().code(), "unknown-runbook");

        // A batch that has ended counts too: its members can be retried.
        world.request(old, "stop", Action::CancelBatch { reason: None }).await;
        assert_eq!(world.until_ended(old).await.status, BatchStatus::Cancelled);
        let refused = runbooks.delete_runbook(scope, "migrate").await.unwrap_err();
        assert_eq!(refused.code(), "runbook-in-use");
        assert!(refused.to_string().contains("segno batch delete 1"), "{refused}");
        let gone = async || {
            runbooks
                .delete_batch(scope, old)
                .await
                .is_ok_and(|done| done == crate::drive::BatchDeletion::Deleted)
        };
        world.until("the deletion of the batch", gone).await;
        runbooks.delete_runbook(scope, "migrate").await.unwrap();
        assert_eq!(runbooks.delete_runbook(scope, "migrate").await.unwrap_err().code(), "unknown-runbook");
        assert!(runbooks.list(scope, None, 10).await.unwrap().is_empty());
        assert!(runbooks.version(scope, "migrate", Some(3)).await.is_err());

        // The name is free, and its versions go on: one that was deleted is never another one.
        world.publish(&small_runbook(&[&["four"]])).await;
        assert_eq!(runbooks.head(scope, "migrate").await.unwrap().active_version, 4);
        let batch = world.create(Some(world.now()), &["a"]).await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        assert!(world.step(batch, "a", "four").await.is_some());
        drop(process);
    });
}

#[test]
fn a_runbook_that_is_queried_is_not_deleted() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        let source = "type: function, function: list, batch_time: immediate";
        world.publish(&small_runbook(&[&["one"]]).replace("type: manual", source)).await;
        runbooks.enable_automation(scope, "migrate").await.unwrap();
        let refused = runbooks.delete_runbook(scope, "migrate").await.unwrap_err();
        assert_eq!(refused.code(), "runbook-in-use");
        assert!(refused.to_string().contains("segno runbook disable migrate"), "{refused}");
        runbooks.disable_automation(scope, "migrate").await.unwrap();
        runbooks.delete_runbook(scope, "migrate").await.unwrap();
        // Nothing of it is left but the number of its last version.
        for kind in [crate::drive::RUNBOOKS, crate::drive::HEADS, crate::drive::QUERIES] {
            let request = segno::store::ListRecords { kind, id_prefix: "", after_id: None, limit: 10 };
            assert!(world.store.list_records(request).await.unwrap().is_empty(), "{kind}");
        }
    });
}
