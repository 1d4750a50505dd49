//! A message that is posted at any moment of a release is processed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use segno::store::Store;
use segno_actions::schedule::Zones;
use segno_testkit::faults::{Fault, FaultStore, Plan};

use super::world::{World, all_succeed, small_runbook};
use crate::drive::lease::{Holder, Lease};
use crate::drive::place::{BatchPlace, LEASES};
use crate::drive::{ReceiptState, RequestedAction, Runbooks, inbox, lease};
use crate::message::Action;
use crate::rows::BatchId;

/// How soon a request is applied while a node is there.
const SOON_SEC: u64 = 10;

/// How soon a request is applied if everything that could have told of it has died.
const REMINDED_SEC: u64 = 65;

/// A batch that waits to be advanced, which its holder releases after a while.
async fn quiet_batch(world: &World) -> BatchId {
    world.publish(&small_runbook(&[&["one"], &["two"]])).await;
    world.create(None, &["a", "b"]).await
}

fn holder(node: &str) -> Holder {
    Holder { node: node.to_owned(), process: None, lease: lease::LEASE }
}

fn delayed_at(number: u64) -> Plan {
    Box::new(
        move |point| {
            if point.number == number { Fault::Delay(Duration::from_secs(4)) } else { Fault::None }
        },
    )
}

#[test]
fn a_request_at_any_moment_of_a_release_is_applied() {
    // Every commit of the node is delayed in turn, the releases among them, and the request comes
    // at every half second.
    for number in 1..12 {
        for half_seconds in 0..16 {
            segno_testkit::run(async {
                let world = World::new(all_succeed());
                let batch = quiet_batch(&world).await;
                let slow = FaultStore::new(world.store.clone(), world.clock.clone(), delayed_at(number));
                let process = world.process(slow as Arc<dyn Store>, "node-1").await;
                segno::clock::sleep(&*world.clock, Duration::from_millis(500 * half_seconds)).await;
                world.request(batch, "pause", Action::PauseBatch { reason: None }).await;
                world.pass(SOON_SEC).await;
                let receipt = world.runbooks.receipt(&world.scope, batch, "pause").await.unwrap().unwrap();
                let when = format!("delayed commit {number}, posted after {half_seconds} half seconds");
                assert_eq!(receipt.state, ReceiptState::Applied, "{when}");
                assert!(world.batch(batch).await.paused_at.is_some(), "{when}");
                drop(process);
            });
        }
    }
}

/// The store is away at a commit of records: those of the driver, and not the turns and results of its calls.
fn away_at(number: u64) -> Plan {
    let commits = AtomicU64::new(0);
    Box::new(move |point| {
        let is_it =
            point.operation == "commit_records" && commits.fetch_add(1, Ordering::Relaxed) + 1 == number;
        if is_it { Fault::AwayFor(Duration::from_secs(3)) } else { Fault::None }
    })
}

#[test]
fn a_batch_goes_on_soon_after_the_store_does() {
    for number in 1..8 {
        segno_testkit::run(async {
            let world = World::new(all_succeed());
            world.publish(&small_runbook(&[&["one", "two"]])).await;
            let batch = world.create(Some(world.now()), &["a", "b"]).await;
            let store = FaultStore::new(world.store.clone(), world.clock.clone(), away_at(number));
            let _process = world.process(store as Arc<dyn Store>, "node-1").await;
            for _ in 0..lease::LEASE.as_secs() / 2 {
                world.pass(1).await;
            }
            assert!(world.batch(batch).await.status.is_terminal(), "away at commit {number}");
        });
    }
}

#[test]
fn a_request_whose_commit_takes_long_is_applied_whatever_happened_meanwhile() {
    for half_seconds in 0..16 {
        segno_testkit::run(async {
            let world = World::new(all_succeed());
            let batch = quiet_batch(&world).await;
            let process = world.process(world.store.clone(), "node-1").await;
            segno::clock::sleep(&*world.clock, Duration::from_millis(500 * half_seconds)).await;
            // The writer reads the lease before, and its message is there 4 s later.
            let slow = FaultStore::new(world.store.clone(), world.clock.clone(), delayed_at(1));
            let writer = Runbooks::new(slow as Arc<dyn Store>, Arc::new(Zones::bundled()));
            let pause = RequestedAction::new("pause", Action::PauseBatch { reason: None });
            writer.request(&world.scope, batch, pause).await.unwrap();
            world.pass(SOON_SEC).await;
            let when = format!("posted after {half_seconds} half seconds");
            assert!(world.batch(batch).await.paused_at.is_some(), "{when}");
            drop(process);
        });
    }
}

#[test]
fn a_request_is_applied_when_writer_and_holder_both_die_right_after_their_commits() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let batch = quiet_batch(&world).await;
        let place = BatchPlace::new(world.scope.clone(), batch);
        let process = world.process(world.store.clone(), "node-1").await;
        world.pass(30).await;
        drop(process);
        assert!(!inbox::has_messages(&*world.store, &place).await.unwrap());
        // A holder takes the batch; a writer sees it held and posts; the holder releases and dies
        // before it looks at its inbox again.
        let record = world.store.get_record(LEASES, &place.id()).await.unwrap().unwrap();
        let now_ms = world.store.now_ms().await.unwrap();
        let lease = Lease::acquire(&*world.store, &record, holder("node-2"), now_ms).await.unwrap().unwrap();
        world.request(batch, "pause", Action::PauseBatch { reason: None }).await;
        lease.release(&*world.store, None).await.unwrap();
        assert!(inbox::has_messages(&*world.store, &place).await.unwrap());
        let process = world.process(world.store.clone(), "node-3").await;
        world.pass(REMINDED_SEC).await;
        assert!(world.batch(batch).await.paused_at.is_some());
        drop(process);
    });
}

#[test]
fn a_lease_that_was_taken_by_another_node_fences_the_first() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let batch = quiet_batch(&world).await;
        let place = BatchPlace::new(world.scope.clone(), batch);
        let record = world.store.get_record(LEASES, &place.id()).await.unwrap().unwrap();
        let now_ms = world.store.now_ms().await.unwrap();
        let acquire = async |node: &str, now_ms: u64| {
            let record = world.store.get_record(LEASES, &place.id()).await.unwrap().unwrap();
            Lease::acquire(&*world.store, &record, holder(node), now_ms).await.unwrap()
        };
        let mut first = acquire("node-1", now_ms).await.unwrap();
        assert!(acquire("node-2", now_ms).await.is_none(), "it is held");
        let stale = Lease::acquire(&*world.store, &record, holder("node-2"), now_ms).await.unwrap();
        assert!(stale.is_none(), "another was first");
        let later_ms = now_ms + segno::clock::duration_ms(lease::LEASE);
        let second = acquire("node-2", later_ms).await.unwrap();
        assert!(first.renew(&*world.store, later_ms).await.is_err());
        assert!(first.release(&*world.store, None).await.is_err());
        second.release(&*world.store, None).await.unwrap();
    });
}
