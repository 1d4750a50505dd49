//! Pausing and resuming.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use segno::store::ExecutionStatus;
use segno::{
    Activity, ActivityContext, Code, Context, Failure, Mailbox, Orchestration, Registry, Retry, join,
};

use crate::support::{Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, Vec<u32>> = Orchestration::new("main");
const ECHO: Activity<u32, u32> = Activity::new("echo");
const JOBS: Mailbox<u32> = Mailbox::new("jobs");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<u32>, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).activity(ECHO, async |_, n| Ok(n)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_delivered_while_paused_and_all_of_it_in_order_afterwards() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let seen = log.clone();
        let registry = registry(move |ctx: Context, _| {
            let seen = seen.clone();
            async move {
                let mut read = Vec::new();
                while read.len() < 5 {
                    let job = ctx.mailbox(JOBS).receive().await?;
                    if !ctx.is_replaying() {
                        seen.push(job.to_string());
                    }
                    read.push(job);
                }
                ctx.sleep(secs(1)).await?;
                Ok(read)
            }
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.client.enqueue("a", JOBS, 0).await.unwrap();
        world.settle().await;
        world.client.pause("a", "maintenance").await.unwrap();
        world.client.pause("a", "twice").await.unwrap();
        for n in 1..5 {
            world.client.enqueue("a", JOBS, n).await.unwrap();
        }
        world.pass(secs(100)).await;
        let paused = world.client.instance("a").await.unwrap();
        assert_eq!((paused.status, paused.pause_reason()), (ExecutionStatus::Paused, Some("maintenance")));
        assert_eq!(log.lines(), ["0"]);
        world.client.resume("a").await.unwrap();
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [0, 1, 2, 3, 4]);
        let kinds = world.kinds("a").await;
        assert_eq!(kinds.iter().filter(|kind| **kind == "OrchestrationResumed").count(), 1);
        assert_eq!(kinds.iter().filter(|kind| **kind == "OrchestrationPaused").count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn results_and_timers_that_come_during_a_pause_are_held() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let (echo, timer) = join(ctx.activity(ECHO, 7).tag("late"), ctx.sleep(secs(10))).await;
            timer?;
            Ok(vec![echo?, ctx.activity(ECHO, 8).tag("late").await?])
        });
        let late = segno::RuntimeOptions {
            tag_filter: segno::store::TagFilter::tags(["late"]),
            orchestration_concurrency: 0,
            node_id: Some("late".to_owned()),
            ..world.options()
        };
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.pause("a", "x").await.unwrap();
        world.settle().await;
        let _late = world.node_with(&registry, late).await;
        world.pass(secs(100)).await;
        let kinds = world.kinds("a").await;
        assert_eq!(
            kinds[3..],
            ["OrchestrationPaused", "ActivityCompleted", "TimerFired"],
            "held, not acted on"
        );
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [7, 8]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_is_exhausted_pauses_the_instance_and_a_resume_tries_afresh() {
    in_both_modes(|world| async move {
        let (log, fixed) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let (attempts, works) = (log.clone(), fixed.clone());
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, n| {
                let call = ctx.activity(ECHO, n).retry(Retry::fixed(2, secs(1))).pause_when_exhausted();
                Ok(vec![call.await?])
            })
            .activity(ECHO, move |ctx: ActivityContext, n| {
                attempts.push(format!("{} {}", ctx.attempt(), ctx.idempotency_key()));
                let works = works.load(Ordering::Relaxed);
                async move { if works { Ok(n) } else { Err(Failure::application("broken")) } }
            })
            .build()
            .unwrap();
        let node = world.node(&registry).await;
        world.client.start(MAIN, 5).id("a").await.unwrap();
        world.pass(secs(100)).await;
        let paused = world.client.instance("a").await.unwrap();
        assert_eq!(paused.status, ExecutionStatus::Paused);
        let reason = paused.pause_reason().unwrap();
        assert!(
            reason.contains("echo") && reason.contains("broken") && reason.contains("resume"),
            "{reason}"
        );
        // Not fixed yet: the same again, with fresh attempts, also after a restart.
        drop(node);
        let _node = world.node(&registry).await;
        world.client.resume("a").await.unwrap();
        world.pass(secs(100)).await;
        assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Paused);
        fixed.store(true, Ordering::Relaxed);
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [5]);
        let lines = log.lines();
        assert_eq!(lines.iter().map(|line| &line[..1]).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        assert!(lines.iter().all(|line| line[2..] == lines[0][2..]), "one key over all attempts");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_an_instance_that_is_paused_for_an_activity_does_not_run_it_again() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let attempts = log.clone();
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, n| {
                Ok(vec![ctx.activity(ECHO, n).pause_when_exhausted().await?])
            })
            .activity(ECHO, move |_, _| {
                attempts.push("attempt");
                async { Err(Failure::application("broken")) }
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 5).id("a").await.unwrap();
        world.pass(secs(10)).await;
        world.client.cancel("a", "give up").await.unwrap();
        assert!(world.failure("a").await.is_cancelled());
        world.pass(secs(10)).await;
        assert_eq!(log.count(), 1);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_during_a_pause_waits_for_the_resume() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let attempts = log.clone();
        let clock = world.clock.clone();
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, n| {
                Ok(vec![ctx.activity(ECHO, n).retry(Retry::fixed(5, secs(1))).await?])
            })
            .activity(ECHO, move |ctx: ActivityContext, n| {
                attempts.push("attempt");
                let clock = clock.clone();
                async move {
                    segno::clock::sleep(&*clock, secs(10)).await;
                    if ctx.attempt() > 1 { Ok(n) } else { Err(Failure::application("once")) }
                }
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 5).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.pause("a", "x").await.unwrap();
        world.pass(secs(100)).await;
        assert_eq!(log.count(), 1, "no new attempt while paused");
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [5]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pausing_and_resuming_what_is_not_there_or_has_ended_is_refused() {
    let world = World::resident();
    let _node = world.node(&registry(async |_, _| Ok(vec![]))).await;
    world.client.start(MAIN, 0).id("ended").result().await.unwrap();
    for (id, code) in [("nobody", Code::NotFound), ("ended", Code::InstanceEnded)] {
        assert_eq!(world.client.pause(id, "x").await.unwrap_err().code(), code);
        assert_eq!(world.client.resume(id).await.unwrap_err().code(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_before_the_time_of_a_delayed_start_holds_it() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let ran = log.clone();
        let registry = registry(move |ctx: Context, _| {
            let ran = ran.clone();
            async move {
                ctx.activity(ECHO, 1).await?;
                ran.push("past the activity");
                Ok(vec![])
            }
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").delay(secs(100)).await.unwrap();
        world.pass(secs(10)).await;
        world.client.pause("a", "not yet").await.unwrap();
        world.pass(secs(200)).await;
        assert_eq!(log.count(), 0);
        assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Paused);
        world.client.resume("a").await.unwrap();
        world.ended("a").await;
        assert_eq!(log.count(), 1);
    })
    .await;
}
