//! Determinism: the same on every replay, and a clear word when it is not.

use std::future::pending;

use segno::event::EventKind;
use segno::runtime::OnNondeterminism;
use segno::store::ExecutionStatus;
use segno::{Activity, Category, Context, Failure, Orchestration, Registry, RuntimeOptions, Signal};

use crate::support::{Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, String> = Orchestration::new("main");
const ECHO: Activity<u32, u32> = Activity::new("echo");
const OTHER: Activity<u32, u32> = Activity::new("other");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Registry::builder()
        .orchestration(MAIN, main)
        .activity(ECHO, async |_, n| Ok(n))
        .activity(OTHER, async |_, n| Ok(n))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn time_uuid_and_random_are_the_same_on_every_replay() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let drawn = log.clone();
        let registry = registry(move |ctx: Context, n| {
            let drawn = drawn.clone();
            async move {
                let mut all = Vec::new();
                for _ in 0..4 {
                    all.push(format!("{} {} {}", ctx.now_ms(), ctx.uuid(), ctx.random()));
                    ctx.sleep(secs(10)).await?;
                    ctx.activity(ECHO, n).await?;
                }
                drawn.push(all.join(","));
                Ok(all.join(","))
            }
        });
        let _node = world.node(&registry).await;
        let output = world.client.start(MAIN, 0).id("a").result().await.unwrap();
        assert_eq!(log.lines(), std::slice::from_ref(&output));
        let parts: std::collections::BTreeSet<&str> = output.split(',').collect();
        assert_eq!(parts.len(), 4);
        world.client.start(MAIN, 0).id("b").result().await.unwrap();
        assert_ne!(log.lines()[0], log.lines()[1], "another instance draws other numbers");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn logging_is_silent_on_replay_and_the_code_can_tell() {
    in_both_modes(|world| async move {
        let log = Log::default();
        let live = log.clone();
        let registry = registry(move |ctx: Context, n| {
            let live = live.clone();
            async move {
                for step in 0..3 {
                    if !ctx.is_replaying() {
                        live.push(step.to_string());
                    }
                    ctx.info("hello");
                    ctx.activity(ECHO, n).await?;
                }
                Ok(String::new())
            }
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        drop(node);
        assert_eq!(log.lines(), ["0", "1", "2"]);
    })
    .await;
}

/// Runs `before` until it waits for the signal, restarts with `after`, and raises the signal.
async fn change_code<F, FFut, G, GFut>(
    world: &World,
    before: F,
    after: G,
    options: RuntimeOptions,
) -> segno::Runtime
where
    F: Fn(Context, u32) -> FFut + Send + Sync + 'static,
    FFut: Future<Output = Result<String, Failure>> + Send + 'static,
    G: Fn(Context, u32) -> GFut + Send + Sync + 'static,
    GFut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    let node = world.node(&registry(before)).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.pass(secs(60)).await;
    node.shutdown(secs(1)).await;
    let node = world.node_with(&registry(after), options).await;
    world.client.signal("a", GO, 1).await.unwrap();
    world.histories_need_not_fit_the_code();
    node
}

async fn before(ctx: Context, n: u32) -> Result<String, Failure> {
    ctx.run("look", || async { Ok(1_u32) }).await?;
    ctx.activity(ECHO, n).await?;
    ctx.signal(GO).await?;
    Ok("before".to_owned())
}

#[tokio::test(start_paused = true)]
async fn another_activity_is_named_with_the_recorded_event() {
    in_both_modes(|world| async move {
        let after = async |ctx: Context, n| {
            ctx.run("look", || async { Ok(1_u32) }).await?;
            ctx.activity(OTHER, n).await?;
            ctx.signal(GO).await?;
            Ok(String::new())
        };
        let _node = change_code(&world, before, after, world.options()).await;
        let failure = world.failure("a").await;
        assert_eq!(failure.category, Category::Configuration);
        assert!(failure.has_code("nondeterminism"), "{failure}");
        for part in [r#"event 3"#, r#"ActivityScheduled("echo")"#, r#"ActivityScheduled("other")"#, "patched"]
        {
            assert!(failure.message.contains(part), "{part} is missing: {failure}");
        }
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn missing_extra_and_renamed_things_are_all_found() {
    type Code = fn(Context, u32) -> futures_util::future::BoxFuture<'static, Result<String, Failure>>;
    let cases: [(&str, Code, &[&str]); 6] = [
        (
            "a missing command",
            |ctx, _| {
                Box::pin(async move {
                    ctx.run("look", || async { Ok(1_u32) }).await?;
                    ctx.signal(GO).await?;
                    Ok(String::new())
                })
            },
            &[r#"ActivityScheduled("echo")"#, r#"MessageSubscribed(signal "go")"#],
        ),
        (
            "an extra command",
            |ctx, n| {
                Box::pin(async move {
                    ctx.run("look", || async { Ok(1_u32) }).await?;
                    ctx.sleep(secs(1)).await?;
                    ctx.activity(ECHO, n).await?;
                    ctx.signal(GO).await?;
                    Ok(String::new())
                })
            },
            &[r#"ActivityScheduled("echo")"#, "TimerCreated"],
        ),
        (
            "a renamed step",
            |ctx, n| {
                Box::pin(async move {
                    ctx.run("watch", || async { Ok(1_u32) }).await?;
                    ctx.activity(ECHO, n).await?;
                    ctx.signal(GO).await?;
                    Ok(String::new())
                })
            },
            &[r#"StepCompleted("look")"#, "watch"],
        ),
        (
            "a missing step",
            |ctx, n| {
                Box::pin(async move {
                    ctx.activity(ECHO, n).await?;
                    ctx.signal(GO).await?;
                    Ok(String::new())
                })
            },
            &[r#"StepCompleted("look")"#, "echo"],
        ),
        (
            "an extra command at the end",
            |ctx, n| {
                Box::pin(async move {
                    ctx.run("look", || async { Ok(1_u32) }).await?;
                    ctx.activity(ECHO, n).await?;
                    ctx.set_label("k", "v")?;
                    ctx.signal(GO).await?;
                    Ok(String::new())
                })
            },
            &["MessageSubscribed", "LabelUpdated"],
        ),
        (
            "an early end",
            |_, _| Box::pin(async move { Ok(String::new()) }),
            &[r#"StepCompleted("look")"#, "OrchestrationCompleted"],
        ),
    ];
    for (name, after, parts) in cases {
        in_both_modes(|world| async move {
            let _node = change_code(&world, before, after, world.options()).await;
            let failure = world.failure("a").await;
            assert!(failure.has_code("nondeterminism"), "{name}: {failure}");
            for part in parts {
                assert!(failure.message.contains(part), "{name}: {part} is missing: {failure}");
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_paused_for_its_code_goes_on_after_the_code_is_put_right() {
    in_both_modes(|world| async move {
        let pause = RuntimeOptions { on_nondeterminism: OnNondeterminism::Pause, ..world.options() };
        let wrong = async |ctx: Context, n| {
            ctx.activity(OTHER, n).await?;
            Ok(String::new())
        };
        let node = change_code(&world, before, wrong, pause.clone()).await;
        world.pass(secs(1)).await;
        let paused = world.client.instance("a").await.unwrap();
        assert_eq!(paused.status, ExecutionStatus::Paused);
        assert!(paused.pause_reason().unwrap().contains("other"), "{:?}", paused.pause_reason());
        // Resuming with the wrong code pauses again, and does not add to the history.
        let events = world.history("a").await.len();
        world.client.resume("a").await.unwrap();
        world.pass(secs(600)).await;
        assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Paused);
        assert_eq!(world.history("a").await.len(), events);
        node.shutdown(secs(1)).await;
        let _node = world.node_with(&registry(before), pause).await;
        world.client.resume("a").await.unwrap();
        assert_eq!(world.output::<String>("a").await, "before");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_paused_for_its_code_can_be_cancelled() {
    in_both_modes(|world| async move {
        let pause = RuntimeOptions { on_nondeterminism: OnNondeterminism::Pause, ..world.options() };
        let wrong = async |_: Context, _| Ok(String::new());
        let _node = change_code(&world, before, wrong, pause).await;
        world.pass(secs(1)).await;
        world.client.cancel("a", "give up").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.is_cancelled() && failure.message.contains("give up"), "{failure}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn patched_is_true_for_new_executions_and_false_for_those_that_went_past() {
    in_both_modes(|world| async move {
        let patched = async |ctx: Context, n| {
            ctx.run("look", || async { Ok(1_u32) }).await?;
            let what = if ctx.patched("use-other") {
                ctx.activity(OTHER, n).await?;
                "patched"
            } else {
                ctx.activity(ECHO, n).await?;
                "old"
            };
            ctx.signal(GO).await?;
            // Asked again, the answer is the same.
            assert_eq!(ctx.patched("use-other"), what == "patched");
            Ok(what.to_owned())
        };
        let node = change_code(&world, before, patched, world.options()).await;
        assert_eq!(world.output::<String>("a").await, "old");
        world.client.start(MAIN, 0).id("b").await.unwrap();
        world.pass(secs(1)).await;
        node.shutdown(secs(1)).await;
        // The patch is retired while an execution with it still runs.
        let retired = async |ctx: Context, n| {
            ctx.run("look", || async { Ok(1_u32) }).await?;
            ctx.activity(OTHER, n).await?;
            ctx.signal(GO).await?;
            Ok("retired".to_owned())
        };
        let _node = world.node(&registry(retired)).await;
        world.histories_need_not_fit_the_code();
        world.client.signal("b", GO, 1).await.unwrap();
        assert_eq!(world.output::<String>("b").await, "retired");
        let recorded = world.history("b").await;
        let patches = recorded.iter().filter(|event| matches!(event.kind, EventKind::Patched { .. })).count();
        assert_eq!(patches, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_further_on_is_taken_by_executions_that_have_not_come_there() {
    in_both_modes(|world| async move {
        let patched = async |ctx: Context, n| {
            before(ctx.clone(), n).await?;
            Ok(if ctx.patched("p") { "patched" } else { "old" }.to_owned())
        };
        let _node = change_code(&world, before, patched, world.options()).await;
        assert_eq!(world.output::<String>("a").await, "patched");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn awaiting_what_is_not_durable_fails_instead_of_hanging() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            match n {
                0 => pending().await,
                1 => {
                    let (_sender, receiver) = tokio::sync::oneshot::channel::<u32>();
                    receiver.await?;
                }
                2 => {
                    ctx.activity(ECHO, 1).await?;
                    pending().await
                }
                _ => {
                    let (sender, mut receiver) = tokio::sync::mpsc::channel::<u32>(1);
                    std::mem::forget(sender);
                    receiver.recv().await;
                }
            }
            Ok(String::new())
        });
        let _node = world.node(&registry).await;
        for n in 0..=3 {
            let id = format!("n{n}");
            world.client.start(MAIN, n).id(&id).await.unwrap();
            let failure = world.failure(&id).await;
            assert_eq!(failure.category, Category::Configuration);
            assert!(failure.has_code("non-durable-await"), "{failure}");
        }
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn code_that_wakes_itself_for_ever_is_called_a_busy_loop() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let mut timer = Box::pin(ctx.sleep(secs(1)));
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                timer.as_mut().poll(cx)
            })
            .await?;
            Ok(String::new())
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        assert!(world.failure("a").await.has_code("busy-loop"));
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_orchestration_fails_that_instance_only() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            ctx.activity(ECHO, n).await?;
            assert!(n > 0, "zero is too small");
            Ok("fine".to_owned())
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("bad").await.unwrap();
        world.client.start(MAIN, 1).id("good").await.unwrap();
        let failure = world.failure("bad").await;
        assert!(failure.has_code("panicked") && failure.message.contains("zero is too small"), "{failure}");
        assert_eq!(world.output::<String>("good").await, "fine");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_input_of_the_wrong_type_is_a_configuration_failure() {
    let world = World::resident();
    let _node = world.node(&registry(before)).await;
    world.client.start(Orchestration::<&str, String>::new("main"), "text").id("a").await.unwrap();
    assert!(world.failure("a").await.has_code("payload-mismatch"));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_failure_that_the_code_no_longer_gives_is_found_by_the_replay_check() {
    let world = World::resident();
    let fails = async |ctx: Context, n| {
        ctx.activity(ECHO, n).await?;
        Err(Failure::application("as always"))
    };
    let node = world.node(&registry(fails)).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.failure("a").await;
    drop(node);
    let history = world.history("a").await;
    registry(fails).replay("a", 1, &history).unwrap();
    let waits = registry(async |ctx: Context, n| {
        ctx.activity(ECHO, n).await?;
        ctx.cancelled().await;
        Ok(String::new())
    });
    let error = waits.replay("a", 1, &history).unwrap_err();
    assert_eq!(error.code(), segno::Code::Nondeterminism);
}

#[tokio::test(start_paused = true)]
async fn a_resident_execution_of_a_deleted_instance_is_not_taken_for_the_new_one() {
    // C3: a new instance with the same id receives nothing old, also on a node that still holds the old one.
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        ctx.signal(GO).await?;
        Ok(n.to_string())
    });
    let named = |name: &str| RuntimeOptions { node_id: Some(name.to_owned()), ..world.options() };
    let one = world.node_with(&registry, named("one")).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(1)).await;
    // The old execution rests on the first node, the new one begins on the second, and the signal goes to the first.
    world.client.delete("a", true).await.unwrap();
    let two = world.node_with(&registry, named("two")).await;
    world.client.start(MAIN, 2).id("a").await.unwrap();
    world.pass(secs(1)).await;
    world.client.signal("a", GO, 1).await.unwrap();
    assert_eq!(world.output::<String>("a").await, "2");
    drop((one, two));
}
