//! Durable timers: never early, however long, and gone when dropped.

use std::time::Duration;

use segno::event::EventKind;
use segno::limits::MAX_TIMER;
use segno::{Context, Failure, Orchestration, Registry, race};

use crate::support::{World, days, in_both_modes, ms, secs};

const MAIN: Orchestration<(), u64> = Orchestration::new("main");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, ()) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn timers_fire_at_their_time_and_not_before() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, ()| {
            let begin_ms = ctx.now_ms();
            ctx.sleep(Duration::from_nanos(1_000_001)).await?;
            assert_eq!(ctx.now_ms() - begin_ms, 2, "rounded up");
            ctx.sleep(Duration::ZERO).await?;
            assert_eq!(ctx.now_ms() - begin_ms, 2);
            ctx.sleep_until(begin_ms - 5_000).await?;
            ctx.sleep_until(0).await?;
            assert_eq!(ctx.now_ms() - begin_ms, 2);
            ctx.sleep_until(begin_ms + 100).await?;
            assert_eq!(ctx.now_ms() - begin_ms, 100);
            ctx.sleep(days(3_650)).await?;
            Ok(ctx.now_ms() - begin_ms)
        });
        let _node = world.node(&registry).await;
        let slept: u64 = world.client.start(MAIN, ()).id("a").result().await.unwrap();
        assert_eq!(slept, 100 + 3_650 * 24 * 3_600 * 1_000);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_beyond_the_limit_is_refused_and_one_at_the_limit_is_not() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, ()| {
            let failure = ctx.sleep(MAX_TIMER + ms(1)).await.unwrap_err();
            assert!(failure.has_code("timer-too-long"), "{failure}");
            let failure = ctx.sleep(Duration::MAX).await.unwrap_err();
            assert!(failure.has_code("timer-too-long"), "{failure}");
            let failure = ctx.sleep_until(u64::MAX).await.unwrap_err();
            assert!(failure.has_code("timer-too-long"), "{failure}");
            ctx.sleep(MAX_TIMER).await?;
            Ok(1)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, ()).id("a").result().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropped_timers_leave_the_queue() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, ()| {
            for _ in 0..3 {
                race! {
                    _ = ctx.sleep(days(100)) => return Err(Failure::application("the long one won")),
                    _ = ctx.sleep(secs(1)) => (),
                }
            }
            // Never polled, so never set.
            drop(ctx.sleep(days(1)));
            ctx.sleep(secs(1)).await?;
            Ok(0)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, ()).id("a").result().await.unwrap();
        world.assert_queues_are_empty().await;
        let cancelled = world.kinds("a").await.iter().filter(|kind| **kind == "TimerCancelled").count();
        assert_eq!(cancelled, 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_due_while_no_node_runs_fires_when_one_comes() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, ()| {
            ctx.sleep(secs(100)).await?;
            Ok(ctx.now_ms())
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, ()).id("a").await.unwrap();
        world.pass(secs(1)).await;
        node.shutdown(secs(1)).await;
        world.pass(secs(1_000)).await;
        let up_ms = world.now_ms();
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<u64>("a").await, up_ms);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_never_makes_a_timer_early() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, ()| {
        ctx.sleep(secs(100)).await?;
        Ok(ctx.now_ms())
    });
    let _node = world.node(&registry).await;
    let begin_ms = world.now_ms();
    world.client.start(MAIN, ()).id("a").await.unwrap();
    world.pass(secs(50)).await;
    world.clock.set_ms(begin_ms - 1_000_000);
    let ended = world.ended("a").await;
    assert!(ended.completed_at_ms.unwrap() >= begin_ms + 100_000);
    // T1 and the order of times are checked for every history.
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn timers_of_many_instances_fire_in_the_order_of_their_times() {
    let world = World::resident();
    let log = crate::support::Log::default();
    let fired = log.clone();
    const SLEEPER: Orchestration<u64, ()> = Orchestration::new("sleeper");
    let registry = Registry::builder()
        .orchestration(SLEEPER, move |ctx: Context, n: u64| {
            let fired = fired.clone();
            async move {
                ctx.sleep(secs(1_000 - n)).await?;
                fired.push(n.to_string());
                Ok(())
            }
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    for n in 0..500 {
        world.client.start(SLEEPER, n).id(format!("s{n}")).await.unwrap();
    }
    world.ended("s0").await;
    let expected: Vec<String> = (0..500).rev().map(|n: u64| n.to_string()).collect();
    assert_eq!(log.lines(), expected);
    let history = world.history("s7").await;
    assert!(matches!(history[2].kind, EventKind::TimerFired { source: 2 }));
}
