//! A store with its ledger, and processes with functions and drivers: what tests of runs need.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use segno::clock::Clock;
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{ActivityContext, Client, Failure, Orchestration, Registry, Runtime, RuntimeOptions};
use segno_actions::functions::{Functions, Scope};
use segno_actions::pools::{Pools, Room, RoomCalls};
use segno_actions::schedule::Zones;
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::SeededIds;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::drive::{
    Driver, DriverOptions, Ledger, LedgerOptions, RunDetail, Services, StartRun, TaskTokens, TokenIssuer,
    issue, register,
};
use crate::objects::Stores;
use crate::tables::{RunRow, TaskRow};

/// When the tests take place.
pub const START_MS: u64 = 1_770_732_000_000;

/// The secret that task tokens are derived from.
pub const TOKEN_SECRET: &[u8] = b"secret";

/// How long a condition may take, in virtual time.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// How often conditions are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What a worker answers.
#[derive(Debug, Clone)]
pub enum Reply {
    Done(Value),
    Fail(&'static str),
    /// It cannot be tried again.
    Refuse(&'static str),
    /// After so many milliseconds.
    Later(u64, Value),
}

/// How workers answer: by dispatch, number of the call of that dispatch, and input.
pub type Workers = Arc<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// What the workers have seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// How often each dispatch was begun.
    pub begun: BTreeMap<String, u32>,
    /// Attempts under way, by run and task.
    pub open: BTreeMap<String, u32>,
    /// Tasks of which two attempts ran at once.
    pub overlaps: Vec<String>,
    /// Inputs, by dispatch.
    pub inputs: BTreeMap<String, Value>,
}

/// A node with functions and a driver.
pub struct Process {
    _runtime: Runtime,
    driver: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A store with its ledger: what does not die with a process.
pub struct World {
    pub clock: Arc<dyn Clock>,
    /// By how much the clocks of the next processes are ahead of the store's, in milliseconds.
    pub ahead_ms: u64,
    pub store: Arc<dyn Store>,
    pub objects: Stores,
    pub ledger: Ledger,
    pub scope: Scope,
    pub workers: Workers,
    pub seen: Arc<Mutex<Seen>>,
    pub options: DriverOptions,
}

impl World {
    pub fn new(workers: Workers) -> World {
        let clock = VirtualClock::auto();
        clock.set_ms(START_MS);
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        World::on(store, Stores::in_memory(), clock, workers)
    }

    pub fn on(store: Arc<dyn Store>, objects: Stores, clock: Arc<dyn Clock>, workers: Workers) -> World {
        let ledger = ledger_of(store.clone(), objects.clone(), clock.clone(), 7);
        let scope = Scope::new("eu", "acme").unwrap();
        let (seen, options) = (Arc::default(), DriverOptions::default());
        World { clock, ahead_ms: 0, store, objects, ledger, scope, workers, seen, options }
    }

    /// Starts a process on stores that may have faults.
    pub async fn process_on(&self, store: Arc<dyn Store>, objects: Stores, node: &str) -> Process {
        let functions = self.functions(store.clone());
        let greet = Orchestration::<Value, Value>::named("Greet");
        let registry = Registry::builder()
            .orchestration(greet, |_, input: Value| async move { Ok(json!({ "greeted": input })) });
        let registry = functions.register(registry).build().unwrap();
        let usual = RuntimeOptions::default();
        let options = RuntimeOptions { publish_names_every: None, node_id: Some(node.to_owned()), ..usual };
        let runtime = Runtime::builder(store.clone())
            .registry(registry)
            .clock(self.clock.clone())
            .ids(SeededIds::shared(1))
            .options(options)
            .start()
            .await
            .unwrap();
        let seed = 100 + node.bytes().map(u64::from).sum::<u64>();
        let services = Services {
            announcer: Arc::new(crate::drive::Silent),
            calls: calls(store.clone(), &functions, self.clock.clone()),
            ledger: ledger_of(store, objects, Ahead::of(&self.clock, self.ahead_ms), seed),
            options: self.options.clone(),
        };
        let driver = tokio::spawn(Driver::new(services, node).run(std::future::pending()));
        Process { _runtime: runtime, driver }
    }

    /// Starts a process.
    pub async fn process(&self, node: &str) -> Process {
        self.process_on(self.store.clone(), self.objects.clone(), node).await
    }

    fn functions(&self, store: Arc<dyn Store>) -> Functions {
        let callback_base_url = "http://segno.test".to_owned();
        let issuer = TokenIssuer { tokens: TaskTokens::new(TOKEN_SECRET), callback_base_url };
        let builder = issue(register(Functions::builder(store)), issuer).clock(self.clock.clone());
        let (workers, seen, clock) = (self.workers.clone(), self.seen.clone(), self.clock.clone());
        let work = move |ctx: ActivityContext, input: Value| {
            let (_, dispatch) = ctx.instance_id().split_once("dag:").unwrap_or_default();
            let dispatch = dispatch.to_owned();
            let task = dispatch.rsplit_once(':').map_or("", |(task, _)| task).to_owned();
            let open = Open::begin(&seen, &dispatch, task, &input);
            let (reply, clock) = (workers(&dispatch, &input), clock.clone());
            async move {
                let _open = open;
                match reply {
                    Reply::Done(value) => Ok(value),
                    Reply::Fail(message) => Err(Failure::application(message)),
                    Reply::Refuse(message) => Err(Failure::application(message).non_retryable()),
                    Reply::Later(ms, value) => {
                        segno::clock::sleep(&*clock, Duration::from_millis(ms)).await;
                        Ok(value)
                    }
                }
            }
        };
        builder.rust("work", work).build().unwrap()
    }

    pub async fn publish(&self, yaml: &str) {
        self.ledger.dags().publish(&self.scope, yaml.as_bytes(), Some("ada")).await.unwrap();
    }

    pub async fn start(&self, dag: &str) -> String {
        self.ledger.runs().start(&self.scope, StartRun::new(dag)).await.unwrap().run_id
    }

    pub async fn show(&self, run_id: &str) -> RunDetail {
        self.ledger.runs().show(&self.scope, run_id).await.unwrap()
    }

    pub async fn task(&self, run_id: &str, key: &str) -> TaskRow {
        let tasks = self.show(run_id).await.tasks;
        tasks.into_iter().find(|task| &*task.task_key == key).unwrap_or_else(|| panic!("no task {key}"))
    }

    /// Keys and states of the tasks of a run.
    pub async fn states(&self, run_id: &str) -> Vec<String> {
        let tasks = self.show(run_id).await.tasks;
        tasks.iter().map(|task| format!("{} {}", task.task_key, task.state.text())).collect()
    }

    pub async fn pass(&self, seconds: u64) {
        segno::clock::sleep(&*self.clock, Duration::from_secs(seconds)).await;
    }

    /// Waits until something holds, but not for ever.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let deadline_ms = segno::clock::deadline_ms(&*self.clock, PATIENCE);
        while !condition().await {
            assert!(self.clock.now_ms() < deadline_ms, "{what} did not happen");
            segno::clock::sleep(&*self.clock, LOOK_EVERY).await;
        }
    }

    pub async fn until_ended(&self, run_id: &str) -> RunRow {
        let is_ended = async || match self.ledger.runs().show(&self.scope, run_id).await {
            Ok(detail) => detail.run.state.is_final(),
            Err(_) => false,
        };
        self.until(&format!("the end of {run_id}"), is_ended).await;
        self.show(run_id).await.run
    }

    /// Nothing ran twice at once, and no attempt was begun twice.
    pub fn check_attempts(&self) {
        let seen = self.seen.lock().unwrap();
        assert!(seen.overlaps.is_empty(), "two attempts at once: {:?}", seen.overlaps);
    }
}

/// A clock that is ahead of another one.
struct Ahead {
    clock: Arc<dyn Clock>,
    by_ms: u64,
}

impl Ahead {
    fn of(clock: &Arc<dyn Clock>, by_ms: u64) -> Arc<dyn Clock> {
        Arc::new(Ahead { clock: clock.clone(), by_ms })
    }
}

impl Clock for Ahead {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms() + self.by_ms
    }

    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.clock.sleep_until_ms(at_ms.saturating_sub(self.by_ms))
    }

    fn monotonic_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }
}

/// A call under way. It ends when its process is killed, too.
struct Open {
    seen: Arc<Mutex<Seen>>,
    task: String,
}

impl Open {
    fn begin(seen: &Arc<Mutex<Seen>>, dispatch: &str, task: String, input: &Value) -> Open {
        let mut noted = seen.lock().unwrap();
        *noted.begun.entry(dispatch.to_owned()).or_default() += 1;
        noted.inputs.insert(dispatch.to_owned(), input.clone());
        let open = noted.open.entry(task.clone()).or_default();
        *open += 1;
        if *open > 1 {
            noted.overlaps.push(dispatch.to_owned());
        }
        drop(noted);
        Open { seen: seen.clone(), task }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(open) = self.seen.lock().unwrap().open.get_mut(&self.task) {
            *open -= 1;
        }
    }
}

fn ledger_of(store: Arc<dyn Store>, objects: Stores, clock: Arc<dyn Clock>, seed: u64) -> Ledger {
    let options = LedgerOptions { clock, ids: SeededIds::shared(seed), zones: Arc::new(Zones::bundled()) };
    Ledger::new(store, objects, options)
}

fn calls(store: Arc<dyn Store>, functions: &Functions, clock: Arc<dyn Clock>) -> RoomCalls {
    let pools = Pools::new(store.clone(), BTreeMap::new()).unwrap().clock(clock);
    RoomCalls::new(Room::LEDGER, functions, pools, Client::new(store))
}

/// Workers that return their input.
pub fn all_succeed() -> Workers {
    Arc::new(|_, input| Reply::Done(json!({ "got": input })))
}
