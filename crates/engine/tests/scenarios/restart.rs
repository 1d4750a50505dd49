//! Starting an instance again: one commit, the next execution, and nothing of the one before in it.

use std::sync::Arc;

use segno::client::OnConflict;
use segno::store::ExecutionStatus;
use segno::{Activity, Client, Code, Context, Failure, Orchestration, Registry, Signal};
use segno_testkit::faults::{self, FaultStore};
use uuid::Uuid;

use crate::support::{World, in_both_modes, kinds, secs};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const CHILD: Orchestration<u32, u32> = Orchestration::new("child");
const SLOW: Activity<u32, u32> = Activity::new("slow");
const GO: Signal<u32> = Signal::new("go");

/// `main` waits for a signal; a value above 100 is a failure.
fn waiting() -> Registry {
    Registry::builder()
        .orchestration(MAIN, async |ctx: Context, n| {
            let signal = ctx.signal(GO).await?;
            if signal > 100 { Err(Failure::application("too much")) } else { Ok(n + signal) }
        })
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_restart_begins_the_next_execution_and_keeps_what_failed() {
    in_both_modes(|world| async move {
        let _node = world.node(&waiting()).await;
        world.client.start(MAIN, 1).id("a").label("k", "v").await.unwrap();
        world.client.signal("a", GO, 101).await.unwrap();
        let failed = world.ended("a").await;
        assert_eq!(failed.status, ExecutionStatus::Failed);
        let restarted = world.client.restart("a").await.unwrap();
        assert_eq!((restarted.instance.as_str(), restarted.execution_id), ("a", 2));
        // At once, whether a node has looked at it or not.
        let again = world.client.instance("a").await.unwrap();
        assert_eq!((again.has_ended(), again.execution_id), (false, 2));
        assert_eq!(again.created_at_ms, failed.created_at_ms);
        world.client.signal("a", GO, 4).await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 5);
        let ended = world.ended("a").await;
        assert_eq!((ended.execution_id, ended.labels["k"].as_str()), (2, "v"));
        assert_eq!(world.client.executions("a").await.unwrap(), [1, 2]);
        let first = world.client.history_of_execution("a", 1).await.unwrap();
        assert_eq!(kinds(&first).last(), Some(&"OrchestrationFailed"));
        assert_eq!(world.client.execution("a", 1).await.unwrap().status, ExecutionStatus::Failed);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_one_commit() {
    let world = World::resident();
    let _node = world.node(&waiting()).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.settle().await;
    let store = FaultStore::new(world.store.clone(), world.clock.clone(), faults::no_faults());
    let client = Client::new(Arc::clone(&store) as Arc<_>);
    client.restart("a").force().await.unwrap();
    assert_eq!(store.commits(), 1);
    // A start that finds its id taken is refused once, and then replaces in one commit.
    client.start(MAIN, 2).id("a").on_conflict(OnConflict::Replace).await.unwrap();
    assert_eq!(store.commits(), 3);
    assert_eq!(world.client.instance("a").await.unwrap().execution_id, 3);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_dies_at_its_commit_leaves_the_instance() {
    for fault in [faults::Fault::CrashBefore, faults::Fault::CrashAfter] {
        let world = World::resident();
        let _node = world.node(&waiting()).await;
        world.client.start(MAIN, 1).id("a").await.unwrap();
        world.client.signal("a", GO, 101).await.unwrap();
        world.ended("a").await;
        let plan = faults::script([(1, fault)]);
        let store = FaultStore::new(world.store.clone(), world.clock.clone(), plan);
        let client = Client::new(Arc::clone(&store) as Arc<_>);
        let id = Uuid::from_u128(7);
        tokio::select! {
            answer = client.restart("a").request_id(id).into_future() => panic!("answered {answer:?}"),
            () = store.died() => {}
        }
        assert!(world.client.instance("a").await.is_ok());
        // The caller tries again: it is one restart all the same.
        let restarted = world.client.restart("a").request_id(id).await.unwrap();
        assert_eq!(restarted.execution_id, 2);
        world.settle().await;
        assert_eq!(world.client.restart("a").request_id(id).await.unwrap().execution_id, 2);
        world.client.signal("a", GO, 1).await.unwrap();
        assert_eq!(world.output::<u32>("a").await, 2);
        assert_eq!(world.client.executions("a").await.unwrap(), [1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_restarted_by_force_only() {
    let world = World::resident();
    let _node = world.node(&waiting()).await;
    assert_eq!(world.client.restart("a").await.unwrap_err().code(), Code::NotFound);
    world.client.start(MAIN, 1).id("a").await.unwrap();
    assert_eq!(world.client.restart("a").await.unwrap_err().code(), Code::InstanceRunning);
    world.settle().await;
    assert_eq!(world.client.restart("a").await.unwrap_err().code(), Code::InstanceRunning);
    assert_eq!(world.client.restart("a").force().await.unwrap().execution_id, 2);
    let first = world.client.execution("a", 1).await.unwrap();
    assert_eq!(first.status, ExecutionStatus::Cancelled);
    world.client.signal("a", GO, 1).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 2);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_of_the_execution_before_reaches_the_next() {
    let world = World::resident();
    let clock = world.clock.clone();
    let registry = Registry::builder()
        .activity(SLOW, move |_, n| {
            let clock = clock.clone();
            async move {
                segno::clock::sleep(&*clock, secs(10)).await;
                Ok(n)
            }
        })
        .orchestration(MAIN, async |ctx: Context, n| {
            let child = ctx.child(CHILD, n).id("fixed");
            let (one, two) = segno::join(ctx.activity(SLOW, n), child).await;
            Ok(one? + two?)
        })
        .orchestration(CHILD, async |ctx: Context, n| {
            ctx.sleep(secs(20)).await?;
            Ok(n)
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.pass(secs(5)).await;
    world.client.cancel("fixed", "for the test").await.unwrap();
    world.settle().await;
    world.client.restart("a").force().await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 2);
    assert_eq!(world.client.executions("fixed").await.unwrap(), [1, 2]);
    assert_eq!(world.client.execution("a", 1).await.unwrap().status, ExecutionStatus::Cancelled);
    world.histories_need_not_fit_the_code();
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn children_of_what_is_cut_off_are_cancelled_and_its_parent_learns_of_it() {
    let world = World::resident();
    let registry = Registry::builder()
        .orchestration(MAIN, async |ctx: Context, depth| {
            if depth == 0 {
                ctx.signal(GO).await?;
                return Ok(0);
            }
            let id = format!("depth-{}", depth - 1);
            ctx.child(MAIN, depth - 1).id(id).await
        })
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 2).id("root").await.unwrap();
    world.settle().await;
    world.client.restart("depth-1").force().await.unwrap();
    let failure = world.failure("root").await;
    assert!(failure.is_cancelled(), "{failure}");
    world.settle().await;
    assert_eq!(world.client.execution("depth-0", 1).await.unwrap().status, ExecutionStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_restart_begins_with_the_input_of_the_last_start() {
    let world = World::resident();
    let registry = Registry::builder()
        .orchestration(
            MAIN,
            async |ctx: Context, n| {
                if n % 10 < 3 { ctx.continue_as_new(n + 1).await } else { Ok(n) }
            },
        )
        .build()
        .unwrap();
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 10).id("a").await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 13);
    world.client.restart("a").await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 13);
    assert_eq!(world.client.executions("a").await.unwrap().len(), 8);
    world.client.start(MAIN, 20).id("a").on_conflict(OnConflict::Replace).await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 23);
    world.client.restart("a").await.unwrap();
    assert_eq!(world.output::<u32>("a").await, 23);
    assert_eq!(world.client.started_with("a").await.unwrap().input.decode::<u32>().unwrap(), 20);
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_from_just_before_the_end_is_parked_and_not_delivered_to_the_next_execution() {
    let world = World::resident();
    let node = world.node(&waiting()).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.settle().await;
    node.shutdown(secs(1)).await;
    world.client.signal("a", GO, 50).await.unwrap();
    world.client.cancel("a", "also from before").await.unwrap();
    world.client.restart("a").force().await.unwrap();
    world.client.signal("a", GO, 2).await.unwrap();
    let _node = world.node(&waiting()).await;
    assert_eq!(world.output::<u32>("a").await, 3);
    assert_eq!(world.dead_letters().await.len(), 1);
}
