//! Continue-as-new: a fresh history, and nothing lost on the way.

use segno::store::{ExecutionStatus, PruneOptions};
use segno::{Context, Failure, Mailbox, Orchestration, Registry, Signal};

use crate::support::{World, in_both_modes, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const JOBS: Mailbox<u32> = Mailbox::new("jobs");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<u32, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn two_hundred_iterations_end_in_one_result() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            if n < 200 {
                return ctx.continue_as_new(n + 1).await;
            }
            Ok(u32::try_from(ctx.execution_id()).unwrap())
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), 201);
        let executions = world.client.executions("a").await.unwrap();
        assert_eq!(executions, (1..=201).collect::<Vec<u64>>());
        let first = world.client.execution("a", 1).await.unwrap();
        assert_eq!(first.status, ExecutionStatus::ContinuedAsNew);
        assert_eq!(world.client.execution("a", 201).await.unwrap().status, ExecutionStatus::Completed);
        let kinds = crate::support::kinds(&world.client.history_of_execution("a", 7).await.unwrap());
        assert_eq!(kinds, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
        let keep = PruneOptions { keep_last: Some(3), ..PruneOptions::default() };
        assert_eq!(world.client.prune("a", keep).await.unwrap().executions_deleted, 198);
        assert_eq!(world.client.executions("a").await.unwrap(), [199, 200, 201]);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn status_labels_and_unread_messages_come_along_in_order() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            if n == 0 {
                ctx.set_status(&"from the first")?;
                ctx.set_label("colour", "red")?;
                ctx.set_label("gone", "x")?;
                ctx.remove_label("gone");
                // One is read, the others wait.
                assert_eq!(ctx.mailbox(JOBS).receive().await?, 0);
                ctx.sleep(secs(10)).await?;
                return ctx.continue_as_new(1).await;
            }
            assert_eq!(ctx.status::<String>()?.as_deref(), Some("from the first"));
            for expected in 1..5 {
                assert_eq!(ctx.mailbox(JOBS).receive().await?, expected);
            }
            assert_eq!(ctx.signal(GO).await?, 77);
            Ok(n)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").label("team", "eu").await.unwrap();
        for n in 0..5 {
            world.client.enqueue("a", JOBS, n).await.unwrap();
        }
        world.client.signal("a", GO, 77).await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 1);
        let instance = world.client.instance("a").await.unwrap();
        let labels: Vec<(&str, &str)> =
            instance.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(labels, [("colour", "red"), ("team", "eu")]);
        assert_eq!(instance.custom_status.unwrap().as_str(), r#""from the first""#);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_continues_after_every_message_loses_none_and_keeps_their_order() {
    const SUM: Orchestration<Vec<u32>, Vec<u32>> = Orchestration::new("sum");
    in_both_modes(|world| async move {
        let registry = Registry::builder()
            .orchestration(SUM, async |ctx: Context, mut seen: Vec<u32>| {
                seen.push(ctx.mailbox(JOBS).receive().await?);
                if seen.len() == 100 {
                    return Ok(seen);
                }
                ctx.continue_as_new(seen).await
            })
            .build()
            .unwrap();
        let node = world.node(&registry).await;
        world.client.start(SUM, vec![]).id("a").await.unwrap();
        for n in 0..40 {
            world.client.enqueue("a", JOBS, n).await.unwrap();
            if n % 7 == 0 {
                world.settle().await;
            }
        }
        node.shutdown(secs(1)).await;
        // All of these come in one batch, with the execution ending at the first of them.
        for n in 40..100 {
            world.client.enqueue("a", JOBS, n).await.unwrap();
        }
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<Vec<u32>>("a").await, (0..100).collect::<Vec<u32>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_in_the_turn_that_continues_is_not_lost() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            ctx.mailbox(JOBS).receive().await?;
            ctx.continue_as_new(n + 1).await
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        world.client.enqueue("a", JOBS, 1).await.unwrap();
        world.client.cancel("a", "stop it").await.unwrap();
        let _node = world.node(&registry).await;
        let failure = world.failure("a").await;
        assert!(failure.is_cancelled() && failure.message.contains("stop it"), "{failure}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_in_the_turn_that_continues_is_not_lost() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            if n == 2 {
                return Ok(n);
            }
            ctx.mailbox(JOBS).receive().await?;
            ctx.continue_as_new(n + 1).await
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        world.client.enqueue("a", JOBS, 1).await.unwrap();
        world.client.pause("a", "hold").await.unwrap();
        world.client.enqueue("a", JOBS, 2).await.unwrap();
        let _node = world.node(&registry).await;
        world.pass(secs(60)).await;
        // The second message was carried in front of the pause or is held by it; either way nothing is lost.
        let instance = world.client.instance("a").await.unwrap();
        if instance.status == ExecutionStatus::Paused {
            world.client.resume("a").await.unwrap();
        } else {
            assert_eq!(instance.status, ExecutionStatus::Completed, "the pause was lost and nothing goes on");
        }
        assert_eq!(world.output::<u32>("a").await, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn open_work_is_taken_back_when_an_execution_continues_as_new() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            if n == 1 {
                ctx.sleep(secs(10)).await?;
                return Ok(1);
            }
            let mut timer = Box::pin(ctx.sleep(secs(5)));
            std::future::poll_fn(|cx| {
                assert!(timer.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            ctx.continue_as_new(1).await
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), 1);
        assert_eq!(world.now_ms() - begin_ms, 10_000);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_input_that_cannot_be_stored_fails_the_call_and_the_execution_goes_on() {
    const TEXT: Orchestration<String, u32> = Orchestration::new("text");
    in_both_modes(|world| async move {
        let registry = Registry::builder()
            .orchestration(TEXT, async |ctx: Context, _: String| {
                let big = "x".repeat(segno::limits::MAX_PAYLOAD_BYTES);
                let failure = ctx.continue_as_new::<_, u32>(big).await.unwrap_err();
                assert!(failure.has_code("payload-too-large"), "{failure}");
                let failure = ctx.continue_as_new::<_, u32>("x").version("one").await.unwrap_err();
                assert!(failure.has_code("invalid-version"), "{failure}");
                Ok(4)
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(TEXT, String::new()).id("a").result().await.unwrap(), 4);
        assert_eq!(world.client.executions("a").await.unwrap(), [1]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_and_cancellation_reach_a_loop_that_never_rests() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        if ctx.mailbox(JOBS).try_receive()?.is_some() {
            return Ok(n);
        }
        ctx.sleep(secs(1)).await?;
        ctx.continue_as_new(n + 1).await
    });
    let _node = world.node(&registry).await;
    for id in ["read", "cancelled"] {
        world.client.start(MAIN, 0).id(id).await.unwrap();
    }
    world.pass(secs(100)).await;
    world.client.enqueue("read", JOBS, 1).await.unwrap();
    world.client.cancel("cancelled", "x").await.unwrap();
    assert!(world.output::<u32>("read").await >= 100);
    assert!(world.failure("cancelled").await.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_went_to_a_wait_which_nobody_looked_at_again_comes_along() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            let jobs = ctx.mailbox(JOBS);
            if n > 0 {
                return Ok(100 * jobs.receive().await? + jobs.receive().await?);
            }
            // The wait is kept over a sleep, during which its message comes.
            let mut next = jobs.receive();
            let _timed_out = segno::race(&mut next, ctx.sleep(secs(1))).await;
            ctx.sleep(secs(10)).await?;
            ctx.continue_as_new(n + 1).await
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        world.client.enqueue("a", JOBS, 4).await.unwrap();
        world.client.enqueue("a", JOBS, 2).await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 402);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_that_does_not_look_at_its_cancellation_does_not_lose_it_by_continuing() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            let _ignored = ctx.sleep(secs(1)).await;
            if n > 1_000 {
                return Ok(n);
            }
            ctx.continue_as_new(n + 1).await
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        world.client.cancel("a", "stop it").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.is_cancelled() && failure.message.contains("stop it"), "{failure}");
    })
    .await;
}
