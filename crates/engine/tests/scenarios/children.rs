//! Children and detached starts.

use std::sync::Arc;

use segno::client::TreeQuery;
use segno::event::ParentLink;
use segno::runtime::OnNondeterminism;
use segno::store::{AckOrchestrationItem, ExecutionStatus, OrchestratorMessage, Provider};
use segno::work_item::{StartOrchestration, WorkItem};
use segno::{
    Activity, ActivityContext, Category, Code, Context, Failure, Orchestration, Payload, Registry,
    RuntimeOptions, Signal, join_all,
};

use crate::support::{HANG, Log, World, in_both_modes, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const CHILD: Orchestration<u32, u32> = Orchestration::new("child");
const GO: Signal<u32> = Signal::new("go");

fn registry<F, Fut, C, CFut>(main: F, child: C) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<u32, Failure>> + Send + 'static,
    C: Fn(Context, u32) -> CFut + Send + Sync + 'static,
    CFut: Future<Output = Result<u32, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).orchestration(CHILD, child).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_child_gives_its_result_and_knows_its_parent() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                assert_eq!(ctx.parent_instance_id(), None);
                let named = ctx.child(CHILD, n).id("named").await?;
                let unnamed = ctx.child(CHILD, n).await?;
                Ok(named + unnamed)
            },
            async |ctx: Context, n| {
                assert_eq!(ctx.parent_instance_id(), Some("a"));
                Ok(n * 2)
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 20);
        let tree = world.client.tree("a").await.unwrap();
        assert_eq!((tree.root_id.as_str(), tree.all_ids.len()), ("a", 3));
        assert!(tree.all_ids.contains(&"named".to_owned()));
        let expected = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "SubOrchestrationCompleted",
            "SubOrchestrationScheduled",
            "SubOrchestrationCompleted",
            "OrchestrationCompleted",
        ];
        assert_eq!(world.kinds("a").await, expected);
        let query = segno::store::InstanceQuery {
            parent_instance_id: Some("a".to_owned()),
            ..segno::store::InstanceQuery::default()
        };
        assert_eq!(world.client.list(query).await.unwrap().instances.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_read_page_by_page_depth_first() {
    let world = World::resident();
    // Two generations of three below the root.
    let family = async |ctx: Context, n: u32| {
        let ids = (0..3).map(|child| format!("{}.{child}", ctx.instance_id()));
        for id in ids.filter(|_| n > 0).collect::<Vec<_>>() {
            ctx.child(MAIN, n - 1).id(id).await?;
            ctx.sleep(secs(1)).await?;
        }
        Ok(n)
    };
    let _node = world.node(&registry(family, async |_, n| Ok(n))).await;
    world.client.start(MAIN, 2).id("a").result().await.unwrap();
    let mut shown = Vec::new();
    for (root, limit) in [("a", 1), ("a", 2), ("a", 5), ("a", 13), ("a", 0), ("a.1", 2)] {
        let mut query = TreeQuery { instance: root.to_owned(), after: None, limit };
        let mut nodes = Vec::new();
        loop {
            let page = world.client.tree_page(query.clone()).await.unwrap();
            assert!(limit == 0 || page.nodes.len() <= limit);
            nodes.extend(page.nodes.into_iter().map(|node| (node.depth, node.instance.id)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        shown.push(nodes);
    }
    let named = |depth: usize, id: &str| (depth, id.to_owned());
    let mut expected = vec![named(0, "a")];
    for child in ["a.2", "a.1", "a.0"] {
        expected.push(named(1, child));
        expected.extend(["2", "1", "0"].map(|last| named(2, &format!("{child}.{last}"))));
    }
    let below = vec![named(0, "a.1"), named(1, "a.1.2"), named(1, "a.1.1"), named(1, "a.1.0")];
    assert_eq!(shown.pop().unwrap(), below);
    for nodes in shown {
        assert_eq!(nodes, expected);
    }
    for stranger in ["a.0", "nobody"] {
        let after = Some(stranger.to_owned());
        let query = TreeQuery { instance: "a.1".to_owned(), after, limit: 0 };
        assert_eq!(world.client.tree_page(query).await.unwrap_err().code(), Code::InvalidOption);
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_child_arrives_whole_and_a_panic_too() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, _| {
                let failed = ctx.child(CHILD, 1).await.unwrap_err();
                assert_eq!(failed.category, Category::Infrastructure);
                assert_eq!(failed.details.unwrap().as_str(), r#"{"disk":3}"#);
                let panicked = ctx.child(CHILD, 2).await.unwrap_err();
                assert!(panicked.has_code("panicked"), "{panicked}");
                let mismatch = ctx.child(Orchestration::<&str, u32>::new("child"), "text").await.unwrap_err();
                assert!(mismatch.has_code("payload-mismatch"), "{mismatch}");
                Ok(1)
            },
            async |_, n| {
                assert!(n < 2, "the child panics");
                let failure =
                    Failure::new(Category::Infrastructure, "x").details(serde_json::json!({"disk": 3}));
                Err(failure)
            },
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_child_with_the_id_of_another_instance_fails_the_call() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                if n == 0 {
                    return ctx.signal(GO).await;
                }
                let running = ctx.child(CHILD, 1).id("running").await.unwrap_err();
                let ended = ctx.child(CHILD, 1).id("ended").await.unwrap_err();
                let own = ctx.child(CHILD, 1).id("a").await.unwrap_err();
                for failure in [&running, &ended, &own] {
                    assert!(failure.has_code("instance-exists") && !failure.retryable, "{failure}");
                }
                let twice =
                    join_all([ctx.child(CHILD, 1).id("twice"), ctx.child(CHILD, 2).id("twice")]).await;
                assert_eq!(twice[0].as_ref().unwrap(), &1);
                assert!(twice[1].as_ref().unwrap_err().has_code("instance-exists"));
                Ok(5)
            },
            async |_, n| Ok(n),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("running").await.unwrap();
        world.client.start(CHILD, 7).id("ended").result().await.unwrap();
        world.client.start(MAIN, 1).id("a").await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 5);
        assert_eq!(world.client.instance("running").await.unwrap().status, ExecutionStatus::Running);
        world.client.signal("running", GO, 3).await.unwrap();
        assert_eq!(world.output::<u32>("running").await, 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bad_child_ids_names_and_versions_fail_the_call() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let id = ctx.child(CHILD, n).id("").await.unwrap_err();
                assert!(id.has_code("invalid-instance-id"), "{id}");
                let name = ctx.child(Orchestration::<u32, u32>::new(""), n).await.unwrap_err();
                assert!(name.has_code("invalid-name"), "{name}");
                let version = ctx.child(CHILD.at("one"), n).await.unwrap_err();
                assert!(version.has_code("invalid-version"), "{version}");
                let detached = ctx.start_detached(CHILD, n).id("x\0").await.unwrap_err();
                assert!(detached.has_code("invalid-instance-id"), "{detached}");
                Ok(1)
            },
            async |_, n| Ok(n),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        assert_eq!(world.kinds("a").await.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_with_the_longest_id_can_have_children() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| ctx.child(CHILD, n).await, async |_, n| Ok(n));
    let _node = world.node(&registry).await;
    let id = "x".repeat(segno::limits::MAX_INSTANCE_ID_BYTES);
    assert_eq!(world.client.start(MAIN, 3).id(id).result().await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_continues_as_new_reports_to_its_parent_at_the_end() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| ctx.child(CHILD, n).id("c").await,
            async |ctx: Context, n| {
                if n > 0 {
                    ctx.sleep(secs(1)).await?;
                    return ctx.continue_as_new(n - 1).await;
                }
                Ok(u32::try_from(ctx.execution_id()).unwrap())
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 4).id("a").result().await.unwrap(), 5);
        assert_eq!(world.client.executions("c").await.unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(world.client.instance("c").await.unwrap().parent.as_deref(), Some("a"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn children_nest_deeply_and_a_cancellation_goes_all_the_way_down() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| if n == 0 { ctx.signal(GO).await } else { ctx.child(MAIN, n - 1).await },
            async |_, n| Ok(n),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 30).id("a").await.unwrap();
        world.settle().await;
        let tree = world.client.tree("a").await.unwrap();
        assert_eq!(tree.all_ids.len(), 31);
        world.client.cancel("a", "enough").await.unwrap();
        for id in &tree.all_ids {
            assert_eq!(world.ended(id).await.status, ExecutionStatus::Cancelled);
        }
        world.assert_queues_are_empty().await;
        let refused = world.client.delete(&tree.all_ids[5], false).await;
        assert!(refused.is_err(), "a child must not be deleted without its parent");
        assert_eq!(world.client.delete("a", false).await.unwrap().instances_deleted, 31);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_children_at_once() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let results = join_all((0..n).map(|n| ctx.child(CHILD, n))).await;
                let results: Result<Vec<u32>, Failure> = results.into_iter().collect();
                Ok(results?.iter().sum())
            },
            async |ctx: Context, n| {
                ctx.sleep(secs(u64::from(n % 7))).await?;
                Ok(n)
            },
        );
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 100).id("a").result().await.unwrap(), 4_950);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_instance_goes_its_own_way() {
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let id = ctx.start_detached(CHILD, n).await?;
                assert_eq!(ctx.start_detached(CHILD, n).id("named").await?, "named");
                // An instance of this id exists by then, so nothing is started.
                assert_eq!(ctx.start_detached(CHILD, n + 1).id("named").await?, "named");
                ctx.set_status(&id)?;
                Ok(0)
            },
            async |ctx: Context, n| {
                assert_eq!(ctx.parent_instance_id(), None);
                ctx.sleep(secs(100)).await?;
                Ok(n)
            },
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 9).id("a").result().await.unwrap();
        let status = world.client.instance("a").await.unwrap().custom_status.unwrap();
        let id: String = status.decode().unwrap();
        assert_eq!(world.output::<u32>(&id).await, 9);
        assert_eq!(world.output::<u32>("named").await, 9);
        assert_eq!(world.client.tree("a").await.unwrap().all_ids, ["a"]);
        assert_eq!(world.kinds("a").await[1], "OrchestrationChained");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_was_deleted_and_made_again_starts_fresh_detached_instances() {
    let world = World::resident();
    let log = Log::default();
    let ran = log.clone();
    let registry = registry(
        async |ctx: Context, n| {
            ctx.start_detached(CHILD, n).await?;
            Ok(0)
        },
        move |_: Context, n| {
            ran.push(n.to_string());
            async move { Ok(n) }
        },
    );
    let _node = world.node(&registry).await;
    for n in 0..3 {
        world.client.start(MAIN, n).id("a").result().await.unwrap();
        world.settle().await;
        world.client.delete("a", false).await.unwrap();
    }
    assert_eq!(log.lines(), ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_of_unregistered_code_fails_the_call_in_the_end() {
    const MISSING: Orchestration<u32, u32> = Orchestration::new("missing");
    in_both_modes(|world| async move {
        let registry = registry(
            async |ctx: Context, n| {
                let failure = ctx.child(MISSING, n).id("m").await.unwrap_err();
                assert!(failure.has_code("unregistered"), "{failure}");
                assert_eq!(failure.category, Category::Configuration);
                Ok(1)
            },
            async |_, n| Ok(n),
        );
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").result().await.unwrap();
        world.histories_need_not_fit_the_code();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_deleted_with_force_takes_its_running_tree_along() {
    const WORK: Activity<u32, u32> = Activity::new("work");
    let world = World::resident();
    let log = Log::default();
    let told = log.clone();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, n| ctx.child(CHILD, n).id("c").await)
        .orchestration(CHILD, async |ctx: Context, n| ctx.activity(WORK, n).await)
        .activity(WORK, move |ctx: ActivityContext, n| {
            let told = told.clone();
            async move {
                told.push(ctx.cancelled().await);
                Ok(n)
            }
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(1)).await;
    let refused = world.client.delete("a", false).await.unwrap_err();
    assert_eq!(refused.code(), segno::Code::InstanceRunning);
    assert_eq!(world.client.delete("a", true).await.unwrap().instances_deleted, 2);
    world.pass(secs(2)).await;
    assert_eq!(log.count(), 1);
    assert_eq!(world.client.instance("c").await.unwrap_err().code(), segno::Code::NotFound);
    let gone = world.client.wait_until_ended("a", HANG).await;
    assert!(gone.is_err());
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_with_the_id_of_an_instance_that_cannot_go_on_fails_the_call() {
    for on_nondeterminism in [OnNondeterminism::Fail, OnNondeterminism::Pause] {
        let world = World::resident();
        let waits = registry(async |ctx: Context, _| ctx.signal(GO).await, async |_, n| Ok(n));
        let node = world.node(&waits).await;
        world.client.start(MAIN, 0).id("broken").await.unwrap();
        world.settle().await;
        node.shutdown(secs(1)).await;
        let changed = registry(
            async |ctx: Context, _| {
                ctx.sleep(secs(1)).await?;
                Ok(1)
            },
            async |ctx: Context, n| {
                let failure = ctx.child(CHILD, n).id("broken").await.unwrap_err();
                assert!(failure.has_code("instance-exists"), "{failure}");
                Ok(n)
            },
        );
        let options = RuntimeOptions { on_nondeterminism, ..world.options() };
        let _node = world.node_with(&changed, options).await;
        world.client.start(CHILD, 3).id("parent").await.unwrap();
        assert_eq!(world.output::<u32>("parent").await, 3);
    }
}

/// The message that a parent sends to start a child.
fn start_of_child(instance: &str) -> OrchestratorMessage {
    let parent = ParentLink { instance: "parent".to_owned(), execution_id: 1, event_id: 2 };
    let start = StartOrchestration {
        orchestration: CHILD.name().to_owned(),
        input: Payload::null(),
        version: None,
        parent: Some(parent),
        labels: Default::default(),
        start_at_ms: None,
        traceparent: None,
        settle: None,
        execution_id: None,
        seed: None,
        follows_another: false,
    };
    WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(instance)
}

#[tokio::test(start_paused = true)]
async fn a_child_with_the_id_of_a_delayed_start_fails_the_call_and_the_start_happens() {
    let world = World::resident();
    let registry = registry(
        async |ctx: Context, n| {
            let failure = ctx.child(CHILD, n).id("later").await.unwrap_err();
            assert!(failure.has_code("instance-exists"), "{failure}");
            Ok(n)
        },
        async |_, n| Ok(n),
    );
    // The start of the child is in the batch that postpones the delayed one …
    let orchestrator = world.node(&registry).await;
    world.client.start(MAIN, 1).id("parent").await.unwrap();
    world.client.start(CHILD, 7).id("later").delay(secs(100)).await.unwrap();
    world.store.enqueue_for_orchestrator(start_of_child("later"), None).await.unwrap();
    assert_eq!(world.output::<u32>("parent").await, 1);
    orchestrator.shutdown(secs(1)).await;
    // … or comes before it, when the nodes were away until its time.
    world.pass(secs(100)).await;
    let due = world.store.fetch_orchestration_item(secs(5), secs(0), None).await.unwrap().unwrap();
    let mut swap = AckOrchestrationItem::empty(due.lock_token, due.execution_id);
    let delayed = OrchestratorMessage::new("later", due.messages[0].body.clone());
    swap.orchestrator_items = vec![start_of_child("later"), delayed];
    world.store.ack_orchestration_item(Arc::new(swap)).await.unwrap();
    let _node = world.node(&registry).await;
    assert_eq!(world.output::<u32>("later").await, 7);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_given_up_with_early_messages_reports_to_its_parent() {
    let world = World::resident();
    let registry = registry(async |_, n| Ok(n), async |_, n| Ok(n));
    let node = world.node(&registry).await;
    world.client.signal("child", GO, 1).await.unwrap();
    world.settle().await;
    node.shutdown(secs(1)).await;
    world.store.enqueue_for_orchestrator(start_of_child("child"), None).await.unwrap();
    // A node takes the start and dies.
    world.store.fetch_orchestration_item(secs(1), secs(0), None).await.unwrap().unwrap();
    world.pass(secs(2)).await;
    let options = RuntimeOptions { max_attempts: 1, orchestration_concurrency: 1, ..world.options() };
    let _node = world.node_with(&registry, options).await;
    assert_eq!(world.failure("child").await.category, Category::Poison);
    let child = world.client.instance("child").await.unwrap();
    assert_eq!((child.orchestration.as_deref(), child.parent.as_deref()), (Some("child"), Some("parent")));
    let kinds = world.kinds("child").await;
    assert_eq!(kinds, ["MessageReceived", "OrchestrationStarted", "OrchestrationFailed"]);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_has_ended_stays_as_it_ended_whatever_is_delivered() {
    let world = World::resident();
    let registry = registry(async |_, n| Ok(n), async |_, n| Ok(n));
    let node = world.node(&registry).await;
    assert_eq!(world.client.start(MAIN, 5).id("a").result().await.unwrap(), 5);
    node.shutdown(secs(1)).await;
    world.store.enqueue_for_orchestrator(start_of_child("a"), None).await.unwrap();
    world.store.fetch_orchestration_item(secs(1), secs(0), None).await.unwrap().unwrap();
    world.pass(secs(2)).await;
    let options = RuntimeOptions { max_attempts: 1, ..world.options() };
    let _node = world.node_with(&registry, options).await;
    world.assert_queues_are_empty().await;
    assert_eq!(world.client.instance("a").await.unwrap().status, ExecutionStatus::Completed);
    world.check_histories().await;
}
