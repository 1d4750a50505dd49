//! Reading while nothing can be written: a store that no process has open, on a full or read-only disk, and a store that is
//! open and refuses every write.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno::store::{ContentItem, Export, ProviderAdmin, Records, Transfer};
use segno_embedded::{ClosedStore, EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::disk::{Contents, Disk, Fault};
use crate::refusal::probe;
use crate::{block_on, script};

const STEPS: usize = 60;

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>, checkpoint_bytes: usize) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .checkpoint_bytes(checkpoint_bytes)
        .retry_full_disk_after(Duration::from_millis(1));
    EmbeddedStore::open_with("", options).unwrap()
}

async fn collect(export: &mut dyn Export) -> Vec<ContentItem> {
    let mut content = Vec::new();
    loop {
        let items = export.next_items().await.unwrap();
        if items.is_empty() {
            return content;
        }
        content.extend(items);
    }
}

async fn content_of(store: &EmbeddedStore) -> Vec<ContentItem> {
    collect(&mut *store.export().await.unwrap()).await
}

/// Every operation that changes something fails from now on.
fn refuse(disk: &Disk, error: ErrorKind, on: &'static str) {
    disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short: false, on }));
}

/// Stores that were closed, and killed at several points, on a disk of their own.
fn left(seed: u64) -> Vec<Contents> {
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let mut left = Vec::new();
    for checkpoint_bytes in [3_000, usize::MAX] {
        let store = open(&disk, &clock, checkpoint_bytes);
        block_on(async {
            for (number, step) in script::script(seed, STEPS).iter().enumerate() {
                script::run(step, &*store, &clock).await;
                if number % 20 == 19 {
                    left.push(disk.contents());
                }
            }
        });
        store.close();
        left.push(disk.contents());
    }
    left
}

#[test]
fn a_closed_store_is_read_without_a_single_write() {
    for seed in 0..4 {
        for (number, contents) in left(seed).into_iter().enumerate() {
            let what = format!("seed {seed}, store {number}");
            let disk = Disk::with(contents.clone());
            refuse(&disk, ErrorKind::ReadOnlyFilesystem, "");
            let clock = VirtualClock::new();
            let closed = ClosedStore::of_files(disk.mount(), &*clock).unwrap();
            let content = block_on(collect(&mut closed.export().unwrap()));
            let info = closed.info().unwrap();
            assert_eq!(disk.contents(), contents, "{what}: it was changed");
            assert_eq!(disk.done(), 0, "{what}: something was written");

            let store = open(&Disk::with(contents), &clock, usize::MAX);
            assert_eq!(content, block_on(content_of(&store)), "{what}");
            let opened = block_on(store.info()).unwrap();
            assert_eq!((info.instances, info.events), (opened.instances, opened.events), "{what}");
            assert_eq!((info.queues, &info.records), (opened.queues, &opened.records), "{what}");
            let ages = |info: &segno_embedded::Info| (info.oldest_created_at_ms, info.newest_created_at_ms);
            assert_eq!(ages(&info), ages(&opened), "{what}");
        }
    }
}

/// A store that refuses every write still gives out everything that was acknowledged.
async fn reads_go_on(error: ErrorKind, on: &'static str, checkpoint_bytes: usize) {
    let what = format!("{error:?} on {on:?} with a checkpoint after {checkpoint_bytes} bytes");
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let store = open(&disk, &clock, checkpoint_bytes);
    for step in &script::script(11, STEPS) {
        script::run(step, &*store, &clock).await;
    }
    let mut acknowledged = 0;
    refuse(&disk, error, on);
    while acknowledged < 100 && store.commit_records(probe(&format!("p{acknowledged:03}"))).await.is_ok() {
        acknowledged += 1;
    }
    for round in 0..2 {
        let content = content_of(&store).await;
        let probes = content
            .iter()
            .filter(|item| matches!(item, ContentItem::Record(record) if record.kind == "probe"));
        // A write that failed may have been done, unless it was for lack of room.
        let most = acknowledged + usize::from(error == ErrorKind::Other);
        let probes = probes.count();
        assert!((acknowledged..=most).contains(&probes), "{what}, round {round}: {probes} of {acknowledged}");
        let instances = content.iter().filter(|item| matches!(item, ContentItem::Instance(_))).count();
        assert_eq!(instances, store.list_instances().await.unwrap().len(), "{what}, round {round}");
        let info = store.info().await.unwrap();
        assert_eq!(info.instances.total, instances as u64, "{what}, round {round}");
    }
    if error == ErrorKind::StorageFull {
        let refused = store.compact(|_| {}).await.unwrap_err().to_string();
        assert!(refused.contains("the disk is full"), "{what}: {refused}");
        disk.fail(None);
        while store.commit_records(probe("later")).await.is_err() {
            tokio::task::yield_now().await;
        }
        let content = content_of(&store).await;
        assert!(content.len() > acknowledged, "{what}: it goes on");
    }
}

#[test]
fn a_store_that_cannot_write_is_backed_up_all_the_same() {
    for error in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Other] {
        for on in ["", "log-", "state"] {
            for checkpoint_bytes in [2_000, 30_000, usize::MAX] {
                block_on(reads_go_on(error, on, checkpoint_bytes));
            }
        }
    }
}

#[test]
fn filling_a_store_on_a_full_disk_fails_at_once() {
    block_on(async {
        let source = open(&Disk::empty(), &VirtualClock::new(), usize::MAX);
        source.commit_records(probe("one")).await.unwrap();
        let content = content_of(&source).await;
        for on in ["", "state"] {
            let disk = Disk::empty();
            let store = open(&disk, &VirtualClock::new(), usize::MAX);
            refuse(&disk, ErrorKind::StorageFull, on);
            let filled = async {
                let mut import = store.import().await?;
                import.put(content.clone()).await?;
                drop(import.read_back().await?);
                import.finish().await
            };
            let refused = filled.await.unwrap_err().to_string();
            assert!(refused.contains("the disk is full"), "{on:?}: {refused}");
        }
    });
}
