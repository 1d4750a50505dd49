//! Retention: what is not kept goes in the background, as whole trees, and what runs stays.

use segno::store::InstanceQuery;
use segno::{Context, Failure, Orchestration, Registry, Retention, RuntimeOptions, Signal};

use crate::support::{World, days, secs};

const PLAIN: Orchestration<u32, u32> = Orchestration::new("plain");
const PARENT: Orchestration<u32, u32> = Orchestration::new("parent");
const LOOP: Orchestration<u32, u32> = Orchestration::new("loop");
const GO: Signal<u32> = Signal::new("go");

async fn plain(_: Context, number: u32) -> Result<u32, Failure> {
    Ok(number)
}

/// Has a child that ends at once, and waits itself.
async fn parent(ctx: Context, number: u32) -> Result<u32, Failure> {
    ctx.child(PLAIN, number).id(format!("child-{number}")).await?;
    ctx.signal(GO).await
}

async fn repeat(ctx: Context, left: u32) -> Result<u32, Failure> {
    if left == 0 {
        return ctx.signal(GO).await;
    }
    ctx.sleep(secs(1)).await?;
    ctx.continue_as_new(left - 1).await
}

fn registry() -> Registry {
    let builder = Registry::builder().orchestration(PLAIN, plain).orchestration(PARENT, parent);
    builder.orchestration(LOOP, repeat).build().unwrap()
}

fn keeping(world: &World, retention: Retention) -> RuntimeOptions {
    RuntimeOptions { retention, ..world.options() }
}

async fn ids(world: &World) -> Vec<String> {
    let query = InstanceQuery { limit: 1_000, ..InstanceQuery::default() };
    let page = world.client.list(query).await.unwrap();
    let mut ids: Vec<String> = page.instances.into_iter().map(|instance| instance.id).collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn without_retention_everything_stays() {
    let world = World::resident();
    let _node = world.node(&registry()).await;
    world.client.start(PLAIN, 1).id("a").result().await.unwrap();
    world.pass(days(400)).await;
    assert_eq!(ids(&world).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_tree_goes_when_its_root_has_been_ended_for_long_enough() {
    let world = World::resident();
    let retention = Retention { finished_age: Some(days(7)), ..Retention::default() };
    let _node = world.node_with(&registry(), keeping(&world, retention)).await;
    world.client.start(PARENT, 1).id("ends").await.unwrap();
    world.client.start(PARENT, 2).id("goes on").await.unwrap();
    world.pass(days(8)).await;
    // Both children ended long ago, but their parents have not.
    assert_eq!(ids(&world).await, ["child-1", "child-2", "ends", "goes on"]);
    world.client.signal("ends", GO, 0).await.unwrap();
    world.pass(days(6)).await;
    assert_eq!(ids(&world).await.len(), 4);
    world.pass(days(2)).await;
    assert_eq!(ids(&world).await, ["child-2", "goes on"]);
}

#[tokio::test(start_paused = true)]
async fn those_that_ended_first_go_when_there_are_too_many() {
    let world = World::resident();
    let retention = Retention { finished_count: Some(10), ..Retention::default() };
    let _node = world.node_with(&registry(), keeping(&world, retention)).await;
    for number in 0..300 {
        world.client.start(PLAIN, number).id(format!("plain-{number:03}")).result().await.unwrap();
        world.pass(secs(1)).await;
    }
    world.pass(secs(120)).await;
    let kept: Vec<String> = (290..300).map(|number| format!("plain-{number:03}")).collect();
    assert_eq!(ids(&world).await, kept);
}

#[tokio::test(start_paused = true)]
async fn no_more_trees_go_than_must() {
    let world = World::resident();
    let retention = Retention { finished_count: Some(5), ..Retention::default() };
    let node = world.node(&registry()).await;
    for number in 0..4 {
        let root = format!("root-{number}");
        world.client.start(PARENT, number).id(root.clone()).await.unwrap();
        world.pass(secs(1)).await;
        world.client.signal(root, GO, 0).await.unwrap();
        world.pass(secs(1)).await;
    }
    assert_eq!(ids(&world).await.len(), 8);
    drop(node);
    let _node = world.node_with(&registry(), keeping(&world, retention)).await;
    world.pass(secs(120)).await;
    // Of 8 instances in trees of 2, 4 must go for 5 to be too many no more.
    assert_eq!(ids(&world).await, ["child-2", "child-3", "root-2", "root-3"]);
}

#[tokio::test(start_paused = true)]
async fn old_executions_go_when_the_next_one_begins() {
    let world = World::resident();
    let retention = Retention { executions: Some(3), ..Retention::default() };
    let _node = world.node_with(&registry(), keeping(&world, retention)).await;
    world.client.start(LOOP, 20).id("loop").await.unwrap();
    world.pass(secs(60)).await;
    assert_eq!(world.client.executions("loop").await.unwrap(), [19, 20, 21]);
    world.client.signal("loop", GO, 4).await.unwrap();
    assert_eq!(world.output::<u32>("loop").await, 4);
    world.check_histories().await;
}

#[tokio::test(start_paused = true)]
async fn several_nodes_sweep_one_after_the_other() {
    let world = World::resident();
    let retention = Retention { finished_age: Some(days(1)), ..Retention::default() };
    let mut nodes = Vec::new();
    for number in 0..3 {
        let options =
            RuntimeOptions { node_id: Some(format!("node-{number}")), ..keeping(&world, retention.clone()) };
        nodes.push(world.node_with(&registry(), options).await);
    }
    for number in 0..250 {
        world.client.start(PLAIN, number).id(format!("plain-{number}")).result().await.unwrap();
    }
    world.client.start(PARENT, 0).id("stays").await.unwrap();
    world.pass(days(2)).await;
    assert_eq!(ids(&world).await, ["child-0", "stays"]);
}

#[tokio::test(start_paused = true)]
async fn a_retention_that_makes_no_sense_is_refused() {
    let world = World::resident();
    for retention in [
        Retention { executions: Some(0), ..Retention::default() },
        Retention { interval: std::time::Duration::ZERO, ..Retention::default() },
    ] {
        let builder = segno::Runtime::builder(world.store.clone()).options(keeping(&world, retention));
        assert_eq!(builder.start().await.err().unwrap().code(), segno::Code::InvalidOption);
    }
}
