//! Inline steps: recorded once, retried with durable timers, never run again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use segno::clock::Clock;
use segno::event::EventKind;
use segno::{Activity, Context, Failure, Orchestration, Registry, Retry, join_all, race};

use crate::support::{Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const DOUBLE: Activity<u32, u32> = Activity::new("double");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<u32, Failure>> + Send + 'static,
{
    let double = async |_, n| Ok(n * 2);
    Registry::builder().orchestration(MAIN, main).activity(DOUBLE, double).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn steps_and_activities_mix_and_each_step_runs_once() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let ran = log.clone();
        let registry = registry(move |ctx: Context, n| {
            let ran = ran.clone();
            async move {
                let note = |name: &'static str| {
                    let ran = ran.clone();
                    // The closure itself has an effect, not only the future that it makes.
                    move || {
                        ran.push(name);
                        async { Ok(1_u32) }
                    }
                };
                let a = ctx.run("a", note("a")).await?;
                let b = ctx.activity(DOUBLE, n).await?;
                let c = ctx.run("c", note("c")).await?;
                ctx.sleep(secs(60)).await?;
                let d = ctx.run("d", note("d")).await?;
                Ok(a + b + c + d)
            }
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 13);
        assert_eq!(log.lines(), ["a", "c", "d"]);
        let expected = [
            "OrchestrationStarted",
            "StepCompleted",
            "ActivityScheduled",
            "ActivityCompleted",
            "StepCompleted",
            "TimerCreated",
            "TimerFired",
            "StepCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(world.kinds("a").await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_is_retried_after_durable_pauses() {
    in_both_modes(|world| async move {
        let runs = Arc::new(AtomicU32::new(0));
        let counter = runs.clone();
        let registry = registry(move |ctx: Context, _| {
            let counter = counter.clone();
            async move {
                ctx.run("flaky", move || {
                    let run = counter.fetch_add(1, Ordering::Relaxed) + 1;
                    async move { if run < 3 { Err(Failure::application("again")) } else { Ok(run) } }
                })
                .retry(Retry::fixed(5, secs(100)))
                .await
            }
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), 3);
        assert_eq!(runs.load(Ordering::Relaxed), 3);
        assert_eq!(world.now_ms() - begin_ms, 200_000);
        let expected = [
            "OrchestrationStarted",
            "StepFailed",
            "TimerCreated",
            "TimerFired",
            "StepFailed",
            "TimerCreated",
            "TimerFired",
            "StepCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(world.kinds("a").await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_or_panicking_step_can_be_caught() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let failed =
                ctx.run("fails", || async { Err::<u32, _>(Failure::application("no").code("c")) }).await;
            assert!(failed.unwrap_err().has_code("c"));
            let panicked =
                ctx.run::<u32, _, _>("panics", || async { panic!("in the future") }).await.unwrap_err();
            assert!(
                panicked.has_code("panicked") && panicked.message.contains("in the future"),
                "{panicked}"
            );
            let early = ctx
                .run("early", || -> std::future::Ready<Result<u32, Failure>> { panic!("in the closure") })
                .await
                .unwrap_err();
            assert!(early.has_code("panicked") && early.message.contains("in the closure"), "{early}");
            let unnamed = ctx.run("", || async { Ok(1) }).await.unwrap_err();
            assert!(unnamed.has_code("invalid-name"));
            Ok(1)
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn parallel_steps_run_at_the_same_time_and_are_recorded_as_they_end() {
    in_both_modes(|world| async move {
        let clock = world.clock.clone();
        let registry = registry(move |ctx: Context, _| {
            let clock = clock.clone();
            async move {
                let steps = (1..=5_u32).map(|n| {
                    let clock = clock.clone();
                    ctx.run(format!("step {n}"), move || {
                        let clock = clock.clone();
                        async move {
                            segno::clock::sleep(&*clock, secs(u64::from(6 - n))).await;
                            Ok(n)
                        }
                    })
                });
                let results: Result<Vec<u32>, Failure> = join_all(steps).await.into_iter().collect();
                assert_eq!(results?, [1, 2, 3, 4, 5]);
                Ok(0)
            }
        });
        let _node = world.node(&registry).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        assert_eq!(world.now_ms() - begin_ms, 5_000);
        let order: Vec<u64> = world
            .history("a")
            .await
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::StepCompleted { step, .. } => Some(step),
                _ => None,
            })
            .collect();
        assert_eq!(order, [5, 4, 3, 2, 1]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn everything_before_a_step_is_committed_before_it_runs() {
    let world = World::resident();
    let (client, log) = (world.client.clone(), Log::default());
    let seen = log.clone();
    let registry = registry(move |ctx: Context, _| {
        let (client, seen) = (client.clone(), seen.clone());
        async move {
            ctx.set_status(&"ready")?;
            for _ in 0..2 {
                let (client, seen) = (client.clone(), seen.clone());
                ctx.run("look", move || {
                    let (client, seen) = (client.clone(), seen.clone());
                    async move {
                        let history = client.history("a").await?;
                        let instance = client.instance("a").await?;
                        seen.push(format!(
                            "{:?} {:?}",
                            crate::support::kinds(&history),
                            instance.custom_status
                        ));
                        Ok(0)
                    }
                })
                .await?;
            }
            Ok(0)
        }
    });
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").result().await.unwrap();
    let expected = [
        r#"["OrchestrationStarted", "CustomStatusUpdated"] Some("ready")"#,
        r#"["OrchestrationStarted", "CustomStatusUpdated", "StepCompleted"] Some("ready")"#,
    ];
    assert_eq!(log.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_a_crash_cut_off_runs_again_and_ended_ones_do_not() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let ran = log.clone();
        let registry = registry(move |ctx: Context, _| {
            let ran = ran.clone();
            async move {
                for name in ["one", "two", "three"] {
                    let ran = ran.clone();
                    ctx.run(name, move || {
                        ran.push(name);
                        let times = ran.lines().iter().filter(|line| *line == name).count();
                        async move {
                            if name == "two" && times == 1 {
                                std::future::pending::<()>().await;
                            }
                            Ok(0_u32)
                        }
                    })
                    .await?;
                }
                Ok(7)
            }
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(5)).await;
        drop(node);
        let _node = world.node(&registry).await;
        let crashed_ms = world.now_ms();
        assert_eq!(world.output::<u32>("a").await, 7);
        assert_eq!(log.lines(), ["one", "two", "two", "three"]);
        assert!(world.now_ms() - crashed_ms <= 15_000, "N1: taken over within the lock and a bit");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_lost_a_race_before_it_ended_leaves_no_trace() {
    in_both_modes(|world| async move {
        let clock = world.clock.clone();
        let registry = registry(move |ctx: Context, _| {
            let clock = clock.clone();
            async move {
                let slow = clock.clone();
                let winner = race! {
                    fast = ctx.run("fast", move || {
                        let clock = clock.clone();
                        async move { segno::clock::sleep(&*clock, secs(1)).await; Ok(1_u32) }
                    }) => fast?,
                    slow = ctx.run("slow", move || {
                        let clock = slow.clone();
                        async move { segno::clock::sleep(&*clock, secs(2)).await; Ok(2_u32) }
                    }) => slow?,
                };
                ctx.sleep(secs(10)).await?;
                ctx.run("last", || async { Ok(0_u32) }).await?;
                Ok(winner)
            }
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 0).id("a").result().await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_code_that_only_runs_steps() {
    in_both_modes(|world| async move {
        let clock = world.clock.clone();
        let registry = registry(move |ctx: Context, _| {
            let clock = clock.clone();
            async move {
                loop {
                    let clock = clock.clone();
                    ctx.run("tick", move || {
                        let clock = clock.clone();
                        async move {
                            segno::clock::sleep(&*clock, secs(1)).await;
                            Ok(clock.now_ms())
                        }
                    })
                    .await?;
                }
            }
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(10)).await;
        world.client.cancel("a", "enough").await.unwrap();
        let asked_ms = world.now_ms();
        assert!(world.failure("a").await.is_cancelled());
        assert!(world.now_ms() - asked_ms <= 2_000, "it took {} ms", world.now_ms() - asked_ms);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_steps_run_in_order() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            let mut sum = 0;
            for i in 0..n {
                sum += ctx.run("add", move || async move { Ok(i) }).await?;
            }
            Ok(sum)
        });
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 2_500).id("a").result().await.unwrap(), 2_499 * 2_500 / 2);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_the_steps_that_have_not_run() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let ran = log.clone();
        let registry = registry(move |ctx: Context, _| {
            let ran = ran.clone();
            async move {
                ctx.sleep(secs(10)).await?;
                ctx.run("late", move || {
                    ran.push("late");
                    async { Ok(3) }
                })
                .await
            }
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        world.client.pause("a", "hold on").await.unwrap();
        world.pass(secs(100)).await;
        assert_eq!(log.count(), 0);
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 3);
        assert_eq!(log.count(), 1);
    })
    .await;
}
