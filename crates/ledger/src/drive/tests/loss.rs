//! Ledgers that are not there, and stores that are older than their ledger.

use futures_util::StreamExt as _;
use segno::store::{Expect, RecordBatch, RecordWrite};
use segno_actions::functions::Scope;

use super::world::{World, all_succeed};
use crate::drive::{LEASES, RunQuery, StartRun};
use crate::objects::Stores;
use crate::tables::RunState;

const DAG: &str = "{name: one, tasks: [{key: a, function: work}]}";

#[test]
fn a_ledger_that_is_gone_is_reported_and_not_begun_again() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process("a").await;
        world.publish(DAG).await;
        let before = world.start("one").await;
        assert_eq!(world.until_ended(&before).await.state, RunState::Succeeded);
        drop(process);
        // Past the lease of the process that is gone.
        world.pass(60).await;

        let away = Stores::in_memory();
        let without = World::on(world.store.clone(), away.clone(), world.clock.clone(), all_succeed());
        let _process = without.process("b").await;
        let runs = without.ledger.runs();
        let listed = runs.list(&without.scope, &RunQuery::default()).await.unwrap_err();
        assert_eq!(listed.code(), "ledger-unavailable");
        assert!(listed.to_string().contains("the tables of eu/acme are not where the ledger is"), "{listed}");
        without.pass(60).await;
        assert!(away.state.list(None).next().await.is_none(), "no new ledger is begun");
        let other = Scope::new("eu", "other").unwrap();
        assert!(
            runs.list(&other, &RunQuery::default()).await.unwrap().runs.is_empty(),
            "a new scope has none"
        );
    });
}

#[test]
fn events_of_a_writer_that_died_before_it_could_wake_the_scope_are_found_by_the_sweep() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(DAG).await;
        let started = world.ledger.runs().start(&world.scope, StartRun::new("one")).await.unwrap();
        // As after a release between the writer's look at the lease and its commit: the scope is free, and due never.
        let released = RecordWrite::Put {
            kind: LEASES.to_owned(),
            id: format!("{}lease", world.scope.id_prefix()),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: "{}".into(),
        };
        let batch = RecordBatch { writes: vec![released], ..RecordBatch::default() };
        world.store.commit_records(batch).await.unwrap();
        let _process = world.process("a").await;
        world.pass(45).await;
        let waits = world.ledger.runs().show(&world.scope, &started.run_id).await.unwrap_err();
        assert_eq!(waits.code(), "ledger-unavailable", "nothing has woken the scope");
        assert_eq!(world.until_ended(&started.run_id).await.state, RunState::Succeeded);
    });
}

#[test]
fn a_run_that_was_accepted_and_cannot_be_shown_is_not_unknown() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(DAG).await;
        let started = world.ledger.runs().start(&world.scope, StartRun::new("one")).await.unwrap();
        assert!(!started.visible);
        let waits = world.ledger.runs().show(&world.scope, &started.run_id).await.unwrap_err();
        assert_eq!(waits.code(), "ledger-unavailable");
        assert!(waits.to_string().contains("was accepted and is not in the tables yet"), "{waits}");
        let unknown = world.ledger.runs().show(&world.scope, "run_x").await.unwrap_err();
        assert_eq!(unknown.code(), "unknown-run");
        let _process = world.process("a").await;
        assert_eq!(world.until_ended(&started.run_id).await.state, RunState::Succeeded);
    });
}

#[test]
fn a_store_that_was_restored_goes_on_with_a_ledger_that_is_newer() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        for node in ["a", "b", "c"] {
            let process = world.process(node).await;
            world.publish(DAG).await;
            let run_id = world.start("one").await;
            assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
            drop(process);
            world.pass(60).await;
        }
        let id = format!("{}lease", world.scope.id_prefix());
        let older = RecordWrite::Put {
            kind: LEASES.to_owned(),
            id,
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: "{}".into(),
        };
        let batch = RecordBatch { writes: vec![older], ..RecordBatch::default() };
        world.store.commit_records(batch).await.unwrap();
        let _process = world.process("d").await;
        let run_id = world.start("one").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
    });
}
