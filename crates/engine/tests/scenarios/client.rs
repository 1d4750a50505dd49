//! The client: starting, waiting, listing, deleting, and saying no.

use std::collections::BTreeSet;

use segno::client::{BulkLeft, BulkObstacle, BulkPreview, BulkResult, OnConflict};
use segno::limits::{MAX_BULK_INSTANCES, MAX_PAGE_ROWS, MAX_PAYLOAD_BYTES};
use segno::store::{ExecutionStatus, InstanceFilter, InstanceQuery, PruneOptions};
use segno::{Code, Context, Failure, Mailbox, Orchestration, Registry, Signal, join_all};

use crate::support::{HANG, Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const WAITS: Orchestration<u32, u32> = Orchestration::new("waits");
const FAILS: Orchestration<u32, u32> = Orchestration::new("fails");
const GO: Signal<u32> = Signal::new("go");

fn registry(log: &Log) -> Registry {
    let ran = log.clone();
    Registry::builder()
        .orchestration(MAIN, move |_, n| {
            ran.push(n.to_string());
            async move { Ok(n) }
        })
        .orchestration(WAITS, async |ctx: Context, n| {
            ctx.set_label("input", n.to_string())?;
            for status in 1.. {
                ctx.set_status(&status)?;
                if ctx.signal(GO).await? == 0 {
                    break;
                }
            }
            Ok(n)
        })
        .orchestration(FAILS, async |_, _| Err(Failure::application("always")))
        .build()
        .unwrap()
}

fn query() -> InstanceQuery {
    InstanceQuery::default()
}

#[tokio::test(start_paused = true)]
async fn concurrent_starts_with_one_id_make_one_instance() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let _node = world.node(&registry(&log)).await;
        let starts = (0..50).map(|n| world.client.start(MAIN, n).id("a").into_future());
        let answers = join_all(starts).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        for refused in answers.into_iter().filter_map(Result::err) {
            assert_eq!(refused.code(), Code::InstanceExists);
        }
        world.ended("a").await;
        let late = world.client.start(MAIN, 1).id("a").await.unwrap_err();
        assert_eq!(late.code(), Code::InstanceExists);
        world.settle().await;
        assert_eq!(log.count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_takes_the_existing_instance_or_replaces_it() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    let start = |n| world.client.start(WAITS, n).id("a");
    assert!(start(1).on_conflict(OnConflict::UseExisting).await.unwrap().created());
    world.settle().await;
    let second = start(2).on_conflict(OnConflict::UseExisting).await.unwrap();
    assert_eq!((second.id(), second.created()), ("a", false));
    assert!(start(3).on_conflict(OnConflict::Replace).await.unwrap().created());
    world.settle().await;
    world.client.signal("a", GO, 0).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 3);
    // Also in place of one that has ended, and of one whose start is still queued.
    assert!(start(4).on_conflict(OnConflict::Replace).await.unwrap().created());
    assert!(start(5).on_conflict(OnConflict::Replace).await.unwrap().created());
    world.client.signal("a", GO, 0).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_handle_does_with_its_instance_what_a_client_does_with_an_id() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    let started = world.client.start(WAITS, 7).id("a").await.unwrap();
    assert_eq!(format!("{started:?}"), r#"InstanceHandle { id: "a", created: true, .. }"#);
    let handle = world.client.handle::<u32>("a");
    assert_eq!((handle.id(), handle.created()), ("a", false));
    assert_eq!(handle.status_change(0).await.unwrap().status.unwrap().as_str(), "1");
    handle.pause("lunch").await.unwrap();
    world.settle().await;
    assert_eq!(handle.status().await.unwrap(), ExecutionStatus::Paused);
    assert_eq!(handle.instance().await.unwrap().pause_reason(), Some("lunch"));
    handle.resume().await.unwrap();
    let late = handle.result().timeout(secs(5)).await.unwrap_err();
    assert_eq!(late.code(), Code::WaitTimedOut);
    handle.enqueue(Mailbox::new("notes"), "hello".to_owned()).await.unwrap();
    handle.signal(GO, 0).await.unwrap();
    assert_eq!(started.clone().result().await.unwrap(), 7);
    assert_eq!(handle.wait_until_ended(HANG).await.unwrap().status, ExecutionStatus::Completed);
    let received = world.kinds("a").await.iter().filter(|kind| **kind == "MessageReceived").count();
    assert_eq!(received, 2, "the note and the signal");

    let cancelled = world.client.start(WAITS, 8).await.unwrap();
    cancelled.cancel("enough").await.unwrap();
    assert!(cancelled.result().await.unwrap_err().failure().unwrap().is_cancelled());
    let absent = world.client.handle::<u32>("absent");
    assert_eq!(absent.status().await.unwrap_err().code(), Code::NotFound);
    let mistyped = world.client.handle::<String>("a").result().await.unwrap_err();
    assert_eq!(mistyped.code(), Code::PayloadMismatch);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_start_is_visible_as_pending_and_runs_at_its_time() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let _node = world.node(&registry(&log)).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 1).id("a").delay(secs(100)).label("k", "v").await.unwrap();
        world.client.start(MAIN, 2).id("b").at_ms(begin_ms + 50_000).await.unwrap();
        world.client.start(MAIN, 3).id("past").at_ms(1).await.unwrap();
        assert_eq!(world.output::<u32>("past").await, 3);
        let pending = InstanceQuery { statuses: [ExecutionStatus::Pending].into(), ..query() };
        let pending = world.client.list(pending).await.unwrap().instances;
        assert_eq!(pending.len(), 2);
        let a = world.client.instance("a").await.unwrap();
        assert_eq!((a.orchestration.as_deref(), a.labels["k"].as_str()), (Some("main"), "v"));
        let again = world.client.start(MAIN, 1).id("a").await.unwrap_err();
        assert_eq!(again.code(), Code::InstanceExists);
        assert_eq!(world.output::<u32>("a").await, 1);
        assert_eq!(world.now_ms() - begin_ms, 100_000);
        assert_eq!(log.lines(), ["3", "2", "1"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_result_times_out_and_the_instance_goes_on() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    world.client.start(WAITS, 7).id("a").await.unwrap();
    let begin_ms = world.now_ms();
    let error = world.client.result(WAITS, "a").timeout(secs(30)).await.unwrap_err();
    assert_eq!(error.code(), Code::WaitTimedOut);
    assert_eq!(world.now_ms() - begin_ms, 30_000);
    world.client.signal("a", GO, 0).await.unwrap();
    assert_eq!(world.client.result(WAITS, "a").timeout(HANG).await.unwrap(), 7);
    let wrong = world.client.result(Orchestration::<u32, String>::new("waits"), "a").await.unwrap_err();
    assert_eq!(wrong.code(), Code::PayloadMismatch);
    assert_eq!(world.client.result(WAITS, "").await.unwrap_err().code(), Code::InvalidInstanceId);
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_for_each_change_of_the_status() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    let waiting = tokio::spawn(world.client.status_change("a", 0).into_future());
    world.client.start(WAITS, 1).id("a").await.unwrap();
    let first = waiting.await.unwrap().unwrap();
    assert_eq!((first.status.unwrap().as_str(), first.version, first.ended), ("1", 1, false));
    let waiting = tokio::spawn(world.client.status_change("a", 1).into_future());
    world.settle().await;
    assert!(!waiting.is_finished());
    world.client.signal("a", GO, 1).await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    assert_eq!((second.status.unwrap().as_str(), second.version), ("2", 2));
    let quiet = world.client.status_change("a", 2).timeout(secs(5)).await.unwrap_err();
    assert_eq!(quiet.code(), Code::WaitTimedOut);
    world.client.signal("a", GO, 0).await.unwrap();
    let last = world.client.status_change("a", 2).await.unwrap();
    assert!(last.ended);
}

#[tokio::test(start_paused = true)]
async fn instances_are_found_by_each_criterion_and_page_by_page() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    let begin_ms = world.now_ms();
    for n in 0..25 {
        let start =
            world.client.start(MAIN, n).id(format!("main-{n:02}")).label("even", (n % 2 == 0).to_string());
        start.await.unwrap();
        world.pass(secs(1)).await;
    }
    world.client.start(WAITS, 3).id("waits-1").await.unwrap();
    world.client.start(FAILS, 3).id("fails-1").await.unwrap();
    world.settle().await;
    let count = async |query: InstanceQuery| world.client.list(query).await.unwrap().instances.len();
    assert_eq!(count(query()).await, 27);
    assert_eq!(count(InstanceQuery { id_prefix: Some("main-1".to_owned()), ..query() }).await, 10);
    assert_eq!(count(InstanceQuery { orchestration_name: Some("main".to_owned()), ..query() }).await, 25);
    for (status, expected) in [
        (ExecutionStatus::Completed, 25),
        (ExecutionStatus::Running, 1),
        (ExecutionStatus::Failed, 1),
        (ExecutionStatus::Cancelled, 0),
    ] {
        assert_eq!(count(InstanceQuery { statuses: [status].into(), ..query() }).await, expected, "{status}");
    }
    let label = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    assert_eq!(count(InstanceQuery { labels: label("even", "true"), ..query() }).await, 13);
    assert_eq!(count(InstanceQuery { labels: label("input", "3"), ..query() }).await, 1, "set by the code");
    let window = InstanceQuery {
        created_from_ms: Some(begin_ms + 5_000),
        created_before_ms: Some(begin_ms + 10_000),
        ..query()
    };
    assert_eq!(count(window).await, 5);
    let mut pages = InstanceQuery { limit: 10, ..query() };
    let mut seen = Vec::new();
    loop {
        let page = world.client.list(pages.clone()).await.unwrap();
        seen.extend(page.instances.into_iter().map(|instance| (instance.created_at_ms, instance.id)));
        match page.next {
            Some(cursor) => pages.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 27);
    assert!(seen.windows(2).all(|pair| pair[0].0 >= pair[1].0), "newest first");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 27);
    let too_many = InstanceQuery { limit: MAX_PAGE_ROWS + 1, ..query() };
    assert_eq!(world.client.list(too_many).await.unwrap_err().code(), Code::InvalidOption);
}

#[tokio::test(start_paused = true)]
async fn bulk_calls_count_first_and_keep_to_their_limit() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    for n in 0..12 {
        world.client.start(WAITS, n).id(format!("w{n}")).await.unwrap();
    }
    world.settle().await;
    let all = || world.client.bulk(InstanceQuery { orchestration_name: Some("waits".to_owned()), ..query() });
    let counted = all().count(BulkPreview::Send).await.unwrap();
    assert_eq!((counted.matched, counted.done, counted.next), (12, 12, None));
    let limited = all().limit(5).count(BulkPreview::Send).await.unwrap();
    assert_eq!((limited.matched, limited.next.is_some()), (5, true));
    assert_eq!(all().limit(12).count(BulkPreview::Send).await.unwrap().next, None);
    assert_eq!(all().pause("x").await.unwrap().done, 12);
    world.settle().await;
    assert_eq!(world.client.system_metrics().await.unwrap().paused_instances, 12);
    assert_eq!(all().resume().await.unwrap().done, 12);
    assert_eq!(all().limit(4).cancel("x").await.unwrap().done, 4);
    world.settle().await;
    assert_eq!(world.client.system_metrics().await.unwrap().cancelled_instances, 4);
    // A count is what the call would do.
    for (preview, done) in [(BulkPreview::Send, 8), (BulkPreview::Delete, 4), (BulkPreview::ForceDelete, 12)]
    {
        assert_eq!(all().count(preview).await.unwrap().done, done, "{preview:?}");
    }
    let deleted = all().delete(false).await.unwrap();
    assert_eq!((deleted.matched, deleted.done), (12, 4), "running ones are passed over");
    assert_eq!(deleted.left, BulkLeft { running: 8, ..BulkLeft::default() });
    let kept = all().passing_over(|_| true).delete(true).await.unwrap();
    assert_eq!((kept.done, kept.left), (0, BulkLeft { passed_over: 8, ..BulkLeft::default() }));
    assert_eq!(all().delete(true).await.unwrap().done, 8);
    assert_eq!(world.client.system_metrics().await.unwrap().total_instances, 0);
    let too_many = all().limit(MAX_BULK_INSTANCES + 1).count(BulkPreview::Send).await.unwrap_err();
    assert_eq!(too_many.code(), Code::TooManyInstances);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn bulk_calls_one_after_the_other_reach_each_instance_once() {
    const COUNT: u32 = 1_100;
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    for n in 0..COUNT {
        world.client.start(WAITS, n).id(format!("w{n}")).await.unwrap();
    }
    world.settle().await;
    let mut running = InstanceQuery { statuses: [ExecutionStatus::Running].into(), ..query() };
    let more_than_a_page =
        world.client.bulk(running.clone()).limit(1_050).count(BulkPreview::Send).await.unwrap();
    assert_eq!((more_than_a_page.matched, more_than_a_page.next.is_some()), (1_050, true));
    let (mut matched, mut done) = (0, 0);
    loop {
        // What was cancelled a moment ago still runs: nothing has settled.
        let part = world.client.bulk(running.clone()).limit(300).cancel("enough").await.unwrap();
        matched += part.matched;
        done += part.done;
        running.cursor = part.next;
        if running.cursor.is_none() {
            break;
        }
    }
    assert_eq!((matched, done), (COUNT as usize, COUNT as usize));
    world.settle().await;
    assert_eq!(world.client.system_metrics().await.unwrap().cancelled_instances, u64::from(COUNT));
}

#[tokio::test(start_paused = true)]
async fn bulk_calls_by_id_act_on_these_in_their_order_and_go_on_after_the_last() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    for n in 0..4 {
        world.client.start(WAITS, n).id(format!("w{n}")).await.unwrap();
    }
    world.client.start(MAIN, 1).id("ended").await.unwrap();
    world.ended("ended").await;
    let ids = ["w2", "nobody", "w0", "w2", "ended", "w1"].map(str::to_owned).to_vec();
    let of = |after: Option<&str>| world.client.bulk_of(ids.clone(), after.map(str::to_owned));
    let counted = of(None).count(BulkPreview::Send).await.unwrap();
    let left = BulkLeft { gone: 1, ended: 1, ..BulkLeft::default() };
    assert_eq!((counted.matched, counted.done, counted.left), (5, 3, left));
    assert_eq!(counted.sample, ["w2", "w0", "w1"], "in the order of the call, each once");
    let named = [("nobody".to_owned(), BulkObstacle::Gone), ("ended".to_owned(), BulkObstacle::Ended)];
    assert_eq!(counted.left_sample, named);
    assert_eq!(of(None).count(BulkPreview::Restart).await.unwrap().sample, ["ended"]);
    assert_eq!(of(None).count(BulkPreview::ForceRestart).await.unwrap().done, 4);
    assert_eq!(of(None).count(BulkPreview::Retry).await.unwrap().left.not_waiting, 3);
    let first = of(None).limit(3).cancel("enough").await.unwrap();
    let next = first.next.map(|next| next.instance_id);
    assert_eq!((first.matched, first.done, next.as_deref()), (3, 2, Some("w0")));
    let rest = of(next.as_deref()).cancel("enough").await.unwrap();
    assert_eq!((rest.matched, rest.done, rest.next), (2, 1, None));
    world.settle().await;
    assert_eq!(world.client.system_metrics().await.unwrap().cancelled_instances, 3);
    let elsewhere = of(Some("w3")).count(BulkPreview::Send).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::InvalidOption);
    let many = (0..=MAX_BULK_INSTANCES).map(|n| n.to_string()).collect();
    let too_many = world.client.bulk_of(many, None).count(BulkPreview::Send).await.unwrap_err();
    assert_eq!(too_many.code(), Code::TooManyInstances);
}

#[tokio::test(start_paused = true)]
async fn a_bulk_call_does_what_its_caller_does_and_ends_with_its_error() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    for n in 0..3 {
        world.client.start(MAIN, n).id(format!("m{n}")).await.unwrap();
        world.ended(&format!("m{n}")).await;
    }
    let ids = || ["m0", "m1", "m2"].map(str::to_owned).to_vec();
    let restart = async |id: String| match id.as_str() {
        "m1" => Ok(Some(BulkObstacle::Refused)),
        id => world.client.restart(id).await.map(|_| None),
    };
    let done: BulkResult = world.client.bulk_of(ids(), None).apply(restart).await.unwrap();
    assert_eq!((done.done, done.left), (2, BulkLeft { refused: 1, ..BulkLeft::default() }));
    world.settle().await;
    let execution = async |id: &str| world.client.instance(id).await.unwrap().execution_id;
    assert_eq!((execution("m0").await, execution("m1").await, execution("m2").await), (2, 1, 2));
    let failed = world.client.bulk_of(ids(), None).apply(async |id| match world.client.instance(&id).await {
        Ok(_) => world.client.instance("nobody").await.map(|_| None),
        Err(error) => Err(error),
    });
    assert_eq!(failed.await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn ended_instances_are_deleted_by_age_and_nothing_else() {
    let world = World::resident();
    let _node = world.node(&registry(&Log::default())).await;
    world.client.start(MAIN, 1).id("old").result().await.unwrap();
    world.pass(secs(100)).await;
    world.client.start(MAIN, 1).id("young").result().await.unwrap();
    world.client.start(WAITS, 1).id("running").await.unwrap();
    world.settle().await;
    let filter =
        InstanceFilter { completed_before_ms: Some(world.now_ms() - 50_000), ..InstanceFilter::default() };
    assert_eq!(world.client.delete_ended(filter).await.unwrap().instances_deleted, 1);
    assert_eq!(world.client.instance("old").await.unwrap_err().code(), Code::NotFound);
    assert!(world.client.instance("young").await.is_ok() && world.client.instance("running").await.is_ok());
    let all = InstanceFilter::default();
    assert_eq!(world.client.delete_ended(all.clone()).await.unwrap().instances_deleted, 1);
    let pruned = world.client.prune_many(all, PruneOptions { keep_last: Some(1), ..PruneOptions::default() });
    assert_eq!(pruned.await.unwrap().executions_deleted, 0);
}

#[tokio::test(start_paused = true)]
async fn bad_starts_are_refused_with_their_code_and_change_nothing() {
    const TEXT: Orchestration<String, u32> = Orchestration::new("text");
    let world = World::resident();
    let client = &world.client;
    let long = "x".repeat(600);
    let mut labels = client.start(MAIN, 1).id("a");
    for n in 0..40 {
        labels = labels.label(format!("k{n}"), "v");
    }
    let refusals = [
        (client.start(MAIN, 1).id("").await, Code::InvalidInstanceId),
        (client.start(MAIN, 1).id(long.clone()).await, Code::InvalidInstanceId),
        (client.start(MAIN, 1).id("a\nb").await, Code::InvalidInstanceId),
        (client.start(MAIN, 1).id(" a").await, Code::InvalidInstanceId),
        (client.start(Orchestration::<u32, u32>::new(""), 1).id("a").await, Code::InvalidName),
        (client.start(Orchestration::<u32, u32>::named(long), 1).id("a").await, Code::InvalidName),
        (client.start(MAIN.at("1.x"), 1).id("a").await, Code::InvalidVersion),
        (client.start(MAIN, 1).id("a").label("", "v").await, Code::InvalidLabel),
        (client.start(MAIN, 1).id("a").label("k", "v\n").await, Code::InvalidLabel),
        (client.start(MAIN, 1).id("a").label("segno.function", "v").await, Code::InvalidLabel),
        (client.start(MAIN, 1).id("a").reserved_label("team", "v").await, Code::InvalidLabel),
        (labels.await, Code::InvalidLabel),
        (client.start(TEXT, "x".repeat(MAX_PAYLOAD_BYTES)).id("a").await, Code::PayloadTooLarge),
    ];
    for (refusal, code) in refusals {
        assert_eq!(refusal.unwrap_err().code(), code);
    }
    assert_eq!(client.list(query()).await.unwrap().instances, []);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_instances_are_not_found() {
    let world = World::resident();
    let client = &world.client;
    let codes = [
        client.instance("x").await.map(|_| ()).unwrap_err().code(),
        client.tree("x").await.map(|_| ()).unwrap_err().code(),
        client.history("x").await.map(|_| ()).unwrap_err().code(),
        client.history_of_execution("x", 1).await.map(|_| ()).unwrap_err().code(),
        client.execution("x", 1).await.map(|_| ()).unwrap_err().code(),
        client.delete("x", true).await.map(|_| ()).unwrap_err().code(),
        client.prune("x", PruneOptions::default()).await.map(|_| ()).unwrap_err().code(),
        client.resubmit_dead_letter("x").await.unwrap_err().code(),
    ];
    assert_eq!(codes, [Code::NotFound; 8]);
}

#[tokio::test(start_paused = true)]
async fn the_traceparent_flows_from_the_client_to_children_and_activities() {
    const WORK: segno::Activity<(), Option<String>> = segno::Activity::new("work");
    const PARENT: Orchestration<u32, Option<String>> = Orchestration::new("parent");
    in_both_modes(|world| async move {
        let registry = Registry::builder()
            .orchestration(PARENT, async |ctx: Context, n| match n {
                0 => ctx.activity(WORK, ()).await,
                1 => ctx.continue_as_new(0).await,
                _ => {
                    assert_eq!(ctx.traceparent(), Some("00-abc-def-01"));
                    ctx.child(PARENT, 1).await
                }
            })
            .activity(WORK, async |ctx: segno::ActivityContext, ()| Ok(ctx.traceparent().map(str::to_owned)))
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        let start = world.client.start(PARENT, 2).id("a").traceparent("00-abc-def-01");
        assert_eq!(start.result().await.unwrap().as_deref(), Some("00-abc-def-01"));
    })
    .await;
}
