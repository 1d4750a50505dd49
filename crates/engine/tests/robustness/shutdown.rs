//! A node that ends in order leaves nothing locked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use segno::clock::Clock;
use segno::runtime::RELEASE_TIME;
use segno_testkit::faults::{Fault, script};

use crate::support::{ECHOES, WAITS_FOR_SLOW, World};

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_an_activity_end_within_the_deadline() {
    let world = World::new();
    let node = world.node("a").await;
    world.client.start(WAITS_FOR_SLOW, 5).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    node.shutdown(Duration::from_secs(60)).await;
    assert_eq!(world.slow.ended.load(Ordering::SeqCst), 1);
    let _next = world.node("b").await;
    assert_eq!(world.client.result(WAITS_FOR_SLOW, "i").await.unwrap(), "1 by a");
    assert_eq!(world.slow.began.load(Ordering::SeqCst), 1, "the result was committed before the end");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_back_what_does_not_end_in_time_and_it_does_not_count() {
    let world = World::new();
    let node = world.node("a").await;
    world.client.start(WAITS_FOR_SLOW, 3600).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    let asked_ms = world.clock.now_ms();
    node.shutdown(Duration::from_secs(2)).await;
    let took_ms = world.clock.now_ms() - asked_ms;
    assert!((2_000..2_100).contains(&took_ms), "the shutdown took {took_ms} ms");
    let _next = world.node("b").await;
    world.until_slow_runs(2).await;
    assert!(world.clock.now_ms() - asked_ms < 2_200, "another node took it without waiting for the lock");
    assert_eq!(
        world.client.result(WAITS_FOR_SLOW, "i").await.unwrap(),
        "1 by b",
        "the delivery did not count"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_nobody_waits_for_leaves_no_work_behind_without_its_lock() {
    let world = World::new();
    let node = world.node("a").await;
    world.client.start(WAITS_FOR_SLOW, 600).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    let hour = Duration::from_secs(3600);
    assert!(
        segno::clock::timeout(&*world.clock, Duration::from_secs(1), node.shutdown(hour)).await.is_none()
    );
    let _heir = world.node("b").await;
    assert_eq!(world.client.result(WAITS_FOR_SLOW, "i").await.unwrap(), "2 by b");
    assert_eq!(world.slow.ended.load(Ordering::SeqCst), 1, "the first attempt went on without its lock");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_does_not_keep_a_node_from_stopping() {
    let (deadline, day) = (Duration::from_secs(2), Duration::from_secs(86_400));
    for commit in 1..=4 {
        let world = World::new();
        let (node, _faulty) = world.node_behind(script([(commit, Fault::StallFor(day))])).await;
        world.client.start(ECHOES, 3).id("i").await.unwrap();
        world.pass(Duration::from_secs(1)).await;
        let asked_ms = world.clock.now_ms();
        node.shutdown(deadline).await;
        let took = Duration::from_millis(world.clock.now_ms() - asked_ms);
        assert!(took <= deadline + RELEASE_TIME, "stalled at commit {commit}: it took {took:?}");
        let _next = world.node("b").await;
        assert_eq!(world.client.result(ECHOES, "i").await.unwrap(), 3, "stalled at commit {commit}");
    }
}
