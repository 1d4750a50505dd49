//! Costs that do not grow with history: of a reader, and of one fold.

use super::world::{Script, World, eager, event, folded};
use crate::compactor::Options;
use crate::objects::Stores;
use crate::objects::faulty::Faults;
use crate::snapshot::Reader;

/// Calls of a reader that follows a fold which moves nothing into day partitions, with the days that there are.
async fn reads_after_a_fold(events: usize) -> (usize, u64) {
    let world = World::new(Options { archive_runs: 1, ..Options::default() });
    let mut script = Script::new(81);
    let batch = [script.events(events), script.rest()].concat();
    world.writer().append(&batch).await.unwrap();
    let mut compactor = world.open(1).await;
    compactor.fold_waiting().await.unwrap();
    while !compactor.state().rows().runs.is_empty() {
        compactor.fold_waiting().await.unwrap();
    }
    compactor.settle().await.unwrap();
    let store = world.store(Faults::NONE);
    let stores = Stores { ledger: world.objects.clone(), state: store.clone() };
    let reader = Reader::new(World::paths(), &stores, world.clock.clone());
    let last = reader.snapshot(None).await.unwrap().unwrap();
    let pool = event(serde_json::json!({
        "type": "pool_defined", "pool": "p", "slots": 1, "request_id": "1", "requested_by": "ada",
    }));
    let batch = vec![script.envelope(pool)];
    compactor.append(batch).await.unwrap();
    let before = store.reads();
    let newest = reader.snapshot(Some(&last)).await.unwrap().unwrap();
    assert!(newest.manifest().manifest_id > last.manifest().manifest_id);
    assert_eq!(newest.days().collect::<Vec<_>>(), last.days().collect::<Vec<_>>());
    (newest.days().count(), store.reads() - before)
}

#[tokio::test]
async fn a_reader_pays_for_a_fold_and_not_for_the_days_that_there_are() {
    let (few, cost_of_few) = reads_after_a_fold(20).await;
    let (many, cost_of_many) = reads_after_a_fold(2_000).await;
    assert!(few < many, "{few} and {many} days");
    assert_eq!(cost_of_few, cost_of_many);
    assert!(cost_of_many <= 4, "the manifest, and a look for later ones: {cost_of_many}");
}

#[tokio::test]
async fn one_fold_moves_a_bounded_part_of_the_runs_that_have_ended() {
    let world = World::new(Options { archive_runs: 5, archive_rows: 20, ..eager() });
    let mut script = Script::new(82);
    let events = [script.events(600), script.rest()].concat();
    let mut compactor = world.open(1).await;
    compactor.append(events.clone()).await.unwrap();
    let rows_of_runs =
        |rows: &crate::tables::Rows| rows.runs.len() + rows.tasks.len() + rows.dep_satisfaction.len();
    let most_of_one = folded(&events).runs.iter().map(|run| run.tasks_total as usize).max().unwrap();
    let mut left = rows_of_runs(&compactor.state().rows());
    assert!(left > 40, "{left} rows");
    let mut folds = 0;
    while left > 0 {
        compactor.fold_waiting().await.unwrap();
        let now = rows_of_runs(&compactor.state().rows());
        // The last run of a part may be a large one, with its edges.
        assert!(left > now && left - now <= 20 + 1 + most_of_one * most_of_one, "{left} {now}");
        (left, folds) = (now, folds + 1);
        assert_eq!(world.tables().await, folded(&events));
    }
    assert!(folds > 1, "{folds} folds");
    assert_eq!(world.open(1).await.state().rows(), compactor.state().rows());
}
