//! Waiting fetches on a clock that the test moves.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;
use tokio::sync::watch;

use super::*;
use crate::store::{
    AckOrchestrationItem, DueRecords, ErrorKind, ExecutionMetadata, ExecutionStatus, Expect,
    FetchOrchestrationItems, FetchWorkItems, LockLife, OrchestratorMessage, Provider, ProviderAdmin,
    RecordBatch, RecordWrite, Records, StartGuard, TagFilter, WatchUntil,
};

/// Moves only on request.
struct ManualClock {
    now_ms: watch::Sender<u64>,
}

impl ManualClock {
    fn store_at_zero() -> (Arc<ManualClock>, Arc<MemoryStore>) {
        let clock = Arc::new(ManualClock { now_ms: watch::Sender::new(0) });
        (Arc::clone(&clock), MemoryStore::with_clock(clock))
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        *self.now_ms.borrow()
    }

    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut time = self.now_ms.subscribe();
        Box::pin(async move {
            time.wait_for(|now_ms| *now_ms >= at_ms).await.expect("the clock outlives its sleepers");
        })
    }

    fn monotonic_ns(&self) -> u64 {
        self.now_ms() * 1_000_000
    }
}

const LOCK: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(3_600);

fn waiting_fetch() -> FetchOrchestrationItems<'static> {
    FetchOrchestrationItems { poll_timeout: LONG, ..FetchOrchestrationItems::one(LOCK) }
}

fn delayed(instance: &str, visible_at_ms: u64) -> OrchestratorMessage {
    OrchestratorMessage { visible_at_ms: Some(visible_at_ms), ..OrchestratorMessage::new(instance, "x") }
}

#[tokio::test]
async fn a_waiting_fetch_is_woken_by_a_commit_by_a_delayed_message_and_by_an_expired_lock() {
    let (clock, store) = ManualClock::store_at_zero();
    let mut fetch = Box::pin(store.fetch_orchestration_items(waiting_fetch()));
    assert!(fetch.as_mut().now_or_never().is_none());
    store.enqueue_for_orchestrator(OrchestratorMessage::new("a", "1"), None).await.unwrap();
    assert_eq!(&*fetch.await.unwrap()[0].instance, "a");

    let mut fetch = Box::pin(store.fetch_orchestration_items(waiting_fetch()));
    assert!(fetch.as_mut().now_or_never().is_none());
    store.enqueue_for_orchestrator(delayed("b", 10), None).await.unwrap();
    clock.now_ms.send_replace(9);
    assert!(fetch.as_mut().now_or_never().is_none());
    clock.now_ms.send_replace(10);
    assert_eq!(&*fetch.await.unwrap()[0].instance, "b");

    let mut fetch = Box::pin(store.fetch_orchestration_items(waiting_fetch()));
    clock.now_ms.send_replace(29);
    assert!(fetch.as_mut().now_or_never().is_none());
    clock.now_ms.send_replace(30);
    let item = fetch.await.unwrap().remove(0);
    assert_eq!((&*item.instance, item.attempt_count), ("a", 2));
}

#[tokio::test]
async fn a_fetch_ends_empty_at_its_deadline() {
    let (clock, store) = ManualClock::store_at_zero();
    let request = FetchOrchestrationItems { poll_timeout: LOCK, ..waiting_fetch() };
    let mut fetch = Box::pin(store.fetch_orchestration_items(request));
    assert!(fetch.as_mut().now_or_never().is_none());
    clock.now_ms.send_replace(30);
    assert!(fetch.await.unwrap().is_empty());
    assert!(store.lock().waiters.is_empty(), "no fetch waits any more");
}

#[tokio::test]
async fn work_reaches_a_second_waiter_when_the_woken_one_is_dropped() {
    let (clock, store) = ManualClock::store_at_zero();
    let mut first = Box::pin(store.fetch_orchestration_items(waiting_fetch()));
    let mut second = Box::pin(store.fetch_orchestration_items(waiting_fetch()));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    store.enqueue_for_orchestrator(delayed("a", 10), None).await.unwrap();
    assert!(first.as_mut().now_or_never().is_none(), "the first keeps the time now");
    drop(first);
    assert!(second.as_mut().now_or_never().is_none());
    clock.now_ms.send_replace(10);
    assert_eq!(&*second.await.unwrap()[0].instance, "a");
}

#[tokio::test]
async fn several_messages_that_become_due_together_reach_as_many_waiters() {
    let (clock, store) = ManualClock::store_at_zero();
    for instance in ["a", "b", "c"] {
        store.enqueue_for_orchestrator(delayed(instance, 10), None).await.unwrap();
    }
    let fetch = |_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store.fetch_orchestration_items(waiting_fetch()).await.unwrap().remove(0).instance
        })
    };
    let fetches: Vec<_> = (0..3).map(fetch).collect();
    tokio::task::yield_now().await;
    clock.now_ms.send_replace(10);
    let mut instances = Vec::new();
    for fetch in fetches {
        instances.push(fetch.await.unwrap());
    }
    instances.sort();
    assert_eq!(instances, ["a", "b", "c"].map(Arc::from));
}

#[tokio::test]
async fn a_worker_that_takes_no_work_sleeps_through() {
    let (_clock, store) = ManualClock::store_at_zero();
    let tag_filter = &TagFilter::None;
    let request = FetchWorkItems {
        max_items: 1,
        lock_timeout: LOCK,
        poll_timeout: LONG,
        session: None,
        tag_filter,
        life: LockLife::Process,
    };
    let mut fetch = Box::pin(store.fetch_work_items(request));
    assert!(fetch.as_mut().now_or_never().is_none());
}

fn put(id: &str, due_at_ms: Option<u64>, time_to_live: Option<Duration>) -> RecordBatch {
    let (kind, id, body) = ("timer".to_owned(), id.to_owned(), bytes::Bytes::new());
    let write = RecordWrite::Put { kind, id, expect: Expect::Absent, due_at_ms, time_to_live, body };
    RecordBatch { writes: vec![write], ..RecordBatch::default() }
}

#[tokio::test]
async fn every_waiter_for_due_records_sees_them_in_order_and_expired_ones_never() {
    let (clock, store) = ManualClock::store_at_zero();
    let request = || DueRecords { kind: "timer", id_prefix: "", now_ms: None, limit: 9, poll_timeout: LONG };
    let mut waiting = [Box::pin(store.due_records(request())), Box::pin(store.due_records(request()))];
    assert!(waiting.iter_mut().all(|due| due.as_mut().now_or_never().is_none()));
    store.commit_records(put("gone", Some(5), Some(Duration::from_millis(4)))).await.unwrap();
    store.commit_records(put("b", Some(10), None)).await.unwrap();
    store.commit_records(put("a", Some(10), None)).await.unwrap();
    store.commit_records(put("first", Some(9), None)).await.unwrap();
    for now_ms in [5, 8] {
        clock.now_ms.send_replace(now_ms);
        assert!(waiting.iter_mut().all(|due| due.as_mut().now_or_never().is_none()), "{now_ms}");
    }
    clock.now_ms.send_replace(10);
    for due in waiting {
        let ids: Vec<String> = due.await.unwrap().into_iter().map(|record| record.id).collect();
        assert_eq!(ids, ["first", "a", "b"]);
    }
    assert_eq!(store.commit_records(put("gone", None, None)).await.unwrap().len(), 1, "expired is absent");
    let conflict = store.commit_records(put("a", None, None)).await.unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_watch_on_a_future_instance_is_answered_by_the_commit_that_ends_it() {
    let (clock, store) = ManualClock::store_at_zero();
    let mut ended = Box::pin(store.watch_instance("a", WatchUntil::Terminal, LONG));
    let mut short = Box::pin(store.watch_instance("a", WatchUntil::RevisionAfter(7), LOCK));
    assert!(ended.as_mut().now_or_never().is_none());
    assert!(short.as_mut().now_or_never().is_none());
    for status in [ExecutionStatus::ContinuedAsNew, ExecutionStatus::Failed] {
        store.enqueue_for_orchestrator(OrchestratorMessage::new("a", "m"), None).await.unwrap();
        let item = store.fetch_orchestration_items(waiting_fetch()).await.unwrap().remove(0);
        let metadata = ExecutionMetadata { status: Some(status), ..ExecutionMetadata::default() };
        let turn = AckOrchestrationItem { metadata, ..AckOrchestrationItem::empty(item.lock_token, 1) };
        store.ack_orchestration_item(Arc::new(turn)).await.unwrap();
    }
    assert_eq!(ended.await.unwrap().unwrap().status, ExecutionStatus::Failed);
    clock.now_ms.send_replace(30);
    assert_eq!(short.await.unwrap(), None);
    assert!(store.lock().state.watches.is_empty());
}

#[tokio::test]
async fn a_guarded_start_is_accepted_once_and_again_after_deletion() {
    let (_clock, store) = ManualClock::store_at_zero();
    let start =
        || OrchestratorMessage { guard: StartGuard::IfAbsent, ..OrchestratorMessage::new("a", "start") };
    let kind = |result: Result<(), crate::store::ProviderError>| result.err().map(|error| error.kind());
    assert_eq!(kind(store.enqueue_for_orchestrator(start(), None).await), None);
    assert_eq!(kind(store.enqueue_for_orchestrator(start(), None).await), Some(ErrorKind::Conflict));
    let batch = RecordBatch { orchestrator_items: vec![start()], ..RecordBatch::default() };
    store.commit_records(batch).await.unwrap();
    let item = store.fetch_orchestration_items(waiting_fetch()).await.unwrap().remove(0);
    assert_eq!(item.messages.len(), 1, "the second start was left out");
    let deleted = store.delete_instances_atomic(&["a".to_owned()], false).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (0, 1));
    let late = AckOrchestrationItem::empty(item.lock_token, 1);
    assert_eq!(kind(store.ack_orchestration_item(Arc::new(late)).await), Some(ErrorKind::LockLost));
    assert_eq!(kind(store.enqueue_for_orchestrator(start(), None).await), None);
}
