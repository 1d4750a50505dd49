//! A store, a clock and nodes in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::{
    Activity, ActivityContext, Client, Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions,
};
use segno_testkit::clock::VirtualClock;

pub const ECHO: Activity<String, String> = Activity::new("echo");
pub const SLOW: Activity<u64, String> = Activity::new("slow");
pub const ECHOES: Orchestration<u32, u32> = Orchestration::new("echoes");
pub const WAITS_FOR_SLOW: Orchestration<u64, String> = Orchestration::new("waits for slow");

pub struct World {
    pub clock: Arc<VirtualClock>,
    pub store: Arc<MemoryStore>,
    pub client: Client,
    /// How often an attempt of the slow activity began, ended by itself, and was told to stop.
    pub slow: Arc<SlowCounts>,
}

#[derive(Default)]
pub struct SlowCounts {
    pub began: AtomicUsize,
    pub ended: AtomicUsize,
    pub told_at_ms: AtomicUsize,
}

impl World {
    pub fn new() -> Self {
        let clock = VirtualClock::auto();
        let store = MemoryStore::with_clock(clock.clone());
        World { client: Client::new(store.clone()), clock, store, slow: Arc::default() }
    }

    pub fn registry(&self) -> Registry {
        let (clock, counts) = (self.clock.clone(), self.slow.clone());
        let slow = move |ctx: ActivityContext, seconds: u64| {
            let (clock, counts) = (clock.clone(), counts.clone());
            async move {
                counts.began.fetch_add(1, Ordering::SeqCst);
                let end = clock.now_ms() + seconds * 1_000;
                tokio::select! {
                    () = clock.sleep_until_ms(end) => {
                        counts.ended.fetch_add(1, Ordering::SeqCst);
                        Ok(format!("{} by {}", ctx.delivery(), ctx.worker_id()))
                    }
                    _reason = ctx.cancelled() => {
                        counts.told_at_ms.store(clock.now_ms() as usize, Ordering::SeqCst);
                        Err(Failure::cancelled("told to stop"))
                    }
                }
            }
        };
        Registry::builder()
            .activity(ECHO, |_, text: String| async move { Ok(text) })
            .activity(SLOW, slow)
            .orchestration(ECHOES, |ctx: Context, n: u32| async move {
                for i in 0..n {
                    ctx.activity(ECHO, i.to_string()).await?;
                }
                Ok(n)
            })
            .orchestration(WAITS_FOR_SLOW, |ctx: Context, seconds: u64| async move {
                ctx.activity(SLOW, seconds).await
            })
            .build()
            .unwrap()
    }

    pub async fn node(&self, name: &str) -> Runtime {
        self.node_with(RuntimeOptions { node_id: Some(name.to_owned()), ..RuntimeOptions::default() }).await
    }

    pub async fn node_with(&self, options: RuntimeOptions) -> Runtime {
        let builder = Runtime::builder(self.store.clone()).registry(self.registry());
        builder.options(options).clock(self.clock.clone()).start().await.unwrap()
    }

    /// Lets this much virtual time pass.
    pub async fn pass(&self, duration: Duration) {
        self.clock.sleep_until_ms(self.clock.now_ms() + duration.as_millis() as u64).await;
    }

    pub async fn until_slow_runs(&self, times: usize) {
        while self.slow.began.load(Ordering::SeqCst) < times {
            self.pass(Duration::from_millis(1)).await;
        }
    }
}
