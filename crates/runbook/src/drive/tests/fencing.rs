//! Nodes that race for a batch, and a node that was away while another took its batch.

use std::sync::Arc;
use std::time::Duration;

use segno::store::Store;
use segno_testkit::faults::{Fault, FaultStore, Plan};
use serde_json::json;

use super::world::{Reply, World, all_succeed, small_runbook};
use crate::rows::{BatchStatus, Table};

fn members(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m{number}")).collect()
}

#[test]
fn two_nodes_that_race_for_batches_do_everything_once() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(&small_runbook(&[&["one", "two"], &["three"]])).await;
        let keys = members(20);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut batches = Vec::new();
        for _ in 0..5 {
            batches.push(world.create(Some(world.now()), &keys).await);
        }
        let one = world.process(world.store.clone(), "node-1").await;
        let two = world.process(world.store.clone(), "node-2").await;
        for batch in batches {
            assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
            assert_eq!(world.table(batch, Table::StepExecutions).await.len(), 60);
        }
        assert_eq!(world.instances().await.len(), 5 * 60);
        assert!(world.attempts.lock().unwrap().values().all(|count| *count == 1));
        drop((one, two));
    });
}

/// A node whose store stands still for longer than a lease, at one of its commits.
fn stalled_at(number: u64) -> Plan {
    Box::new(
        move |point| {
            if point.number == number { Fault::StallFor(Duration::from_secs(90)) } else { Fault::None }
        },
    )
}

#[test]
fn a_node_that_stands_still_loses_its_batch_and_changes_nothing_afterwards() {
    // The commit at which it stalls moves through the whole life of the batch.
    for number in 1..40 {
        segno_testkit::run(async {
            let workers = |_: &str, _: &str, _: &serde_json::Value| Reply::Later(7, json!({"Id": "x"}));
            let world = World::new(Arc::new(workers));
            world.publish(&small_runbook(&[&["one", "two"], &["three"]])).await;
            let batch = world.create(Some(world.now()), &["a", "b", "c"]).await;
            let stalling = FaultStore::new(world.store.clone(), world.clock.clone(), stalled_at(number));
            let one = world.process(stalling as Arc<dyn Store>, "node-1").await;
            let two = world.process(world.store.clone(), "node-2").await;
            let ended = world.until_ended(batch).await;
            assert_eq!(ended.status, BatchStatus::Completed, "stalled at commit {number}");
            world.pass(300).await;
            assert_eq!(world.batch(batch).await, ended, "stalled at commit {number}");
            assert_eq!(world.instances().await.len(), 9, "stalled at commit {number}");
            drop((one, two));
        });
    }
}
