//! A disk that refuses, at every operation in turn: nothing is acknowledged that is not there after reopening, and a full
//! disk is no more than an interruption.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::{Expect, RecordBatch, RecordWrite, Records};
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::disk::{Disk, Fault};
use crate::power_cut::{expectations, open};
use crate::script;
use crate::{block_on, cases};

const STEPS: usize = 12;

#[test]
fn an_error_at_any_operation_acknowledges_nothing_that_is_lost() {
    for seed in 0..cases("SEGNO_REFUSAL_SCRIPTS", 1) {
        block_on(errors(seed));
    }
}

async fn errors(seed: u64) {
    let steps = script::script(seed, STEPS);
    let expected = expectations(&steps).await;
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let store = open(&disk, &clock);
    let opened = disk.done();
    for step in &steps {
        script::run(step, &*store, &clock).await;
    }
    drop(store);
    for at in opened..disk.done() {
        for short in [false, true] {
            let (disk, clock) = (Disk::empty(), VirtualClock::new());
            let store = open(&disk, &clock);
            disk.fail(Some(Fault { at, error: ErrorKind::Other, lasts: true, short, on: "" }));
            let mut acknowledged = 0;
            for step in &steps {
                if script::run(step, &*store, &clock).await.ends_with("Unavailable") {
                    break;
                }
                acknowledged += 1;
            }
            drop(store);
            disk.fail(None);
            let clock = VirtualClock::new();
            let store = open(&disk, &clock);
            let shown = script::show_all(&*store, &clock, script::end_ms()).await;
            let candidates = &expected[acknowledged..(acknowledged + 2).min(expected.len())];
            assert!(candidates.contains(&shown), "seed {seed}, error at {at}, short {short}: {shown}");
        }
    }
}

#[test]
fn a_full_disk_is_an_interruption() {
    block_on(async {
        let steps = script::script(3, STEPS);
        let expected = expectations(&steps).await.pop().unwrap();
        for short in [false, true] {
            let (disk, clock) = (Disk::empty(), VirtualClock::new());
            let options = OpenOptions::default()
                .files(disk.mount())
                .clock(Arc::clone(&clock) as Arc<dyn Clock>)
                .retry_full_disk_after(Duration::from_millis(1));
            let store = EmbeddedStore::open_with("", options).unwrap();
            for step in &steps {
                script::run(step, &*store, &clock).await;
            }
            disk.fail(Some(Fault {
                at: disk.done(),
                error: ErrorKind::StorageFull,
                lasts: true,
                short,
                on: "",
            }));
            let refused = store.commit_records(probe("refused")).await.unwrap_err();
            assert_eq!(refused.kind(), segno::store::ErrorKind::Unavailable);
            assert!(!script::show(&*store).await.is_empty(), "reads go on");
            disk.fail(None);
            // What was refused is written when there is room; until then, every write is refused.
            while let Err(error) = store.commit_records(probe("later")).await {
                assert_eq!(error.kind(), segno::store::ErrorKind::Unavailable);
                tokio::task::yield_now().await;
            }
            store.close();
            let clock = VirtualClock::new();
            let store = open(&disk, &clock);
            for id in ["refused", "later"] {
                assert!(store.get_record("probe", id).await.unwrap().is_some(), "{id}");
            }
            let shown = script::show_all(&*store, &clock, script::end_ms()).await;
            assert_eq!(shown, expected, "short {short}");
        }
    });
}

const RECORDS: usize = 40;

fn on(disk: &Arc<Disk>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(VirtualClock::new())
        .checkpoint_bytes(2_000)
        .retry_full_disk_after(Duration::from_micros(100));
    EmbeddedStore::open_with("", options).unwrap()
}

/// A disk that is full from some operation on, for all files or for the state alone, until it has room again.
async fn full_from(at: usize, on_files: &'static str, short: bool) {
    let what = format!("full from {at} on {on_files:?}, short {short}");
    let disk = Disk::empty();
    let store = on(&disk);
    disk.fail(Some(Fault { at, error: ErrorKind::StorageFull, lasts: true, short, on: on_files }));
    let mut refused = 0;
    for number in 0..RECORDS {
        match store.commit_records(probe(&format!("r{number}"))).await {
            Ok(_) => {}
            Err(error) => {
                assert!(error.to_string().contains("the disk is full"), "{what}: {error}");
                refused += 1;
            }
        }
        // Reads go on, also of what only the state behind the log has.
        let read = store.get_record("probe", "r0").await.unwrap();
        assert!(read.is_some() || refused > 0, "{what}: r0 after {number}");
    }
    disk.fail(None);
    for number in 0..RECORDS {
        let id = format!("later{number}");
        while let Err(error) = store.commit_records(probe(&id)).await {
            assert!(error.to_string().contains("the disk is full"), "{what}: {error}");
            tokio::task::yield_now().await;
        }
    }
    store.close();
    // The last checkpoint has everything: they went on as well.
    let store = on(&crate::tail::last_checkpoint(&disk));
    for number in 0..RECORDS {
        let later = store.get_record("probe", &format!("later{number}")).await.unwrap();
        assert!(later.is_some(), "{what}: later{number} is lost");
    }
    if refused == 0 {
        assert_eq!(store.list_records(all()).await.unwrap().len(), 2 * RECORDS, "{what}");
    }
}

fn all() -> segno::store::ListRecords<'static> {
    segno::store::ListRecords { kind: "probe", limit: 10_000, ..Default::default() }
}

#[test]
fn a_disk_that_is_full_at_any_operation_is_an_interruption() {
    let disk = Disk::empty();
    let store = on(&disk);
    let opened = disk.done();
    block_on(async {
        for number in 0..RECORDS {
            store.commit_records(probe(&format!("r{number}"))).await.unwrap();
        }
    });
    store.close();
    for at in (opened..disk.done()).step_by(cases("SEGNO_FULL_STRIDE", 3) as usize) {
        for on_files in ["", "state"] {
            block_on(full_from(at, on_files, at % 2 == 0));
        }
    }
}

/// A write that shows nowhere else.
pub fn probe(id: &str) -> RecordBatch {
    let write = RecordWrite::Put {
        kind: "probe".to_owned(),
        id: id.to_owned(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::from(vec![7; 100]),
    };
    RecordBatch { writes: vec![write], ..RecordBatch::default() }
}
