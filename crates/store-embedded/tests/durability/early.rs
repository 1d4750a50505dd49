//! Messages are worked on before they are durable. Nothing of it may get out before they are, and no crash may leave a turn
//! without its message.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::Random;

use crate::block_on;
use crate::disk::{Disk, Fault};
use crate::refusal::probe;

const LOCK: Duration = Duration::from_secs(30);
const IMAGES_PER_CUT: usize = 3;

fn open(disk: &Arc<Disk>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(VirtualClock::new() as Arc<dyn Clock>)
        .retry_full_disk_after(Duration::from_micros(100));
    EmbeddedStore::open_with("", options).unwrap()
}

/// Polls a call once: it has begun then, and what it says is `None` while it waits.
pub async fn begun<F: Future>(mut call: Pin<&mut F>) -> Option<F::Output> {
    let mut poll = |context: &mut std::task::Context<'_>| match call.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    };
    poll_fn(|context| poll(context)).await
}

/// Begins a call that must not be answered yet.
macro_rules! waits {
    ($call:expr) => {{
        let mut call = Box::pin($call);
        let answer = $crate::early::begun(call.as_mut()).await;
        assert!(answer.is_none(), "answered before it is durable: {}", stringify!($call));
        call
    }};
}
pub(crate) use waits;

fn message(instance: &str, body: &'static str) -> OrchestratorMessage {
    OrchestratorMessage::new(instance.to_owned(), Bytes::from_static(body.as_bytes()))
}

fn activity(instance: &str) -> WorkerMessage {
    WorkerMessage {
        activity: ScheduledActivityIdentifier {
            instance: instance.to_owned(),
            execution_id: 1,
            activity_id: 2,
        },
        session_id: None,
        tag: None,
        visible_at_ms: None,
        body: Bytes::from_static(b"work"),
    }
}

/// A turn with something of everything that can get out.
fn turn(item: &OrchestrationItem) -> AckOrchestrationItem {
    AckOrchestrationItem {
        history_delta: vec![StoredEvent {
            event_id: item.last_event_id + 1,
            data: Bytes::from_static(b"event"),
        }],
        worker_items: vec![activity(&item.instance)],
        orchestrator_items: vec![message("other", "from the turn")],
        metadata: ExecutionMetadata {
            status: Some(ExecutionStatus::Completed),
            ..ExecutionMetadata::default()
        },
        records: probe("of the turn").writes,
        ..AckOrchestrationItem::empty(item.lock_token, item.execution_id)
    }
}

async fn fetch_turn(store: &EmbeddedStore) -> Result<Option<OrchestrationItem>, ProviderError> {
    store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await
}

async fn fetch_work(store: &EmbeddedStore) -> Result<Option<LockedWorkItem>, ProviderError> {
    store.fetch_work_item(LOCK, Duration::ZERO, None, &TagFilter::Any).await
}

fn bodies(item: &OrchestrationItem) -> Vec<&[u8]> {
    item.messages.iter().map(|message| message.body.as_ref()).collect()
}

fn is_unavailable<T>(answer: Result<T, ProviderError>) -> bool {
    answer.is_err_and(|error| error.kind() == ErrorKind::Unavailable)
}

#[test]
fn nothing_gets_out_before_the_sync() {
    for after in [AfterAck::Release, AfterAck::KeepLock] {
        block_on(async {
            let disk = Disk::empty();
            let store = open(&disk);
            let held = disk.hold_syncs();
            let enqueue = waits!(store.enqueue_for_orchestrator(message("a", "start"), None));
            let item = fetch_turn(&store).await.unwrap().expect("a message is shown before it is durable");
            let ack =
                waits!(store.ack_orchestration_item(Arc::new(AckOrchestrationItem { after, ..turn(&item) })));
            assert_eq!(fetch_work(&store).await.unwrap(), None, "an activity");
            assert_eq!(fetch_turn(&store).await.unwrap(), None, "a message to another instance");
            let watch = waits!(store.watch_instance("a", WatchUntil::Terminal, Duration::MAX));
            let read = waits!(store.read("a"));
            let record = waits!(store.get_record("probe", "of the turn"));
            let append = store.append_with_execution("a", 1, turn(&item).history_delta);
            let conflict = waits!(append);
            drop(held);
            enqueue.await.unwrap();
            ack.await.unwrap();
            assert!(watch.await.unwrap().is_some());
            assert_eq!(read.await.unwrap().len(), 1);
            assert!(record.await.unwrap().is_some());
            assert_eq!(conflict.await.unwrap_err().kind(), ErrorKind::Conflict);
            assert!(fetch_work(&store).await.unwrap().is_some());
            assert_eq!(&*fetch_turn(&store).await.unwrap().unwrap().instance, "other");
        });
    }
}

#[test]
fn the_second_caller_is_refused_when_the_first_commit_is_durable() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        let held = disk.hold_syncs();
        let start = || OrchestratorMessage { guard: StartGuard::IfAbsent, ..message("a", "start") };
        let first = waits!(store.enqueue_for_orchestrator(start(), None));
        let second = waits!(store.enqueue_for_orchestrator(start(), None));
        drop(held);
        first.await.unwrap();
        assert_eq!(second.await.unwrap_err().kind(), ErrorKind::Conflict);
    });
}

#[test]
fn no_message_overtakes_one_that_is_held_back() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        let held = disk.hold_syncs();
        // The message to the other instance is in a batch behind one that is being written.
        let probe = waits!(store.commit_records(probe("first")));
        held.wait_for_sync();
        let from_records =
            RecordBatch { orchestrator_items: vec![message("other", "first")], ..RecordBatch::default() };
        let records = waits!(store.commit_records(from_records));
        held.let_one_pass();
        probe.await.unwrap();
        held.wait_for_sync();
        let enqueue = waits!(store.enqueue_for_orchestrator(message("other", "second"), None));
        assert_eq!(fetch_turn(&store).await.unwrap(), None);
        drop(held);
        records.await.unwrap();
        enqueue.await.unwrap();
        let item = fetch_turn(&store).await.unwrap().unwrap();
        assert_eq!(bodies(&item), [&b"first"[..], b"second"]);
    });
}

#[test]
fn the_end_of_an_activity_that_a_crash_may_have_to_do_with_is_shown_when_it_is_durable() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        store.enqueue_for_worker(activity("a")).await.unwrap();
        let ack = |item: LockedWorkItem| AckWorkItem {
            lock_token: item.lock_token,
            completion: Some(message("a", "done")),
            records: Vec::new(),
        };
        let image = disk.contents();
        let item = fetch_work(&store).await.unwrap().unwrap();
        let held = disk.hold_syncs();
        let finished = waits!(store.ack_work_item(ack(item)));
        held.wait_for_sync();
        assert!(fetch_turn(&store).await.unwrap().is_some(), "at once if it is the first delivery");
        drop(held);
        finished.await.unwrap();

        let disk = Disk::with(image);
        let store = open(&disk);
        let item = fetch_work(&store).await.unwrap().unwrap();
        let held = disk.hold_syncs();
        let finished = waits!(store.ack_work_item(ack(item)));
        held.wait_for_sync();
        assert_eq!(fetch_turn(&store).await.unwrap(), None);
        drop(held);
        finished.await.unwrap();
        assert!(fetch_turn(&store).await.unwrap().is_some());
    });
}

#[test]
fn a_power_cut_never_leaves_a_turn_without_its_message() {
    let in_one_batch = block_on(left_by_power_cuts(true));
    assert_eq!(in_one_batch, BTreeSet::from([Left::Nothing, Left::Turn]));
    let in_two_batches = block_on(left_by_power_cuts(false));
    assert_eq!(in_two_batches, BTreeSet::from([Left::Nothing, Left::Message, Left::Turn]));
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Nothing,
    Message,
    Turn,
    /// Neither without the turn nor with all of it.
    Half(String),
}

/// What power cuts leave of a turn that is committed while its message is on its way.
async fn left_by_power_cuts(in_one_batch: bool) -> BTreeSet<Left> {
    let disk = Disk::empty();
    let store = open(&disk);
    let opened = disk.done();
    let held = disk.hold_syncs();
    let mut before = pin!(store.commit_records(probe("before")));
    if in_one_batch {
        assert!(begun(before.as_mut()).await.is_none());
        held.wait_for_sync();
    }
    let enqueue = waits!(store.enqueue_for_orchestrator(message("a", "start"), None));
    held.wait_for_sync();
    let item = fetch_turn(&store).await.unwrap().expect("a message is shown before it is durable");
    let ack = waits!(store.ack_orchestration_item(Arc::new(turn(&item))));
    drop(held);
    enqueue.await.unwrap();
    ack.await.unwrap();
    let mut random = Random::new(1);
    let mut left = BTreeSet::new();
    for cut in opened..=disk.done() {
        for _ in 0..IMAGES_PER_CUT {
            left.insert(found_in(&Disk::with(disk.image(cut, &mut random))).await);
        }
    }
    left
}

async fn found_in(disk: &Arc<Disk>) -> Left {
    let store = open(disk);
    let events = store.read("a").await.unwrap().len();
    let mut instances = Vec::new();
    while let Some(item) = fetch_turn(&store).await.unwrap() {
        instances.push(item.instance);
    }
    let has_activity = fetch_work(&store).await.unwrap().is_some();
    let has_record = store.get_record("probe", "of the turn").await.unwrap().is_some();
    let instances: Vec<&str> = instances.iter().map(|id| &**id).collect();
    match (events, &instances[..], has_activity, has_record) {
        (0, [], false, false) => Left::Nothing,
        (0, ["a"], false, false) => Left::Message,
        (1, ["other"], true, true) => Left::Turn,
        half => Left::Half(format!("{half:?}")),
    }
}

#[test]
fn after_a_failed_sync_nothing_is_handed_out_and_nothing_of_the_turn_is_left() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        let held = disk.hold_syncs();
        let enqueue = waits!(store.enqueue_for_orchestrator(message("a", "start"), None));
        held.wait_for_sync();
        let item = fetch_turn(&store).await.unwrap().expect("a message is shown before it is durable");
        let ack = waits!(store.ack_orchestration_item(Arc::new(turn(&item))));
        let error = io::ErrorKind::Other;
        disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short: false, on: "" }));
        drop(held);
        assert!(is_unavailable(enqueue.await));
        assert!(is_unavailable(ack.await));
        assert!(is_unavailable(store.ack_orchestration_item(Arc::new(turn(&item))).await));
        assert!(is_unavailable(store.abandon_orchestration_item(item.lock_token, None, false).await));
        assert!(is_unavailable(fetch_turn(&store).await));
        assert!(is_unavailable(fetch_work(&store).await));
        let watch = store.watch_instance("a", WatchUntil::Terminal, Duration::ZERO);
        assert!(is_unavailable(watch.await), "a watch tells only what is durable");
        store.close();
        disk.fail(None);
        // The caller was told that it is not known whether the message is there.
        assert!([Left::Nothing, Left::Message].contains(&found_in(&disk).await));
    });
}

#[test]
fn a_turn_that_meets_a_full_disk_is_committed_when_there_is_room() {
    block_on(async {
        let disk = Disk::empty();
        let store = open(&disk);
        let held = disk.hold_syncs();
        let before = waits!(store.commit_records(probe("before")));
        held.wait_for_sync();
        let enqueue = waits!(store.enqueue_for_orchestrator(message("a", "start"), None));
        let item = fetch_turn(&store).await.unwrap().expect("a message is shown before it is durable");
        let error = io::ErrorKind::StorageFull;
        disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short: false, on: "" }));
        drop(held);
        before.await.unwrap();
        assert!(is_unavailable(enqueue.await));
        assert!(is_unavailable(store.ack_orchestration_item(Arc::new(turn(&item))).await));
        assert!(is_unavailable(fetch_turn(&store).await));
        assert!(is_unavailable(fetch_work(&store).await));
        disk.fail(None);
        while let Err(error) = store.ack_orchestration_item(Arc::new(turn(&item))).await {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            tokio::task::yield_now().await;
        }
        store.close();
        assert_eq!(found_in(&disk).await, Left::Turn);
    });
}
