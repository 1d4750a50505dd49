//! The end of an activity and the turn that it brings as one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use segno::clock::Clock;
use segno::store::{Provider, TagFilter};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, RuntimeOptions, Signal};
use segno_testkit::faults::{Fault, FaultStore, Plan};
use tokio::sync::Notify;

use crate::support::{Log, World, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const DOUBLE: Activity<u32, u32> = Activity::new("double");
const GO: Signal<u32> = Signal::new("go");
const END: &str = "ack_work_item";
const TURN: &str = "ack_orchestration_item";

/// A node whose commits are noted, and of whose turns one meets a fault.
async fn node(world: &World, registry: &Registry, options: RuntimeOptions, fault: (u32, Fault)) -> Node {
    let commits = Log::default();
    let noted = commits.clone();
    let mut turns = 0;
    let plan: Plan = Box::new(move |point| {
        noted.push(point.operation);
        turns += u32::from(point.operation == TURN);
        if (point.operation, turns) == (TURN, fault.0) { fault.1 } else { Fault::None }
    });
    let store = FaultStore::new(world.store.clone(), world.clock.clone(), plan);
    // Names are published by a commit that no turn makes.
    let options = RuntimeOptions { publish_names_every: None, ..options };
    let builder = segno::Runtime::builder(store).registry(registry.clone()).options(options);
    let runtime = builder.clock(world.clock.clone()).start().await.unwrap();
    Node { commits, _runtime: runtime }
}

struct Node {
    commits: Log,
    _runtime: segno::Runtime,
}

fn registry<F, Fut>(main: F, ran: &Arc<AtomicU32>) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<u32, Failure>> + Send + 'static,
{
    let ran = Arc::clone(ran);
    let double = move |ctx: ActivityContext, n| {
        ran.fetch_add(1, Ordering::Relaxed);
        async move { if ctx.attempt() < 2 && n == 13 { Err(Failure::application("no")) } else { Ok(n * 2) } }
    };
    Registry::builder().orchestration(MAIN, main).activity(DOUBLE, double).build().unwrap()
}

async fn two_in_a_row(ctx: Context, n: u32) -> Result<u32, Failure> {
    let first = ctx.activity(DOUBLE, n).await?;
    ctx.activity(DOUBLE, first).await
}

#[tokio::test(start_paused = true)]
async fn activities_in_a_row_are_one_commit_each() {
    let (world, ran) = (World::resident(), Arc::default());
    let node = node(&world, &registry(two_in_a_row, &ran), world.options(), (0, Fault::None)).await;
    assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 20);
    assert_eq!(node.commits.lines(), [TURN; 3]);
    world.assert_queues_are_empty().await;
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_joins_the_turn_that_tries_again() {
    let (world, ran) = (World::resident(), Arc::default());
    let main = async |ctx: Context, n| ctx.activity(DOUBLE, n).attempts(3).await;
    let node = node(&world, &registry(main, &ran), world.options(), (0, Fault::None)).await;
    assert_eq!(world.client.start(MAIN, 13).id("a").result().await.unwrap(), 26);
    assert_eq!(node.commits.lines(), [TURN; 3]);
    assert_eq!(ran.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_runs_at_the_same_time_ends_by_itself() {
    let (world, ran) = (World::resident(), Arc::default());
    let main = async |ctx: Context, n| {
        let both = segno::join(ctx.activity(DOUBLE, n), ctx.activity(DOUBLE, n + 1)).await;
        Ok(both.0? + both.1?)
    };
    let node = node(&world, &registry(main, &ran), world.options(), (0, Fault::None)).await;
    assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 22);
    assert_eq!(node.commits.lines().iter().filter(|commit| *commit == END).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_first_is_not_lost_and_nothing_runs_twice() {
    let (world, ran) = (World::resident(), Arc::default());
    let main = async |ctx: Context, n| {
        let doubled = ctx.activity(DOUBLE, n).await?;
        Ok(doubled + ctx.signal(GO).await?)
    };
    // The signal comes while the turn is on its way to the store.
    let slow = (2, Fault::Delay(secs(1)));
    let node = node(&world, &registry(main, &ran), world.options(), slow).await;
    world.client.start(MAIN, 5).id("a").await.unwrap();
    world.settle().await;
    world.client.signal("a", GO, 7).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 17);
    // The turn of the signal went ahead, so the activity was ended by itself.
    assert_eq!(node.commits.lines().iter().filter(|commit| *commit == END).count(), 1);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    world.assert_queues_are_empty().await;
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_runs_nothing_twice() {
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::AwayFor(secs(2)), Fault::StallFor(secs(2))] {
        for turn in 1..=3 {
            let (world, ran) = (World::resident(), Arc::default());
            let _node = node(&world, &registry(two_in_a_row, &ran), world.options(), (turn, fault)).await;
            let result = world.client.start(MAIN, 5).id("a").result().await.unwrap();
            assert_eq!((result, ran.load(Ordering::Relaxed)), (20, 2), "{fault:?} at turn {turn}");
            world.assert_queues_are_empty().await;
            world.check_histories().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn steps_behind_an_activity_run_once_however_long_they_take() {
    let (world, ran) = (World::resident(), Arc::default());
    let (steps, clock) = (Arc::new(AtomicU32::new(0)), world.clock.clone());
    let counted = Arc::clone(&steps);
    let main = move |ctx: Context, n| {
        let (steps, clock) = (Arc::clone(&counted), clock.clone());
        async move {
            let doubled = ctx.activity(DOUBLE, n).await?;
            let step = move || {
                steps.fetch_add(1, Ordering::Relaxed);
                let clock = clock.clone();
                async move {
                    segno::clock::sleep(&*clock as &dyn Clock, secs(300)).await;
                    Ok(doubled + 1)
                }
            };
            ctx.run("long", step).await
        }
    };
    let registry = registry(main, &ran);
    let node = node(&world, &registry, world.options(), (0, Fault::None)).await;
    world.client.start(MAIN, 5).id("a").await.unwrap();
    world.pass(secs(1)).await;
    // Another node would take over what is not held any more.
    let _other = world.node(&registry).await;
    world.client.signal("a", GO, 1).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 11);
    assert_eq!((steps.load(Ordering::Relaxed), ran.load(Ordering::Relaxed)), (1, 1));
    assert!(!node.commits.lines().contains(&END.to_owned()), "{:?}", node.commits.lines());
}

#[tokio::test(start_paused = true)]
async fn an_activity_of_another_node_ends_by_itself() {
    let (world, ran) = (World::resident(), Arc::default());
    let registry = registry(two_in_a_row, &ran);
    let turns = RuntimeOptions { worker_concurrency: 0, ..world.options() };
    let work = RuntimeOptions { orchestration_concurrency: 0, ..world.options() };
    let _turns = node(&world, &registry, turns, (0, Fault::None)).await;
    let worker = node(&world, &registry, work, (0, Fault::None)).await;
    assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 20);
    assert_eq!(worker.commits.lines(), [END; 2]);
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_was_replayed_joins_again_when_its_history_has_grown_by_an_eighth() {
    let (world, ran) = (World::resident(), Arc::default());
    let main = async |ctx: Context, n| {
        for _ in 0..16 {
            ctx.activity(DOUBLE, n).await?;
        }
        ctx.signal(GO).await?;
        for _ in 0..16 {
            ctx.activity(DOUBLE, n).await?;
        }
        Ok(n)
    };
    let registry = registry(main, &ran);
    let first = node(&world, &registry, world.options(), (0, Fault::None)).await;
    world.client.start(MAIN, 5).id("a").await.unwrap();
    world.settle().await;
    assert_eq!(first.commits.lines(), [TURN; 17]);
    drop(first);
    let second = node(&world, &registry, world.options(), (0, Fault::None)).await;
    world.client.signal("a", GO, 1).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 5);
    // 33 events were replayed; the signal and the first call are two more, and every activity brings two.
    let ended_by_itself = second.commits.lines().iter().filter(|commit| *commit == END).count();
    assert_eq!((ended_by_itself, ran.load(Ordering::Relaxed)), (1, 32));
}

/// A node with one place for activities, and what its code went on with after them. An activity with 99 waits for the release.
async fn one_at_a_time(world: &World, release: &Arc<Notify>) -> (Node, Log) {
    let (went_on, release) = (Log::default(), Arc::clone(release));
    let seen = went_on.clone();
    let main = move |ctx: Context, n| {
        let seen = seen.clone();
        async move {
            let doubled = ctx.activity(DOUBLE, n).await?;
            seen.push(format!(
                "{doubled} in {:?}",
                tracing::Span::current().metadata().map(|span| span.name())
            ));
            Ok(doubled)
        }
    };
    let double = move |_: ActivityContext, n| {
        let release = Arc::clone(&release);
        async move {
            if n == 99 {
                release.notified().await;
            }
            Ok(n * 2)
        }
    };
    let registry = Registry::builder().orchestration(MAIN, main).activity(DOUBLE, double).build().unwrap();
    let options = RuntimeOptions { worker_concurrency: 1, ..world.options() };
    (node(world, &registry, options, (0, Fault::None)).await, went_on)
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_was_delivered_before_ends_by_itself() {
    let (world, release) = (World::resident(), Arc::default());
    let (node, went_on) = one_at_a_time(&world, &release).await;
    world.client.start(MAIN, 99).id("first").await.unwrap();
    world.settle().await;
    world.client.start(MAIN, 5).id("a").await.unwrap();
    world.settle().await;
    // Somebody else takes it and does not come back.
    let lost = world.store.fetch_work_item(secs(1), secs(0), None, &TagFilter::Any).await.unwrap().unwrap();
    assert_eq!((lost.message.activity.instance.as_str(), lost.attempt_count), ("a", 1));
    world.pass(secs(2)).await;
    release.notify_one();
    assert_eq!(world.output::<u32>("a").await, 10);
    assert_eq!(node.commits.lines().iter().filter(|commit| *commit == END).count(), 1);
    assert_eq!(went_on.count(), 2, "{:?}", went_on.lines());
}

#[tokio::test(start_paused = true)]
async fn the_activity_of_a_deleted_instance_is_nothing_to_one_of_the_same_id() {
    let (world, release) = (World::resident(), Arc::default());
    let (node, went_on) = one_at_a_time(&world, &release).await;
    world.client.start(MAIN, 99).id("a").await.unwrap();
    world.settle().await;
    world.client.delete("a", true).await.unwrap();
    world.client.start(MAIN, 5).id("a").await.unwrap();
    world.settle().await;
    release.notify_one();
    assert_eq!(world.output::<u32>("a").await, 10);
    assert_eq!(went_on.count(), 1, "{:?}", went_on.lines());
    assert_eq!(node.commits.lines(), [TURN, TURN, END, TURN], "the end that nobody wants is refused");
}

#[tokio::test(start_paused = true)]
async fn the_code_runs_in_the_span_of_its_turn() {
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    let _guard = tracing::subscriber::set_default(subscriber.with_writer(std::io::sink).finish());
    let (world, release) = (World::resident(), Arc::default());
    let (node, went_on) = one_at_a_time(&world, &release).await;
    assert_eq!(world.client.start(MAIN, 5).result().await.unwrap(), 10);
    assert_eq!(node.commits.lines(), [TURN; 2]);
    assert_eq!(went_on.lines(), [r#"10 in Some("segno.turn")"#]);
}

#[tokio::test(start_paused = true)]
async fn a_step_behind_an_activity_takes_no_place_of_activities() {
    let (world, ran) = (World::resident(), Arc::default());
    let client = world.client.clone();
    let main = move |ctx: Context, n| {
        let client = client.clone();
        async move {
            let doubled = ctx.activity(DOUBLE, n).await?;
            if n > 10 {
                return Ok(doubled);
            }
            // Waits for another activity, for which there would be no place.
            let other = move || {
                let other = client.start(MAIN, 11).result();
                async move { other.await.map_err(|error| Failure::application(error.to_string())) }
            };
            ctx.run("other", other).await
        }
    };
    let options = RuntimeOptions { worker_concurrency: 1, ..world.options() };
    let _node = node(&world, &registry(main, &ran), options, (0, Fault::None)).await;
    world.client.start(MAIN, 5).id("a").await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 22);
}
