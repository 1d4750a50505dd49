//! Activities: results, failures, timeouts, deadlines, heartbeats, routing, payloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use segno::clock::Clock;
use segno::event::EventKind;
use segno::limits::MAX_PAYLOAD_BYTES;
use segno::store::TagFilter;
use segno::{
    Activity, ActivityContext, Category, Context, Failure, Orchestration, Registry, Retry, RuntimeOptions,
};
use serde_json::json;

use crate::support::{HANG, Log, Mode, World, in_both_modes, ms, secs};

const MAIN: Orchestration<u32, String> = Orchestration::new("main");
const WORK: Activity<u32, String> = Activity::new("work");

fn registry<F, Fut, A, AFut>(main: F, work: A) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
    A: Fn(ActivityContext, u32) -> AFut + Send + Sync + 'static,
    AFut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).activity(WORK, work).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_activity_gives_its_result() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| ctx.activity(WORK, n).await,
            async |ctx: ActivityContext, n| {
                assert_eq!((ctx.attempt(), ctx.delivery()), (1, 1));
                assert_eq!(ctx.instance_id(), "a");
                assert_eq!(ctx.execution_id(), 1);
                assert_eq!((ctx.activity_name(), ctx.orchestration_name()), ("work", "main"));
                assert_eq!(ctx.orchestration_version(), "1.0.0");
                assert_eq!(ctx.worker_id(), "node");
                Ok(format!("{}", n * 2))
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 21).id("a").result().await.unwrap(), "42");
        let kinds = world.kinds("a").await;
        let expected =
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
        assert_eq!(kinds, expected);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_can_match_on_every_part_of_a_failure() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let failure = ctx.activity(WORK, n).await.unwrap_err();
                assert_eq!(failure.category, Category::Application);
                assert!(failure.has_code("card-declined"));
                assert!(!failure.retryable);
                let details: serde_json::Value = failure.details.unwrap().decode().unwrap();
                assert_eq!(details, json!({"limit": 7, "at": [1, 2.5, null], "big": u64::MAX}));
                Ok(failure.message)
            },
            async |_, n| {
                let details = json!({"limit": n, "at": [1, 2.5, null], "big": u64::MAX});
                Err(Failure::application("no money").non_retryable().code("card-declined").details(details))
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 7).id("a").result().await.unwrap(), "no money");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_uncaught_failure_fails_the_instance_with_all_its_parts() {
    let world = World::resident();
    let failure = Failure::new(Category::Infrastructure, "disk").code("eio").details(json!(["sda"]));
    let expected = failure.clone();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).await,
        move |_, _| {
            let failure = failure.clone();
            async move { Err(failure) }
        },
    );
    let _node = world.node(&registry).await;
    let error = world.client.start(MAIN, 1).id("a").result().await.unwrap_err();
    assert_eq!(error.failure(), Some(&expected));
    assert_eq!(error.code(), segno::Code::InstanceFailed);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_activity_is_a_failure_of_that_attempt_and_can_be_retried() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| ctx.activity(WORK, n).retry(Retry::fixed(2, secs(1))).await,
            async |ctx: ActivityContext, _| {
                if ctx.attempt() == 1 {
                    panic!("boom");
                }
                Ok("fine".to_owned())
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), "fine");
        let history = world.history("a").await;
        let EventKind::ActivityAttemptFailed { failure, .. } = &history[2].kind else {
            panic!("{history:?}")
        };
        assert!(failure.message.contains("boom") && failure.has_code("panicked"), "{failure}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_future_is_made_is_caught_too() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).await,
        |_, n: u32| {
            assert!(n > 5, "too small");
            async { Ok(String::new()) }
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    assert!(world.failure("a").await.message.contains("too small"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_timed_out_and_retried() {
    in_both_modes(|world| async move {
        let clock = world.clock.clone();
        let begin_ms = world.now_ms();
        let registry = registry(
            async |ctx: Context, n| {
                ctx.activity(WORK, n).timeout(secs(5)).retry(Retry::fixed(3, secs(1))).await
            },
            move |ctx: ActivityContext, _| {
                let clock = clock.clone();
                async move {
                    if ctx.attempt() < 3 {
                        std::future::pending::<()>().await;
                    }
                    Ok(clock.now_ms().to_string())
                }
            },
        );
        let _node = world.node(&registry).await;
        let at_ms: u64 = world.client.start(MAIN, 1).id("a").result().await.unwrap().parse().unwrap();
        assert_eq!(at_ms - begin_ms, 5_000 + 1_000 + 5_000 + 1_000);
        let history = world.history("a").await;
        for at in [2, 3] {
            let EventKind::ActivityAttemptFailed { failure, .. } = &history[at].kind else { panic!() };
            assert!(failure.is_timeout() && failure.has_code("attempt-timeout"), "{failure}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn endless_timeouts_are_no_timeouts() {
    let world = World::resident();
    let clock = world.clock.clone();
    let registry = registry(
        async |ctx: Context, n| {
            ctx.activity(WORK, n)
                .timeout(Duration::MAX)
                .heartbeat_timeout(Duration::MAX)
                .deadline(Duration::MAX)
                .retry(Retry::fixed(u32::MAX, Duration::ZERO))
                .await
        },
        move |ctx: ActivityContext, _| {
            let clock = clock.clone();
            async move {
                segno::clock::sleep(&*clock, secs(90)).await;
                ctx.heartbeat(&1)?;
                Ok(ctx.delivery().to_string())
            }
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    assert_eq!(world.output::<String>("a").await, "1");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_running_activity_and_tells_it() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let told = log.clone();
        let registry = registry(
            async |ctx: Context, n| {
                let failure = ctx.activity(WORK, n).deadline(secs(10)).attempts(5).await.unwrap_err();
                assert!(failure.is_timeout() && failure.has_code("deadline") && !failure.retryable);
                Ok(String::new())
            },
            move |ctx: ActivityContext, _| {
                let told = told.clone();
                async move {
                    told.push(ctx.cancelled().await);
                    Ok("too late".to_owned())
                }
            },
        );
        let begin_ms = world.now_ms();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").result().await.unwrap();
        assert_eq!(world.now_ms() - begin_ms, 10_000);
        world.settle().await;
        assert_eq!(log.count(), 1, "the activity was not told");
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_also_passes_while_no_worker_is_there() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| Ok(ctx.activity(WORK, n).deadline(secs(60)).await.unwrap_err().message),
            async |_, _| Ok("never".to_owned()),
        );
        let options = RuntimeOptions { worker_concurrency: 0, ..world.options() };
        let _node = world.node_with(&registry, options).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 1).id("a").await.unwrap();
        world.ended("a").await;
        assert_eq!(world.now_ms() - begin_ms, 60_000);
        world.assert_queues_are_empty().await;
        let kinds = world.kinds("a").await;
        assert_eq!(
            kinds,
            ["OrchestrationStarted", "ActivityScheduled", "ActivityFailed", "OrchestrationCompleted"]
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_could_only_start_after_the_deadline_is_not_waited_for() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let call = ctx.activity(WORK, n).deadline(secs(25)).retry(Retry::fixed(10, secs(10)));
                Err(call.await.unwrap_err())
            },
            async |ctx: ActivityContext, _| Err(Failure::application(format!("attempt {}", ctx.attempt()))),
        );
        let begin_ms = world.now_ms();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").await.unwrap();
        assert_eq!(world.failure("a").await.message, "attempt 3");
        assert_eq!(world.now_ms() - begin_ms, 20_000);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_call_that_waits_between_two_attempts() {
    // The retry is queued for a worker that is gone when its time comes.
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| {
            let call = ctx.activity(WORK, n).deadline(secs(30)).retry(Retry::fixed(10, secs(10)));
            Err(call.await.unwrap_err())
        },
        async |_, _| Err(Failure::application("x")),
    );
    let orchestrator = RuntimeOptions { worker_concurrency: 0, ..world.options() };
    let _node = world.node_with(&registry, orchestrator).await;
    let worker = RuntimeOptions { orchestration_concurrency: 0, node_id: None, ..world.options() };
    let worker = world.node_with(&registry, worker).await;
    let begin_ms = world.now_ms();
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(5)).await;
    drop(worker);
    assert!(world.failure("a").await.has_code("deadline"));
    assert_eq!(world.now_ms() - begin_ms, 30_000);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_activity_fails_by_its_heartbeat_timeout() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| Err(ctx.activity(WORK, n).heartbeat_timeout(secs(10)).await.unwrap_err()),
            async |_, _| std::future::pending().await,
        );
        let begin_ms = world.now_ms();
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.is_timeout() && failure.has_code("heartbeat-timeout"), "{failure}");
        assert_eq!(world.now_ms() - begin_ms, 10_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_long_activity_alive() {
    in_both_modes(|world| async move {
        let clock = world.clock.clone();
        let registry = registry(
            async |ctx: Context, n| ctx.activity(WORK, n).heartbeat_timeout(secs(10)).await,
            move |ctx: ActivityContext, _| {
                let clock = clock.clone();
                async move {
                    for step in 0..20 {
                        segno::clock::sleep(&*clock, secs(9)).await;
                        ctx.heartbeat(&step)?;
                    }
                    Ok(format!("delivery {}", ctx.delivery()))
                }
            },
        );
        let _node = world.node(&registry).await;
        // Three minutes: the lock of the activity must be renewed six times as well.
        assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), "delivery 1");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_reads_the_latest_progress() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| ctx.activity(WORK, n).retry(Retry::fixed(3, secs(1))).await,
            async |ctx: ActivityContext, _| {
                let seen: Option<u32> = ctx.last_progress().await?;
                let from = seen.unwrap_or(0);
                // Several beats at once, and the failure right after them.
                for step in 1..=3 {
                    ctx.heartbeat(&(from + step))?;
                }
                if ctx.attempt() < 3 {
                    return Err(Failure::application("again"));
                }
                Ok(format!("{seen:?}"))
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), "Some(6)");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_timed_out_leaves_its_progress_too() {
    let world = World::resident();
    let clock = world.clock.clone();
    let registry = registry(
        async |ctx: Context, n| {
            ctx.activity(WORK, n).timeout(ms(2_500)).retry(Retry::fixed(2, secs(1))).await
        },
        move |ctx: ActivityContext, _| {
            let clock = clock.clone();
            async move {
                if let Some(seen) = ctx.last_progress::<u32>().await? {
                    return Ok(seen.to_string());
                }
                for step in 1.. {
                    ctx.heartbeat(&step)?;
                    segno::clock::sleep(&*clock, ms(100)).await;
                }
                Ok(String::new())
            }
        },
    );
    let _node = world.node(&registry).await;
    let seen: u32 = world.client.start(MAIN, 1).id("a").result().await.unwrap().parse().unwrap();
    assert!((25..=26).contains(&seen), "the latest progress was 25, but the next attempt saw {seen}");
}

#[tokio::test(start_paused = true)]
async fn progress_of_one_call_is_not_seen_by_another() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| {
            let _first = ctx.activity(WORK, n).await;
            ctx.activity(WORK, n + 1).await
        },
        async |ctx: ActivityContext, n| {
            let seen: Option<u32> = ctx.last_progress().await?;
            ctx.heartbeat(&n)?;
            if n == 1 { Err(Failure::application("x")) } else { Ok(format!("{seen:?}")) }
        },
    );
    let _node = world.node(&registry).await;
    assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), "None");
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_the_tag_never_gets_the_activity() {
    let world = World::resident();
    let log = Log::default();
    let ran = log.clone();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).tag("gpu").await,
        move |ctx: ActivityContext, _| {
            ran.push(ctx.worker_id());
            async move { Ok(format!("{:?}", ctx.tag())) }
        },
    );
    let named = |name: &str, tag_filter| RuntimeOptions {
        node_id: Some(name.to_owned()),
        tag_filter,
        ..world.options()
    };
    let _plain = world.node_with(&registry, named("plain", TagFilter::DefaultOnly)).await;
    let _other = world.node_with(&registry, named("other", TagFilter::default_and(["cpu"]))).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(3_600)).await;
    assert_eq!(log.count(), 0);
    assert_eq!(world.client.queue_depths().await.unwrap().worker_queue, 1);
    let _gpu = world.node_with(&registry, named("gpu", TagFilter::tags(["gpu"]))).await;
    assert_eq!(world.output::<String>("a").await, r#"Some("gpu")"#);
    assert_eq!(log.lines(), ["gpu"]);
}

#[tokio::test(start_paused = true)]
async fn the_idempotency_key_is_one_per_call_over_all_its_attempts() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let keys = log.clone();
        let registry = registry(
            async |ctx: Context, n| {
                let _failed = ctx.activity(WORK, n).retry(Retry::fixed(3, secs(1))).await;
                let _failed = ctx.activity(WORK, n).await;
                Ok(String::new())
            },
            move |ctx: ActivityContext, _| {
                keys.push(ctx.idempotency_key());
                async { Err(Failure::application("x")) }
            },
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").result().await.unwrap();
        world.client.delete("a", false).await.unwrap();
        world.client.start(MAIN, 1).id("a").result().await.unwrap();
        let keys = log.lines();
        assert_eq!(keys.len(), 8);
        assert!(keys[0] == keys[1] && keys[1] == keys[2]);
        assert!(keys[4] == keys[5] && keys[5] == keys[6]);
        let distinct: std::collections::BTreeSet<&String> = [&keys[0], &keys[3], &keys[4], &keys[7]].into();
        assert_eq!(distinct.len(), 4, "{keys:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_whose_worker_dies_is_delivered_again_in_the_same_attempt() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let seen = log.clone();
        let registry = registry(
            async |ctx: Context, n| ctx.activity(WORK, n).await,
            move |ctx: ActivityContext, _| {
                seen.push(format!("{}/{} {}", ctx.attempt(), ctx.delivery(), ctx.idempotency_key()));
                async move {
                    if ctx.delivery() < 3 {
                        std::future::pending::<()>().await;
                    }
                    Ok(String::new())
                }
            },
        );
        world.client.start(MAIN, 1).id("a").await.unwrap();
        for _ in 0..2 {
            let node = world.node(&registry).await;
            world.pass(secs(1)).await;
            drop(node);
            world.pass(secs(60)).await;
        }
        let _node = world.node(&registry).await;
        world.ended("a").await;
        let lines = log.lines();
        assert_eq!(lines.iter().map(|line| &line[..3]).collect::<Vec<_>>(), ["1/1", "1/2", "1/3"]);
        assert!(lines.iter().all(|line| line[4..] == lines[0][4..]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_kills_every_worker_is_poison_and_the_code_can_catch_it() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| {
            let failure = ctx.activity(WORK, n).attempts(5).await.unwrap_err();
            assert_eq!(failure.category, Category::Poison);
            Ok(failure.message)
        },
        async |_, _| std::future::pending().await,
    );
    let options = RuntimeOptions { max_attempts: 3, ..world.options() };
    world.client.start(MAIN, 1).id("a").await.unwrap();
    for _ in 0..3 {
        let node = world.node_with(&registry, options.clone()).await;
        world.pass(secs(1)).await;
        drop(node);
        world.pass(secs(60)).await;
    }
    let _node = world.node_with(&registry, options).await;
    let message: String = world.output("a").await;
    assert!(message.contains("3 deliveries"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_result_of_the_wrong_type_is_a_configuration_failure_that_can_be_caught() {
    const NUMBER: Activity<u32, u32> = Activity::new("work");
    const TEXT_INPUT: Activity<String, String> = Activity::new("work");
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let result = ctx.activity(NUMBER, n).await.unwrap_err();
                let input = ctx.activity(TEXT_INPUT, "text".to_owned()).attempts(9).await.unwrap_err();
                for failure in [&result, &input] {
                    assert_eq!(failure.category, Category::Configuration);
                    assert!(failure.has_code("payload-mismatch"), "{failure}");
                }
                Ok(String::new())
            },
            async |_, _| Ok("not a number".to_owned()),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").result().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn payloads_over_the_limit_fail_the_call_and_name_the_limit() {
    const BIG: Activity<String, String> = Activity::new("big");
    in_both_modes(|world| async move {
        let registry = Registry::builder()
            .orchestration(MAIN, async |ctx: Context, _| {
                let input = ctx.activity(BIG, "x".repeat(MAX_PAYLOAD_BYTES)).await.unwrap_err();
                let result = ctx.activity(BIG, "make".to_owned()).attempts(3).await.unwrap_err();
                for failure in [&input, &result] {
                    assert!(failure.has_code("payload-too-large"), "{failure}");
                    assert!(failure.message.contains(&MAX_PAYLOAD_BYTES.to_string()), "{failure}");
                }
                // Exactly at the limit, with two quotes around it.
                ctx.activity(BIG, "y".repeat(MAX_PAYLOAD_BYTES - 2)).await
            })
            .activity(BIG, async |_, input: String| {
                Ok(if input == "make" { "x".repeat(MAX_PAYLOAD_BYTES) } else { "done".to_owned() })
            })
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 1).id("a").result().await.unwrap(), "done");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_over_the_limit_is_cut_down_and_still_arrives() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let failure = ctx.activity(WORK, n).await.unwrap_err();
                assert!(failure.has_code("huge"), "{:?}", failure.code);
                let bytes = serde_json::to_vec(&failure)?.len();
                assert!(bytes <= MAX_PAYLOAD_BYTES, "{bytes}");
                Ok(String::new())
            },
            async |_, n| {
                let text = "é".repeat(MAX_PAYLOAD_BYTES);
                Err(match n {
                    1 => Failure::application("x").details(json!(text)).code("huge"),
                    _ => Failure::application(text).code("huge"),
                })
            },
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("details").result().await.unwrap();
        world.client.start(MAIN, 2).id("message").result().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bad_names_of_activities_tags_and_sessions_fail_the_call_and_record_nothing() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let calls = [
                    ctx.activity(Activity::<u32, String>::named(""), n),
                    ctx.activity(Activity::<u32, String>::named("x\n"), n),
                    ctx.activity(WORK, n).tag(" x"),
                    ctx.activity(WORK, n).session("y".repeat(257)),
                ];
                for call in calls {
                    let failure = call.await.unwrap_err();
                    assert!(failure.has_code("invalid-name"), "{failure}");
                    assert_eq!(failure.category, Category::Configuration);
                }
                Ok(String::new())
            },
            async |_, _| Ok(String::new()),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 1).id("a").result().await.unwrap();
        assert_eq!(world.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_activity_waits_for_a_node_that_has_it() {
    in_both_modes(|world| async move {
        let main = async |ctx: Context, n| ctx.activity(WORK, n).await;
        let without = Registry::builder().orchestration(MAIN, main).build().unwrap();
        let with = registry(main, async |_, _| Ok("here".to_owned()));
        let old = world.node(&without).await;
        world.client.start(MAIN, 1).id("a").await.unwrap();
        world.pass(secs(600)).await;
        drop(old);
        let _node = world.node(&with).await;
        assert_eq!(world.output::<String>("a").await, "here");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_nobody_registers_fails_as_configuration_in_the_end() {
    in_both_modes(|world| async move {
        let main = async |ctx: Context, n| {
            let failure = ctx.activity(WORK, n).attempts(5).await.unwrap_err();
            assert_eq!(failure.category, Category::Configuration);
            assert!(failure.has_code("unregistered"), "{failure}");
            Ok(failure.message)
        };
        let without = Registry::builder().orchestration(MAIN, main).build().unwrap();
        let _node = world.node(&without).await;
        let begin_ms = world.now_ms();
        world.client.start(MAIN, 1).id("a").await.unwrap();
        assert!(world.output::<String>("a").await.contains("work"));
        assert_eq!(world.now_ms() - begin_ms, 15 * 60 * 1_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_uses_up_its_share_of_the_processor_goes_on() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).await,
        async |_: ActivityContext, _| {
            for _ in 0..1_000 {
                tokio::task::consume_budget().await;
            }
            Ok("done".to_owned())
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    assert_eq!(world.output::<String>("a").await, "done");
}

#[tokio::test(start_paused = true)]
async fn the_first_moments_of_an_activity_count_for_its_timeout() {
    let world = World::resident();
    let clock = world.clock.clone();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).timeout(secs(5)).await,
        move |_: ActivityContext, _| {
            let clock = clock.clone();
            async move {
                // Time that passes without an await, as when code works on the spot.
                clock.advance(secs(6));
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                Ok("too late".to_owned())
            }
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    assert!(world.failure("a").await.has_code("attempt-timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_helper_task_that_holds_the_token_hears_that_the_attempt_timed_out() {
    let world = World::resident();
    let heard = Arc::new(AtomicU32::new(0));
    let hears = heard.clone();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).timeout(secs(5)).await,
        move |ctx: ActivityContext, _| {
            let hears = hears.clone();
            async move {
                let token = ctx.cancellation_token();
                tokio::spawn(async move {
                    token.cancelled().await;
                    assert!(token.is_cancelled());
                    hears.fetch_add(1, Ordering::Relaxed);
                });
                std::future::pending().await
            }
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.failure("a").await;
    world.settle().await;
    assert_eq!(heard.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn deleting_an_instance_stops_its_running_activity_and_nothing_comes_back() {
    let world = World::new(Mode::Resident);
    let log = Log::default();
    let told = log.clone();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).await,
        move |ctx: ActivityContext, n| {
            let told = told.clone();
            async move {
                if n == 1 {
                    told.push(ctx.cancelled().await);
                }
                Ok(n.to_string())
            }
        },
    );
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(2)).await;
    let deleted_ms = world.now_ms();
    world.client.delete("a", true).await.unwrap();
    world.client.start(MAIN, 2).id("a").await.unwrap();
    let output = world.client.result(MAIN, "a").timeout(HANG).await.unwrap();
    assert_eq!(output, "2");
    world.pass(secs(1)).await;
    assert_eq!(log.count(), 1, "the activity was not told within a second of {deleted_ms}");
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_gives_running_activities_back_without_counting_the_delivery() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| ctx.activity(WORK, n).await,
        async |ctx: ActivityContext, _| {
            if ctx.worker_id() == "node" {
                std::future::pending::<()>().await;
            }
            Ok(format!("{}/{}", ctx.attempt(), ctx.delivery()))
        },
    );
    let node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(1)).await;
    let begin_ms = world.now_ms();
    node.shutdown(secs(5)).await;
    assert_eq!(world.now_ms() - begin_ms, 5_000);
    let other = RuntimeOptions { node_id: Some("other".to_owned()), ..world.options() };
    let _other = world.node_with(&registry, other).await;
    assert_eq!(world.output::<String>("a").await, "1/1");
    assert!(world.now_ms() - begin_ms <= 5_001, "the activity was not given back at once");
}
