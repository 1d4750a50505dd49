//! A pause holds retries back without giving them away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use segno::{Activity, Context, Failure, Orchestration, Registry, Retry, Runtime};

use crate::support::World;

const BROKEN: Activity<(), ()> = Activity::new("broken");
const TRIES: Orchestration<(), ()> = Orchestration::new("tries");

#[tokio::test(start_paused = true)]
async fn an_attempt_that_fails_during_a_pause_counts_like_any_other() {
    let world = World::new();
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let clock = world.clock.clone();
    let broken = move |_, ()| {
        let (counted, clock) = (counted.clone(), clock.clone());
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            segno::clock::sleep(&*clock, Duration::from_secs(10)).await;
            Err::<(), _>(Failure::application("broken"))
        }
    };
    let orchestration = |ctx: Context, ()| async move {
        ctx.activity(BROKEN, ()).retry(Retry::fixed(3, Duration::from_secs(1))).await
    };
    let registry =
        Registry::builder().activity(BROKEN, broken).orchestration(TRIES, orchestration).build().unwrap();
    let builder = Runtime::builder(world.store.clone()).registry(registry).clock(world.clock.clone());
    let _node = builder.start().await.unwrap();
    world.client.start(TRIES, ()).id("i").await.unwrap();
    world.pass(Duration::from_secs(5)).await;
    world.client.pause("i", "look").await.unwrap();
    world.pass(Duration::from_secs(3600)).await;
    assert_eq!(tries.load(Ordering::SeqCst), 1, "nothing is tried while it is paused");
    world.client.resume("i").await.unwrap();
    let ended = world.client.wait_until_ended("i", Duration::MAX).await.unwrap();
    assert_eq!(ended.failure().unwrap().message, "broken");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}
