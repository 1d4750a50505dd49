//! An idle runtime does nothing at all.

use std::time::Duration;

use segno_testkit::clock::VirtualClock;

use crate::support::{ECHOES, World};

#[tokio::test(start_paused = true)]
async fn an_idle_runtime_waits_for_no_time() {
    let clock = VirtualClock::new();
    let store = segno::store::memory::MemoryStore::with_clock(clock.clone());
    let world = World { client: segno::Client::new(store.clone()), clock, store, slow: Default::default() };
    let _node = world.node("a").await;
    world.client.start(ECHOES, 3).result().await.unwrap();
    // The lock keeper ticks once more, finds nothing to keep, and rests.
    for _ in 0..20 {
        tokio::task::yield_now().await;
        world.clock.advance(Duration::from_secs(10));
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let waiter_ms = world.clock.next_waiter_ms();
    assert_eq!(waiter_ms, None, "something waits, now {}", segno::clock::Clock::now_ms(&*world.clock));
    // And it wakes at once when there is work.
    assert_eq!(world.client.start(ECHOES, 2).result().await.unwrap(), 2);
}
