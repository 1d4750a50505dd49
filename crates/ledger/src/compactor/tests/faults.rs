//! Faults, crashes and rivals: nothing is lost, nothing is folded twice.

use segno::store::ErrorKind;

use super::world::{Script, World, batches, eager, folded, seeds};
use crate::compactor::Compactor;
use crate::event::Envelope;
use crate::fold::State;
use crate::log::LogWriter;
use crate::objects::Objects;
use crate::objects::faulty::Faults;

/// Opens until the store lets it; an error may be any that faults explain.
async fn open(world: &World, faults: Faults, epoch: u64) -> Compactor<State> {
    for _ in 0..50 {
        match Compactor::open(world.setup(&world.store(faults), epoch)).await {
            Ok(compactor) => return compactor,
            Err(error) => assert!(is_explained(error.kind()), "{error}"),
        }
    }
    panic!("the store never let a compactor open");
}

fn is_explained(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::NotFound)
}

async fn append(world: &World, faults: Faults, batch: &[Envelope]) {
    let writer = LogWriter::new(Objects::new(world.store(faults), world.clock.clone()), World::paths());
    while let Err(error) = writer.append(batch).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn two_racing_compactors_with_faults_end_in_the_tables_of_a_single_fold() {
    for seed in seeds(100, 4) {
        let (world, mut script) = (World::new(eager()), Script::new(seed));
        let events = [script.events(100), script.rest()].concat();
        let mut rivals = [open(&world, Faults::ALL, 7).await, open(&world, Faults::ALL, 7).await];
        for batch in batches(&events, &mut script.random) {
            append(&world, Faults::ALL, &batch).await;
            for _ in 0..script.random.usize(0..3) {
                let rival = script.random.usize(0..2);
                if script.random.u8(0..20) == 0 {
                    rivals[rival] = open(&world, Faults::ALL, 7).await;
                }
                if let Err(error) = rivals[rival].fold_waiting().await {
                    assert!(is_explained(error.kind()), "seed {seed}: {error}");
                }
            }
        }
        drop(rivals);
        let mut last = world.open(7).await;
        while last.fold_waiting().await.unwrap().events > 0 {}
        last.settle().await.unwrap();
        let expected = folded(&events);
        assert_eq!(world.tables().await, expected, "seed {seed}");
        assert_eq!(last.replay().await.unwrap().rows(), expected, "seed {seed}: rebuilt from the log");
    }
}

#[tokio::test]
async fn a_crash_between_any_two_writes_loses_nothing() {
    let mut crashes = 0;
    // Every write by command, some of them in the gate.
    let stride = if std::env::var_os("SEGNO_LEDGER_SEEDS").is_some() { 1 } else { 13 };
    for writes in (0..).step_by(stride) {
        let (world, mut script) = (World::new(eager()), Script::new(200));
        let events = [script.events(60), script.rest()].concat();
        let store = world.store(Faults::NONE);
        store.crash_after(writes);
        let first = async {
            let mut compactor = Compactor::<State>::open(world.setup(&store, 1)).await?;
            for batch in events.chunks(9) {
                compactor.append(batch.to_vec()).await?;
            }
            compactor.settle().await
        };
        let is_crashed = first.await.is_err();
        crashes += u64::from(is_crashed);
        let mut second = world.open(2).await;
        // A writer that does not know the outcome appends again.
        for batch in events.chunks(9) {
            world.writer().append(batch).await.unwrap();
        }
        while second.fold_waiting().await.unwrap().events > 0 {}
        second.settle().await.unwrap();
        let expected = folded(&events);
        assert_eq!(world.tables().await, expected, "crash after {writes} writes");
        assert_eq!(second.replay().await.unwrap().rows(), expected, "crash after {writes} writes");
        second.sweep().await.unwrap();
        assert_eq!(world.tables().await, expected, "swept after a crash after {writes} writes");
        if !is_crashed {
            break;
        }
    }
    assert!(crashes > 8, "{crashes}");
}

#[tokio::test]
async fn an_append_by_a_compactor_whose_files_are_gone_is_not_lost() {
    let (world, mut script) = (World::new(eager()), Script::new(210));
    let mut events = [script.events(60), script.rest()].concat();
    let mut behind = world.open(1).await;
    behind.append(events.clone()).await.unwrap();
    let run_id = folded(&events).runs[0].run_id.clone();
    // A rival of the same epoch goes on until nothing is left that the first one knows.
    let mut ahead = world.open(1).await;
    for _ in 0..12 {
        let batch = script.events(40);
        events.extend(batch.clone());
        ahead.append(batch).await.unwrap();
        ahead.settle().await.unwrap();
        world.clock.advance(world.options.grace_ms + 1);
    }
    let clear = serde_json::json!({"type": "task_cleared", "run_id": run_id, "task_keys": ["task-0"],
        "request_id": "1", "requested_by": "ada"});
    let batch = vec![script.envelope(super::world::event(clear))];
    events.extend(batch.clone());
    behind.append(batch).await.unwrap();
    assert_eq!(world.tables().await, folded(&events));
}
