//! Limits: each with a clear error that names the way out.

use segno::limits::{
    MAX_COMMANDS_PER_TURN, MAX_EVENTS_PER_EXECUTION, MAX_LABELS, MAX_PAYLOAD_BYTES, MAX_UNREAD_MESSAGES,
};
use segno::{
    Activity, Category, Context, Failure, Mailbox, Orchestration, Registry, RuntimeOptions, join_all,
};

use crate::support::{HANG, World, in_both_modes};

const MAIN: Orchestration<u32, String> = Orchestration::new("main");
const ECHO: Activity<u32, u32> = Activity::new("echo");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).activity(ECHO, async |_, n| Ok(n)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_endless_history_fails_with_a_word_on_continue_as_new() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, _| {
        loop {
            ctx.run("tick", || async { Ok(1) }).await?;
        }
    });
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    let failure = world.failure("a").await;
    assert_eq!(failure.category, Category::Configuration);
    assert!(failure.has_code("too-many-events") && failure.message.contains("continue_as_new"), "{failure}");
    let events = world.history("a").await.len() as u64;
    assert!(events <= MAX_EVENTS_PER_EXECUTION + 1, "{events}");
}

#[tokio::test(start_paused = true)]
async fn too_many_commands_in_one_turn_fail_and_leave_nothing_behind() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        join_all((0..n).map(|n| ctx.activity(ECHO, n))).await;
        Ok(String::new())
    });
    let _node = world.node(&registry).await;
    world.client.start(MAIN, MAX_COMMANDS_PER_TURN as u32 + 1).id("a").await.unwrap();
    let failure = world.failure("a").await;
    assert!(failure.has_code("too-many-commands"), "{failure}");
    assert!(failure.message.contains(&MAX_COMMANDS_PER_TURN.to_string()), "{failure}");
    world.assert_queues_are_empty().await;
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn statuses_labels_and_results_over_the_limit_are_refused_and_change_nothing() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            ctx.set_status(&"small")?;
            let big = "x".repeat(MAX_PAYLOAD_BYTES);
            assert!(ctx.set_status(&big).unwrap_err().has_code("payload-too-large"));
            assert_eq!(ctx.status::<String>()?.as_deref(), Some("small"));
            assert!(ctx.set_label("k", "v".repeat(257)).unwrap_err().has_code("invalid-label"));
            assert!(ctx.set_label("", "v").unwrap_err().has_code("invalid-label"));
            for n in 0..MAX_LABELS {
                ctx.set_label(format!("k{n}"), "v")?;
            }
            assert!(ctx.set_label("one-more", "v").unwrap_err().has_code("invalid-label"));
            ctx.set_label("k0", "changed")?;
            Ok(big)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.has_code("payload-too-large"), "{failure}");
        let instance = world.client.instance("a").await.unwrap();
        assert_eq!(instance.labels.len(), MAX_LABELS);
        assert_eq!(instance.labels["k0"], "changed");
        assert_eq!(instance.custom_status.unwrap().as_str(), r#""small""#);
        assert_eq!(instance.custom_status_version, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_value_without_a_json_form_is_refused() {
    const MAP: Activity<std::collections::BTreeMap<(u8, u8), u8>, u32> = Activity::new("echo");
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let failure = ctx.activity(MAP, [((1, 2), 3)].into()).await.unwrap_err();
            assert!(failure.has_code("payload-not-json"), "{failure}");
            Ok(String::new())
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_many_results_ask_for_together_is_not_too_much_for_one_turn() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        let chain = async |n| {
            ctx.activity(ECHO, n).await?;
            ctx.set_status(&n)?;
            ctx.set_status(&())?;
            ctx.activity(ECHO, n).await
        };
        for result in join_all((0..n).map(chain)).await {
            result?;
        }
        Ok(String::new())
    });
    // All first results wait when the next turn comes.
    let orchestrator = RuntimeOptions { worker_concurrency: 0, ..world.options() };
    let orchestrator = world.node_with(&registry, orchestrator).await;
    world.client.start(MAIN, MAX_COMMANDS_PER_TURN as u32 / 2).id("a").await.unwrap();
    world.settle().await;
    orchestrator.shutdown(HANG).await;
    let worker = RuntimeOptions { orchestration_concurrency: 0, ..world.options() };
    let worker = world.node_with(&registry, worker).await;
    world.settle().await;
    worker.shutdown(HANG).await;
    let _node = world.node(&registry).await;
    assert_eq!(world.output::<String>("a").await, "");
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_unread_messages_holds_for_a_paused_instance() {
    const JOBS: Mailbox<u32> = Mailbox::new("jobs");
    let world = World::resident();
    let registry = registry(async |ctx: Context, _| {
        let jobs = ctx.mailbox(JOBS);
        while jobs.receive().await? as usize + 1 < MAX_UNREAD_MESSAGES {}
        Ok("all".to_owned())
    });
    let node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").await.unwrap();
    world.settle().await;
    world.client.pause("a", "x").await.unwrap();
    world.settle().await;
    node.shutdown(HANG).await;
    for n in 0..MAX_UNREAD_MESSAGES + 3 {
        world.client.enqueue("a", JOBS, n as u32).await.unwrap();
    }
    let _node = world.node(&registry).await;
    world.settle().await;
    assert_eq!(world.dead_letters().await.len(), 3);
    world.client.resume("a").await.unwrap();
    assert_eq!(world.output::<String>("a").await, "all");
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_unread_messages_holds_for_what_continue_as_new_carries() {
    const JOBS: Mailbox<u32> = Mailbox::new("jobs");
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        let jobs = ctx.mailbox(JOBS);
        if n == 0 {
            jobs.receive().await?;
            return ctx.continue_as_new(1).await;
        }
        while (jobs.receive().await? as usize) < MAX_UNREAD_MESSAGES {}
        Ok("all".to_owned())
    });
    world.client.start(MAIN, 0).id("a").await.unwrap();
    for n in 0..=MAX_UNREAD_MESSAGES + 3 {
        world.client.enqueue("a", JOBS, n as u32).await.unwrap();
    }
    let _node = world.node(&registry).await;
    assert_eq!(world.output::<String>("a").await, "all");
    assert_eq!(world.dead_letters().await.len(), 3);
}
