//! Work of a dead node is taken over; work of a living one is not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use segno::RuntimeOptions;
use segno::clock::Clock;

use crate::support::{ECHOES, WAITS_FOR_SLOW, World};

#[tokio::test(start_paused = true)]
async fn an_activity_longer_than_its_lock_is_delivered_once() {
    let world = World::new();
    let _a = world.node("a").await;
    let _b = world.node("b").await;
    let result = world.client.start(WAITS_FOR_SLOW, 600).result().await.unwrap();
    assert!(result.starts_with("1 by "), "{result}");
    assert_eq!(world.slow.began.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_activity_of_a_dead_node_is_taken_over_within_its_lock_time() {
    let world = World::new();
    let dying = world.node("dying").await;
    world.client.start(WAITS_FOR_SLOW, 60).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    drop(dying);
    let died_ms = world.clock.now_ms();
    let _heir = world.node("heir").await;
    world.until_slow_runs(2).await;
    assert!(
        world.clock.now_ms() - died_ms <= 30_001,
        "taken over after {} ms",
        world.clock.now_ms() - died_ms
    );
    assert_eq!(world.client.result(WAITS_FOR_SLOW, "i").await.unwrap(), "2 by heir");
}

#[tokio::test(start_paused = true)]
async fn an_activity_that_kills_its_worker_again_and_again_fails_as_poison() {
    let world = World::new();
    let options = RuntimeOptions { max_attempts: 3, ..RuntimeOptions::default() };
    world.client.start(WAITS_FOR_SLOW, 3600).id("i").await.unwrap();
    for delivery in 1..=3 {
        let node = world.node_with(options.clone()).await;
        world.until_slow_runs(delivery).await;
        drop(node);
    }
    let _node = world.node_with(options).await;
    let ended = world.client.wait_until_ended("i", Duration::MAX).await.unwrap();
    let failure = ended.failure().unwrap();
    assert_eq!(failure.category, segno::Category::Poison);
    assert!(failure.message.contains("after 3 deliveries"), "{failure}");
    assert_eq!(world.slow.began.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_share_the_work_and_every_instance_ends_once() {
    let world = World::new();
    let _a = world.node("a").await;
    let _b = world.node("b").await;
    for i in 0..200 {
        world.client.start(ECHOES, 3).id(format!("i{i}")).await.unwrap();
    }
    for i in 0..200 {
        assert_eq!(world.client.result(ECHOES, format!("i{i}")).await.unwrap(), 3);
    }
    let metrics = world.client.system_metrics().await.unwrap();
    // Started, then three times scheduled and completed, then completed.
    assert_eq!((metrics.completed_instances, metrics.total_events), (200, 200 * 8));
}
