//! Workers outside the process: leases that are kept, end, are lost and are taken over.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use segno::store::{ErrorKind, ListRecords, Records};
use segno::work::{Heartbeat, Lease, StopReason, WorkQueue};
use segno::{Code, Context, Failure, Payload, Registry, Retry, telemetry};
use segno_testkit::faults::{Fault, FaultStore, script};

use crate::support::{ms, secs};
use crate::work_queue::{WORK, assert_nothing_to_fetch, calling, fetch_one, json, plain, registry};

/// A heartbeat that must be answered with a longer lease.
async fn beat(queue: &WorkQueue, lease: &Lease, progress: Option<Payload>) -> Lease {
    match queue.heartbeat(lease, secs(30), progress).await.unwrap() {
        Heartbeat::GoOn(lease) => lease,
        Heartbeat::Stop(reason) => panic!("the attempt should go on, but was stopped: {reason}"),
    }
}

/// No answer under this lease is taken.
async fn assert_lost(queue: &WorkQueue, lease: &Lease) {
    for answer in [
        queue.complete(lease, json("late")).await,
        queue.fail(lease, Failure::application("late")).await,
        queue.release(lease, None).await,
    ] {
        let error = answer.unwrap_err();
        assert_eq!((error.code(), error.kind()), (Code::LeaseLost, ErrorKind::Conflict));
        assert!(error.to_string().contains(r#"activity "work" of instance a"#), "{error}");
    }
}

/// A call with a timeout of its attempts.
fn with_timeout() -> Registry {
    registry(async |ctx: Context, n| {
        ctx.activity(WORK, n).tag("far").timeout(secs(40)).retry(Retry::fixed(2, secs(1))).await
    })
}

/// A call whose attempts are shorter than the leases that workers ask for.
fn short() -> Registry {
    registry(async |ctx: Context, n| ctx.activity(WORK, n).tag("far").timeout(secs(5)).await)
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_the_lease_for_as_long_as_they_come() {
    let (world, _node, queue) = calling(&plain()).await;
    let mut lease = fetch_one(&queue).await.lease;
    for _ in 0..50 {
        world.pass(secs(29)).await;
        lease = beat(&queue, &lease, None).await;
        assert_eq!(lease.expires_at_ms, world.now_ms() + 30_000);
        assert_nothing_to_fetch(&queue).await;
    }
    queue.complete(&lease, json("done")).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "done");
}

#[tokio::test(start_paused = true)]
async fn any_process_can_take_the_answer() {
    let (world, _node, queue) = calling(&plain()).await;
    let text = serde_json::to_string(&fetch_one(&queue).await.lease).unwrap();
    drop(queue);
    let elsewhere = WorkQueue::new(world.store.clone());
    let lease: Lease = serde_json::from_str(&text).unwrap();
    beat(&elsewhere, &lease, None).await;
    elsewhere.complete(&lease, json("done")).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "done");
}

#[tokio::test(start_paused = true)]
async fn work_of_a_dead_worker_is_taken_over_and_late_answers_change_nothing() {
    let (world, _node, queue) = calling(&plain()).await;
    let dead = fetch_one(&queue).await.lease;
    let fetched_ms = world.now_ms();
    let heir = fetch_one(&queue).await;
    assert_eq!(world.now_ms() - fetched_ms, 30_000);
    assert_eq!((heir.activity.attempt, heir.delivery), (1, 2));
    assert_lost(&queue, &dead).await;
    let error = queue.heartbeat(&dead, secs(30), Some(json("late"))).await.unwrap_err();
    assert_eq!(error.code(), Code::LeaseLost);

    // The heir is not disturbed.
    world.pass(secs(29)).await;
    let lease = beat(&queue, &heir.lease, None).await;
    assert_nothing_to_fetch(&queue).await;
    queue.complete(&lease, json("by the heir")).await.unwrap();
    assert_lost(&queue, &dead).await;
    assert_eq!(world.output::<String>("a").await, "by the heir");
    world.assert_queues_are_empty().await;
    let kinds = world.kinds("a").await;
    assert_eq!(kinds.iter().filter(|kind| **kind == "ActivityCompleted").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_lost_even_if_nobody_took_over() {
    let (world, _node, queue) = calling(&plain()).await;
    let leased = fetch_one(&queue).await;
    world.pass(secs(30)).await;
    assert_lost(&queue, &leased.lease).await;
    assert_eq!(fetch_one(&queue).await.delivery, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_once() {
    let (world, _node, queue) = calling(&plain()).await;
    let lease = fetch_one(&queue).await.lease;
    queue.complete(&lease, json("done")).await.unwrap();
    assert_lost(&queue, &lease).await;
    assert_eq!(world.output::<String>("a").await, "done");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_activity_is_told_to_stop_at_its_next_heartbeat() {
    let (world, _node, queue) = calling(&plain()).await;
    let first = fetch_one(&queue).await.lease;
    world.pass(secs(20)).await;
    let lease = beat(&queue, &first, None).await;
    world.client.cancel("a", "not needed").await.unwrap();
    world.ended("a").await;
    world.pass(secs(20)).await;
    let answer = queue.heartbeat(&lease, secs(30), Some(json(1))).await.unwrap();
    assert_eq!(answer, Heartbeat::Stop(StopReason::Cancelled));
    assert_eq!(StopReason::Cancelled.to_string(), "cancelled");
    // By what this one says, it may as well have run out.
    let error = queue.heartbeat(&first, secs(30), None).await.unwrap_err();
    assert_eq!(error.code(), Code::LeaseLost);
    assert_lost(&queue, &lease).await;
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_heartbeat_after_the_end_of_an_attempt_fails_it() {
    let (world, _node, queue) = calling(&with_timeout()).await;
    let lease = fetch_one(&queue).await.lease;
    let ends_at_ms = world.now_ms() + 40_000;
    world.pass(secs(25)).await;
    let lease = beat(&queue, &lease, None).await;
    assert_eq!(lease.expires_at_ms, ends_at_ms, "no lease goes beyond the attempt");
    world.pass(secs(20)).await;
    let answer = queue.heartbeat(&lease, secs(30), Some(json("nearly"))).await.unwrap();
    assert_eq!(answer, Heartbeat::Stop(StopReason::TimedOut));
    assert_lost(&queue, &lease).await;

    let second = fetch_one(&queue).await;
    assert_eq!((second.activity.attempt, second.delivery), (2, 1));
    assert_eq!(second.last_progress, Some(json("nearly")));
    world.pass(secs(25)).await;
    let lease = beat(&queue, &second.lease, None).await;
    world.pass(secs(15)).await;
    queue.heartbeat(&lease, secs(30), None).await.unwrap();
    let failure = world.failure("a").await;
    assert!(failure.is_timeout() && failure.has_code("attempt-timeout"), "{failure}");
    assert!(failure.message.contains(r#""work" took longer than 40000 ms"#), "{failure}");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_counts_while_its_lock_holds() {
    let (world, _node, queue) = calling(&with_timeout()).await;
    let lease = fetch_one(&queue).await.lease;
    world.pass(secs(25)).await;
    let lease = beat(&queue, &lease, None).await;
    world.pass(secs(20)).await;
    assert!(lease.expires_at_ms < world.now_ms());
    queue.complete(&lease, json("just so")).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "just so");
}

#[tokio::test(start_paused = true)]
async fn a_lease_longer_than_its_attempt_is_cut_when_it_is_handed_out() {
    let (world, _node, queue) = calling(&short()).await;
    let leased = fetch_one(&queue).await;
    let fetched_ms = world.now_ms();
    assert_eq!(leased.lease.expires_at_ms, fetched_ms + 5_000);
    // A worker that says nothing is replaced soon after the end, not when the lease that it asked for is over.
    assert_eq!(fetch_one(&queue).await.delivery, 2);
    assert_eq!(world.now_ms() - fetched_ms, 20_000);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_timeout_bounds_every_lease() {
    let (world, _node, queue) = calling(&registry(async |ctx: Context, n| {
        ctx.activity(WORK, n).tag("far").heartbeat_timeout(secs(3)).await
    }))
    .await;
    let mut lease = fetch_one(&queue).await.lease;
    assert_eq!(lease.expires_at_ms, world.now_ms() + 3_000);
    for _ in 0..5 {
        world.pass(secs(2)).await;
        lease = beat(&queue, &lease, None).await;
        assert_eq!(lease.expires_at_ms, world.now_ms() + 3_000);
    }
    let silent_ms = world.now_ms();
    assert_eq!(fetch_one(&queue).await.delivery, 2);
    assert_eq!(world.now_ms() - silent_ms, 3_000);
}

#[tokio::test(start_paused = true)]
async fn progress_is_handed_on_to_whoever_comes_next() {
    let (world, _node, queue) = calling(&plain()).await;
    // To the next delivery after a release, to the next after a death, and to the next attempt.
    let leased = fetch_one(&queue).await;
    assert_eq!(leased.last_progress, None);
    let lease = beat(&queue, &leased.lease, Some(json(1))).await;
    let lease = beat(&queue, &lease, Some(json(2))).await;
    queue.release(&lease, None).await.unwrap();
    let leased = fetch_one(&queue).await;
    assert_eq!(leased.last_progress, Some(json(2)));
    beat(&queue, &leased.lease, Some(json(3))).await;
    let leased = fetch_one(&queue).await;
    assert_eq!(leased.last_progress, Some(json(3)));
    queue.fail(&leased.lease, Failure::application("again")).await.unwrap();
    let leased = fetch_one(&queue).await;
    assert_eq!((leased.activity.attempt, leased.last_progress.clone()), (2, Some(json(3))));
    queue.complete(&leased.lease, json("done")).await.unwrap();
    world.ended("a").await;
    let records = ListRecords { kind: "segno.progress", id_prefix: "", after_id: None, limit: 10 };
    let left = world.store.list_records(records).await.unwrap();
    assert_eq!(left, [], "a success leaves no progress behind");
}

#[tokio::test(start_paused = true)]
async fn progress_that_is_stored_too_late_does_not_hide_newer() {
    let (world, _node, queue) = calling(&plain()).await;
    let lease = fetch_one(&queue).await.lease;
    // The lock is renewed in time, and the progress is on its way for longer than that helps.
    let plan = script([(2, Fault::Delay(secs(40)))]);
    let slow = WorkQueue::new(FaultStore::new(world.store.clone(), world.clock.clone(), plan));
    let heir = async {
        world.pass(ms(1)).await;
        let heir = fetch_one(&queue).await;
        assert_eq!(heir.delivery, 2);
        beat(&queue, &heir.lease, Some(json("newer"))).await
    };
    let (_late, lease) = tokio::join!(beat(&slow, &lease, Some(json("older"))), heir);
    queue.release(&lease, None).await.unwrap();
    assert_eq!(fetch_one(&queue).await.last_progress, Some(json("newer")));
}

#[tokio::test(start_paused = true)]
async fn a_node_and_a_worker_elsewhere_see_the_same_progress() {
    let registry = Registry::builder()
        .orchestration(crate::work_queue::MAIN, async |ctx: Context, n| {
            ctx.activity(WORK, n).tag("far").retry(Retry::fixed(2, secs(1))).await
        })
        .activity(WORK, async |ctx: segno::ActivityContext, _| {
            Ok(format!("{:?}", ctx.last_progress::<u32>().await?))
        })
        .build()
        .unwrap();
    let (world, _node, queue) = calling(&registry).await;
    let lease = fetch_one(&queue).await.lease;
    beat(&queue, &lease, Some(json(41))).await;
    queue.fail(&lease, Failure::application("go home")).await.unwrap();
    let tag_filter = segno::store::TagFilter::tags(["far"]);
    let options = segno::RuntimeOptions { tag_filter, ..world.options() };
    let _worker = world.bystander(&registry, options).await;
    assert_eq!(world.output::<String>("a").await, "Some(41)");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_around_the_commit_of_an_answer_loses_and_doubles_nothing() {
    for (fault, was_taken) in [
        (Fault::FailBefore, false),
        (Fault::FailAfter, true),
        (Fault::CrashBefore, false),
        (Fault::CrashAfter, true),
    ] {
        let (world, _node, queue) = calling(&plain()).await;
        let lease = fetch_one(&queue).await.lease;
        let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), script([(1, fault)]));
        let dying = WorkQueue::new(faulty.clone());
        tokio::select! {
            answer = dying.complete(&lease, json("done")) => {
                assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
            }
            () = faulty.died() => {}
        }
        // The worker asks another server.
        let again = queue.complete(&lease, json("done")).await;
        assert_eq!(again.err().map(|error| error.code()), was_taken.then_some(Code::LeaseLost), "{fault:?}");
        assert_eq!(world.output::<String>("a").await, "done");
        world.assert_queues_are_empty().await;
        world.check_histories().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_cut_is_handed_out_all_the_same() {
    let (world, _node, _queue) = calling(&short()).await;
    world.settle().await;
    let plan = script([(1, Fault::FailBefore)]);
    let faulty = FaultStore::new(world.store.clone(), world.clock.clone(), plan);
    let leased = fetch_one(&WorkQueue::new(faulty.clone())).await;
    assert_eq!(faulty.commits(), 1, "the cut is the one commit that failed");
    assert_eq!(leased.lease.expires_at_ms, world.now_ms() + 5_000);
}

#[tokio::test(start_paused = true)]
async fn counters_tell_what_became_of_the_leases() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (world, _node, queue) = calling(&plain()).await;
    let expired = fetch_one(&queue).await.lease;
    world.pass(secs(30)).await;
    queue.heartbeat(&expired, secs(30), None).await.unwrap_err();
    queue.complete(&expired, json("late")).await.unwrap_err();
    let second = fetch_one(&queue).await.lease;
    queue.fail(&second, Failure::application("again")).await.unwrap();
    let third = fetch_one(&queue).await.lease;
    world.pass(ms(500)).await;
    queue.complete(&third, json("done")).await.unwrap();
    world.client.start(crate::work_queue::MAIN, 1).id("b").await.unwrap();
    let cancelled = fetch_one(&queue).await.lease;
    world.client.cancel("b", "not needed").await.unwrap();
    world.ended("b").await;
    queue.heartbeat(&cancelled, secs(30), None).await.unwrap();

    let mut counters = BTreeMap::new();
    let mut seconds = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        match value {
            DebugValue::Counter(count) => {
                counters.insert(format!("{} {}", key.key().name(), labels.join(",")), count);
            }
            DebugValue::Histogram(values) if key.key().name() == telemetry::ACTIVITY_SECONDS => {
                seconds.extend(values.into_iter().map(|value| value.into_inner()));
            }
            _ => {}
        }
    }
    for (name, label, count) in [
        (telemetry::ACTIVITY_ATTEMPTS, "completed", 1),
        (telemetry::ACTIVITY_ATTEMPTS, "failed", 1),
        (telemetry::ACTIVITY_ATTEMPTS, "lock_lost", 1),
        (telemetry::ACTIVITY_ATTEMPTS, "cancelled", 1),
        (telemetry::LOCKS_LOST, "activity", 1),
    ] {
        assert_eq!(counters.get(&format!("{name} {label}")), Some(&count), "{name} {label} of {counters:#?}");
    }
    seconds.sort_by(f64::total_cmp);
    assert_eq!(seconds, [0.0, 0.5]);
}

#[tokio::test(start_paused = true)]
async fn work_bound_to_a_session_stays_with_nodes() {
    let (world, _node, queue) =
        calling(&registry(async |ctx: Context, n| ctx.activity(WORK, n).tag("far").session("s").await)).await;
    world.settle().await;
    assert_eq!(world.client.queue_depths().await.unwrap().worker_queue, 1);
    assert_nothing_to_fetch(&queue).await;
}
