//! A store, a clock, nodes and a client in virtual time.
//!
//! ```
//! use std::time::Duration;
//! use segno::{Context, Failure, Orchestration, Registry};
//! use segno_testkit::TestEnv;
//!
//! const NAP: Orchestration<(), u32> = Orchestration::new("nap");
//!
//! async fn nap(ctx: Context, (): ()) -> Result<u32, Failure> {
//!     ctx.sleep(Duration::from_secs(3 * 24 * 60 * 60)).await?;
//!     Ok(7)
//! }
//!
//! segno_testkit::run(async {
//!     let registry = Registry::builder().orchestration(NAP, nap).build().unwrap();
//!     let env = TestEnv::start(registry).await;
//!     assert_eq!(env.client().start(NAP, ()).result().await.unwrap(), 7);
//! });
//! ```

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::Clock;
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{Client, Registry, Runtime, RuntimeOptions};

use crate::clock::VirtualClock;
use crate::seeded::SeededIds;

/// Runs a test in virtual time: on one thread, with a clock that moves only when nothing else can.
///
/// Whatever waits for time must wait on [`TestEnv::clock`]; the engine and its stores do.
pub fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without input and output needs nothing that could be missing").block_on(test)
}

/// Where the nodes of an environment get their store from: given the number of the node, from 0.
type NodeStore = Box<dyn Fn(usize) -> Arc<dyn Store> + Send + Sync>;

/// Settings of a [`TestEnv`].
pub struct TestEnvBuilder {
    registry: Registry,
    options: RuntimeOptions,
    seed: u64,
    clock: Option<Arc<VirtualClock>>,
    store: Option<Arc<dyn Store>>,
    node_store: Option<NodeStore>,
}

impl TestEnvBuilder {
    /// Settings of the nodes.
    #[must_use]
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Another seed for ids and random numbers; the same seed gives the same histories.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Another store. It must live on the given clock.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>, clock: Arc<VirtualClock>) -> Self {
        self.store = Some(store);
        self.clock = Some(clock);
        self
    }

    /// Puts something between each node and the store, such as a [`crate::faults::FaultStore`]. Clients are not affected.
    #[must_use]
    pub fn node_store(mut self, make: impl Fn(usize) -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        self.node_store = Some(Box::new(make));
        self
    }

    /// Makes the environment and starts its first node.
    pub async fn start(self) -> TestEnv {
        let mut env = self.idle();
        env.restart().await;
        env
    }

    /// Makes the environment without a node, for what happens while nobody is there.
    pub fn idle(self) -> TestEnv {
        let clock = self.clock.unwrap_or_else(VirtualClock::auto);
        let store = self.store.unwrap_or_else(|| MemoryStore::with_clock(clock.clone()));
        let ids = SeededIds::shared(self.seed);
        TestEnv {
            client: Client::builder(store.clone()).ids(ids.clone()).build(),
            clock,
            store,
            ids,
            registry: self.registry,
            options: self.options,
            node_store: self.node_store,
            nodes: Vec::new(),
            started: 0,
        }
    }
}

/// A store, a clock, nodes and a client in virtual time. Use it inside [`run`].
pub struct TestEnv {
    clock: Arc<VirtualClock>,
    store: Arc<dyn Store>,
    client: Client,
    ids: Arc<SeededIds>,
    registry: Registry,
    options: RuntimeOptions,
    node_store: Option<NodeStore>,
    nodes: Vec<Runtime>,
    started: usize,
}

impl TestEnv {
    /// An environment with one node, a memory store and default settings.
    pub async fn start(registry: Registry) -> TestEnv {
        Self::builder(registry).start().await
    }

    /// Prepares an environment.
    pub fn builder(registry: Registry) -> TestEnvBuilder {
        TestEnvBuilder {
            registry,
            options: RuntimeOptions::default(),
            seed: 1,
            clock: None,
            store: None,
            node_store: None,
        }
    }

    /// A client, which outlives every crash.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The clock that everything here runs on.
    pub fn clock(&self) -> &Arc<VirtualClock> {
        &self.clock
    }

    /// The store that everything here is kept in.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The code that nodes run.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How many nodes run.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Waits in virtual time.
    pub async fn sleep(&self, duration: Duration) {
        segno::clock::sleep(&*self.clock, duration).await;
    }

    /// Starts another node on the same store.
    pub async fn add_node(&mut self, options: RuntimeOptions) {
        let store = match &self.node_store {
            Some(make) => make(self.started),
            None => self.store.clone(),
        };
        let options =
            RuntimeOptions { node_id: options.node_id.or(Some(format!("node-{}", self.started))), ..options };
        self.started += 1;
        let clock: Arc<dyn Clock> = self.clock.clone();
        let runtime = Runtime::builder(store)
            .registry(self.registry.clone())
            .options(options)
            .clock(clock)
            .ids(self.ids.clone())
            .start()
            .await;
        self.nodes.push(runtime.expect("the options of a test node are in range"));
    }

    /// Kills all nodes: whatever they were doing ends in the middle, and their locks are left to expire.
    pub async fn crash(&mut self) {
        self.nodes.clear();
        // A killed task is gone when the scheduler has looked at it once.
        tokio::task::yield_now().await;
    }

    /// Kills all nodes and starts a new one on the same store.
    pub async fn restart(&mut self) {
        self.crash().await;
        self.add_node(self.options.clone()).await;
    }

    /// Other code for the nodes that are started from now on: a deployment.
    pub fn deploy(&mut self, registry: Registry) {
        self.registry = registry;
    }

    /// Ends all nodes in order.
    pub async fn shutdown(&mut self, deadline: Duration) {
        for node in self.nodes.drain(..) {
            node.shutdown(deadline).await;
        }
    }
}
