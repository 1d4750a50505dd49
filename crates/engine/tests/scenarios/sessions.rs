//! Sessions: the work of one session stays on one node, until that node is gone or the session rests.

use segno::store::Provider;
use segno::{Activity, ActivityContext, Context, Orchestration, Registry, RuntimeOptions};

use crate::support::{Log, World, secs};

const MAIN: Orchestration<String, Vec<String>> = Orchestration::new("main");
const ONE: Orchestration<String, String> = Orchestration::new("one");
const WHERE: Activity<u64, String> = Activity::new("where");

/// Five activities of one session, ten seconds apart; each takes as long as it is told.
fn registry(world: &World, log: &Log) -> Registry {
    let (clock, log) = (world.clock.clone(), log.clone());
    Registry::builder()
        .orchestration(MAIN, async |ctx: Context, session: String| {
            let mut nodes = Vec::new();
            for _ in 0..5 {
                nodes.push(ctx.activity(WHERE, 1).session(session.clone()).await?);
                ctx.sleep(secs(10)).await?;
            }
            Ok(nodes)
        })
        .orchestration(ONE, async |ctx: Context, session: String| {
            ctx.activity(WHERE, 60).session(session).await
        })
        .activity(WHERE, move |ctx: ActivityContext, seconds| {
            let (clock, log) = (clock.clone(), log.clone());
            async move {
                let session = ctx.session().unwrap_or("none").to_owned();
                log.push(format!("begin {session}"));
                segno::clock::sleep(&*clock, secs(seconds)).await;
                log.push(format!("end {session}"));
                Ok(ctx.worker_id().to_owned())
            }
        })
        .build()
        .unwrap()
}

fn named(world: &World, name: &str) -> RuntimeOptions {
    RuntimeOptions { node_id: Some(name.to_owned()), ..world.options() }
}

#[tokio::test(start_paused = true)]
async fn all_work_of_a_session_runs_on_one_node() {
    let world = World::resident();
    let registry = registry(&world, &Log::default());
    let _one = world.node_with(&registry, named(&world, "one")).await;
    let _two = world.node_with(&registry, named(&world, "two")).await;
    for n in 0..6 {
        world.client.start(MAIN, format!("s{}", n % 3)).id(format!("i{n}")).await.unwrap();
    }
    for session in 0..3 {
        let mut nodes: Vec<String> = world.output(&format!("i{session}")).await;
        nodes.extend(world.output::<Vec<String>>(&format!("i{}", session + 3)).await);
        assert!(nodes.iter().all(|node| *node == nodes[0]), "session s{session} moved: {nodes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_node_takes_a_session_over_when_its_owner_dies() {
    let world = World::resident();
    let registry = registry(&world, &Log::default());
    let one = world.node_with(&registry, named(&world, "one")).await;
    world.client.start(MAIN, "s".to_owned()).id("a").await.unwrap();
    world.pass(secs(15)).await;
    let two = world.node_with(&registry, named(&world, "two")).await;
    drop(one);
    let died_ms = world.now_ms();
    let nodes: Vec<String> = world.output("a").await;
    assert_eq!(nodes.first().map(String::as_str), Some("one"));
    assert_eq!(nodes.last().map(String::as_str), Some("two"));
    let first = nodes.iter().position(|node| node == "two").unwrap();
    assert!(nodes[first..].iter().all(|node| node == "two"), "{nodes:?}");
    assert!(world.now_ms() - died_ms < 120_000, "N1: taken over after the session lock ran out");
    drop(two);
}

#[tokio::test(start_paused = true)]
async fn a_node_owns_no_more_sessions_than_it_may() {
    let world = World::resident();
    let log = Log::default();
    let registry = registry(&world, &log);
    let options = RuntimeOptions { max_sessions: 2, session_idle_timeout: secs(60), ..named(&world, "one") };
    for n in 0..6 {
        world.client.start(ONE, format!("s{n}")).id(format!("i{n}")).await.unwrap();
    }
    let _node = world.node_with(&registry, options).await;
    for n in 0..6 {
        world.ended(&format!("i{n}")).await;
    }
    let (mut open, mut most) = (0_i32, 0);
    for line in log.lines() {
        open += if line.starts_with("begin") { 1 } else { -1 };
        most = most.max(open);
    }
    assert_eq!(most, 2, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_full_node_still_takes_work_of_its_own_sessions_and_work_without_one() {
    let world = World::resident();
    let log = Log::default();
    let registry = registry(&world, &log);
    const PLAIN: Orchestration<(), String> = Orchestration::new("plain");
    let plain = Registry::builder()
        .orchestration(PLAIN, async |ctx: Context, ()| {
            ctx.activity(Activity::<u64, String>::new("quick"), 0).await
        })
        .activity(Activity::<u64, String>::new("quick"), async |_, _| Ok("quick".to_owned()))
        .orchestration(MAIN, async |ctx: Context, session: String| {
            Ok(vec![ctx.activity(Activity::<u64, String>::new("quick"), 1).session(session).await?])
        })
        .build()
        .unwrap();
    drop(registry);
    let options = RuntimeOptions { max_sessions: 1, ..named(&world, "one") };
    let _node = world.node_with(&plain, options).await;
    world.client.start(MAIN, "mine".to_owned()).id("a").result().await.unwrap();
    let begin_ms = world.now_ms();
    world.client.start(PLAIN, ()).id("p").result().await.unwrap();
    world.client.start(MAIN, "mine".to_owned()).id("b").result().await.unwrap();
    assert_eq!(world.now_ms(), begin_ms);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_sessions_leaves_their_work_to_others() {
    let world = World::resident();
    let log = Log::default();
    let registry = registry(&world, &log);
    let none = RuntimeOptions { max_sessions: 0, ..named(&world, "none") };
    let _none = world.node_with(&registry, none).await;
    world.client.start(ONE, "s".to_owned()).id("a").await.unwrap();
    world.pass(secs(600)).await;
    assert_eq!(log.count(), 0);
    let _some = world.node_with(&registry, named(&world, "some")).await;
    assert_eq!(world.output::<String>("a").await, "some");
}

#[tokio::test(start_paused = true)]
async fn the_last_session_of_a_node_is_swept_once_its_lock_has_ended() {
    let world = World::resident();
    let _node = world.node(&registry(&world, &Log::default())).await;
    world.client.start(ONE, "s".to_owned()).id("a").await.unwrap();
    world.ended("a").await;
    // Idle for five minutes, then the lock ends, then the node sweeps, and no other session has to be given up for that.
    world.pass(secs(10 * 60)).await;
    assert_eq!(world.store.cleanup_orphaned_sessions().await.unwrap(), 0, "nothing is left to sweep");
}
