//! Everything that a store holds can be given out and taken in, here and by any other store.
//!
//! The other store is the one in memory, on the same clock: content moves to it and from it.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::store::memory::MemoryStore;
use segno::store::{
    ContentHeader, ContentItem, CustomStatusChange, ErrorKind, ExecutionPosition, ExecutionStatus,
    FetchOrchestrationItems, FetchedHistory, OrchestratorMessage, ProviderError, ResidentExecutions,
    TimerIdentifier, WorkerMessage,
};

use super::fixture::{
    Ask, Env, LOCK, WriteSteps, activity, ask, bodies, conflict, delete, event, guarded_start, job, job_of,
    lock_lost, message, put, put_of, record_ids, refused, session_job, tagged_job, timer,
};
use super::harness::ClockHandle;

/// Items in one call of an import: odd and small, so that instances are cut in the middle.
const ITEMS_PER_PUT: usize = 3;

impl Env {
    /// An empty store in memory on the same clock.
    fn other(&self) -> Env {
        let clock: Arc<dyn Clock> = match self.clock() {
            ClockHandle::Virtual(clock) => Arc::clone(clock) as Arc<dyn Clock>,
            ClockHandle::Stepped(clock) => clock.local(),
            ClockHandle::Real => SystemClock::shared(),
        };
        self.with_store(MemoryStore::with_clock(clock))
    }

    /// Everything that the store holds.
    async fn content(&self) -> Vec<ContentItem> {
        let mut export = self.export().await.unwrap();
        let mut content = Vec::new();
        loop {
            let items = export.next_items().await.unwrap();
            if items.is_empty() {
                return content;
            }
            content.extend(items);
        }
    }

    /// Fills the store, which must be empty.
    async fn fill(&self, content: &[ContentItem]) {
        self.try_fill(content).await.unwrap();
    }

    async fn try_fill(&self, content: &[ContentItem]) -> Result<(), ProviderError> {
        let mut import = self.import().await?;
        for items in content.chunks(ITEMS_PER_PUT) {
            import.put(items.to_vec()).await?;
        }
        import.finish().await
    }

    /// Fills this empty store with everything that another one holds.
    async fn fill_from(&self, source: &Env) {
        self.fill(&source.content().await).await;
    }

    /// One of everything, in every state that can be moved. Nothing of it changes by itself while a case lasts.
    async fn fill_with_everything(&self) {
        let later_ms = self.now().await + 3_600_000;
        self.turn_of("parent")
            .await
            .named("Flow")
            .metadata(|metadata| {
                metadata.orchestration_version = Some("1.2.3".into());
                metadata.incarnation = Some(77);
                metadata.custom_status = Some(CustomStatusChange::Set("half".into()));
            })
            .pinned("0.1.0")
            .label("team", "a")
            .event(1)
            .event_data(2, vec![0_u8, 255, 1])
            .work(tagged_job("gpu", 2))
            .post(timer("parent", 2, later_ms))
            .ack()
            .await;
        self.turn_of("parent").await.clear_custom_status().event(3).ack().await;
        self.start_child("parent/child", "parent").await;
        self.turn_of("parent/child").await.status(ExecutionStatus::Failed).output("out").ack().await;
        self.start_executions("eternal", 3).await;
        self.put_status("eternal", ExecutionStatus::Paused).await;
        self.start_and_end("ended").await;
        self.queue(session_job("s", 5)).await;
        self.queue(WorkerMessage { visible_at_ms: Some(later_ms), ..job_of("elsewhere", 6) }).await;
        self.queue(job(7)).await;
        let given_back = self.take(ask().max(1).tags(segno::store::TagFilter::DefaultOnly)).await.remove(0);
        self.abandon_work_item(given_back.lock_token, Some(LOCK), false).await.unwrap();
        self.post(guarded_start("unstarted")).await;
        self.send_later("delayed", "later", LOCK).await;
        self.send("held", "first").await;
        let locked = self.fetch_many(10).await;
        let held = locked.iter().find(|item| &*item.instance == "held").unwrap();
        self.abandon_orchestration_item(held.lock_token, Some(LOCK), true).await.unwrap();
        self.send("held", "second").await;
        self.write([put_of("a", "z").due(later_ms), put_of("b", "a").living(LOCK), put("x")]).await;
        self.write([put("x").with_body("again"), put("gone")]).await;
        self.write([delete("gone")]).await;
    }
}

fn header(content: &[ContentItem]) -> ContentHeader {
    match content.first() {
        Some(ContentItem::Header(header)) => *header,
        other => panic!("content begins with a header, this with {other:?}"),
    }
}

/// Fails unless two contents are the same. When they were taken may differ.
#[track_caller]
fn same(one: &[ContentItem], other: &[ContentItem]) {
    let (first, second) = (header(one), header(other));
    let numbers = |header: ContentHeader| {
        [header.last_message_id, header.last_work_item_id, header.last_record_version]
    };
    for (given, kept) in numbers(first).into_iter().zip(numbers(second)) {
        assert!(kept >= given, "numbers went back: {first:?}, then {second:?}");
    }
    for (place, (item, twin)) in one.iter().zip(other).enumerate().skip(1) {
        assert_eq!(item, twin, "item {place}");
    }
    assert_eq!(one.len(), other.len(), "one has items that the other has not");
}

fn instance_ids(content: &[ContentItem]) -> Vec<&str> {
    let ids = content.iter().filter_map(|item| match item {
        ContentItem::Instance(instance) => Some(instance.instance_id.as_str()),
        _ => None,
    });
    ids.collect()
}

fn session_work() -> Ask {
    ask().owner("other")
}

pub(super) async fn an_empty_store_gives_a_header_alone(env: Env) {
    let content = env.content().await;
    assert_eq!(content.len(), 1, "{content:?}");
    assert!(header(&content).taken_at_ms <= env.now().await);
    env.other().fill(&content).await;
}

pub(super) async fn content_moves_out_unchanged(env: Env) {
    env.fill_with_everything().await;
    let content = env.content().await;
    assert_eq!(instance_ids(&content), ["ended", "eternal", "parent", "parent/child"]);
    let other = env.other();
    other.fill(&content).await;
    same(&content, &other.content().await);
}

pub(super) async fn content_moves_in_unchanged(env: Env) {
    let other = env.other();
    other.fill_with_everything().await;
    let content = other.content().await;
    env.fill(&content).await;
    same(&content, &env.content().await);
}

pub(super) async fn the_same_history_of_calls_gives_the_same_content(env: Env) {
    let other = env.other();
    for each in [&env, &other] {
        each.write([put("x"), put_of("b", "y")]).await;
        each.queue(tagged_job("gpu", 1)).await;
        each.post(guarded_start("i2")).await;
        each.send("i2", "more").await;
    }
    let (content, twin) = (env.content().await, other.content().await);
    same(&content, &twin);
}

pub(super) async fn moved_instances_are_listed_and_read_as_before(env: Env) {
    let other = env.other();
    other.fill_with_everything().await;
    env.fill_from(&other).await;
    for id in other.list_instances().await.unwrap() {
        assert_eq!(env.info(&id).await, other.info(&id).await);
        let executions = other.list_executions(&id).await.unwrap();
        assert_eq!(env.list_executions(&id).await.unwrap(), executions);
        for execution_id in executions {
            assert_eq!(
                env.get_execution_info(&id, execution_id).await,
                other.get_execution_info(&id, execution_id).await
            );
            assert_eq!(
                env.read_with_execution(&id, execution_id).await,
                other.read_with_execution(&id, execution_id).await
            );
        }
    }
    assert_eq!(env.list_instances().await, other.list_instances().await);
    assert_eq!(env.get_system_metrics().await, other.get_system_metrics().await);
    assert_eq!(env.list_children("parent").await.unwrap(), ["parent/child"]);
    let failed = env.list_instances_by_status(ExecutionStatus::Failed).await.unwrap();
    assert_eq!(failed, ["parent/child"]);
}

pub(super) async fn an_export_is_of_one_moment(env: Env) {
    env.fill_with_everything().await;
    for number in 0..50 {
        env.start(&format!("more-{number:02}")).await;
    }
    let before = env.content().await;
    let mut export = env.export().await.unwrap();
    let mut content = export.next_items().await.unwrap();
    env.start("a-new-one").await;
    env.start("z-new-one").await;
    env.turn_of("more-49").await.event(2).status(ExecutionStatus::Completed).ack().await;
    env.delete_instance("more-48", true).await.unwrap();
    env.send("unstarted", "new").await;
    env.queue(job(99)).await;
    env.write([put("x").with_body("newer"), put("zz"), delete("y")]).await;
    loop {
        let items = export.next_items().await.unwrap();
        if items.is_empty() {
            break;
        }
        content.extend(items);
    }
    drop(export);
    same(&before, &content);
    assert!(instance_ids(&env.content().await).contains(&"z-new-one"));
}

pub(super) async fn an_export_takes_no_lock_and_breaks_none(env: Env) {
    env.send("i1", "go").await;
    env.queue(job(1)).await;
    let (item, work) = (env.fetch().await, env.work().await);
    let mut export = env.export().await.unwrap();
    env.turn(&item).named("Flow").event(1).ack().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    assert!(!export.next_items().await.unwrap().is_empty());
    drop(export);
    assert_eq!(bodies(&env.fetch().await), ["done"]);
}

pub(super) async fn queues_keep_their_order(env: Env) {
    let other = env.other();
    for body in ["one", "two", "three"] {
        other.send("i1", body).await;
    }
    other.send("i0", "last").await;
    for activity_id in [3, 1, 2] {
        other.queue(job(activity_id)).await;
    }
    env.fill_from(&other).await;
    env.send("i1", "four").await;
    env.queue(job(9)).await;
    let items = env.fetch_many(2).await;
    assert_eq!(&*items[0].instance, "i1", "the oldest message comes first");
    assert_eq!(bodies(&items[0]), ["one", "two", "three", "four"]);
    assert_eq!(env.take_ids(ask().max(10)).await, [3, 1, 2, 9]);
}

pub(super) async fn what_was_locked_is_offered_with_its_attempts(env: Env) {
    env.send("i1", "go").await;
    env.queue(job(1)).await;
    let (_item, _work) = (env.fetch().await, env.work().await);
    let other = env.other();
    other.fill_from(&env).await;
    assert_eq!(other.fetch().await.attempt_count, 2);
    assert_eq!(other.work().await.attempt_count, 2);
}

pub(super) async fn a_lock_that_outlives_the_process_does_not_move(env: Env) {
    env.queue(job(1)).await;
    let item = env.take(ask().durable()).await.remove(0);
    let other = env.other();
    other.fill_from(&env).await;
    assert_eq!(other.get_queue_depths().await.unwrap().locked, 0);
    lock_lost(other.finish(item.lock_token).await);
    assert_eq!(other.work().await.attempt_count, 2, "the delivery counts");
    env.finish(item.lock_token).await.unwrap();
}

pub(super) async fn attempts_move_in(env: Env) {
    let other = env.other();
    other.send("i1", "go").await;
    other.queue(job(1)).await;
    for _ in 0..2 {
        let (item, work) = (other.fetch().await, other.work().await);
        other.abandon_orchestration_item(item.lock_token, None, false).await.unwrap();
        other.abandon_work_item(work.lock_token, None, false).await.unwrap();
    }
    env.fill_from(&other).await;
    assert_eq!(env.fetch().await.attempt_count, 3);
    assert_eq!(env.work().await.attempt_count, 3);
}

pub(super) async fn what_is_delayed_stays_so_until_its_time(env: Env) {
    let other = env.other();
    let at_ms = other.now().await + u64::try_from(env.span().as_millis()).unwrap();
    other.post(timer("i1", 1, at_ms)).await;
    other.queue(WorkerMessage { visible_at_ms: Some(at_ms), ..job(1) }).await;
    env.fill_from(&other).await;
    env.nothing_to_fetch().await;
    env.no_work().await;
    env.advance_span().await;
    assert_eq!(bodies(&env.fetch().await), ["timer"]);
    assert_eq!(env.work().await.message.visible_at_ms, Some(at_ms), "the message is as it was enqueued");
}

pub(super) async fn an_instance_that_is_held_back_stays_so(env: Env) {
    let other = env.other();
    other.send("i1", "first").await;
    let item = other.fetch().await;
    other.abandon_orchestration_item(item.lock_token, Some(env.span()), true).await.unwrap();
    env.fill_from(&other).await;
    env.send("i1", "second").await;
    env.nothing_to_fetch().await;
    env.advance_span().await;
    let item = env.fetch().await;
    assert_eq!(bodies(&item), ["first", "second"], "nothing overtakes what was given back");
    assert_eq!(item.attempt_count, 1);
}

pub(super) async fn a_start_that_waits_still_guards(env: Env) {
    let other = env.other();
    other.start("i2").await;
    other.post(guarded_start("i1")).await;
    env.fill_from(&other).await;
    conflict(env.enqueue_for_orchestrator(guarded_start("i1"), None).await);
    conflict(env.enqueue_for_orchestrator(guarded_start("i2"), None).await);
    env.post(guarded_start("i3")).await;
}

pub(super) async fn timers_and_activities_that_moved_can_be_taken_back(env: Env) {
    let other = env.other();
    let later_ms = other.now().await + 3_600_000;
    other.turn_of("i1").await.named("Flow").event(1).work(job(2)).post(timer("i1", 1, later_ms)).ack().await;
    env.fill_from(&other).await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 1);
    env.turn_of("i1").await.cancel_timer(1).cancel_activity(activity("i1", 2)).ack().await;
    assert_eq!(env.get_queue_depths().await.unwrap().delayed(), 0);
    env.no_work().await;
}

struct Holds(ExecutionPositionOwned);

#[derive(PartialEq)]
struct ExecutionPositionOwned(String, u64, Option<u64>, u64);

impl ResidentExecutions for Holds {
    fn holds(&self, position: &ExecutionPosition<'_>) -> bool {
        let ExecutionPosition { instance, execution_id, incarnation, last_event_id } = *position;
        self.0 == ExecutionPositionOwned(instance.to_owned(), execution_id, incarnation, last_event_id)
    }
}

pub(super) async fn an_execution_goes_on_in_the_target(env: Env) {
    let other = env.other();
    let turn = other.turn_of("i1").await.named("Flow").event(1).event(2);
    turn.metadata(|metadata| metadata.incarnation = Some(5)).work(job(2)).ack().await;
    let _in_flight = other.work().await;
    env.fill_from(&other).await;
    let work = env.work().await;
    env.complete(work.lock_token, "i1").await.unwrap();
    let holds: Arc<dyn ResidentExecutions> =
        Arc::new(Holds(ExecutionPositionOwned("i1".to_owned(), 1, Some(5), 2)));
    let request = FetchOrchestrationItems { resident: Some(&holds), ..FetchOrchestrationItems::one(LOCK) };
    let item = env.fetch_orchestration_items(request).await.unwrap().remove(0);
    assert_eq!(item.history, FetchedHistory::Resident, "the incarnation moved");
    env.turn(&item).event(3).status(ExecutionStatus::Completed).output("end").ack().await;
    assert_eq!(env.read("i1").await.unwrap(), [event(1), event(2), event(3)]);
    let info = env.info("i1").await;
    assert_eq!((info.revision, info.status), (2, ExecutionStatus::Completed));
}

pub(super) async fn an_event_that_moved_is_not_written_twice(env: Env) {
    let other = env.other();
    other.start_executions("i1", 2).await;
    env.fill_from(&other).await;
    conflict(env.turn_of("i1").await.execution(2).event(1).try_ack().await);
}

pub(super) async fn numbers_do_not_come_back(env: Env) {
    let other = env.other();
    let version = other.write([put("x")]).await[0];
    other.write([delete("x")]).await;
    env.fill_from(&other).await;
    assert!(env.write([put("x")]).await[0] > version, "a version never comes back");
}

pub(super) async fn records_move_with_due_time_and_life(env: Env) {
    let other = env.other();
    let now_ms = other.now().await;
    other.write([put("due").due(now_ms), put("late").due(now_ms + 3_600_000)]).await;
    other.write([put("short").living(env.span()), put("long").living(LOCK)]).await;
    env.fill_from(&other).await;
    assert_eq!(env.record("due").await, other.record("due").await);
    assert_eq!(env.record("long").await, other.record("long").await);
    assert_eq!(env.due_ids().await, ["due"]);
    env.advance_span().await;
    assert_eq!(env.record("short").await, None);
    assert!(env.record("long").await.is_some());
}

pub(super) async fn expired_records_do_not_move(env: Env) {
    env.write([put("short").living(env.span()), put("long")]).await;
    env.advance_span().await;
    let other = env.other();
    other.fill_from(&env).await;
    let all = segno::store::ListRecords { kind: "k", limit: 10, ..Default::default() };
    assert_eq!(record_ids(&other.list_records(all).await.unwrap()), ["long"]);
}

pub(super) async fn sessions_do_not_move(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("first")).await, [1]);
    let other = env.other();
    other.fill_from(&env).await;
    assert_eq!(other.take_ids(session_work()).await, [1], "another owner may claim it in the target");
}

pub(super) async fn a_pinned_execution_is_fetched_by_those_who_can_replay_it(env: Env) {
    let other = env.other();
    other.turn_of("i1").await.named("Flow").pinned("9.0.0").event(1).ack().await;
    other.send("i1", "go").await;
    env.fill_from(&other).await;
    let filter = segno::store::DispatcherCapabilityFilter::for_current_build();
    let none = env.fetch_orchestration_item(LOCK, Duration::ZERO, Some(&filter)).await.unwrap();
    assert_eq!(none, None, "this build cannot replay version 9");
    assert_eq!(&*env.fetch().await.instance, "i1");
}

pub(super) async fn what_was_put_can_be_read_back_before_it_counts(env: Env) {
    let other = env.other();
    other.fill_with_everything().await;
    other.write([put("short").living(env.span())]).await;
    other.send_later("i1", "soon", env.span()).await;
    other.send("i2", "held").await;
    for item in other.fetch_many(10).await {
        other.abandon_orchestration_item(item.lock_token, Some(env.span()), false).await.unwrap();
    }
    let content = other.content().await;
    let mut import = env.import().await.unwrap();
    for items in content.chunks(ITEMS_PER_PUT) {
        import.put(items.to_vec()).await.unwrap();
    }
    // What was alive and delayed at the moment of the source is told as it was then.
    env.advance_span().await;
    let mut export = import.read_back().await.unwrap();
    let mut back = Vec::new();
    loop {
        let items = export.next_items().await.unwrap();
        if items.is_empty() {
            break;
        }
        back.extend(items);
    }
    drop(export);
    assert_eq!(header(&back), header(&content));
    same(&content, &back);
    import.finish().await.unwrap();
    assert_eq!(env.record("short").await, None);
}

pub(super) async fn only_an_empty_store_takes_content(env: Env) {
    let other = env.other();
    other.start("i1").await;
    let content = other.content().await;
    env.send("i9", "go").await;
    conflict(env.try_fill(&content).await);
    let item = env.fetch().await;
    conflict(env.try_fill(&content).await);
    env.turn(&item).ack().await;
    env.queue(job(1)).await;
    conflict(env.try_fill(&content).await);
    let work = env.work().await;
    env.finish(work.lock_token).await.unwrap();
    env.write([put("x")]).await;
    conflict(env.try_fill(&content).await);
    env.write([delete("x")]).await;
    env.start_and_end("i9").await;
    conflict(env.try_fill(&content).await);
    env.delete_instance("i9", false).await.unwrap();
    env.fill(&content).await;
    conflict(env.try_fill(&content).await);
    assert_eq!(env.list_instances().await.unwrap(), ["i1"]);
}

/// Fails unless nothing is there: an empty answer, or none because the store waits for an import to finish.
#[track_caller]
fn nothing<T: PartialEq + std::fmt::Debug>(result: Result<T, ProviderError>, empty: T) {
    match result {
        Ok(found) => assert_eq!(found, empty),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
}

pub(super) async fn an_import_that_is_not_finished_is_not_there(env: Env) {
    let other = env.other();
    other.fill_with_everything().await;
    let content = other.content().await;
    let mut import = env.import().await.unwrap();
    import.put(content[..content.len() / 2].to_vec()).await.unwrap();
    for _ in 0..2 {
        nothing(env.list_instances().await, Vec::new());
        nothing(env.get_record("k", "x").await, None);
        nothing(env.fetch_orchestration_item(LOCK, Duration::ZERO, None).await, None);
    }
    drop(import);
    nothing(env.list_instances().await, Vec::new());
    nothing(env.fetch_orchestration_item(LOCK, Duration::ZERO, None).await, None);
}

pub(super) async fn an_import_begins_again_from_nothing(env: Env) {
    let (first, second) = (env.other(), env.other());
    first.fill_with_everything().await;
    second.start("i1").await;
    second.send("i1", "go").await;
    second.write([put("y")]).await;
    let content = first.content().await;
    for part in [content.len() / 3, content.len()] {
        let mut import = env.import().await.unwrap();
        import.put(content[..part].to_vec()).await.unwrap();
    }
    let content = second.content().await;
    env.fill(&content).await;
    same(&content, &env.content().await);
    assert_eq!(bodies(&env.fetch().await), ["go"]);
}

pub(super) async fn content_without_order_is_refused(env: Env) {
    let other = env.other();
    other.fill_with_everything().await;
    let content = other.content().await;
    refused(env.try_fill(&[]).await, ErrorKind::Invalid);
    refused(env.try_fill(&content[1..]).await, ErrorKind::Invalid);
    refused(env.try_fill(&[&content[..], &content[..1]].concat()).await, ErrorKind::Invalid);
    let swapped: Vec<ContentItem> = content[..1].iter().chain(content[1..].iter().rev()).cloned().collect();
    refused(env.try_fill(&swapped).await, ErrorKind::Invalid);
    env.fill(&content).await;
}

pub(super) async fn ids_with_any_characters_move(env: Env) {
    let other = env.other();
    let ids = ["a", "a/b", "ab", "b", "Ä", "ü\u{10ffff}", "\u{1}"];
    for id in ids {
        other.start(id).await;
        other.write([put_of(id, id)]).await;
        other.queue(job_of(id, 1)).await;
    }
    let timer = Some(TimerIdentifier { execution_id: 1, timer_id: u64::MAX >> 1 });
    other.post(OrchestratorMessage { timer, ..message("a/b", "x") }).await;
    let content = other.content().await;
    env.fill(&content).await;
    same(&content, &env.content().await);
}
