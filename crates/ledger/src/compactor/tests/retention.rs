//! Retention: day partitions of runs that ended long ago leave the tables, and their files are deleted after the grace period.

use segno::clock::Clock as _;

use super::world::{START_MS, Script, World, eager};
use crate::compactor::{Compactor, Options};
use crate::fold::State;
use crate::snapshot::{Days, Filter};
use crate::tables::{RunRow, TaskRow};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

async fn runs(world: &World) -> usize {
    let snapshot = world.reader().snapshot(None).await.unwrap().unwrap();
    let all = Filter { days: Days::All, key: Vec::new() };
    let tasks = snapshot.rows::<TaskRow>(&all).await.unwrap().len();
    let runs = snapshot.rows::<RunRow>(&all).await.unwrap().len();
    assert_eq!(tasks == 0, runs == 0, "both, or neither");
    runs
}

/// Everything that has ended is in day partitions.
async fn settled(world: &World) -> Compactor<State> {
    let mut compactor = world.open(1).await;
    while let Some(due_ms) = compactor.next_due_ms() {
        world.clock.advance(due_ms.saturating_sub(world.clock.now_ms()));
        compactor.fold_waiting().await.unwrap();
        compactor.settle().await.unwrap();
    }
    compactor
}

#[tokio::test]
async fn day_partitions_are_removed_after_their_retention_and_their_files_after_the_grace_period() {
    let retention_ms = 7 * DAY_MS;
    let world = World::new(Options { run_retention_ms: Some(retention_ms), ..eager() });
    let mut script = Script::new(71);
    let events = [script.events(120), script.rest()].concat();
    world.writer().append(&events).await.unwrap();
    world.open(1).await.fold_waiting().await.unwrap();
    let mut compactor = settled(&world).await;
    let before = runs(&world).await;
    assert!(before > 0 && compactor.state().rows().runs.is_empty());
    let expiry_ms = compactor.next_expiry_ms().expect("there are day partitions");
    assert!(expiry_ms > START_MS + retention_ms);
    let old = world.reader().snapshot(None).await.unwrap().unwrap();
    let files: Vec<String> = old.files("runs").into_iter().map(str::to_owned).collect();
    let archived = files.iter().filter(|file| !file.contains("day=active")).count();
    assert!(archived > 0, "{files:?}");

    world.clock.advance(expiry_ms - 1 - world.clock.now_ms());
    compactor.fold_waiting().await.unwrap();
    assert_eq!(runs(&world).await, before, "not before its time");

    let all = Filter { days: Days::All, key: Vec::new() };
    // The last run of a day may have ended after the day: then it is due later.
    while let Some(due_ms) = compactor.next_expiry_ms() {
        world.clock.advance(due_ms.saturating_sub(world.clock.now_ms()));
        compactor.fold_waiting().await.unwrap();
    }
    assert_eq!(runs(&world).await, 0);
    assert_eq!(compactor.next_expiry_ms(), None);
    let newest = world.reader().snapshot(None).await.unwrap().unwrap();
    assert!(newest.manifest().expired_through.is_some());

    world.clock.advance(compactor.manifest().l0_limits.max_age_ms + 2 * 60_000);
    compactor.fold_waiting().await.unwrap();
    compactor.settle().await.unwrap();
    assert!(old.rows::<RunRow>(&all).await.is_err(), "their files are deleted after the grace period");
    // A cold compactor agrees, and the log still has the events.
    assert_eq!(world.open(1).await.next_expiry_ms(), None);
    assert_eq!(runs(&world).await, 0);
}

#[tokio::test]
async fn without_a_retention_partitions_stay() {
    let world = World::new(Options { run_retention_ms: None, ..eager() });
    let mut script = Script::new(72);
    let events = [script.events(60), script.rest()].concat();
    world.writer().append(&events).await.unwrap();
    world.open(1).await.fold_waiting().await.unwrap();
    let mut compactor = settled(&world).await;
    let before = runs(&world).await;
    world.clock.advance(400 * DAY_MS);
    assert_eq!(compactor.next_expiry_ms(), None);
    compactor.fold_waiting().await.unwrap();
    assert_eq!((runs(&world).await, before > 0), (before, true));
}
