//! A small world for scenarios: one store, one virtual clock, repeatable ids, nodes that come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use segno::client::DeadLetterQuery;
use segno::clock::Clock;
use segno::event::{Event, EventKind};
use segno::ids::IdSource;
use segno::runtime::{Archive, RuntimeBuilder};
use segno::store::memory::MemoryStore;
use segno::store::{InstanceQuery, QueueDepths};
use segno::{Client, DeadLetter, Failure, Registry, Runtime, RuntimeOptions};
use segno_testkit::clock::VirtualClock;
use serde::de::DeserializeOwned;

/// Longer than any scenario should take on the virtual clock; a wait that reaches it has found a hang.
pub const HANG: Duration = Duration::from_secs(3 * 60 * 60);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// How the nodes of a world go from one turn to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Resident,
    ReplayEveryTurn,
}

/// Ids that are the same in every run.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdSource for CountedIds {
    fn new_uuid(&self) -> uuid::Uuid {
        uuid::Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    fn new_seed(&self) -> u64 {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// One store and everything around it.
#[derive(Clone)]
pub struct World {
    pub store: Arc<MemoryStore>,
    pub clock: Arc<VirtualClock>,
    pub client: Client,
    pub mode: Mode,
    ids: Arc<CountedIds>,
    /// The code that all histories must fit at the end.
    code: Arc<Mutex<Option<Registry>>>,
}

impl World {
    pub fn new(mode: Mode) -> Self {
        let clock = VirtualClock::auto();
        let store = MemoryStore::with_clock(clock.clone());
        let ids = Arc::new(CountedIds::default());
        let client = Client::builder(store.clone()).ids(ids.clone()).build();
        World { store, clock, client, mode, ids, code: Arc::default() }
    }

    /// A world for a scenario whose histories are not compared between modes.
    pub fn resident() -> Self {
        Self::new(Mode::Resident)
    }

    pub fn options(&self) -> RuntimeOptions {
        let resident_executions = match self.mode {
            Mode::Resident => 1_000,
            Mode::ReplayEveryTurn => 0,
        };
        RuntimeOptions { resident_executions, node_id: Some("node".to_owned()), ..RuntimeOptions::default() }
    }

    /// Starts a node. The code of the node started last is what all histories must fit at the end.
    pub async fn node(&self, registry: &Registry) -> Runtime {
        self.node_with(registry, self.options()).await
    }

    pub async fn node_with(&self, registry: &Registry, options: RuntimeOptions) -> Runtime {
        *self.code.lock().unwrap() = Some(registry.clone());
        self.bystander(registry, options).await
    }

    /// Starts a node whose code does not count at the end.
    pub async fn bystander(&self, registry: &Registry, options: RuntimeOptions) -> Runtime {
        self.builder(registry, options).start().await.unwrap()
    }

    /// Starts a node with an archive.
    pub async fn archiving_node(
        &self,
        registry: &Registry,
        options: RuntimeOptions,
        archive: Arc<dyn Archive>,
    ) -> Runtime {
        self.builder(registry, options).archive(archive).start().await.unwrap()
    }

    fn builder(&self, registry: &Registry, options: RuntimeOptions) -> RuntimeBuilder {
        Runtime::builder(self.store.clone())
            .registry(registry.clone())
            .options(options)
            .clock(self.clock.clone())
            .ids(self.ids.clone())
    }

    /// Histories with code that no longer fits are what the scenario is about.
    pub fn histories_need_not_fit_the_code(&self) {
        *self.code.lock().unwrap() = None;
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Lets virtual time pass while everything else goes on.
    pub async fn pass(&self, duration: Duration) {
        segno::clock::sleep(&*self.clock, duration).await;
    }

    /// Waits until nothing is left to do at the present time.
    pub async fn settle(&self) {
        self.pass(ms(1)).await;
    }

    pub async fn kinds(&self, instance: &str) -> Vec<&'static str> {
        kinds(&self.client.history(instance).await.unwrap())
    }

    pub async fn history(&self, instance: &str) -> Vec<Event> {
        self.client.history(instance).await.unwrap()
    }

    pub async fn ended(&self, instance: &str) -> segno::client::Instance {
        self.client.wait_until_ended(instance, HANG).await.unwrap()
    }

    /// The result, which must be a success.
    pub async fn output<T: DeserializeOwned>(&self, instance: &str) -> T {
        let ended = self.ended(instance).await;
        match ended.result() {
            Some(result) => result.decode().unwrap(),
            None => panic!("{instance} ended without a result: {:?}", ended.output),
        }
    }

    /// The failure with which it ended.
    pub async fn failure(&self, instance: &str) -> Failure {
        let ended = self.ended(instance).await;
        ended.failure().unwrap_or_else(|| panic!("{instance} did not fail: {:?}", ended.output)).clone()
    }

    pub async fn assert_queues_are_empty(&self) {
        self.settle().await;
        assert_eq!(self.client.queue_depths().await.unwrap(), QueueDepths::default());
    }

    /// All dead letters, oldest first.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        let query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
        let page = self.client.dead_letters(query).await.unwrap();
        let mut letters: Vec<DeadLetter> = page.letters.into_iter().map(Result::unwrap).collect();
        letters.sort_by_key(|letter| (letter.parked_at_ms, letter.id.clone()));
        letters
    }

    async fn all_histories(&self) -> BTreeMap<(String, u64), Vec<Event>> {
        let mut all = BTreeMap::new();
        let mut query = InstanceQuery { limit: 1_000, ..InstanceQuery::default() };
        loop {
            let page = self.client.list(query.clone()).await.unwrap();
            for instance in page.instances {
                for execution in self.client.executions(&instance.id).await.unwrap() {
                    let history = self.client.history_of_execution(&instance.id, execution).await.unwrap();
                    all.insert((instance.id.clone(), execution), history);
                }
            }
            match page.next {
                Some(cursor) => query.cursor = Some(cursor),
                None => return all,
            }
        }
    }

    /// Holds every history to the invariants, and to the code where that is wanted.
    pub async fn check_histories(&self) -> BTreeMap<(String, u64), Vec<&'static str>> {
        let all = self.all_histories().await;
        let code = self.code.lock().unwrap().clone();
        for ((instance, execution), history) in &all {
            check_history(instance, history);
            let started =
                history.iter().any(|event| matches!(event.kind, EventKind::OrchestrationStarted(_)));
            if let Some(registry) = code.as_ref().filter(|_| started) {
                registry.replay(instance, *execution, history).unwrap();
            }
        }
        all.into_iter().map(|(key, history)| (key, kinds(&history))).collect()
    }
}

pub fn kinds(history: &[Event]) -> Vec<&'static str> {
    history.iter().map(|event| event.kind.name()).collect()
}

/// Runs a scenario with resident executions and with a replay on every turn: the histories must be the same.
pub async fn in_both_modes<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    let mut seen = Vec::new();
    for mode in [Mode::Resident, Mode::ReplayEveryTurn] {
        let world = World::new(mode);
        scenario(world.clone()).await;
        seen.push(world.check_histories().await);
    }
    assert_eq!(seen[0], seen[1], "resident and replayed executions recorded different histories");
}

/// H1: ids without gaps. H2: at most one end, and it is last. H3: a completion fits one earlier schedule event, once.
fn check_history(instance: &str, history: &[Event]) {
    let mut open = BTreeSet::new();
    for (at, event) in history.iter().enumerate() {
        assert_eq!(event.event_id, at as u64 + 1, "H1 {instance}: {history:#?}");
        assert!(
            at == 0 || history[at - 1].at_ms <= event.at_ms,
            "{instance}: time runs backwards: {history:#?}"
        );
        match &event.kind {
            EventKind::ActivityScheduled { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::SubOrchestrationScheduled { .. } => {
                open.insert(event.event_id);
            }
            EventKind::ActivityCompleted { source, .. }
            | EventKind::ActivityFailed { source, .. }
            | EventKind::TimerFired { source }
            | EventKind::SubOrchestrationCompleted { source, .. }
            | EventKind::SubOrchestrationFailed { source, .. } => {
                assert!(
                    open.remove(source),
                    "H3 {instance}: event {} ends nothing: {history:#?}",
                    event.event_id
                );
            }
            kind if kind.is_last() => assert_eq!(at + 1, history.len(), "H2 {instance}: {history:#?}"),
            _ => {}
        }
        if let EventKind::TimerFired { source } = event.kind
            && let EventKind::TimerCreated { fire_at_ms } = history[source as usize - 1].kind
        {
            assert!(
                event.at_ms >= fire_at_ms,
                "T1 {instance}: event {} is early: {history:#?}",
                event.event_id
            );
        }
    }
}

/// Notes what happened, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}
