//! Time limits on futures: what ends in time, what does not, and what a cancellation does to both.

use std::time::Duration;

use segno::clock::Clock;
use segno::limits::MAX_TIMER;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Signal};

use crate::support::{Log, World, days, in_both_modes, ms, secs};

const MAIN: Orchestration<u64, String> = Orchestration::new("main");
const HANGS: Activity<u32, u32> = Activity::new("hangs");
const FAILS: Activity<u32, u32> = Activity::new("fails");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut>(world: &World, log: &Log, main: F) -> Registry
where
    F: Fn(Context, u64) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    let (clock, log) = (world.clock.clone(), log.clone());
    Registry::builder()
        .orchestration(MAIN, main)
        .activity(HANGS, move |ctx: ActivityContext, n| {
            let (clock, log) = (clock.clone(), log.clone());
            async move {
                ctx.cancelled().await;
                log.push(format!("cancelled at {}", clock.now_ms()));
                Ok(n)
            }
        })
        .activity(FAILS, async |_, _| Err(Failure::application("broken").code("mine").non_retryable()))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_future_that_ends_in_time_gives_its_value_and_cancels_the_timer() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            let go = ctx.timeout(secs(10), ctx.signal(GO)).await?;
            Ok(format!("{go:?}"))
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(9)).await;
        world.client.signal("a", GO, 7).await.unwrap();
        assert_eq!(world.output::<String>("a").await, "Some(7)");
        let expected = [
            "OrchestrationStarted",
            "MessageSubscribed",
            "TimerCreated",
            "MessageReceived",
            "TimerCancelled",
            "OrchestrationCompleted",
        ];
        assert_eq!(world.kinds("a").await, expected);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_future_that_takes_too_long_gives_none_and_is_cancelled() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&world, &log, async |ctx: Context, _| {
            let activity = ctx.timeout(secs(5), ctx.activity(HANGS, 1)).await?;
            let signal = ctx.timeout(secs(5), ctx.signal(GO)).await?;
            // The wait that was given up takes no signal.
            let next = ctx.signal(GO).await?;
            Ok(format!("{activity:?} {signal:?} {next}"))
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(20)).await;
        assert_eq!(log.lines(), [format!("cancelled at {}", begin_ms + 5_000)]);
        world.client.signal("a", GO, 3).await.unwrap();
        assert_eq!(world.output::<String>("a").await, "None None 3");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_ready_at_the_limit_wins_and_one_that_is_ready_at_once_needs_no_timer() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            let at_once = ctx.timeout(Duration::ZERO, async { Ok(1) }).await?;
            let tie = ctx.timeout(secs(1), ctx.sleep(secs(1))).await?;
            Ok(format!("{at_once:?} {tie:?}"))
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), "Some(1) Some(())");
        let timers = world.kinds("a").await.iter().filter(|kind| **kind == "TimerCreated").count();
        assert_eq!(timers, 2, "those of the tie");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn failures_of_the_future_and_of_the_timer_are_returned() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), async |ctx: Context, _| {
            let failed = ctx.timeout(days(1), ctx.activity(FAILS, 1)).await.unwrap_err();
            let too_long = ctx.timeout(MAX_TIMER + ms(1), ctx.signal(GO)).await.unwrap_err();
            assert!(failed.has_code("mine"), "{failed}");
            assert!(too_long.has_code("timer-too-long"), "{too_long}");
            Ok("both".to_owned())
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), "both");
        world.assert_queues_are_empty().await;
    })
    .await;
}

/// Waits for a signal for at most 100 seconds, and cleans up after a cancellation for as long as its input.
async fn cleans_up(ctx: Context, cleanup_s: u64) -> Result<String, Failure> {
    let begin_ms = ctx.now_ms();
    let work = async {
        let waited = ctx.signal(GO).await;
        ctx.shielded().sleep(secs(cleanup_s)).await?;
        waited
    };
    let ended = match ctx.timeout(secs(100), work).await {
        Err(failure) if failure.is_cancelled() => "cancelled".to_owned(),
        other => format!("{other:?}"),
    };
    Ok(format!("{ended} after {} s", (ctx.now_ms() - begin_ms) / 1_000))
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_no_time_out_and_the_cleanup_of_the_future_runs_within_the_limit() {
    in_both_modes(|world| async move {
        let registry = registry(&world, &Log::default(), cleans_up);
        let _node = world.node(&registry).await;
        for (id, cleanup_s) in [("none", 0), ("short", 10), ("long", 1_000)] {
            world.client.start(MAIN, cleanup_s).id(id).await.unwrap();
        }
        world.pass(secs(5)).await;
        for id in ["none", "short", "long"] {
            world.client.cancel(id, "enough").await.unwrap();
        }
        assert_eq!(world.output::<String>("none").await, "cancelled after 5 s");
        assert_eq!(world.output::<String>("short").await, "cancelled after 15 s");
        assert_eq!(world.output::<String>("long").await, "Ok(None) after 100 s");
        world.assert_queues_are_empty().await;
    })
    .await;
}
