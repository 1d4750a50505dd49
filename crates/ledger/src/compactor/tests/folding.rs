//! Folding on a store without faults.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload};
use segno::store::ErrorKind;

use super::world::{Script, World, batches, eager, folded, seeds};
use crate::compactor::{Compactor, Options};
use crate::event::Envelope;
use crate::fold::State;
use crate::manifest::{Manifests, Outcome};
use crate::objects::faulty::Faults;
use crate::objects::{Objects, Stores};
use crate::snapshot::{Days, Filter, Reader};
use crate::tables::{OutboxRow, RunRow, TaskRow};

/// Appends batches and folds every few of them.
async fn fold_all(world: &World, compactor: &mut Compactor<State>, batches: &[Vec<Envelope>]) {
    let mut random = fastrand::Rng::with_seed(batches.len() as u64);
    for batch in batches {
        world.writer().append(batch).await.unwrap();
        if random.bool() {
            compactor.fold_waiting().await.unwrap();
        }
    }
    compactor.fold_waiting().await.unwrap();
}

#[tokio::test]
async fn incremental_folds_match_full_replay_of_event_chain() {
    for seed in seeds(0, 3) {
        let (world, mut script) = (World::new(eager()), Script::new(seed));
        let events = [script.events(300), script.rest()].concat();
        let mut compactor = world.open(1).await;
        fold_all(&world, &mut compactor, &batches(&events, &mut script.random)).await;
        compactor.settle().await.unwrap();
        let expected = folded(&events);
        assert_eq!(world.tables().await, expected, "seed {seed}: as readers see it");
        assert_eq!(compactor.replay().await.unwrap().rows(), expected, "seed {seed}: rebuilt from the log");
        assert!(compactor.catalog.days().count() > 0, "seed {seed}: finished runs are in day partitions");
        assert!(compactor.state().rows().runs.len() < expected.runs.len(), "seed {seed}");
    }
}

#[tokio::test]
async fn a_cold_compactor_decides_as_one_that_never_stopped() {
    for seed in seeds(20, 2) {
        let (warm, cold, mut script) = (World::new(eager()), World::new(eager()), Script::new(seed));
        let mut compactor = warm.open(1).await;
        for epoch in 1..10 {
            let batch = script.events(20);
            warm.writer().append(&batch).await.unwrap();
            cold.writer().append(&batch).await.unwrap();
            compactor.fold_waiting().await.unwrap();
            let mut reopened = cold.open(epoch).await;
            reopened.fold_waiting().await.unwrap();
            assert_eq!(reopened.state().rows(), compactor.state().rows(), "seed {seed}, epoch {epoch}");
            reopened.settle().await.unwrap();
        }
        assert_eq!(cold.tables().await, warm.tables().await, "seed {seed}");
    }
}

#[tokio::test]
async fn appending_and_folding_in_one_go_is_the_same() {
    let (world, mut script) = (World::new(eager()), Script::new(30));
    let events = [script.events(200), script.rest()].concat();
    let mut compactor = world.open(1).await;
    for batch in batches(&events, &mut script.random) {
        let published = compactor.append(batch.clone()).await.unwrap();
        assert_eq!((published.events, published.wrote), (batch.len(), true));
    }
    assert_eq!(compactor.fold_waiting().await.unwrap().events, 0, "nothing is folded twice");
    compactor.settle().await.unwrap();
    assert_eq!(world.tables().await, folded(&events));
    assert_eq!(compactor.replay().await.unwrap().rows(), folded(&events));
    let error = compactor.append(Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn publish_manifest_uses_cas() {
    let world = World::new(eager());
    let clock = Arc::clone(&world.clock) as Arc<dyn segno::clock::Clock>;
    let manifests = Manifests::new(Objects::new(world.objects.clone(), clock), World::paths());
    let compactor = world.open(1).await;
    let mut next = compactor.next_manifest(1);
    assert_eq!(manifests.publish(&next).await.unwrap(), Outcome::Published);
    assert_eq!(
        manifests.publish(&next).await.unwrap(),
        Outcome::Published,
        "publishing it again changes nothing"
    );
    next.published_at = 2;
    assert_eq!(manifests.publish(&next).await.unwrap(), Outcome::Overtaken);
    assert_eq!(manifests.newest(0).await.unwrap().unwrap().published_at, 1);
}

#[tokio::test]
async fn compact_events_fenced_rejects_stale_lock_holder() {
    let (world, mut script) = (World::new(eager()), Script::new(31));
    let mut stale = world.open(1).await;
    let first = script.events(10);
    stale.append(first.clone()).await.unwrap();
    let mut holder = world.open(2).await;
    let second = script.events(10);
    let error = stale.append(second.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockLost, "{error}");
    assert!(error.to_string().contains("epoch 1 is fenced by epoch 2"), "{error}");
    assert_eq!(stale.fold_waiting().await.unwrap_err().kind(), ErrorKind::LockLost, "and for good");
    let reopened = Compactor::<State>::open(world.setup(&world.store(Faults::NONE), 1)).await;
    assert_eq!(reopened.err().map(|error| error.kind()), Some(ErrorKind::LockLost));
    // What the stale holder had put into the log is not lost.
    assert_eq!(holder.fold_waiting().await.unwrap().events, 10);
    assert_eq!(world.tables().await, folded(&[first, second].concat()));
}

#[tokio::test]
async fn a_holder_that_stood_still_beyond_the_grace_period_is_fenced() {
    let (world, mut script) = (World::new(eager()), Script::new(33));
    let mut stale = world.open(1).await;
    let mut never_published = world.open(1).await;
    let mut events = script.events(10);
    stale.append(events.clone()).await.unwrap();
    let mut holder = world.open(2).await;
    for _ in 0..8 {
        let batch = script.events(20);
        events.extend(batch.clone());
        holder.append(batch).await.unwrap();
        world.clock.advance(world.options.grace_ms + 1);
        holder.settle().await.unwrap();
    }
    // The numbers that the others would take next are absent again.
    let late = script.events(5);
    for compactor in [&mut stale, &mut never_published] {
        let error = compactor.append(late.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockLost, "{error}");
    }
    assert_eq!(world.tables().await, folded(&events));
    events.extend(late);
    assert_eq!(holder.fold_waiting().await.unwrap().events, 5);
    holder.settle().await.unwrap();
    assert_eq!(world.tables().await, folded(&events));
    assert_eq!(holder.replay().await.unwrap().rows(), folded(&events));
}

#[tokio::test]
async fn deleted_dispatch_outbox_rows_do_not_resurrect_from_l0_deltas() {
    let world = World::new(Options { archive_runs: 1_000, ..eager() });
    let mut script = Script::new(32);
    let events = [script.events(200), script.rest()].concat();
    let mut compactor = world.open(1).await;
    let filter = Filter { days: Days::All, key: Vec::new() };
    let mut seen = 0;
    for at in 0..events.len() / 8 {
        compactor.append(events[at * 8..at * 8 + 8].to_vec()).await.unwrap();
        let snapshot = world.reader().snapshot(None).await.unwrap().unwrap();
        let outbox: Vec<OutboxRow> = snapshot.rows(&filter).await.unwrap();
        assert_eq!(outbox, folded(&events[..at * 8 + 8]).dispatch_outbox);
        assert_eq!(world.open(1).await.state().rows().dispatch_outbox, outbox, "nor in a cold compactor");
        seen = seen.max(outbox.len());
    }
    assert!(seen > 0);
}

#[tokio::test]
async fn rebuild_run_takes_in_an_event_that_arrives_below_the_watermark() {
    let mut rebuilt = 0;
    for seed in seeds(40, 3) {
        let (world, mut script) = (World::new(eager()), Script::new(seed));
        let events = [script.events(150), script.rest()].concat();
        let mut waiting = batches(&events, &mut script.random);
        let mut compactor = world.open(1).await;
        // A batch in eight arrives after the following ones.
        let mut held_back = Vec::new();
        for batch in waiting.drain(..) {
            if script.random.u8(0..8) == 0 {
                held_back.push(batch);
                continue;
            }
            world.writer().append(&batch).await.unwrap();
            compactor.fold_waiting().await.unwrap();
            if script.random.u8(0..4) == 0
                && let Some(late) = held_back.pop()
            {
                world.writer().append(&late).await.unwrap();
                rebuilt += compactor.fold_waiting().await.unwrap().rebuilt_runs;
            }
        }
        for late in held_back {
            world.writer().append(&late).await.unwrap();
            rebuilt += compactor.fold_waiting().await.unwrap().rebuilt_runs;
        }
        compactor.settle().await.unwrap();
        let expected = folded(&events);
        assert_eq!(world.tables().await, expected, "seed {seed}");
        assert_eq!(compactor.replay().await.unwrap().rows(), expected, "seed {seed}");
    }
    assert!(rebuilt > 0, "nothing was late");
}

#[tokio::test]
async fn an_idle_compactor_writes_nothing() {
    let (world, mut script) = (World::new(eager()), Script::new(60));
    let store = world.store(Faults::NONE);
    let mut compactor = Compactor::<State>::open(world.setup(&store, 1)).await.unwrap();
    let events = [script.events(100), script.rest()].concat();
    fold_all(&world, &mut compactor, &batches(&events, &mut script.random)).await;
    // What is due later is done; then nothing is.
    while let Some(due_ms) = compactor.next_due_ms() {
        let now_ms = segno::clock::Clock::now_ms(&*world.clock);
        world.clock.advance(due_ms.saturating_sub(now_ms));
        compactor.fold_waiting().await.unwrap();
        compactor.settle().await.unwrap();
    }
    assert_eq!(compactor.state().rows().runs, [], "finished runs have left");
    let writes = store.writes();
    for _ in 0..20 {
        world.clock.advance(3_600_000);
        let published = compactor.fold_waiting().await.unwrap();
        assert!(!published.wrote && published.events == 0);
        compactor.settle().await.unwrap();
        assert_eq!(compactor.checked_at_ms(), segno::clock::Clock::now_ms(&*world.clock));
    }
    assert_eq!(store.writes(), writes);
    assert_eq!(world.tables().await, folded(&events));
}

#[tokio::test]
async fn objects_that_are_no_batches_are_moved_out_of_the_log_and_reported() {
    let (world, mut script) = (World::new(eager()), Script::new(61));
    let mut compactor = world.open(1).await;
    let good = script.events(5);
    world.writer().append(&good).await.unwrap();
    let foreign = script.events(3);
    let log = World::paths().log();
    let mut other_tenant = foreign.clone();
    other_tenant.iter_mut().for_each(|event| event.tenant_id = "evil".into());
    for (name, bytes) in [
        ("notes.txt".to_owned(), b"hello".to_vec()),
        ("deep/nested.json".to_owned(), b"[]".to_vec()),
        (format!("{}.json", foreign[0].event_id), Envelope::encode_batch(&other_tenant)),
        (format!("{}.json", foreign[1].event_id), Envelope::encode_batch(&foreign)),
        (format!("{}.json", foreign[2].event_id), b"[{\"event_id\":".to_vec()),
    ] {
        let path = object_store::path::Path::from(format!("{log}/{name}"));
        world.objects.put(&path, PutPayload::from_bytes(Bytes::from(bytes))).await.unwrap();
    }
    let published = compactor.fold_waiting().await.unwrap();
    assert_eq!((published.events, published.quarantined.len()), (5, 5), "{:?}", published.quarantined);
    let problems: Vec<&str> = published.quarantined.iter().map(|(_, problem)| problem.as_str()).collect();
    for says in ["evil/prod", "its name is", "EOF", "not that of a batch"] {
        assert!(problems.iter().any(|problem| problem.contains(says)), "{says}: {problems:?}");
    }
    assert_eq!(compactor.fold_waiting().await.unwrap().quarantined, [], "they are gone from the log");
    assert_eq!(world.tables().await, folded(&good));
}

#[tokio::test]
async fn test_controller_never_reads_ledger() {
    let (world, mut script) = (World::new(eager()), Script::new(62));
    let mut compactor = world.open(1).await;
    let events = [script.events(120), script.rest()].concat();
    fold_all(&world, &mut compactor, &batches(&events, &mut script.random)).await;
    // A reader whose store of the log fails at every call sees everything that a manifest names.
    let no_ledger = world.store(Faults::NONE);
    no_ledger.crash_after(0);
    let stores = Stores { ledger: no_ledger.clone(), state: world.objects.clone() };
    let reader = Reader::new(World::paths(), &stores, world.clock.clone());
    let snapshot = reader.snapshot(None).await.unwrap().unwrap();
    let mut rows = snapshot.tables(Days::All).await.unwrap();
    rows.sort();
    assert_eq!(rows, folded(&events));
    assert_eq!(no_ledger.reads(), 0);
    // Batches that wait are not visible: controllers decide by what is published.
    let waiting = script.events(5);
    world.writer().append(&waiting).await.unwrap();
    let again = reader.snapshot(Some(&snapshot)).await.unwrap().unwrap();
    assert_eq!(again.manifest(), snapshot.manifest());
    assert!(again.has_event(events.last().unwrap().event_id) && !again.has_event(waiting[0].event_id));
}

#[tokio::test]
async fn rows_are_read_by_key_and_by_day() {
    let (world, mut script) = (World::new(eager()), Script::new(63));
    let mut compactor = world.open(1).await;
    let events = [script.events(400), script.rest()].concat();
    fold_all(&world, &mut compactor, &batches(&events, &mut script.random)).await;
    compactor.settle().await.unwrap();
    let expected = folded(&events);
    let snapshot = world.reader().snapshot(None).await.unwrap().unwrap();
    let days: Vec<String> = snapshot.days().map(str::to_owned).collect();
    assert!(days.len() > 1, "{days:?}");
    let run_id = &expected.runs[3].run_id;
    let mut run = snapshot.run(run_id, Days::All).await.unwrap();
    run.sort();
    let of_run = |row: &&TaskRow| row.run_id == *run_id;
    assert_eq!(run.runs, expected.runs[3..4]);
    assert_eq!(run.tasks, expected.tasks.iter().filter(of_run).cloned().collect::<Vec<_>>());
    let key = [run_id.clone(), "task-0".into()];
    let task: Option<TaskRow> = snapshot.row(&key, Days::All).await.unwrap();
    assert_eq!(task.as_ref(), run.tasks.first());
    let runs = async |days| snapshot.rows::<RunRow>(&Filter { days, key: Vec::new() }).await.unwrap();
    let active = runs(Days::None).await;
    let of_first_day = runs(Days::Range(days[0].clone(), days[0].clone())).await;
    let archived: Vec<&RunRow> = of_first_day.iter().filter(|run| !active.contains(run)).collect();
    assert!(!archived.is_empty() && archived.len() < expected.runs.len() - active.len());
    assert!(archived.iter().all(|run| crate::log::day_of(run.triggered_at) == days[0]));
    let none: Option<RunRow> = snapshot.row(&["no such run".into()], Days::All).await.unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_run_that_is_cleared_after_it_left_comes_back_and_leaves_again() {
    let (world, mut script) = (World::new(Options { archive_runs: 1, ..eager() }), Script::new(64));
    let mut compactor = world.open(1).await;
    let mut events = [script.events(30), script.rest()].concat();
    compactor.append(events.clone()).await.unwrap();
    assert_eq!(compactor.state().rows().runs, []);
    let run_id = folded(&events).runs[0].run_id.clone();
    let clear = |request: &str, run_id: &str| {
        super::world::event(
            serde_json::json!({"type": "task_cleared", "run_id": run_id, "task_keys": ["task-0"],
            "request_id": request, "requested_by": "ada"}),
        )
    };
    for (data, active) in [(clear("1", "no such run"), 0), (clear("2", &run_id), 1), (clear("2", &run_id), 1)]
    {
        let batch = vec![script.envelope(data)];
        events.extend(batch.clone());
        compactor.append(batch).await.unwrap();
        assert_eq!(compactor.state().rows().runs.len(), active);
        assert_eq!(world.tables().await, folded(&events));
        assert_eq!(world.open(1).await.state().rows(), compactor.state().rows());
    }
    let cancel = serde_json::json!({"type": "run_cancel_requested", "run_id": run_id, "requested_by": "ada", "generation": 1});
    let batch = vec![script.envelope(super::world::event(cancel))];
    events.extend(batch.clone());
    compactor.append(batch).await.unwrap();
    assert_eq!(compactor.state().rows().runs, [], "it ended again");
    assert_eq!(world.tables().await, folded(&events));
}
