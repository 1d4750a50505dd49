//! Locks that outlive the process: durable before they are handed out, in the commit that
//! makes the activity if the holder waits for it, and whole after any power cut.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::block_on;
use crate::disk::{Disk, Fault};
use crate::early::waits;
use crate::refusal::probe;

const LEASE: Duration = Duration::from_secs(30);
const IMAGES_PER_CUT: usize = 8;

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .retry_full_disk_after(Duration::from_micros(100));
    EmbeddedStore::open_with("", options).unwrap()
}

fn activity(activity_id: u64) -> WorkerMessage {
    WorkerMessage {
        activity: ScheduledActivityIdentifier { instance: "a".to_owned(), execution_id: 1, activity_id },
        session_id: None,
        tag: Some("far".to_owned()),
        visible_at_ms: None,
        body: Bytes::from_static(b"work"),
    }
}

/// Leases up to so many activities for a worker elsewhere, or waits for them.
async fn lease(
    store: &EmbeddedStore,
    max_items: usize,
    poll_timeout: Duration,
) -> Result<Vec<LockedWorkItem>, ProviderError> {
    let tag_filter = &TagFilter::tags(["far"]);
    let life = LockLife::Durable;
    let request =
        FetchWorkItems { max_items, lock_timeout: LEASE, poll_timeout, session: None, tag_filter, life };
    store.fetch_work_items(request).await
}

/// What a worker of the process itself gets.
async fn fetch(store: &EmbeddedStore) -> Option<LockedWorkItem> {
    store.fetch_work_item(LEASE, Duration::ZERO, None, &TagFilter::Any).await.unwrap()
}

#[test]
fn the_lock_for_a_fetch_that_waits_joins_the_commit_that_makes_the_activity() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let fetching = waits!(lease(&store, 9, LEASE));
        let held = disk.hold_syncs();
        let enqueue = waits!(store.enqueue_for_worker(activity(1)));
        held.wait_for_sync();
        let more = waits!(store.enqueue_for_worker(activity(2)));
        held.let_one_pass();
        enqueue.await.unwrap();
        let leased = fetching.await.unwrap();
        assert_eq!(leased.len(), 1, "what a later sync makes durable is not waited for");
        assert_eq!(leased[0].attempt_count, 1);
        // What is on the disk now has the lock.
        let reopened = open(&Disk::with(disk.contents()), &clock);
        assert_eq!(reopened.lost_work_items(&[leased[0].lock_token]).await.unwrap(), []);
        // The second activity is written by then, and may be there or not.
        assert!(fetch(&reopened).await.is_none_or(|item| item.message == activity(2)));
        drop(held);
        more.await.unwrap();
        assert_eq!(fetch(&store).await.unwrap().message, activity(2));
    });
}

#[test]
fn no_lease_is_handed_out_before_it_is_durable() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        store.enqueue_for_worker(activity(1)).await.unwrap();
        let held = disk.hold_syncs();
        let ready = waits!(lease(&store, 1, Duration::ZERO));
        let waiting = waits!(lease(&store, 1, LEASE));
        let enqueue = waits!(store.enqueue_for_worker(activity(2)));
        let (mut ready, mut waiting) = (ready, waiting);
        assert!(crate::early::begun(ready.as_mut()).await.is_none());
        assert!(crate::early::begun(waiting.as_mut()).await.is_none());
        assert!(fetch(&store).await.is_none());
        drop(held);
        enqueue.await.unwrap();
        let tokens = [ready.await.unwrap()[0].lock_token, waiting.await.unwrap()[0].lock_token];
        // A renewal is answered when it is durable, unless it only makes the lock shorter.
        let held = disk.hold_syncs();
        let longer = waits!(store.renew_work_item_lock(tokens[0], LEASE * 2, LockLife::Process));
        store.renew_work_item_lock(tokens[1], LEASE / 2, LockLife::Durable).await.unwrap();
        drop(held);
        longer.await.unwrap();
    });
}

#[test]
fn what_was_locked_for_a_fetch_that_has_gone_is_shown_when_it_is_durable() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let fetching = waits!(lease(&store, 1, LEASE));
        let held = disk.hold_syncs();
        let enqueue = waits!(store.enqueue_for_worker(activity(1)));
        held.wait_for_sync();
        drop(fetching);
        assert!(fetch(&store).await.is_none(), "it is not durable yet");
        drop(held);
        enqueue.await.unwrap();
        let item = fetch(&store).await.expect("the fetch that it was locked for is gone");
        assert_eq!(item.attempt_count, 1, "it was never handed out");
    });
}

#[test]
fn a_lease_that_ends_before_it_is_durable_shows_nothing_early() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let fetching = waits!(lease(&store, 1, LEASE * 9));
        let held = disk.hold_syncs();
        let enqueue = waits!(store.enqueue_for_worker(activity(1)));
        held.wait_for_sync();
        clock.advance(LEASE * 2);
        assert!(fetch(&store).await.is_none(), "it is not durable yet");
        drop(held);
        enqueue.await.unwrap();
        let leased = fetching.await.unwrap();
        assert_eq!(leased[0].attempt_count, 2, "the first lease ended while the disk stood still");
    });
}

#[test]
fn a_lease_that_meets_a_full_disk_is_handed_out_when_there_is_room() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let fetching = waits!(lease(&store, 1, LEASE));
        let error = io::ErrorKind::StorageFull;
        disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short: false, on: "" }));
        let refused = store.enqueue_for_worker(activity(1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        // The fetch that waited is refused if it looks while the disk is full. What it was granted
        // is for the next one then.
        disk.fail(None);
        let mut leased = fetching.await;
        while let Err(error) = leased {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            leased = lease(&store, 1, LEASE).await;
        }
        let leased = leased.unwrap();
        assert_eq!((leased.len(), leased[0].attempt_count), (1, 1));
        store.close();
        let reopened = open(&disk, &clock);
        assert_eq!(reopened.lost_work_items(&[leased[0].lock_token]).await.unwrap(), []);
    });
}

/// What a power cut has left of an activity and its lease, at a time and with the token of the
/// lease.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Nothing,
    Free { attempts: u32 },
    Leased,
}

async fn left_in(disk: &Arc<Disk>, now: Duration, token: LockToken) -> Left {
    let clock = VirtualClock::new();
    clock.advance(now);
    let store = open(disk, &clock);
    if store.lost_work_items(&[token]).await.unwrap().is_empty() {
        assert!(fetch(&store).await.is_none(), "no fetch gets an activity that is leased");
        let ack = AckWorkItem { lock_token: token, completion: None, records: Vec::new() };
        store.ack_work_item(ack).await.unwrap();
        return Left::Leased;
    }
    fetch(&store).await.map_or(Left::Nothing, |item| Left::Free { attempts: item.attempt_count })
}

/// Every state that images of a stretch of the disk's life show.
async fn left_by_cuts(
    disk: &Arc<Disk>,
    cuts: std::ops::RangeInclusive<usize>,
    now: Duration,
    token: LockToken,
) -> BTreeSet<Left> {
    let mut random = Random::new(7);
    let mut left = BTreeSet::new();
    for cut in cuts {
        for _ in 0..IMAGES_PER_CUT {
            left.insert(left_in(&Disk::with(disk.image(cut, &mut random)), now, token).await);
        }
    }
    left
}

#[test]
fn a_power_cut_leaves_a_lease_that_was_handed_out_and_its_last_renewal() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let opened = disk.done();
        let fetching = waits!(lease(&store, 1, LEASE));
        store.enqueue_for_worker(activity(1)).await.unwrap();
        let token = fetching.await.unwrap()[0].lock_token;
        let leased = disk.done();
        clock.advance(LEASE / 2);
        store.renew_work_item_lock(token, LEASE, LockLife::Durable).await.unwrap();
        let renewed = disk.done();
        store.commit_records(probe("after")).await.unwrap();
        let later = disk.done();
        let half = LEASE / 2;
        // Before the lease is handed out it is there with its activity, or neither is.
        let left = left_by_cuts(&disk, opened..=leased, half, token).await;
        assert_eq!(left, BTreeSet::from([Left::Nothing, Left::Leased]));
        assert_eq!(left_by_cuts(&disk, leased..=later, half, token).await, BTreeSet::from([Left::Leased]));
        // After its first end.
        let past = LEASE + Duration::from_secs(1);
        let left = left_by_cuts(&disk, leased..=leased, past, token).await;
        assert_eq!(left, BTreeSet::from([Left::Free { attempts: 2 }]));
        assert_eq!(left_by_cuts(&disk, renewed..=later, past, token).await, BTreeSet::from([Left::Leased]));
        let end = LEASE * 2;
        let left = left_by_cuts(&disk, later..=later, end, token).await;
        assert_eq!(left, BTreeSet::from([Left::Free { attempts: 2 }]));
    });
}

#[test]
fn a_checked_a_compacted_and_a_salvaged_store_keep_their_leases() {
    let directory = tempfile::tempdir().unwrap();
    let clock = VirtualClock::new();
    let open = |path: &std::path::Path| {
        EmbeddedStore::open_with(path, OpenOptions::default().clock(Arc::clone(&clock) as _)).unwrap()
    };
    let token = block_on(async {
        let store = open(directory.path());
        store.enqueue_for_worker(activity(1)).await.unwrap();
        let token = lease(&store, 1, Duration::ZERO).await.unwrap()[0].lock_token;
        store.compact(|_| {}).await.unwrap();
        assert_eq!(store.lost_work_items(&[token]).await.unwrap(), []);
        token
    });
    let report = segno_embedded::check(directory.path(), |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let saved = tempfile::tempdir().unwrap();
    segno_embedded::salvage(directory.path(), saved.path(), |_| {}).unwrap();
    for path in [directory.path(), saved.path()] {
        let store = open(path);
        assert_eq!(block_on(store.lost_work_items(&[token])).unwrap(), [], "{}", path.display());
    }
}
