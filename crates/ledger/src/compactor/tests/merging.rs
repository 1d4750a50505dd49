//! What merging costs, and what is deleted.

use object_store::ObjectStore;

use super::world::{Script, World, eager, folded};
use crate::compactor::{Compactor, Options};
use crate::fold::State;
use crate::objects::faulty::Faults;
use crate::snapshot::Days;

/// How many objects there are whose path has this part.
async fn count(world: &World, part: &str) -> usize {
    use futures_util::StreamExt;
    let listed: Vec<_> = world.objects.list(None).collect().await;
    listed.iter().filter(|meta| meta.as_ref().is_ok_and(|meta| meta.location.as_ref().contains(part))).count()
}

#[tokio::test]
async fn merges_write_at_most_ten_bytes_for_each_new_byte() {
    let world = World::new(Options { archive_runs: 20, join_batches: 16, ..Options::default() });
    let mut script = Script::new(300);
    let store = world.store(Faults::NONE);
    let mut compactor = Compactor::<State>::open(world.setup(&store, 1)).await.unwrap();
    for _ in 0..150 {
        compactor.append(script.events(100)).await.unwrap();
        compactor.settle().await.unwrap();
    }
    let state = |path: &str| path.contains("/state/");
    let new = store.bytes_written(|path| state(path) && path.contains("-L0-"));
    let merged = store.bytes_written(|path| state(path) && !path.contains("-L0-"));
    let events = store.bytes_written(|path| path.contains("/ledger/orchestration/"));
    let segments = store.bytes_written(|path| path.contains("orchestration_segments"));
    println!("{new} bytes of deltas, {merged} of merges; {events} bytes of batches, {segments} of segments");
    assert!(merged <= 10 * new, "{merged} for {new}");
    assert!(segments <= 10 * events, "{segments} for {events}");
    assert!(compactor.catalog.days().count() > 1);
    let most = compactor.catalog.groups().map(|(_, pieces)| pieces.len()).max();
    assert!(most.is_some_and(|most| most <= 24), "{most:?} pieces of one table at one place");
}

#[tokio::test]
async fn files_that_no_manifest_names_are_deleted_after_the_grace_period() {
    let (world, mut script) = (World::new(eager()), Script::new(301));
    let mut compactor = world.open(1).await;
    let mut events = Vec::new();
    for _ in 0..40 {
        let batch = script.events(15);
        events.extend(batch.clone());
        compactor.append(batch).await.unwrap();
        compactor.settle().await.unwrap();
    }
    let old = world.reader().snapshot(None).await.unwrap().unwrap();
    let batch = script.rest();
    events.extend(batch.clone());
    compactor.append(batch).await.unwrap();
    assert!(old.tables(Days::All).await.is_ok(), "a snapshot is readable within the grace period");
    let before = (count(&world, "/state/").await, count(&world, "/manifests/").await);
    world.clock.advance(world.options.grace_ms + 1);
    compactor.fold_waiting().await.unwrap();
    compactor.settle().await.unwrap();
    let after = (count(&world, "/state/").await, count(&world, "/manifests/").await);
    assert!(after.0 < before.0 / 2 && after.1 < before.1 / 4, "{before:?} {after:?}");
    let named = compactor.catalog.files().filter(|(table, _)| *table != "events").count();
    assert_eq!(after.0, named, "nothing is left that no manifest names");
    assert_eq!(world.tables().await, folded(&events));
    // A crash leaves files that no manifest ever named: the sweep finds them once they are old.
    let orphan =
        object_store::path::Path::from("acme/prod/state/orchestration/runs/day=active/orphan.parquet");
    use object_store::{ObjectStoreExt, PutPayload};
    world.objects.put(&orphan, PutPayload::from_static(b"x")).await.unwrap();
    compactor.sweep().await.unwrap();
    assert_eq!(count(&world, "orphan").await, 1, "it may belong to a merge that is under way");
    world.clock.advance(u64::from(u32::MAX) * 1_000);
    compactor.sweep().await.unwrap();
    assert_eq!(count(&world, "orphan").await, 0);
    assert_eq!(world.tables().await, folded(&events));
}

#[tokio::test]
async fn neither_a_fold_nor_a_manifest_costs_more_after_a_long_history() {
    let world = World::new(Options { archive_runs: 5, join_batches: 8, ..Options::default() });
    let mut script = Script::new(302);
    let store = world.store(Faults::NONE);
    let mut compactor = Compactor::<State>::open(world.setup(&store, 1)).await.unwrap();
    let mut reads = Vec::new();
    let mut manifests = Vec::new();
    for at in 0..160 {
        let batch = script.events(10);
        world.writer().append(&batch).await.unwrap();
        let before = store.reads();
        compactor.fold_waiting().await.unwrap();
        reads.push(store.reads() - before);
        manifests.push(serde_json::to_vec(compactor.manifest()).unwrap().len());
        compactor.settle().await.unwrap();
        if at % 8 == 7 {
            assert!(count(&world, "/ledger/orchestration/").await <= 16);
        }
    }
    // A run that is cleared after it left is read back; apart from that a fold lists once, gets what
    // waits, and looks whether the manifest before its own is still there.
    assert!(reads.iter().filter(|reads| **reads == 3).count() > 140, "{reads:?}");
    assert!(reads.iter().all(|reads| *reads < 40), "{reads:?}");
    let sizes = (manifests[..40].iter().max(), manifests[120..].iter().max());
    assert!(sizes.1 <= sizes.0.map(|size| size * 2).as_ref(), "{sizes:?}");
    assert!(compactor.catalog.days().count() > 1);
}

/// Prints how long folds of 400 events take on a local disk whose files are synced:
/// `SEGNO_LEDGER_FOLDS=200 cargo nextest run
/// --release -p segno-ledger folds_on_a_local_disk --no-capture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folds_on_a_local_disk_are_synced_and_read_back() {
    use crate::compactor::Setup;
    use crate::objects::Stores;
    use segno::clock::{Clock, SystemClock};

    let folds = std::env::var("SEGNO_LEDGER_FOLDS").ok().and_then(|folds| folds.parse().ok()).unwrap_or(3);
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(Options::default());
    let setup = |epoch| Setup {
        stores: Stores::directory(directory.path()).unwrap(),
        clock: SystemClock::shared(),
        ..world.setup(&world.store(Faults::NONE), epoch)
    };
    let mut script = Script::new(303);
    (script.going_at_most, script.skips_days) = (300, false);
    let batches: Vec<_> = (0..folds).map(|_| script.events(400)).collect();
    let mut compactor = Compactor::<State>::open(setup(1)).await.unwrap();
    let mut took = Vec::new();
    for batch in &batches {
        let started = SystemClock.monotonic_ns();
        compactor.append(batch.clone()).await.unwrap();
        took.push((SystemClock.monotonic_ns() - started) / 1_000);
    }
    compactor.settle().await.unwrap();
    took.sort_unstable();
    let sum: u64 = took.iter().sum();
    println!(
        "{folds} folds of 400 events: {:.1} folds/s; p50 {} us, p99 {} us; {} runs active, {} days",
        1e6 * took.len() as f64 / sum as f64,
        took[took.len() / 2],
        took[took.len() * 99 / 100],
        compactor.state().rows().runs.len(),
        compactor.catalog.days().count(),
    );
    let started = SystemClock.monotonic_ns();
    let reopened = Compactor::<State>::open(setup(2)).await.unwrap();
    println!("opened again in {} ms", (SystemClock.monotonic_ns() - started) / 1_000_000);
    assert_eq!(reopened.state().rows(), compactor.state().rows());
}
