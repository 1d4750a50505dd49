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
    for seed in 0..cases("SEGNO_REFUSAL_SCRIPTS", 2) {
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
            disk.fail(Some(Fault { at, error: ErrorKind::Other, lasts: true, short }));
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
            disk.fail(Some(Fault { at: disk.done(), error: ErrorKind::StorageFull, lasts: true, short }));
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

/// A write that shows nowhere else.
fn probe(id: &str) -> RecordBatch {
    let write = RecordWrite::Put {
        kind: "probe".to_owned(),
        id: id.to_owned(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::new(),
    };
    RecordBatch { writes: vec![write], ..RecordBatch::default() }
}
