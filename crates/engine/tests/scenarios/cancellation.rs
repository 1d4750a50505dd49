//! Cancellation: reaches everything, lets the code clean up, and is safe to repeat.

use segno::event::EventKind;
use segno::store::{ExecutionStatus, Provider};
use segno::{
    Activity, ActivityContext, Client, Code, Context, Failure, Orchestration, Registry, Signal, race,
};

use crate::support::{Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, String> = Orchestration::new("main");
const HANGS: Activity<u32, u32> = Activity::new("hangs");
const CLEAN: Activity<u32, u32> = Activity::new("clean");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut>(log: &Log, main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    let (told, cleaned) = (log.clone(), log.clone());
    Registry::builder()
        .orchestration(MAIN, main)
        .activity(HANGS, move |ctx: ActivityContext, n| {
            let told = told.clone();
            async move {
                ctx.cancelled().await;
                told.push("told");
                Ok(n)
            }
        })
        .activity(CLEAN, move |_, n| {
            cleaned.push("cleaned");
            async move { Ok(n) }
        })
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_instance_cleans_up_and_is_cancelled() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&log, async |ctx: Context, n| {
            let failure = match ctx.activity(HANGS, n).await {
                Ok(_) => return Ok("not cancelled".to_owned()),
                Err(failure) => failure,
            };
            assert!(failure.is_cancelled() && ctx.is_cancelled());
            // Everything that is not shielded fails at once.
            assert!(ctx.sleep(secs(1)).await.unwrap_err().is_cancelled());
            assert!(ctx.start_detached(MAIN, 1).await.unwrap_err().is_cancelled());
            assert!(ctx.run("step", || async { Ok(1) }).await.unwrap_err().is_cancelled());
            let shielded = ctx.shielded();
            shielded.activity(CLEAN, n).await?;
            shielded.run("note", || async { Ok(1) }).await?;
            shielded.sleep(secs(30)).await?;
            Err(failure)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        let asked_ms = world.now_ms();
        world.client.cancel("a", "changed my mind").await.unwrap();
        world.client.cancel("a", "again").await.unwrap();
        let ended = world.ended("a").await;
        assert_eq!(ended.status, ExecutionStatus::Cancelled);
        assert!(ended.failure().unwrap().message.contains("changed my mind"), "{:?}", ended.failure());
        assert_eq!(world.now_ms() - asked_ms, 30_000);
        assert_eq!(log.lines(), ["told", "cleaned"]);
        let expected = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "OrchestrationCancelRequested",
            "ActivityScheduled",
            "ActivityCompleted",
            "StepCompleted",
            "TimerCreated",
            "TimerFired",
            "OrchestrationFailed",
        ];
        assert_eq!(world.kinds("a").await, expected);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shielded_operation_that_runs_already_is_left_alone() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, _| {
            ctx.shielded().sleep(secs(100)).await?;
            Ok(format!("{}", ctx.is_cancelled()))
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        world.client.cancel("a", "x").await.unwrap();
        assert_eq!(world.output::<String>("a").await, "true");
        assert_eq!(world.now_ms() - begin_ms, 100_000);
        assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Completed);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_can_wait_for_its_cancellation() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, _| {
            let reason = race! {
                reason = ctx.cancelled() => reason,
                _ = ctx.shielded().sleep(secs(1_000)) => "nobody cancelled".to_owned(),
            };
            assert_eq!(ctx.cancelled().await, reason);
            Ok(reason)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        world.client.cancel("a", "the reason").await.unwrap();
        assert_eq!(world.output::<String>("a").await, "the reason");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_what_has_ended_is_refused_and_changes_nothing_and_unknown_ids_are_not_found() {
    let world = World::resident();
    let registry = registry(&Log::default(), async |_, _| Ok("done".to_owned()));
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").result().await.unwrap();
    let before = (world.client.instance("a").await.unwrap(), world.history("a").await);
    let refused = world.client.cancel("a", "too late").await.unwrap_err();
    assert_eq!(refused.code(), Code::InstanceEnded);
    // It may also end between the look and the message.
    let late = Client::cancel_message("a", "too late").unwrap();
    world.store.enqueue_for_orchestrator(late, None).await.unwrap();
    world.settle().await;
    let after = world.client.instance("a").await.unwrap();
    assert_eq!((after.status, &after.output), (before.0.status, &before.0.output));
    assert_eq!(world.history("a").await, before.1);
    let unknown = world.client.cancel("nobody", "x").await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(world.client.cancel("", "x").await.unwrap_err().code(), Code::InvalidInstanceId);
    assert!(world.client.instance("nobody").await.is_err());
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_instance_can_be_cancelled() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let registry = registry(&log, async |ctx: Context, n| {
            let failure = ctx.activity(HANGS, n).await.unwrap_err();
            ctx.shielded().activity(CLEAN, n).await?;
            Err(failure)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.pause("a", "wait").await.unwrap();
        world.pass(secs(1)).await;
        world.client.cancel("a", "enough").await.unwrap();
        assert_eq!(world.ended("a").await.status, ExecutionStatus::Cancelled);
        assert_eq!(log.lines(), ["told", "cleaned"]);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_delayed_start_can_be_cancelled_and_keeps_the_reason() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let ran = log.clone();
        let registry = registry(&Log::default(), move |_, _| {
            ran.push("ran");
            async { Ok(String::new()) }
        });
        // Cancelled in the batch of its start, and later.
        world.client.start(MAIN, 0).id("at-once").delay(secs(100)).await.unwrap();
        world.client.cancel("at-once", "reason one").await.unwrap();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("later").delay(secs(100)).await.unwrap();
        world.pass(secs(50)).await;
        world.client.cancel("later", "reason two").await.unwrap();
        for (id, reason) in [("at-once", "reason one"), ("later", "reason two")] {
            let ended = world.ended(id).await;
            assert_eq!(ended.status, ExecutionStatus::Cancelled);
            assert!(ended.failure().unwrap().message.contains(reason), "{id}: {:?}", ended.failure());
        }
        world.pass(secs(200)).await;
        assert_eq!(log.count(), 0);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_in_the_batch_of_the_start_is_seen_by_the_code() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, _| {
            ctx.signal(GO).await?;
            Ok(String::new())
        });
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.client.cancel("a", "early").await.unwrap();
        let _node = world.node(&registry).await;
        assert!(world.failure("a").await.is_cancelled());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_that_goes_on_after_its_cancellation_may_still_succeed() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, n| {
            let _cancelled = ctx.activity(HANGS, n).await;
            Ok("finished all the same".to_owned())
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.cancel("a", "x").await.unwrap();
        assert_eq!(world.output::<String>("a").await, "finished all the same");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_with_the_cancellation_is_not_used_twice() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, n| {
            let first = ctx.activity(CLEAN, n).await;
            let second = ctx.signal(GO).await;
            Ok(format!("{} {}", first.is_ok(), second.is_ok()))
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        node.shutdown(secs(1)).await;
        world.client.cancel("a", "x").await.unwrap();
        world.client.signal("a", GO, 1).await.unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<String>("a").await, "true false");
        let history = world.history("a").await;
        let requested =
            history.iter().filter(|e| matches!(e.kind, EventKind::OrchestrationCancelRequested { .. }));
        assert_eq!(requested.count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_ignores_its_cancellation_is_dropped_after_the_grace_time() {
    struct OnDrop(Log);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.push("dropped");
        }
    }
    let world = World::resident();
    let log = Log::default();
    let dropped = log.clone();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, n| {
            ctx.activity(HANGS, n).await?;
            Ok(String::new())
        })
        .activity(HANGS, move |_, _| {
            let guard = OnDrop(dropped.clone());
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.pass(secs(1)).await;
    world.client.cancel("a", "x").await.unwrap();
    world.ended("a").await;
    world.pass(secs(9)).await;
    assert_eq!(log.count(), 0);
    world.pass(secs(2)).await;
    assert_eq!(log.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_reason_is_refused_and_changes_nothing() {
    let world = World::resident();
    let registry = registry(&Log::default(), async |ctx: Context, _| {
        ctx.signal(GO).await?;
        Ok(String::new())
    });
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.settle().await;
    let before = world.client.instance("a").await.unwrap();
    let long = "x".repeat(segno::limits::MAX_PAYLOAD_BYTES + 1);
    assert_eq!(world.client.cancel("a", long.clone()).await.unwrap_err().code(), Code::PayloadTooLarge);
    assert_eq!(world.client.pause("a", long).await.unwrap_err().code(), Code::PayloadTooLarge);
    world.settle().await;
    assert_eq!(world.client.instance("a").await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn code_that_tries_again_for_ever_after_its_cancellation_is_ended() {
    in_both_modes(|world| async move {
        let registry = registry(&Log::default(), async |ctx: Context, n| {
            loop {
                if let Ok(n) = ctx.activity(HANGS, n).await {
                    return Ok(n.to_string());
                }
                let _ignored = ctx.sleep(secs(5)).await;
            }
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.cancel("a", "x").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.is_cancelled() && failure.has_code("busy-loop"), "{failure:?}");
    })
    .await;
}
