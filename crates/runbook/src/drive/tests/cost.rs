//! What a step costs, by the number of members. Run by hand: `cargo test -p segno-runbook
//! cost_per_step -- --ignored
//! --nocapture`.

use segno::clock::{Clock as _, SystemClock};
use segno_testkit::faults::{self, FaultStore};

use super::world::{World, all_succeed, entry, small_runbook};
use crate::drive::{Driver, NewBatch};
use crate::rows::BatchStatus;

/// Steps of a member: three phases of four.
const STEPS: [&[&str]; 3] = [&["a1", "a2", "a3", "a4"], &["b1", "b2", "b3", "b4"], &["c1", "c2", "c3", "c4"]];

/// Nanoseconds per step of a batch of so many members, over everything: the driver, the calls and
/// the functions.
fn ns_per_step(members: usize) -> u64 {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let process = world.process(world.store.clone(), "node-1").await;
        world.publish(&small_runbook(&STEPS)).await;
        let entries = (0..members).map(|number| entry(&format!("m{number}@contoso.com"))).collect();
        let begun_ns = SystemClock.monotonic_ns();
        let new = NewBatch {
            runbook: "migrate".to_owned(),
            batch_start_time: Some(world.now()),
            members: entries,
            ..NewBatch::default()
        };
        let batch = world.runbooks.create_batch(&world.scope, new).await.unwrap();
        let created_ns = SystemClock.monotonic_ns();
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        let ended_ns = SystemClock.monotonic_ns();
        drop(process);
        let steps = (members * STEPS.len() * 4) as u64;
        let row = world.batch(batch).await;
        println!(
            "{members} members: created in {} ms, {steps} steps in {} ms, {} µs per step, {} cursor parts",
            (created_ns - begun_ns) / 1_000_000,
            (ended_ns - created_ns) / 1_000_000,
            (ended_ns - created_ns) / steps / 1_000,
            row.parts
        );
        (ended_ns - created_ns) / steps
    })
}

#[test]
fn results_are_committed_in_parts_and_not_one_by_one() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let mut process = world.process(world.store.clone(), "node-1").await;
        process.kill_driver();
        // A driver whose commits are counted, beside functions whose commits are not.
        let counted = FaultStore::new(world.store.clone(), world.clock.clone(), faults::no_faults());
        let services = world.services(counted.clone(), world.functions(world.store.clone()));
        let driver = tokio::spawn(Driver::new(services, "node-1").run(std::future::pending()));
        world.publish(&small_runbook(&[&["one", "two"]])).await;
        let keys: Vec<String> = (0..400).map(|number| format!("m{number}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let batch = world.create(Some(world.now()), &keys).await;
        assert_eq!(world.until_ended(batch).await.status, BatchStatus::Completed);
        assert_eq!(world.instances().await.len(), 800);
        let commits = counted.commits();
        assert!(commits < 60, "{commits} commits for 800 results");
        driver.abort();
        drop(process);
    });
}

#[test]
#[ignore = "takes minutes; run it by hand to measure"]
fn cost_per_step_does_not_grow_with_the_members() {
    let small = ns_per_step(1_000).min(ns_per_step(1_000));
    let large = ns_per_step(10_000);
    assert!(large < small + small / 2, "{large} ns per step of 10,000 members, {small} ns of 1,000");
}
