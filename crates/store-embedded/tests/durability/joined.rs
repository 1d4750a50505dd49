//! Turns that join the activity whose end brings them: one commit, and no crash leaves one without the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::block_on;
use crate::disk::Disk;
use crate::early::waits;

const LOCK: Duration = Duration::from_secs(30);
const IMAGES_PER_CUT: usize = 3;
const INCARNATION: u64 = 7;

fn open(disk: &Arc<Disk>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default().files(disk.mount()).clock(VirtualClock::new() as Arc<dyn Clock>);
    EmbeddedStore::open_with("", options).unwrap()
}

fn event(event_id: u64) -> StoredEvent {
    StoredEvent { event_id, data: Bytes::from_static(b"event") }
}

fn activity(activity_id: u64) -> WorkerMessage {
    let activity = ScheduledActivityIdentifier { instance: "a".to_owned(), execution_id: 1, activity_id };
    WorkerMessage { activity, session_id: None, tag: None, visible_at_ms: None, body: Bytes::new() }
}

async fn fetch_turn(store: &EmbeddedStore) -> Option<OrchestrationItem> {
    store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await.unwrap()
}

async fn fetch_work(store: &EmbeddedStore) -> Option<LockedWorkItem> {
    store.fetch_work_item(LOCK, Duration::ZERO, None, &TagFilter::Any).await.unwrap()
}

/// A store with an instance of one event, whose activity 1 is locked.
async fn running(disk: &Arc<Disk>) -> (Arc<EmbeddedStore>, LockedWorkItem) {
    let store = open(disk);
    store.enqueue_for_orchestrator(OrchestratorMessage::new("a", "start"), None).await.unwrap();
    let item = fetch_turn(&store).await.unwrap();
    let metadata = ExecutionMetadata { incarnation: Some(INCARNATION), ..ExecutionMetadata::default() };
    let turn = AckOrchestrationItem {
        history_delta: vec![event(1)],
        worker_items: vec![activity(1)],
        metadata,
        ..AckOrchestrationItem::empty(item.lock_token, 1)
    };
    store.ack_orchestration_item(Arc::new(turn)).await.unwrap();
    let work = fetch_work(&store).await.unwrap();
    (store, work)
}

/// A turn that joins activity 1 and schedules activity 2.
fn joining(work: &LockedWorkItem) -> Arc<AckOrchestrationItem> {
    Arc::new(AckOrchestrationItem {
        lock: TurnLock::Activity { incarnation: INCARNATION },
        history_delta: vec![event(2)],
        worker_items: vec![activity(2)],
        ..AckOrchestrationItem::empty(work.lock_token, 1)
    })
}

/// Events of the instance, activities that are queued, and whether a message waits.
type Left = (usize, Vec<u64>, bool);

async fn left_in(disk: &Arc<Disk>) -> Left {
    let store = open(disk);
    let events = store.read("a").await.unwrap().len();
    let mut activities = Vec::new();
    while let Some(work) = fetch_work(&store).await {
        activities.push(work.message.activity.activity_id);
    }
    (events, activities, fetch_turn(&store).await.is_some())
}

#[test]
fn a_power_cut_leaves_the_activity_or_the_turn_that_joins_it() {
    block_on(async {
        let disk = Disk::empty();
        let (store, work) = running(&disk).await;
        let before = disk.done();
        store.ack_orchestration_item(joining(&work)).await.unwrap();
        let acknowledged = disk.done();
        store.close();
        let mut random = Random::new(1);
        let mut left = BTreeSet::new();
        for cut in before..=disk.done() {
            for _ in 0..IMAGES_PER_CUT {
                let found = left_in(&Disk::with(disk.image(cut, &mut random))).await;
                assert!(cut < acknowledged || found.0 == 2, "acknowledged, and lost by a cut at {cut}");
                left.insert(found);
            }
        }
        assert_eq!(left, BTreeSet::from([(1, vec![1], false), (2, vec![2], false)]));
    });
}

#[test]
fn nothing_of_a_joined_turn_gets_out_before_the_sync() {
    block_on(async {
        let disk = Disk::empty();
        let (store, work) = running(&disk).await;
        let held = disk.hold_syncs();
        let ack = waits!(store.ack_orchestration_item(joining(&work)));
        assert_eq!(fetch_work(&store).await, None, "the next activity");
        let read = waits!(store.read("a"));
        // A second end of the activity is refused once the first is durable.
        let end = AckWorkItem { lock_token: work.lock_token, completion: None, records: Vec::new() };
        let again = waits!(store.ack_work_item(end));
        drop(held);
        ack.await.unwrap();
        assert_eq!(read.await.unwrap().len(), 2);
        assert_eq!(again.await.unwrap_err().kind(), ErrorKind::LockLost);
        assert_eq!(fetch_work(&store).await.unwrap().message, activity(2));
    });
}

#[test]
fn nothing_joins_while_something_of_the_instance_is_on_its_way() {
    block_on(async {
        let disk = Disk::empty();
        let (store, work) = running(&disk).await;
        store.enqueue_for_orchestrator(OrchestratorMessage::new("a", "go"), None).await.unwrap();
        let item = fetch_turn(&store).await.unwrap();
        let held = disk.hold_syncs();
        // It changes nothing that the turn would look at.
        let empty = AckOrchestrationItem::empty(item.lock_token, 1);
        let before = waits!(store.ack_orchestration_item(Arc::new(empty)));
        // Until then another thread may have it, and the two could come in either order.
        held.wait_for_sync();
        let refused = waits!(store.ack_orchestration_item(joining(&work)));
        drop(held);
        before.await.unwrap();
        assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::LockLost);
        store.ack_orchestration_item(joining(&work)).await.unwrap();
    });
}
