//! A process with functions and a driver dies at each of its commits, before it and after it.
//! Another one takes over, and the batches come to the same rows and the same calls.

use std::sync::Arc;

use segno::store::Store;
use segno_testkit::crash::crash_points;
use segno_testkit::faults::{self, Fault, FaultStore};

use super::scenario::{Outcome, outcome, play, play_cancelled, workers};
use super::world::World;

/// Plays the scenario with a crash, and returns what came of it and the number of commits.
fn run(crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    segno_testkit::run(async {
        let world = World::new(workers());
        play_with(&world, crash).await
    })
}

async fn play_with(world: &World, crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), faults::script(crash));
    let first = world.process(faulty.clone() as Arc<dyn Store>, "node-1").await;
    let scenario = async { [play(world).await, play_cancelled(world).await] };
    tokio::pin!(scenario);
    let batches = tokio::select! {
        biased;
        batches = &mut scenario => batches,
        () = faulty.died() => {
            drop(first);
            let _second = world.process(world.store.clone(), "node-2").await;
            scenario.await
        }
    };
    // What was told to stop comes to its end.
    world.pass(120).await;
    (outcome(world, &batches).await, faulty.commits())
}

/// Parts of the crashes, which run at the same time.
const PARTS: usize = 3;

fn check_part(part: usize) {
    let (expected, commits) = run(None);
    assert!(commits > 100, "{commits}");
    for (number, fault) in crash_points(commits).skip(part).step_by(PARTS) {
        let (outcome, _) = run(Some((number, fault)));
        outcome.check(&expected, &format!("{fault:?} at commit {number} of {commits}"));
    }
}

#[test]
fn a_process_that_dies_at_a_commit_loses_nothing_and_does_nothing_twice_part_1() {
    check_part(0);
}

#[test]
fn a_process_that_dies_at_a_commit_loses_nothing_and_does_nothing_twice_part_2() {
    check_part(1);
}

#[test]
fn a_process_that_dies_at_a_commit_loses_nothing_and_does_nothing_twice_part_3() {
    check_part(2);
}
