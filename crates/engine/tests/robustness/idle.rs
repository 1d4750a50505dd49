//! An idle runtime does nothing at all but renewing the names that it publishes.

use std::time::Duration;

use segno_testkit::clock::VirtualClock;

use crate::support::{ECHOES, World};

#[tokio::test(start_paused = true)]
async fn an_idle_runtime_waits_for_no_time() {
    let clock = VirtualClock::new();
    let store = segno::store::memory::MemoryStore::with_clock(clock.clone());
    let world = World { client: segno::Client::new(store.clone()), clock, store, slow: Default::default() };
    let started_ms = segno::clock::Clock::now_ms(&*world.clock);
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
    let now_ms = segno::clock::Clock::now_ms(&*world.clock);
    let renewal_ms = started_ms + 60 * 60 * 1_000;
    assert_eq!(waiter_ms, Some(renewal_ms), "something else waits, now {now_ms}");
    // And it wakes at once when there is work.
    assert_eq!(world.client.start(ECHOES, 2).result().await.unwrap(), 2);
}
