//! Publishing, creating and reading through [`Runbooks`](crate::drive::Runbooks).

use serde_json::json;

use super::world::{Reply, World, all_succeed, entry, small_runbook};
use crate::drive::{NewBatch, PublishOptions, ReceiptState, RequestedAction};
use crate::message::{Action, OverdueBehavior};
use crate::rows::{BatchId, BatchStatus, PhaseStatus, RowKey, WorkStatus};
use jiff::SignedDuration;
use segno_actions::Listed;
use segno_actions::functions::Scope;
use std::sync::Arc;

#[test]
fn versions_are_immutable_and_publishing_activates() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        let options = PublishOptions { by: Some("ann".to_owned()), ..PublishOptions::default() };
        let publish = async |yaml: &str, options: &PublishOptions| {
            runbooks.publish(scope, yaml.as_bytes(), options.clone()).await.unwrap()
        };
        let queried = |phases: &[&[&str]]| {
            let source = "type: function, function: list, batch_time: immediate";
            small_runbook(phases).replace("type: manual", source)
        };
        let (first, second) = (queried(&[&["one"]]), queried(&[&["one", "two"]]));
        let one = publish(&first, &options).await;
        assert_eq!((one.row.version, one.row.is_active, one.is_new), (1, true, true));
        assert!(!publish(&first, &options).await.is_new, "the active version again is nothing new");
        runbooks.enable_automation(scope, "migrate").await.unwrap();
        let ignore = PublishOptions { overdue_behavior: OverdueBehavior::Ignore, ..options };
        let two = publish(&second, &ignore).await;
        assert_eq!((two.row.version, two.row.id.0 > one.row.id.0), (2, true));
        let head = runbooks.head(scope, "migrate").await.unwrap();
        assert_eq!((head.active_version, head.is_automation_enabled), (2, true));
        let head = runbooks.disable_automation(scope, "migrate").await.unwrap();
        assert!(!head.is_automation_enabled);
        let versions = Listed::split(runbooks.versions(scope, "migrate", None, 10).await.unwrap()).0;
        let shown: Vec<(u32, bool)> = versions.iter().map(|row| (row.version, row.is_active)).collect();
        assert_eq!(shown, [(1, false), (2, true)]);
        assert_eq!(versions[0].yaml_content, first);
        assert_eq!(runbooks.version(scope, "migrate", None).await.unwrap(), two.row);
        // Each scope has its own.
        let other = Scope::new("eu", "other").unwrap();
        let unknown = runbooks.version(&other, "migrate", Some(1)).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-runbook");
        assert!(runbooks.list(&other, None, 10).await.unwrap().is_empty());
        assert_eq!(runbooks.list(scope, None, 10).await.unwrap().len(), 1);
        let error = runbooks.publish(scope, b"name: [", PublishOptions::default()).await.unwrap_err();
        assert_eq!(error.code(), "invalid-runbook");
    });
}

#[test]
fn a_batch_is_created_once_per_key_and_refused_with_reasons() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let (runbooks, scope) = (&world.runbooks, &world.scope);
        let new = |members: Vec<&str>| NewBatch {
            runbook: "migrate".to_owned(),
            members: members.into_iter().map(entry).collect(),
            key: Some("monday/1".to_owned()),
            ..NewBatch::default()
        };
        let unknown = runbooks.create_batch(scope, new(vec!["a"])).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-runbook");
        world.publish(&small_runbook(&[&["one"]])).await;
        for members in [vec![], vec!["a", "A"]] {
            assert_eq!(runbooks.create_batch(scope, new(members)).await.unwrap_err().code(), "invalid-batch");
        }
        let batch = runbooks.create_batch(scope, new(vec!["a", "b"])).await.unwrap();
        assert_eq!(runbooks.create_batch(scope, new(vec!["a", "b"])).await.unwrap(), batch);
        let mismatch = runbooks.create_batch(scope, new(vec!["a"])).await.unwrap_err();
        assert_eq!(mismatch.code(), "idempotency-mismatch");
        assert_eq!(runbooks.batches(scope, None, 10).await.unwrap().len(), 1);
        let row = runbooks.batch(scope, batch).await.unwrap();
        assert_eq!((row.status, row.is_manual, row.is_sealed), (BatchStatus::Detected, true, false));
        let other = Scope::new("eu", "other").unwrap();
        assert_eq!(runbooks.batch(&other, batch).await.unwrap_err().code(), "unknown-batch");
        let pause = || RequestedAction::new("k", Action::PauseBatch { reason: None });
        let unknown = runbooks.request(&other, batch, pause()).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-batch");
        let own_door = RequestedAction::new("k", Action::Seal);
        assert_eq!(runbooks.request(scope, batch, own_door).await.unwrap_err().code(), "invalid-batch");
        runbooks.request(scope, batch, pause()).await.unwrap();
        runbooks.request(scope, batch, pause()).await.unwrap();
        let another = RequestedAction::new("k", Action::ResumeBatch);
        let mismatch = runbooks.request(scope, batch, another).await.unwrap_err();
        assert_eq!(mismatch.code(), "idempotency-mismatch");
    });
}

#[test]
fn a_manual_batch_is_advanced_phase_by_phase_and_requests_have_receipts() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        world.publish(&small_runbook(&[&["one"], &["two"]])).await;
        let batch = world.create(None, &["a", "b"]).await;
        world.until("members", async || world.batch(batch).await.is_sealed).await;
        let explained = world.runbooks.explain(&world.scope, batch, &RowKey::Batch).await.unwrap();
        assert!(explained.releaser.is_some(), "{explained:?}");
        for (number, phase) in ["phase0", "phase1"].into_iter().enumerate() {
            world.request(batch, &format!("advance-{number}"), Action::Advance).await;
            let ended = async || world.phase(batch, phase).await.status == PhaseStatus::Completed;
            world.until("the end of the phase", ended).await;
        }
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        // A request without a key has a fresh one; a refusal tells why.
        let requested = RequestedAction { key: None, by: Some("ann".to_owned()), action: Action::Advance };
        let receipt = world.runbooks.request(&world.scope, batch, requested).await.unwrap();
        assert_eq!(receipt.state, ReceiptState::Waiting);
        let receipt = world.until_answered(batch, &receipt.key).await;
        assert_eq!((receipt.state, receipt.by.as_deref()), (ReceiptState::Refused, Some("ann")));
        assert!(receipt.reason.is_some_and(|reason| reason.contains("has ended")));
        let listed = world.runbooks.batches_of(&world.scope, "migrate", None, 10).await.unwrap();
        let summaries = Listed::split(listed).0;
        assert_eq!(summaries[0].status, BatchStatus::Completed);
        let member = world.member(batch, "a").await.id;
        let steps = world.runbooks.steps_of_member(&world.scope, batch, member).await.unwrap();
        let steps = segno_actions::Listed::split(steps).0;
        assert_eq!(steps.len(), 2);
        assert_eq!(
            world.runbooks.batch(&world.scope, BatchId(999)).await.unwrap_err().code(),
            "unknown-batch"
        );
        drop(process);
    });
}

#[test]
fn a_large_batch_advances_by_cursors_and_takes_requests_meanwhile() {
    segno_testkit::run(async {
        let mut world = World::new(all_succeed());
        // Many small parts, and members in two blocks of ids.
        world.options.rows_per_part = 64;
        let process = world.process(world.store.clone(), "node-1").await;
        world.publish(&small_runbook(&[&["one"]])).await;
        let keys: Vec<String> = (0..1_100).map(|number| format!("m{number}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let batch = world.create(Some(world.now()), &keys).await;
        let late = world.runbooks.put_members(&world.scope, batch, vec![entry("late")], ("join", None)).await;
        assert_eq!(late.unwrap().len(), 1);
        let row = world.until_ended(batch).await;
        assert_eq!((row.status, row.members), (BatchStatus::Completed, 1_101));
        assert!(row.parts > 2 * 1_100 / 64, "{} parts", row.parts);
        let phase = world.phase(batch, "phase0").await;
        assert_eq!((phase.members_succeeded, phase.step_counts.succeeded), (1_101, 1_101));
        assert_eq!(world.steps(batch).await.len(), 1_101);
        assert_eq!(world.instances().await.len(), 1_101);
        assert!(world.attempts.lock().unwrap().values().all(|count| *count == 1));
        drop(process);
    });
}

#[test]
fn requests_are_applied_in_the_order_in_which_they_were_posted() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(&small_runbook(&[&["one"]])).await;
        let batch = world.create(None, &["a"]).await;
        // All within one millisecond, under keys that sort the other way round.
        let reason = Some("wait".to_owned());
        for (key, action) in [
            ("z", Action::PauseBatch { reason: None }),
            ("y", Action::ResumeBatch),
            ("x", Action::PauseBatch { reason }),
        ] {
            world.request(batch, key, action).await;
        }
        let process = world.process(world.store.clone(), "node-1").await;
        for key in ["x", "y", "z"] {
            assert_eq!(world.until_answered(batch, key).await.state, ReceiptState::Applied, "{key}");
        }
        assert_eq!(world.batch(batch).await.pause_reason.as_deref(), Some("wait"));
        drop(process);
    });
}

#[test]
fn batches_move_to_a_version_that_is_published_while_they_wait() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        world.publish(&small_runbook(&[&["one"]])).await;
        let start = world.now() + SignedDuration::from_hours(5);
        let batch = world.create(Some(start), &["a"]).await;
        world.pass(600).await;
        world.publish(&small_runbook(&[&["one", "two"]])).await;
        world.until("the move", async || world.batch(batch).await.runbook_version == 2).await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        assert_eq!(world.step(batch, "a", "two").await.unwrap().work.status, WorkStatus::Succeeded);
        drop(process);
    });
}

#[test]
fn a_call_that_no_worker_takes_fails_after_the_dispatch_timeout() {
    segno_testkit::run(async {
        let world = World::new(Arc::new(|_, _, _| Reply::Done(json!({}))));
        let process = world.process(world.store.clone(), "node-1").await;
        for pool in ["remote", "nowhere"] {
            let yaml = small_runbook(&[&["one"]]).replace("worker_id: here", &format!("worker_id: {pool}"));
            world.publish(&yaml).await;
            let (batch, begun) = (world.create(Some(world.now()), &["a"]).await, world.now());
            assert_eq!(world.until_ended(batch).await.status, BatchStatus::Failed, "{pool}");
            let waited = world.now().duration_since(begun).as_secs();
            assert!((1_800..1_900).contains(&waited), "{pool}: {waited} s");
            let step = world.step(batch, "a", "one").await.unwrap().work;
            assert!(step.error_message.unwrap().contains("the dispatch time-out"), "{pool}");
        }
        drop(process);
    });
}

#[test]
fn a_function_that_cannot_be_called_fails_its_step_with_the_reason() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        world.publish(&small_runbook(&[&["one"]]).replace("function: Switch", "function: Unheard-Of")).await;
        let batch = world.create(Some(world.now()), &["a"]).await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Failed);
        let step = world.step(batch, "a", "one").await.unwrap().work;
        assert!(step.error_message.unwrap().contains("unheard-of"));
        drop(process);
    });
}
