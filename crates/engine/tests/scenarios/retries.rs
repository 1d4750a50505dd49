//! Retry policies of activities: which failures, how often, how long between.

use segno::event::EventKind;
use segno::{Activity, ActivityContext, Category, Code, Context, Failure, Orchestration, Registry, Retry};

use crate::support::{Log, World, in_both_modes, ms, secs};

const MAIN: Orchestration<String, u32> = Orchestration::new("main");
const WORK: Activity<String, u32> = Activity::new("work");

/// Runs an activity that always fails and gives the pauses between its attempts.
async fn pauses(world: &World, id: &str, retry: Retry, failure: Failure) -> Vec<u64> {
    let log = Log::default();
    let attempts = log.clone();
    let clock = world.clock.clone();
    let registry = Registry::builder()
        .orchestration(MAIN, move |ctx: Context, input| {
            let retry = retry.clone();
            async move { ctx.activity(WORK, input).retry(retry).await }
        })
        .activity(WORK, move |_, _| {
            attempts.push(segno::clock::Clock::now_ms(&*clock).to_string());
            let failure = failure.clone();
            async move { Err(failure) }
        })
        .build()
        .unwrap();
    let node = world.node(&registry).await;
    world.client.start(MAIN, String::new()).id(id).await.unwrap();
    world.failure(id).await;
    node.shutdown(secs(1)).await;
    let at_ms: Vec<u64> = log.lines().iter().map(|at| at.parse().unwrap()).collect();
    at_ms.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fixed_policy_waits_the_same_time_before_every_attempt() {
    in_both_modes(|world| async move {
        let pauses = pauses(&world, "a", Retry::fixed(4, secs(7)), Failure::application("x")).await;
        assert_eq!(pauses, [7_000, 7_000, 7_000]);
        let history = world.history("a").await;
        let attempts: Vec<u32> = history
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::ActivityAttemptFailed { attempt, retry_at_ms, .. } => {
                    assert_eq!(retry_at_ms, Some(event.at_ms + 7_000));
                    Some(attempt)
                }
                EventKind::ActivityFailed { attempt, .. } => Some(attempt),
                _ => None,
            })
            .collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
        let expected = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "ActivityAttemptFailed",
            "ActivityAttemptFailed",
            "ActivityAttemptFailed",
            "ActivityFailed",
            "OrchestrationFailed",
        ];
        assert_eq!(world.kinds("a").await, expected);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_exponential_policy_grows_up_to_its_cap() {
    in_both_modes(|world| async move {
        let retry = Retry::exponential(7, secs(1)).factor(3.0).max_delay(secs(20)).jitter(0.0);
        let pauses = pauses(&world, "a", retry, Failure::application("x")).await;
        assert_eq!(pauses, [1_000, 3_000, 9_000, 20_000, 20_000, 20_000]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn jitter_shortens_each_pause_differently_and_never_lengthens_it() {
    in_both_modes(|world| async move {
        let retry = Retry::exponential(30, secs(10)).factor(1.0).max_delay(secs(10)).jitter(0.5);
        let pauses = pauses(&world, "a", retry, Failure::application("x")).await;
        assert_eq!(pauses.len(), 29);
        assert!(pauses.iter().all(|pause| (5_000..=10_000).contains(pause)), "{pauses:?}");
        let distinct: std::collections::BTreeSet<u64> = pauses.iter().copied().collect();
        assert!(distinct.len() > 20, "{pauses:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn hopeless_failures_are_not_retried() {
    let world = World::resident();
    for (id, failure) in [
        ("flag", Failure::application("x").non_retryable()),
        ("cancelled", Failure::cancelled("x")),
        ("configuration", Failure::new(Category::Configuration, "x")),
        ("poison", Failure::new(Category::Poison, "x")),
    ] {
        assert!(pauses(&world, id, Retry::fixed(9, secs(1)), failure).await.is_empty(), "{id}");
    }
    let not_on = Retry::fixed(9, secs(1)).not_on(Category::Infrastructure);
    let infrastructure = Failure::new(Category::Infrastructure, "x");
    assert!(pauses(&world, "not_on", not_on.clone(), infrastructure.clone()).await.is_empty());
    assert_eq!(pauses(&world, "other", not_on, Failure::application("x")).await.len(), 8);
    assert_eq!(pauses(&world, "on", Retry::fixed(9, secs(1)), infrastructure).await.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_non_retryable_failure_in_a_later_attempt_ends_the_attempts() {
    in_both_modes(|world| async move {
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, input| ctx.activity(WORK, input).attempts(10).await)
            .activity(WORK, async |ctx: ActivityContext, _| {
                let failure = Failure::application(format!("attempt {}", ctx.attempt()));
                Err(if ctx.attempt() == 3 { failure.non_retryable() } else { failure })
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, String::new()).id("a").await.unwrap();
        assert_eq!(world.failure("a").await.message, "attempt 3");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn zero_attempts_are_one_and_zero_delay_is_none() {
    let world = World::resident();
    assert!(pauses(&world, "a", Retry::fixed(0, secs(1)), Failure::application("x")).await.is_empty());
    let none = pauses(&world, "b", Retry::fixed(50, ms(0)), Failure::application("x")).await;
    assert_eq!(none, [0; 49]);
}

#[tokio::test(start_paused = true)]
async fn retries_go_on_after_a_restart_where_they_were() {
    let world = World::resident();
    let log = Log::default();
    let attempts = log.clone();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, input| {
            ctx.activity(WORK, input).retry(Retry::fixed(4, secs(100))).await
        })
        .activity(WORK, move |ctx: ActivityContext, _| {
            attempts.push(ctx.attempt().to_string());
            async move { if ctx.attempt() == 4 { Ok(4) } else { Err(Failure::application("x")) } }
        })
        .build()
        .unwrap();
    let begin_ms = world.now_ms();
    world.client.start(MAIN, String::new()).id("a").await.unwrap();
    for _ in 0..3 {
        let node = world.node(&registry).await;
        world.pass(secs(90)).await;
        drop(node);
        world.pass(secs(10)).await;
    }
    let _node = world.node(&registry).await;
    assert_eq!(world.output::<u32>("a").await, 4);
    assert_eq!(log.lines(), ["1", "2", "3", "4"]);
    assert_eq!(world.now_ms() - begin_ms, 300_000);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_waits_for_its_backoff_is_made_at_once_when_asked_for() {
    in_both_modes(|world| async move {
        let (log, clock) = (Log::default(), world.clock.clone());
        let attempts = log.clone();
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, input| {
                ctx.activity(WORK, input).retry(Retry::fixed(3, secs(3_600))).await
            })
            .activity(WORK, move |_, _| {
                attempts.push(segno::clock::Clock::now_ms(&*clock).to_string());
                let attempt = attempts.count();
                async move { if attempt < 3 { Err(Failure::application("x")) } else { Ok(7) } }
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, String::new()).id("a").await.unwrap();
        world.settle().await;
        assert_eq!(log.count(), 1);
        let begun_ms = world.now_ms();
        for attempt in 2..=3 {
            assert_eq!(world.client.retry_now("a").await.unwrap(), 1);
            world.settle().await;
            assert_eq!(log.count(), attempt);
        }
        assert_eq!(world.output::<u32>("a").await, 7);
        assert!(world.now_ms() - begun_ms < 60_000, "no backoff was waited for");
        assert_eq!(world.client.retry_now("a").await.unwrap_err().code(), Code::InstanceEnded);
        assert_eq!(world.client.retry_now("b").await.unwrap_err().code(), Code::NotFound);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_no_attempt_has_nothing_to_retry() {
    let world = World::resident();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, _| {
            ctx.sleep(secs(60)).await?;
            Ok(1)
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, String::new()).id("a").await.unwrap();
    let begun_ms = world.now_ms();
    world.settle().await;
    assert_eq!(world.client.retry_now("a").await.unwrap_err().code(), Code::NothingToRetry);
    world.client.pause("a", "x").await.unwrap();
    world.settle().await;
    let paused = world.client.retry_now("a").await.unwrap_err();
    assert!(paused.to_string().contains("resume it"), "{paused}");
    world.client.resume("a").await.unwrap();
    world.ended("a").await;
    assert!(world.now_ms() - begun_ms >= 60_000, "timers keep their time");
}
