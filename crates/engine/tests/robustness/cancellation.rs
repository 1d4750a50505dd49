//! A running activity hears at once that it is not wanted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use segno::RuntimeOptions;
use segno::clock::Clock;

use crate::support::{WAITS_FOR_SLOW, World};

async fn cancel_and_measure(world: &World) -> u64 {
    world.client.start(WAITS_FOR_SLOW, 3600).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    let asked_ms = world.clock.now_ms();
    world.client.cancel("i", "enough").await.unwrap();
    let ended = world.client.wait_until_ended("i", Duration::MAX).await.unwrap();
    assert!(ended.failure().unwrap().is_cancelled());
    while world.slow.told_at_ms.load(Ordering::SeqCst) == 0 {
        world.pass(Duration::from_millis(1)).await;
    }
    world.slow.told_at_ms.load(Ordering::SeqCst) as u64 - asked_ms
}

#[tokio::test(start_paused = true)]
async fn within_a_process_the_activity_hears_of_it_at_once() {
    let world = World::new();
    let _node = world.node("a").await;
    let late_ms = cancel_and_measure(&world).await;
    assert!(late_ms <= 2, "told after {late_ms} ms");
}

#[tokio::test(start_paused = true)]
async fn across_nodes_the_activity_hears_of_it_within_a_second() {
    let world = World::new();
    let orchestrator = RuntimeOptions { worker_concurrency: 0, ..RuntimeOptions::default() };
    let worker = RuntimeOptions { orchestration_concurrency: 0, ..RuntimeOptions::default() };
    let _orchestrator = world.node_with(orchestrator).await;
    let _worker = world.node_with(worker).await;
    let late_ms = cancel_and_measure(&world).await;
    assert!(late_ms <= 1_000, "told after {late_ms} ms");
}

#[tokio::test(start_paused = true)]
async fn a_forced_delete_stops_the_activity_and_nothing_comes_back() {
    let world = World::new();
    let _node = world.node("a").await;
    world.client.start(WAITS_FOR_SLOW, 3600).id("i").await.unwrap();
    world.until_slow_runs(1).await;
    world.client.delete("i", true).await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    assert_ne!(world.slow.told_at_ms.load(Ordering::SeqCst), 0, "the activity was told");
    assert!(world.client.instance("i").await.is_err());
    assert_eq!(world.client.queue_depths().await.unwrap(), segno::store::QueueDepths::default());
}
