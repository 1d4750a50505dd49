//! Instances whose last change is not on disk, while the store refuses writes: no read shows such a
//! change as a fact.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::block_on;
use crate::disk::{Disk, Fault};
use crate::early::waits;
use crate::refusal::probe;

const LOCK: Duration = Duration::from_secs(30);

/// What the text of a refused read has.
const NOT_ON_DISK: &str = "the last change of the instance is not on disk yet";

fn open(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .retry_full_disk_after(Duration::from_micros(100));
    EmbeddedStore::open_with("", options).unwrap()
}

fn event(event_id: u64) -> Vec<StoredEvent> {
    vec![StoredEvent { event_id, data: Bytes::from_static(b"event") }]
}

fn start(instance: &str) -> OrchestratorMessage {
    OrchestratorMessage {
        guard: StartGuard::IfAbsent,
        ..OrchestratorMessage::new(instance.to_owned(), "start")
    }
}

fn fail_from_now(disk: &Disk, error: io::ErrorKind) {
    disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short: false, on: "" }));
}

#[track_caller]
fn unavailable<T>(answer: Result<T, ProviderError>, what: &str) -> ProviderError {
    assert!(answer.is_err(), "{what} was answered");
    let error = answer.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
    error
}

type Call<T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send>>;

/// A store with instances that are durable, of which some have changes that the disk has refused.
struct Refused {
    disk: Arc<Disk>,
    store: Arc<EmbeddedStore>,
    clock: Arc<VirtualClock>,
}

impl Refused {
    /// `fine`, `old` and `gone` are durable, in this order. Then `old` goes on, `new` is started,
    /// `gone` is deleted, `fine` gets a message, and `fresh` is made. The disk refuses that with
    /// this error: a full one the write of the batch; any other the sync, while `fresh` waits for
    /// the next batch.
    async fn with(error: io::ErrorKind) -> Self {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        for instance in ["fine", "old", "gone"] {
            store.append_with_execution(instance, 1, event(1)).await.unwrap();
            clock.advance(Duration::from_millis(1));
        }
        let held = disk.hold_syncs();
        let mut before = Some(waits!(store.commit_records(probe("before"))));
        held.wait_for_sync();
        let gone = ["gone".to_owned()];
        let old = waits!(store.append_with_execution("old", 1, event(2)));
        let new = waits!(store.enqueue_for_orchestrator(start("new"), None));
        let deleted = waits!(store.delete_instances_atomic(&gone, true));
        let message = waits!(store.enqueue_for_orchestrator(OrchestratorMessage::new("fine", "go"), None));
        if error != io::ErrorKind::StorageFull {
            held.let_one_pass();
            before.take().unwrap().await.unwrap();
            held.wait_for_sync();
        }
        let fresh = waits!(store.append_with_execution("fresh", 1, event(1)));
        // A read that has begun shows nothing of it either.
        let read = waits!(store.get_instance_info("old"));
        let page = waits!(store.query_instances(InstanceQuery { limit: 9, ..InstanceQuery::default() }));
        fail_from_now(&disk, error);
        drop(held);
        if let Some(before) = before {
            before.await.unwrap();
        }
        unavailable(old.await, "append to old");
        unavailable(fresh.await, "append to fresh");
        unavailable(new.await, "start of new");
        unavailable(deleted.await, "deletion of gone");
        unavailable(message.await, "message to fine");
        let error = unavailable(read.await, "a read of old that had begun");
        assert!(error.to_string().contains(NOT_ON_DISK), "{error}");
        assert_eq!(unreadable(&page.await.unwrap()), ["fresh", "old"], "a listing that had begun");
        Refused { disk, store: Arc::clone(&store), clock }
    }

    /// Every read of an instance, by name.
    fn reads(&self, instance: &'static str) -> BTreeMap<&'static str, Call<()>> {
        macro_rules! reads {
            ($($name:literal: $store:ident => $call:expr,)+) => {
                BTreeMap::from([$({
                    let $store = Arc::clone(&self.store);
                    let call: Call<()> = Box::pin(async move { $call.await.map(drop) });
                    ($name, call)
                },)+])
            };
        }
        let page = || HistoryQuery {
            instance_id: instance.to_owned(),
            execution_id: 1,
            limit: 9,
            ..HistoryQuery::default()
        };
        let (whole, around) = (page(), page());
        reads! {
            "info": store => store.get_instance_info(instance),
            "execution": store => store.get_execution_info(instance, 1),
            "executions": store => store.list_executions(instance),
            "latest": store => store.latest_execution_id(instance),
            "parent": store => store.get_parent_id(instance),
            "children": store => store.list_children(instance),
            "history": store => store.read(instance),
            "history of execution": store => store.read_with_execution(instance, 1),
            "history for operators": store => store.read_history_with_execution_id(instance, 1),
            "history page": store => store.read_history_page(whole),
            "history around damage": store => store.read_history_around_damage(around),
            "custom status": store => store.get_custom_status(instance, 0),
            "queued start": store => store.queued_start_ms(instance),
            "queued activities": store => store.queued_activities(instance),
        }
    }

    async fn is_set_apart(&self) {
        for instance in ["old", "fresh", "new", "gone"] {
            for (name, read) in self.reads(instance) {
                let error = unavailable(read.await, &format!("{name} of {instance}"));
                assert!(error.to_string().contains(NOT_ON_DISK), "{name} of {instance}: {error}");
                let condition = error.condition().unwrap_or_default();
                assert!(condition.contains(NOT_ON_DISK), "callers may know it: {condition}");
            }
        }
        for (name, read) in self.reads("fine") {
            assert_eq!(read.await, Ok(()), "{name} of fine");
        }
        let all = self.page(InstanceQuery::default()).await;
        assert_eq!((ids(&all), unreadable(&all)), (vec!["fine"], vec!["fresh", "old"]));
        assert!(all.unreadable.iter().all(|row| row.reason.contains(NOT_ON_DISK)), "{all:?}");
        assert_eq!(all.damaged, None);
        assert_eq!(self.store.known_damage().await, Ok(None), "it is no damage");
        self.is_listed_in_pages().await;
    }

    /// Every filter that an instance can meet for good is kept to, and no page has a gap.
    async fn is_listed_in_pages(&self) {
        let query = InstanceQuery::default;
        let ended = [ExecutionStatus::Completed].into();
        let by_status = self.page(InstanceQuery { statuses: ended, ..query() }).await;
        assert_eq!((ids(&by_status), unreadable(&by_status)), (vec![], vec!["fresh", "old"]));
        let by_prefix = self.page(InstanceQuery { id_prefix: Some("f".to_owned()), ..query() }).await;
        assert_eq!((ids(&by_prefix), unreadable(&by_prefix)), (vec!["fine"], vec!["fresh"]));
        let of_parent = InstanceQuery { parent_instance_id: Some("fine".to_owned()), ..query() };
        assert_eq!(self.page(of_parent).await, InstancePage::default());
        let old_ms = self.page(query()).await.unreadable[1].created_at_ms;
        let later = self.page(InstanceQuery { created_from_ms: Some(old_ms + 1), ..query() }).await;
        assert_eq!((ids(&later), unreadable(&later)), (vec![], vec!["fresh"]));
        let earlier = self.page(InstanceQuery { created_before_ms: Some(old_ms), ..query() }).await;
        assert_eq!((ids(&earlier), unreadable(&earlier)), (vec!["fine"], vec![]));
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.page(InstanceQuery { limit: 1, cursor, ..query() }).await;
            found.extend(ids(&page).into_iter().chain(unreadable(&page)).map(str::to_owned));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, ["fresh", "old", "fine"]);
    }

    async fn page(&self, query: InstanceQuery) -> InstancePage {
        let limit = if query.limit == 0 { 9 } else { query.limit };
        self.store.query_instances(InstanceQuery { limit, ..query }).await.unwrap()
    }
}

fn ids(page: &InstancePage) -> Vec<&str> {
    page.instances.iter().map(|info| info.instance_id.as_str()).collect()
}

fn unreadable(page: &InstancePage) -> Vec<&str> {
    page.unreadable.iter().map(|row| row.instance_id.as_str()).collect()
}

#[test]
fn what_a_full_disk_has_refused_is_set_apart_until_it_is_written() {
    block_on(async {
        let refused = Refused::with(io::ErrorKind::StorageFull).await;
        refused.is_set_apart().await;
        refused.disk.fail(None);
        while refused.store.commit_records(probe("later")).await.is_err() {
            tokio::task::yield_now().await;
        }
        let all = refused.page(InstanceQuery::default()).await;
        assert_eq!((ids(&all), unreadable(&all)), (vec!["fresh", "old", "fine"], vec![]));
        assert_eq!(refused.store.read("old").await.unwrap().len(), 2);
        assert!(refused.store.queued_start_ms("new").await.unwrap().is_some());
        let gone = refused.store.get_instance_info("gone").await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn what_a_failed_write_has_left_in_memory_is_set_apart_until_the_store_is_reopened() {
    block_on(async {
        let refused = Refused::with(io::ErrorKind::Other).await;
        refused.is_set_apart().await;
        refused.disk.fail(None);
        unavailable(refused.store.commit_records(probe("later")).await, "a write to a store that only reads");
        refused.is_set_apart().await;
        let Refused { disk, store, clock } = refused;
        drop(store);
        let store = open(&disk, &clock);
        let page =
            store.query_instances(InstanceQuery { limit: 9, ..InstanceQuery::default() }).await.unwrap();
        assert_eq!(unreadable(&page), [] as [&str; 0]);
        // The batch was not acknowledged: all of it is there, or nothing.
        let expected = match store.read("old").await.unwrap().len() {
            1 => ["gone", "old", "fine"].as_slice(),
            _ => &["old", "fine"],
        };
        assert_eq!(ids(&page), expected);
    });
}

#[test]
fn retention_leaves_out_what_is_set_apart() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let end = async |instance: &str| {
            store.enqueue_for_orchestrator(OrchestratorMessage::new(instance, "go"), None).await.unwrap();
            let item = store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await.unwrap().unwrap();
            let mut turn = AckOrchestrationItem::empty(item.lock_token, item.execution_id);
            turn.metadata.status = Some(ExecutionStatus::Completed);
            store.ack_orchestration_item(Arc::new(turn)).await
        };
        end("one").await.unwrap();
        let held = disk.hold_syncs();
        let message = waits!(store.enqueue_for_orchestrator(OrchestratorMessage::new("two", "go"), None));
        held.wait_for_sync();
        let item = store.fetch_orchestration_item(LOCK, Duration::ZERO, None).await.unwrap().unwrap();
        let mut turn = AckOrchestrationItem::empty(item.lock_token, item.execution_id);
        turn.metadata.status = Some(ExecutionStatus::Completed);
        let two = waits!(store.ack_orchestration_item(Arc::new(turn)));
        fail_from_now(&disk, io::ErrorKind::StorageFull);
        drop(held);
        message.await.unwrap();
        unavailable(two.await, "the end of two");
        let query = EndedQuery { limit: 9, ..EndedQuery::default() };
        let trees = store.ended_trees(query).await.unwrap().trees;
        let roots: Vec<&str> = trees.iter().map(|tree| tree[0].instance_id.as_str()).collect();
        assert_eq!(roots, ["one"]);
    });
}

fn activity(activity_id: u64, tag: Option<&str>, visible_at_ms: Option<u64>) -> WorkerMessage {
    WorkerMessage {
        activity: ScheduledActivityIdentifier { instance: "a".to_owned(), execution_id: 1, activity_id },
        session_id: None,
        tag: tag.map(str::to_owned),
        visible_at_ms,
        body: Bytes::from_static(b"work"),
    }
}

/// Lets the tasks of other threads go on until something holds.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_activity_that_a_full_disk_holds_back_is_shown_as_ready_or_delayed() {
    block_on(async {
        let (disk, clock) = (Disk::empty(), VirtualClock::new());
        let store = open(&disk, &clock);
        let later_ms = clock.now_ms() + 60_000;
        let tag_filter = TagFilter::tags(["far"]);
        let request = FetchWorkItems {
            max_items: 1,
            lock_timeout: LOCK,
            poll_timeout: Duration::MAX,
            session: None,
            tag_filter: &tag_filter,
            life: LockLife::Durable,
        };
        // It is leased the first activity in the batch that has it.
        let fetch = waits!(store.fetch_work_items(request));
        fail_from_now(&disk, io::ErrorKind::StorageFull);
        let all = RecordBatch {
            worker_items: vec![
                activity(1, Some("far"), None),
                activity(2, None, None),
                activity(3, None, Some(later_ms)),
            ],
            ..RecordBatch::default()
        };
        unavailable(store.commit_records(all).await, "three activities");
        let places = async || {
            let mut found = store.queued_activities("a").await.unwrap();
            found.sort_by_key(|activity| activity.activity_id);
            found.into_iter().map(|found| (found.work.place, found.work.attempt_count)).collect::<Vec<_>>()
        };
        let delayed = (QueuePlace::Delayed { visible_at_ms: later_ms }, 0);
        assert_eq!(places().await, [(QueuePlace::Ready, 0), (QueuePlace::Ready, 0), delayed]);
        disk.fail(None);
        until(async || store.commit_records(probe("later")).await.is_ok()).await;
        let item = fetch.await.unwrap().remove(0);
        assert_eq!(item.message.activity.activity_id, 1);
        let found = places().await;
        assert!(
            matches!(found[0], (QueuePlace::Locked { until_ms, .. }, 1) if until_ms < later_ms),
            "{found:?}"
        );
        assert_eq!(found[1..], [(QueuePlace::Ready, 0), delayed]);
    });
}
