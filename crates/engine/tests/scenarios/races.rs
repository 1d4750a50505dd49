//! Waiting for several at once: who wins, and what becomes of the losers.

use futures_util::future::{Either, select, try_join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use segno::clock::Clock;
use segno::event::EventKind;
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, Registry, Retry, Signal, join_all, race,
    race_all,
};

use crate::support::{Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, Vec<u32>> = Orchestration::new("main");
const CHILD: Orchestration<u32, u32> = Orchestration::new("child");
const ECHO: Activity<u32, u32> = Activity::new("echo");
const HANGS: Activity<u32, u32> = Activity::new("hangs");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut>(world: &World, log: &Log, main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<u32>, Failure>> + Send + 'static,
{
    let (clock, log) = (world.clock.clone(), log.clone());
    Registry::builder()
        .orchestration(MAIN, main)
        .orchestration(CHILD, async |ctx: Context, _| {
            ctx.signal(GO).await?;
            Ok(0)
        })
        .activity(ECHO, async |_, n| Ok(n))
        .activity(HANGS, move |ctx: ActivityContext, n| {
            let (clock, log) = (clock.clone(), log.clone());
            async move {
                log.push(format!("begin {n}"));
                ctx.cancelled().await;
                log.push(format!("told {n} at {}", clock.now_ms()));
                Ok(n)
            }
        })
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn two_thousand_activities_at_once_come_back_in_their_places() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, n| {
            join_all((0..n).map(|n| ctx.activity(ECHO, n))).await.into_iter().collect()
        });
        let _node = world.node(&registry).await;
        let output = world.client.start(MAIN, 2_000).id("a").result().await.unwrap();
        assert_eq!(output, (0..2_000).collect::<Vec<u32>>());
        assert_eq!(world.history("a").await.len(), 4_002);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_of_a_race_wins_and_on_a_tie_the_first_in_the_list() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            let (place, result) = race_all((1..=5).rev().map(|n| ctx.sleep(secs(n)))).await;
            result?;
            let tie = race! {
                _ = ctx.sleep(secs(1)) => 1,
                _ = ctx.sleep(secs(1)) => 2,
                _ = ctx.sleep(secs(1)) => 3,
            };
            let activity_or_timer = race! {
                _ = ctx.sleep(secs(1)) => 0,
                n = ctx.activity(ECHO, 7) => n?,
            };
            Ok(vec![place as u32, tie, activity_or_timer])
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), [4, 1, 7]);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn combinators_of_the_futures_crate_stay_deterministic() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, n| {
            let mut unordered: FuturesUnordered<_> = (0..n)
                .map(|n| {
                    let ctx = ctx.clone();
                    async move {
                        ctx.sleep(secs(u64::from((n * 7) % 10))).await?;
                        ctx.activity(ECHO, n).await
                    }
                })
                .collect();
            let mut seen = Vec::new();
            while let Some(result) = unordered.next().await {
                seen.push(result?);
            }
            let failed = try_join_all([ctx.activity(ECHO, 1), ctx.activity(Activity::named("hangs"), 2)]);
            let (sleep, failed) = (ctx.sleep(secs(3)), failed);
            match select(sleep, failed).await {
                Either::Left((fired, rest)) => {
                    fired?;
                    drop(rest);
                }
                Either::Right(_) => return Err(Failure::application("nothing hangs")),
            }
            Ok(seen)
        });
        let _node = world.node(&registry).await;
        let mut seen = world.client.start(MAIN, 10).id("a").result().await.unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<u32>>());
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_loser_is_told_at_once() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&world, &log, async |ctx: Context, _| {
            let winner = race! {
                n = ctx.activity(HANGS, 1) => n?,
                n = ctx.signal(GO) => n?,
            };
            // The instance goes on: the loser is told by the commit of the race, not by the end.
            ctx.sleep(secs(1_000)).await?;
            Ok(vec![winner])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(7)).await;
        let raised_ms = world.now_ms();
        world.client.signal("a", GO, 5).await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [5]);
        assert_eq!(log.lines(), ["begin 1".to_owned(), format!("told 1 at {raised_ms}")]);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_loser_on_another_node_is_told_within_a_second() {
    let world = World::resident();
    let log = Log::default();
    let registry = registry(&world, &log, async |ctx: Context, _| {
        let winner = race! {
            n = ctx.activity(HANGS, 1) => n?,
            n = ctx.signal(GO) => n?,
        };
        ctx.sleep(secs(1_000)).await?;
        Ok(vec![winner])
    });
    let orchestrator = segno::RuntimeOptions { worker_concurrency: 0, ..world.options() };
    let worker = segno::RuntimeOptions {
        orchestration_concurrency: 0,
        node_id: Some("worker".to_owned()),
        ..world.options()
    };
    let _one = world.node_with(&registry, orchestrator).await;
    let _two = world.node_with(&registry, worker).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.pass(secs(7)).await;
    let raised_ms = world.now_ms();
    world.client.signal("a", GO, 5).await.unwrap();
    world.pass(secs(1)).await;
    let told = log.lines();
    assert_eq!(told.len(), 2, "not told within a second of {raised_ms}: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn queued_losers_and_those_between_attempts_leave_the_queue() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            race! {
                n = ctx.activity(ECHO, 1).tag("nobody") => { n?; },
                _ = ctx.activity(Activity::<u32, String>::named("echo"), 1) => (),
                _ = ctx.activity(Activity::<String, u32>::named("failing"), String::new())
                    .retry(Retry::fixed(10, secs(1_000))) => (),
                _ = ctx.sleep(secs(10)) => (),
            }
            ctx.sleep(secs(1)).await?;
            Ok(vec![])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn work_that_is_scheduled_and_dropped_within_one_turn_never_runs() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&world, &log, async |ctx: Context, _| {
            let first = ctx.signal(GO).await?;
            // Both signals come in one batch, so this race is over in the turn that began it.
            let second = race! {
                n = ctx.activity(HANGS, 1).deadline(secs(50)) => n?,
                _ = ctx.sleep(secs(500)) => 0,
                n = ctx.child(CHILD, 1) => n?,
                n = ctx.signal(GO) => n?,
            };
            ctx.sleep(secs(1)).await?;
            Ok(vec![first, second])
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        world.client.signal("a", GO, 1).await.unwrap();
        world.client.signal("a", GO, 2).await.unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<Vec<u32>>("a").await, [1, 2]);
        assert_eq!(log.count(), 0, "{:?}", log.lines());
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_lost_a_race_is_cancelled() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            race! {
                _ = ctx.child(CHILD, 1).id("the-child") => (),
                _ = ctx.sleep(secs(5)) => (),
            }
            ctx.sleep(secs(100)).await?;
            Ok(vec![])
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        assert!(world.failure("the-child").await.is_cancelled());
        assert_eq!(world.now_ms() - begin_ms, 5_000);
        world.ended("a").await;
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn work_left_open_at_the_end_is_taken_back() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&world, &log, async |ctx: Context, _| {
            let mut open = Vec::new();
            for n in 0..3 {
                open.push(Box::pin(ctx.activity(HANGS, n).deadline(secs(500))));
            }
            let mut timer = Box::pin(ctx.sleep(secs(1_000)));
            let mut child = Box::pin(ctx.child(CHILD, 0).id("the-child"));
            // Polled once each, then the code ends with all of them open.
            let mut soon = Box::pin(ctx.sleep(secs(1)));
            std::future::poll_fn(|cx| {
                for activity in &mut open {
                    assert!(activity.as_mut().poll(cx).is_pending());
                }
                assert!(timer.as_mut().poll(cx).is_pending());
                assert!(child.as_mut().poll(cx).is_pending());
                soon.as_mut().poll(cx)
            })
            .await?;
            std::mem::forget(open);
            std::mem::forget((timer, child));
            Ok(vec![])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        world.settle().await;
        assert_eq!(log.lines().iter().filter(|line| line.starts_with("told")).count(), 3);
        assert!(world.failure("the-child").await.is_cancelled());
        world.assert_queues_are_empty().await;
        let kinds = world.kinds("a").await;
        assert_eq!(kinds.last(), Some(&"OrchestrationCompleted"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_a_loser_changes_nothing() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            let slow = race! {
                n = ctx.activity(HANGS, 1) => n?,
                _ = ctx.sleep(secs(5)) => 0,
            };
            let n = ctx.activity(ECHO, 9).await?;
            Ok(vec![slow, n])
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), [0, 9]);
        let completed: Vec<u64> = world
            .history("a")
            .await
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::ActivityCompleted { source, .. } => Some(source),
                _ => None,
            })
            .collect();
        assert_eq!(completed.len(), 1);
    })
    .await;
}
