//! Disk space that is not needed any more is given back, while the store is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use segno::store::{ContentItem, Expect, ListRecords, RecordBatch, RecordWrite, Records, Transfer};
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::block_on;
use crate::disk::Disk;

const RECORDS: usize = 1_000;
const KEPT: usize = 50;
const BODY_BYTES: usize = 4_000;

/// A quarter of what the records take: whatever was in the file when it was compacted for the first time, it is
/// compacted again as long as it is larger than that.
const COMPACT_ABOVE: u64 = (RECORDS * BODY_BYTES / 4) as u64;

fn open(disk: &Arc<Disk>) -> Arc<EmbeddedStore> {
    open_at(disk, VirtualClock::new())
}

fn open_at(disk: &Arc<Disk>, clock: Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(clock)
        .checkpoint_bytes(50_000)
        .compact_above(COMPACT_ABOVE);
    EmbeddedStore::open_with("", options).unwrap()
}

fn put(number: usize) -> RecordWrite {
    RecordWrite::Put {
        kind: "big".to_owned(),
        id: format!("{number:05}"),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::from(vec![number as u8; BODY_BYTES]),
    }
}

fn delete(number: usize) -> RecordWrite {
    RecordWrite::Delete { kind: "big".to_owned(), id: format!("{number:05}"), expect: Expect::Anything }
}

async fn commit(store: &EmbeddedStore, write: RecordWrite) {
    store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.unwrap();
}

async fn fill_and_delete(store: &EmbeddedStore) {
    for number in 0..RECORDS {
        commit(store, put(number)).await;
    }
    for number in KEPT..RECORDS {
        commit(store, delete(number)).await;
    }
}

async fn check_kept(store: &EmbeddedStore) {
    let all = ListRecords { kind: "big", limit: RECORDS, ..ListRecords::default() };
    let kept = store.list_records(all).await.unwrap();
    assert_eq!(kept.len(), KEPT);
    for (number, record) in kept.iter().enumerate() {
        assert_eq!(
            (&*record.id, &record.body[..]),
            (&*format!("{number:05}"), &[number as u8; BODY_BYTES][..])
        );
    }
}

fn state_bytes(disk: &Disk) -> usize {
    disk.contents().files().find(|(name, _)| *name == "state.redb").unwrap().1
}

#[test]
fn space_is_given_back_when_asked() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        fill_and_delete(&store).await;
        let done = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&done);
        let progress = move |progress: segno_embedded::CompactProgress| {
            assert!(progress.rows_done <= progress.rows_total);
            seen.store(progress.rows_done, Ordering::Relaxed);
        };
        let report = store.compact(progress).await.unwrap();
        assert!(report.bytes_after <= report.bytes_before, "{report:?}");
        assert!(state_bytes(&disk) < 2_000_000, "{} for {KEPT} records", state_bytes(&disk));
        assert!(done.load(Ordering::Relaxed) >= KEPT as u64, "it tells how far it is");
        check_kept(&store).await;
        // The store goes on with the new file.
        commit(&store, put(KEPT)).await;
        commit(&store, delete(KEPT)).await;
        store.close();
        check_kept(&open(&disk)).await;
    });
}

#[test]
fn space_is_given_back_by_itself() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        for number in 0..RECORDS {
            commit(&store, put(number)).await;
        }
        store.close();
        let before = state_bytes(&disk);
        assert!(before > RECORDS * BODY_BYTES, "{before}");
        let clock = VirtualClock::new();
        let store = open_at(&disk, Arc::clone(&clock));
        for number in KEPT..RECORDS {
            commit(&store, delete(number)).await;
        }
        while state_bytes(&disk) > before / 4 {
            // Changes that are a minute old make a checkpoint, and a checkpoint looks for unused space.
            clock.advance(Duration::from_secs(60));
            commit(&store, put(0)).await;
        }
        check_kept(&store).await;
        store.close();
        check_kept(&open(&disk)).await;
    });
}

#[test]
fn a_backup_goes_on_while_the_file_that_it_reads_is_replaced() {
    block_on(async {
        let store = open(&Disk::empty());
        for number in 0..RECORDS {
            commit(&store, put(number)).await;
        }
        let mut export = store.export().await.unwrap();
        let mut records = 0;
        for round in 0.. {
            let items = export.next_items().await.unwrap();
            if items.is_empty() {
                break;
            }
            records += items.iter().filter(|item| matches!(item, ContentItem::Record(_))).count();
            if round == 0 {
                store.compact(|_| {}).await.unwrap();
                // A checkpoint is when files that nothing reads any more are let go.
                commit(&store, put(RECORDS)).await;
                store.compact(|_| {}).await.unwrap();
            }
        }
        assert_eq!(records, RECORDS);
    });
}

#[test]
fn what_changes_during_a_compaction_is_in_the_new_file() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        for number in 0..RECORDS {
            commit(&store, put(number)).await;
        }
        let compacting = Arc::clone(&store);
        let compaction = tokio::spawn(async move { compacting.compact(|_| {}).await });
        tokio::task::yield_now().await;
        // Before and behind the place that the copy has reached, whatever that is.
        for number in (KEPT..RECORDS).rev().step_by(2).chain((KEPT..RECORDS).step_by(2)) {
            commit(&store, delete(number)).await;
        }
        for number in KEPT..RECORDS {
            commit(&store, delete(number)).await;
        }
        compaction.await.unwrap().unwrap();
        check_kept(&store).await;
        store.close();
        check_kept(&open(&disk)).await;
    });
}
