//! A store, processes with functions and drivers, and workers that answer by the id of the job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{InstanceQuery, Store};
use segno::{ActivityContext, Client, Failure, Registry, Runtime, RuntimeOptions};
use segno_actions::Listed;
use segno_actions::functions::{Functions, FunctionsBuilder, PoolName, Scope};
use segno_actions::pools::{AllowList, Pool, Pools, Room, RoomCalls, Transport};
use segno_actions::schedule::Zones;
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::SeededIds;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::bus::RecordBus;
use crate::drive::post::timestamp;
use crate::drive::{
    Announcements, Driver, DriverOptions, NewBatch, Outbox, Processes, PublishOptions, Receipt,
    RequestedAction, Runbooks, Services, Silent, register,
};
use crate::edge::BusEdge;
use crate::message::{Action, MemberEntry};
use crate::rows::{BatchId, BatchRow, MemberRow, PhaseRow, Row, RowKey, StepRow, Table};

/// When the tests take place.
pub const START_MS: u64 = 1_770_732_000_000;

/// Functions that runbooks of these tests may call.
const FUNCTIONS: [&str; 9] = [
    "open-batch",
    "new-user",
    "wait-sync",
    "switch",
    "verify",
    "delete-user",
    "close-account",
    "revert",
    "slow",
];

/// How long a condition may take to come true, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// The same in real time.
const REAL_PATIENCE: Duration = Duration::from_secs(120);

/// How fast a test goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// In virtual time: a day takes a moment.
    Virtual,
    /// In real time, with everything as short as it can be.
    Real,
}

impl Pace {
    /// What a second of workers takes.
    fn second(self) -> Duration {
        match self {
            Pace::Virtual => Duration::from_secs(1),
            Pace::Real => Duration::from_millis(20),
        }
    }

    /// How often conditions are looked at.
    fn look_every(self) -> Duration {
        match self {
            Pace::Virtual => Duration::from_secs(30),
            Pace::Real => Duration::from_millis(100),
        }
    }

    /// After how long a node that died is replaced.
    fn lease(self, usual: Duration) -> Duration {
        match self {
            Pace::Virtual => usual,
            Pace::Real => Duration::from_secs(1),
        }
    }
}

/// What a worker answers.
pub enum Reply {
    Done(Value),
    Fail(&'static str),
    /// After so many seconds.
    Later(u32, Value),
}

/// How workers answer: by function, job and parameters.
pub type Workers = Arc<dyn Fn(&str, &str, &Value) -> Reply + Send + Sync>;

/// Every attempt of a call: the job, as often as it was begun.
pub type Attempts = Arc<Mutex<BTreeMap<String, u32>>>;

/// A node with functions and a driver.
pub struct Process {
    _runtime: Runtime,
    driver: JoinHandle<()>,
    edge: Option<JoinHandle<()>>,
}

impl Process {
    /// Kills the driver. Functions go on.
    pub fn kill_driver(&mut self) {
        self.driver.abort();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.driver.abort();
        if let Some(edge) = &self.edge {
            edge.abort();
        }
    }
}

/// A store with its outside: what does not die with a process.
pub struct World {
    pub clock: Arc<dyn Clock>,
    pub pace: Pace,
    pub store: Arc<dyn Store>,
    pub runbooks: Runbooks,
    pub scope: Scope,
    pub workers: Workers,
    pub attempts: Attempts,
    pub options: DriverOptions,
    /// The bus of the tenant.
    pub bus: Option<Outbox>,
    buses: AtomicU64,
}

impl World {
    pub fn new(workers: Workers) -> World {
        let clock = VirtualClock::auto();
        clock.set_ms(START_MS);
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        World::on(store, clock, Pace::Virtual, workers)
    }

    pub fn on(store: Arc<dyn Store>, clock: Arc<dyn Clock>, pace: Pace, workers: Workers) -> World {
        let runbooks = Runbooks::new(store.clone(), Arc::new(Zones::bundled()));
        let scope = Scope::new("eu", "acme").unwrap();
        let usual = DriverOptions::default();
        let options = DriverOptions { lease: pace.lease(usual.lease), ..usual };
        World {
            clock,
            pace,
            store,
            runbooks,
            scope,
            workers,
            attempts: Attempts::default(),
            options,
            bus: None,
            buses: AtomicU64::new(0),
        }
    }

    /// The same with a bus, whose subscriptions exist.
    pub async fn with_bus(mut self) -> World {
        self.bus = Some(Outbox { scope: self.scope.clone(), announcements: Announcements::Sent });
        let pools = pools(self.store.clone());
        crate::edge::prepare(&self.record_bus(self.store.clone()), &pools).await.unwrap();
        self
    }

    /// The bus of the tenant, on a store, with ids that no other one has.
    pub fn record_bus(&self, store: Arc<dyn Store>) -> RecordBus {
        let seed = 1_000 + self.buses.fetch_add(1, Ordering::Relaxed);
        RecordBus::new(store, self.clock.clone(), SeededIds::shared(seed), self.scope.clone())
    }

    /// Starts a process on a store, which may be one with faults.
    pub async fn process(&self, store: Arc<dyn Store>, node: &str) -> Process {
        self.process_of(store, node, None).await
    }

    /// The same, in a world that knows which processes are alive.
    pub async fn process_of(
        &self,
        store: Arc<dyn Store>,
        node: &str,
        processes: Option<Arc<dyn Processes>>,
    ) -> Process {
        let functions = self.functions(store.clone());
        let registry = functions.register(Registry::builder()).build().unwrap();
        let runtime = Runtime::builder(store.clone())
            .registry(registry)
            .clock(self.clock.clone())
            .ids(SeededIds::shared(1))
            .options(self.runtime_options(node))
            .start()
            .await
            .unwrap();
        let edge =
            self.bus.as_ref().map(|_| tokio::spawn(self.edge(store.clone()).run(std::future::pending())));
        let driver = Driver::new(self.services(store, functions), node);
        let driver = match processes {
            Some(processes) => driver.processes(processes),
            None => driver,
        };
        let driver = tokio::spawn(driver.run(std::future::pending()));
        Process { _runtime: runtime, driver, edge }
    }

    fn runtime_options(&self, node: &str) -> RuntimeOptions {
        let usual = RuntimeOptions::default();
        RuntimeOptions {
            publish_names_every: None,
            node_id: Some(node.to_owned()),
            orchestrator_lock_timeout: self.pace.lease(usual.orchestrator_lock_timeout),
            worker_lock_timeout: self.pace.lease(usual.worker_lock_timeout),
            ..usual
        }
    }

    /// The edge of a process to the bus.
    pub fn edge(&self, store: Arc<dyn Store>) -> BusEdge {
        BusEdge {
            bus: Arc::new(self.record_bus(store.clone())),
            pools: pools(store.clone()).clock(self.clock.clone()),
            clock: self.clock.clone(),
            scope: self.scope.clone(),
            store,
        }
    }

    pub fn services(&self, store: Arc<dyn Store>, functions: Functions) -> Services {
        let pools = pools(store.clone()).clock(self.clock.clone());
        let client = Client::new(store.clone());
        Services {
            calls: RoomCalls::new(Room::RUNBOOK, &functions, pools, client),
            definitions: Runbooks::new(store.clone(), Arc::new(Zones::bundled())).definitions().clone(),
            store,
            clock: self.clock.clone(),
            announcer: Arc::new(Silent),
            bus: self.bus.clone(),
            options: self.options.clone(),
        }
    }

    pub fn functions(&self, store: Arc<dyn Store>) -> Functions {
        self.functions_with(store, |builder| builder)
    }

    /// The same, set up further.
    pub fn functions_with(
        &self,
        store: Arc<dyn Store>,
        set_up: impl FnOnce(FunctionsBuilder) -> FunctionsBuilder,
    ) -> Functions {
        let mut builder = set_up(register(Functions::builder(store)).clock(self.clock.clone()));
        for name in FUNCTIONS {
            let (workers, attempts, clock) =
                (self.workers.clone(), self.attempts.clone(), self.clock.clone());
            let second = self.pace.second();
            builder = builder.rust(name, move |ctx: ActivityContext, input: Value| {
                let job = ctx.instance_id().rsplit(':').next().unwrap_or_default().to_owned();
                *attempts.lock().unwrap().entry(job.clone()).or_default() += 1;
                let (reply, clock) = (workers(name, &job, &input), clock.clone());
                async move {
                    match reply {
                        Reply::Done(value) => Ok(value),
                        Reply::Fail(message) => Err(Failure::application(message).non_retryable()),
                        Reply::Later(seconds, value) => {
                            segno::clock::sleep(&*clock, second * seconds).await;
                            Ok(value)
                        }
                    }
                }
            });
        }
        builder.build().unwrap()
    }

    pub fn now(&self) -> Timestamp {
        timestamp(self.clock.now_ms())
    }

    pub async fn pass(&self, seconds: u64) {
        segno::clock::sleep(&*self.clock, Duration::from_secs(seconds)).await;
    }

    pub async fn publish(&self, yaml: &str) {
        // With a bus, what would be called here goes over the bus.
        let yaml = match self.bus {
            Some(_) => yaml.replace("worker_id: here", "worker_id: cloud-01"),
            None => yaml.to_owned(),
        };
        self.runbooks.publish(&self.scope, yaml.as_bytes(), PublishOptions::default()).await.unwrap();
    }

    pub async fn create(&self, start: Option<Timestamp>, members: &[&str]) -> BatchId {
        let members = members.iter().map(|key| entry(key)).collect();
        let runbook = "migrate".to_owned();
        let new = NewBatch { runbook, batch_start_time: start, members, ..NewBatch::default() };
        self.runbooks.create_batch(&self.scope, new).await.unwrap()
    }

    pub async fn request(&self, batch: BatchId, key: &str, action: Action) -> Receipt {
        let requested = RequestedAction::new(key, action);
        self.runbooks.request(&self.scope, batch, requested).await.unwrap()
    }

    pub async fn batch(&self, batch: BatchId) -> BatchRow {
        self.runbooks.batch(&self.scope, batch).await.unwrap()
    }

    pub async fn phase(&self, batch: BatchId, name: &str) -> PhaseRow {
        let phases = self.runbooks.phases(&self.scope, batch).await.unwrap();
        phases.into_iter().rfind(|phase| phase.phase_name == name).unwrap()
    }

    pub async fn table(&self, batch: BatchId, table: Table) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let after: Option<RowKey> = rows.last().and_then(Row::key);
            let page = self.runbooks.rows(&self.scope, batch, table, (after.as_ref(), 1_000)).await.unwrap();
            let (found, unreadable) = Listed::split(page);
            assert!(unreadable.is_empty(), "{unreadable:?}");
            let is_last = found.len() < 1_000;
            rows.extend(found);
            if is_last {
                return rows;
            }
        }
    }

    pub async fn members(&self, batch: BatchId) -> Vec<MemberRow> {
        let rows = self.table(batch, Table::BatchMembers).await;
        rows.into_iter().filter_map(|row| if let Row::Member(row) = row { Some(row) } else { None }).collect()
    }

    pub async fn member(&self, batch: BatchId, key: &str) -> MemberRow {
        self.members(batch).await.into_iter().find(|member| member.member_key == key).unwrap()
    }

    pub async fn steps(&self, batch: BatchId) -> Vec<StepRow> {
        let rows = self.table(batch, Table::StepExecutions).await;
        rows.into_iter().filter_map(|row| if let Row::Step(row) = row { Some(row) } else { None }).collect()
    }

    /// The step of a member with a name; `None` if it has none yet.
    pub async fn step(&self, batch: BatchId, member: &str, name: &str) -> Option<StepRow> {
        let members = self.members(batch).await;
        let id = members.iter().find(|row| row.member_key == member)?.id;
        let steps = self.steps(batch).await;
        steps.into_iter().find(|step| step.batch_member_id == id && step.work.step_name == name)
    }

    /// Waits until something is true, but not for ever.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let patience = match self.pace {
            Pace::Virtual => PATIENCE,
            Pace::Real => REAL_PATIENCE,
        };
        let deadline_ms = segno::clock::deadline_ms(&*self.clock, patience);
        while !condition().await {
            assert!(self.clock.now_ms() < deadline_ms, "{what} did not happen");
            segno::clock::sleep(&*self.clock, self.pace.look_every()).await;
        }
    }

    pub async fn until_ended(&self, batch: BatchId) -> BatchRow {
        self.until("the end of the batch", async || self.batch(batch).await.status.is_terminal()).await;
        self.batch(batch).await
    }

    /// Waits until a request was answered.
    pub async fn until_answered(&self, batch: BatchId, key: &str) -> Receipt {
        let receipt = async || self.runbooks.receipt(&self.scope, batch, key).await.unwrap().unwrap();
        self.until("the answer", async || receipt().await.answered_at.is_some()).await;
        receipt().await
    }

    /// All calls with their states.
    pub async fn instances(&self) -> Vec<String> {
        let client = Client::new(self.store.clone());
        let (mut found, mut query) = (Vec::new(), InstanceQuery::default());
        loop {
            let page = client.list(query.clone()).await.unwrap();
            found.extend(page.instances.iter().map(|row| format!("{} {}", row.id, row.status)));
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        found.sort();
        found
    }
}

pub fn pools(store: Arc<dyn Store>) -> Pools {
    let here = Pool { transport: Transport::Local, ..Pool::new(AllowList::new(["*"]).unwrap()) };
    let queue = Pool::new(AllowList::new(["*"]).unwrap());
    let name = |text: &str| PoolName::new(text).unwrap();
    let bus = Pool { transport: Transport::Bus, ..Pool::new(AllowList::new(["*"]).unwrap()) };
    let pools = [("here", here), ("remote", queue), ("cloud-01", bus)];
    let pools = pools.map(|(text, pool)| (name(text), pool));
    Pools::with_bus(store, BTreeMap::from(pools)).unwrap()
}

/// A member with its key as the one column.
pub fn entry(key: &str) -> MemberEntry {
    let data = Map::from_iter([("Key".to_owned(), json!(key))]);
    MemberEntry { key: key.to_owned(), data, digest: String::new() }
}

/// Workers that succeed at once.
pub fn all_succeed() -> Workers {
    Arc::new(|_, _, _| Reply::Done(json!({"Id": "x"})))
}

/// A runbook with phases of steps that call the function `switch`, one name for each step.
pub fn small_runbook(phases: &[&[&str]]) -> String {
    let mut text = "name: migrate\ndata_source: {type: manual, primary_key: Key}\nphases:\n".to_owned();
    for (index, steps) in phases.iter().enumerate() {
        let steps: Vec<String> = steps
            .iter()
            .map(|name| {
                format!(
                    "{{name: {name}, worker_id: here, function: Switch, params: {{Key: \"{{{{Key}}}}\"}}}}"
                )
            })
            .collect();
        text.push_str(&format!("  - {{name: phase{index}, offset: T-0, steps: [{}]}}\n", steps.join(", ")));
    }
    text
}
