//! Workers outside the process: from the fetch to the answer.

use std::collections::BTreeSet;
use std::time::Duration;

use segno::limits::{MAX_EXCEPT_PREFIXES, MAX_FETCH_TAGS, MAX_FETCHED_WORK, MAX_LEASE, MAX_PAYLOAD_BYTES};
use segno::store::{Provider, ScheduledActivityIdentifier, WorkerMessage};
use segno::work::{FetchWork, LeasedActivity, LockLife, TagFilter, TagPrefixes, WorkQueue};
use segno::{
    Activity, Category, Code, Context, Failure, GivenUp, Orchestration, Payload, Registry, Retry, Runtime,
};
use serde::Serialize;

use crate::support::{World, in_both_modes, ms, secs};

pub const MAIN: Orchestration<u32, String> = Orchestration::new("main");
pub const WORK: Activity<u32, String> = Activity::new("work");

pub fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).build().unwrap()
}

/// A call for workers elsewhere, with three attempts a second apart.
pub fn plain() -> Registry {
    registry(async |ctx: Context, n| ctx.activity(WORK, n).tag("far").retry(Retry::fixed(3, secs(1))).await)
}

/// A world with a node that runs `main`, the instance `a` of it, and a queue for workers.
pub async fn calling(registry: &Registry) -> (World, Runtime, WorkQueue) {
    let world = World::resident();
    let node = world.node(registry).await;
    world.client.start(MAIN, 7).id("a").await.unwrap();
    let queue = queue(&world);
    (world, node, queue)
}

pub fn queue(world: &World) -> WorkQueue {
    WorkQueue::builder(world.store.clone()).clock(world.clock.clone()).max_deliveries(3).build().unwrap()
}

pub fn ask() -> FetchWork {
    FetchWork {
        tags: TagFilter::tags(["far"]),
        max_items: 10,
        lease: secs(30),
        wait: secs(60),
        life: LockLife::Durable,
    }
}

/// The one activity that there is.
pub async fn fetch_one(queue: &WorkQueue) -> LeasedActivity {
    let mut fetched = queue.fetch(ask()).await.unwrap();
    assert_eq!(fetched.len(), 1, "{fetched:?}");
    fetched.remove(0)
}

pub async fn assert_nothing_to_fetch(queue: &WorkQueue) {
    let now = FetchWork { wait: Duration::ZERO, ..ask() };
    assert_eq!(queue.fetch(now).await.unwrap(), []);
}

pub fn json<T: Serialize>(value: T) -> Payload {
    Payload::encode(&value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_worker_elsewhere_gets_all_it_needs_and_its_result_counts() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            let deadline = secs(3_600);
            ctx.activity(WORK, n).tag("far").timeout(secs(100)).deadline(deadline).await
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 7).id("a").traceparent("00-trace").await.unwrap();
        let queue = queue(&world);
        let leased = fetch_one(&queue).await;
        let activity = &leased.activity;
        assert_eq!((activity.name.as_str(), activity.input.as_str()), ("work", "7"));
        assert_eq!((activity.instance.as_str(), activity.orchestration.as_str()), ("a", "main"));
        assert_eq!((activity.attempt, leased.delivery), (1, 1));
        assert_eq!(
            (activity.options.tag.as_deref(), activity.options.timeout_ms),
            (Some("far"), Some(100_000))
        );
        assert_eq!(activity.options.deadline_at_ms, Some(world.now_ms() + 3_600_000));
        assert_eq!(activity.traceparent.as_deref(), Some("00-trace"));
        assert_eq!(leased.last_progress, None);
        assert_eq!(leased.lease.idempotency_key, activity.idempotency_key);
        assert_eq!(leased.lease.expires_at_ms, world.now_ms() + 30_000);
        assert_eq!(leased.lease.attempt_ends_at_ms(), Some(world.now_ms() + 100_000));
        queue.complete(&leased.lease, json("done")).await.unwrap();
        assert_eq!(world.output::<String>("a").await, "done");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_fetch_waits_for_work_and_comes_back_empty_when_there_is_none() {
    let world = World::resident();
    let (queue, began_ms) = (queue(&world), world.now_ms());
    assert_eq!(queue.fetch(ask()).await.unwrap(), []);
    assert_eq!(world.now_ms() - began_ms, 60_000);

    let later = async {
        world.pass(secs(10)).await;
        let node = world.node(&plain()).await;
        world.client.start(MAIN, 7).id("a").await.unwrap();
        node
    };
    let (leased, _node) = tokio::join!(fetch_one(&queue), later);
    assert_eq!(leased.activity.instance, "a");
    assert_eq!(world.now_ms() - began_ms, 70_000);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_takes_only_the_tags_that_it_names_and_no_more_than_it_asks_for() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        let tag = if n == 0 { "other" } else { "far" };
        ctx.activity(WORK, n).tag(tag).await
    });
    let _node = world.node(&registry).await;
    for n in 0..6 {
        world.client.start(MAIN, n).id(format!("i{n}")).await.unwrap();
        world.settle().await;
    }
    let queue = queue(&world);
    let instances = |fetched: Vec<LeasedActivity>| -> Vec<String> {
        fetched.into_iter().map(|leased| leased.activity.instance).collect()
    };
    let three = FetchWork { max_items: 3, ..ask() };
    assert_eq!(instances(queue.fetch(three).await.unwrap()), ["i1", "i2", "i3"]);
    assert_eq!(instances(queue.fetch(ask()).await.unwrap()), ["i4", "i5"]);
    let both = FetchWork { tags: TagFilter::tags(["far", "other"]), ..ask() };
    assert_eq!(instances(queue.fetch(both).await.unwrap()), ["i0"]);
}

#[tokio::test(start_paused = true)]
async fn two_workers_never_get_the_same_work() {
    let world = World::resident();
    let _node = world.node(&plain()).await;
    let (one, other) = (queue(&world), queue(&world));
    let serve = async |queue: &WorkQueue, name: &str| {
        let mut served = 0;
        loop {
            let fetched = queue.fetch(FetchWork { max_items: 3, wait: secs(5), ..ask() }).await.unwrap();
            if fetched.is_empty() {
                return served;
            }
            for leased in fetched {
                assert_eq!(leased.delivery, 1);
                world.pass(ms(100)).await;
                queue.complete(&leased.lease, json(name)).await.unwrap();
                served += 1;
            }
        }
    };
    let start = async {
        for n in 0..40 {
            world.client.start(MAIN, n).await.unwrap();
        }
    };
    let (by_one, by_other, ()) = tokio::join!(serve(&one, "one"), serve(&other, "other"), start);
    assert_eq!(by_one + by_other, 40);
    assert!(by_one > 0 && by_other > 0, "{by_one} and {by_other}");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_judged_by_the_retry_policy() {
    let (world, _node, queue) = calling(&plain()).await;
    let first = fetch_one(&queue).await;
    let details = serde_json::json!({"at": 1});
    queue.fail(&first.lease, Failure::application("once more").details(details)).await.unwrap();
    let failed_ms = world.now_ms();
    let second = fetch_one(&queue).await;
    assert_eq!(world.now_ms() - failed_ms, 1_000);
    assert_eq!((second.activity.attempt, second.delivery), (2, 1));
    assert_eq!(second.lease.idempotency_key, first.lease.idempotency_key);
    let last = Failure::application("never").non_retryable().code("own-code");
    queue.fail(&second.lease, last.clone()).await.unwrap();
    assert_eq!(world.failure("a").await, last);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn released_work_comes_again_after_its_delay_and_counts_nowhere() {
    let (world, _node, queue) = calling(&plain()).await;
    // More often than deliveries are allowed.
    for _ in 0..5 {
        let leased = fetch_one(&queue).await;
        assert_eq!((leased.activity.attempt, leased.delivery), (1, 1));
        queue.release(&leased.lease, None).await.unwrap();
    }
    let leased = fetch_one(&queue).await;
    let released_ms = world.now_ms();
    queue.release(&leased.lease, Some(secs(20))).await.unwrap();
    assert_nothing_to_fetch(&queue).await;
    let again = fetch_one(&queue).await;
    assert_eq!(world.now_ms() - released_ms, 20_000);
    queue.complete(&again.lease, json("done")).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "done");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_workers_die_again_and_again_fails_as_poison() {
    let (world, _node, queue) = calling(&plain()).await;
    for delivery in 1..=3 {
        assert_eq!(fetch_one(&queue).await.delivery, delivery);
    }
    // The third lease has to run out first.
    world.pass(secs(30)).await;
    assert_nothing_to_fetch(&queue).await;
    let failure = world.failure("a").await;
    assert_eq!(failure.category, Category::Poison);
    assert!(failure.has_code("too-many-deliveries"));
    assert!(failure.message.contains("after 3 deliveries"), "{failure}");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_activity_is_a_dead_letter_that_begins_the_next_execution_once() {
    let (world, _node, queue) = calling(&plain()).await;
    for _ in 1..=3 {
        fetch_one(&queue).await;
    }
    world.pass(secs(30)).await;
    assert_nothing_to_fetch(&queue).await;
    world.failure("a").await;
    let letter = world.dead_letters().await.remove(0);
    assert_eq!((letter.what, letter.instance.as_str()), (GivenUp::Activity, "a"));
    assert_eq!((letter.execution_id, letter.deliveries), (Some(1), 3));
    assert_eq!(letter.name.as_deref(), Some("work"));
    let (_, body) = world.client.dead_letter(&letter.id).await.unwrap();
    assert!(segno::work_item::WorkItem::decode(&body.unwrap()).is_ok(), "the call itself is kept");

    let one = world.client.resubmit_dead_letter(letter.id.as_str()).await.unwrap();
    assert_eq!((one.instance.as_str(), one.execution_id), ("a", Some(2)));
    assert!(world.dead_letters().await.is_empty());
    let again = world.client.resubmit_dead_letter(letter.id.as_str()).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    let leased = fetch_one(&queue).await;
    assert_eq!((leased.activity.execution_id, leased.delivery), (2, 1));
    queue.complete(&leased.lease, json("done")).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "done");
    assert_eq!(world.client.executions("a").await.unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_letter_whose_instance_was_started_again_by_hand_is_settled() {
    let (world, _node, queue) = calling(&plain()).await;
    for _ in 1..=3 {
        fetch_one(&queue).await;
    }
    world.pass(secs(30)).await;
    assert_nothing_to_fetch(&queue).await;
    world.failure("a").await;
    world.client.restart("a").await.unwrap();
    let letter = world.dead_letters().await.remove(0);
    let refused = world.client.resubmit_dead_letter(letter.id.as_str()).await.unwrap_err();
    assert_eq!(refused.code(), Code::DeadLetterSettled, "{refused}");
    assert_eq!(world.dead_letters().await.len(), 1, "the letter stays until it is discarded");
    world.client.discard_dead_letter(&letter.id).await.unwrap();
    assert!(world.dead_letters().await.is_empty());
    assert_eq!(world.client.executions("a").await.unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_work_becomes_dead_letters_and_holds_up_nothing() {
    let world = World::resident();
    for activity_id in 0..25 {
        let activity = ScheduledActivityIdentifier { instance: "x".to_owned(), execution_id: 1, activity_id };
        let tag = Some("far".to_owned());
        let body = "junk".into();
        let message = WorkerMessage { activity, session_id: None, tag, visible_at_ms: None, body };
        world.store.enqueue_for_worker(message).await.unwrap();
    }
    let _node = world.node(&plain()).await;
    world.client.start(MAIN, 7).id("a").await.unwrap();
    world.settle().await;
    let queue = queue(&world);
    let leased = queue.fetch(FetchWork { wait: Duration::ZERO, ..ask() }).await.unwrap().remove(0);
    assert_eq!(leased.activity.instance, "a");
    let letters = world.dead_letters().await;
    assert_eq!(letters.len(), 25);
    assert_eq!((letters[0].what, letters[0].instance.as_str()), (GivenUp::Activity, "x"));
    assert_eq!(letters[0].parked_at_ms, world.now_ms());
}

#[tokio::test(start_paused = true)]
async fn requests_out_of_range_are_refused_with_the_way_out() {
    let (_world, _node, queue) = calling(&plain()).await;
    let names = |count: usize| (0..count).map(|n| format!("tag {n}")).collect::<BTreeSet<String>>();
    let tags = |count| TagFilter::Tags(names(count));
    let prefixes = |prefixes, except| TagPrefixes {
        prefixes: names(prefixes),
        except: names(except),
        ..TagPrefixes::default()
    };
    let left_out = TagPrefixes { except_prefixes: names(MAX_EXCEPT_PREFIXES + 1), ..prefixes(1, 0) };
    let prefixes = |count, except| TagFilter::Prefixes(prefixes(count, except));
    for (request, text) in [
        (FetchWork { tags: tags(0), ..ask() }, "1 to 256 tags, not 0"),
        (FetchWork { tags: tags(MAX_FETCH_TAGS + 1), ..ask() }, "1 to 256 tags, not 257"),
        (FetchWork { tags: prefixes(0, 0), ..ask() }, "1 to 256 tags, not 0"),
        (FetchWork { tags: prefixes(1, MAX_FETCH_TAGS + 1), ..ask() }, "at most 256 tags, not 257"),
        (FetchWork { tags: TagFilter::Prefixes(left_out), ..ask() }, "at most 512 prefixes of tags, not 513"),
        (FetchWork { tags: TagFilter::Any, ..ask() }, "tags or prefixes of tags, not Any"),
        (FetchWork { max_items: 0, ..ask() }, "1 to 256 items, not 0"),
        (FetchWork { max_items: MAX_FETCHED_WORK + 1, ..ask() }, "1 to 256 items, not 257"),
        (FetchWork { lease: Duration::ZERO, ..ask() }, "ask for 10ms to 86400s"),
        (FetchWork { lease: MAX_LEASE * 2, ..ask() }, "ask for 10ms to 86400s"),
    ] {
        let error = queue.fetch(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidOption);
        assert!(error.to_string().contains(text), "{error}");
    }
    let empty = FetchWork { tags: TagFilter::tags([""]), ..ask() };
    assert_eq!(queue.fetch(empty).await.unwrap_err().code(), Code::InvalidName);

    let lease = fetch_one(&queue).await.lease;
    let code = |answer: Result<(), segno::Error>| answer.unwrap_err().code();
    assert_eq!(code(queue.release(&lease, Some(MAX_LEASE * 2)).await), Code::InvalidOption);
    assert_eq!(code(queue.heartbeat(&lease, Duration::ZERO, None).await.map(drop)), Code::InvalidOption);
    // A payload that comes as part of a request has not been measured yet.
    let large: Payload = serde_json::from_str(&format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES))).unwrap();
    assert_eq!(code(queue.complete(&lease, large.clone()).await), Code::PayloadTooLarge);
    let beat = queue.heartbeat(&lease, secs(30), Some(large)).await;
    assert_eq!(code(beat.map(drop)), Code::PayloadTooLarge);
    queue.complete(&lease, json("done")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_queue_without_deliveries_is_refused() {
    let error = WorkQueue::builder(World::resident().store).max_deliveries(0).build().err().unwrap();
    assert_eq!(error.code(), Code::InvalidOption);
}
