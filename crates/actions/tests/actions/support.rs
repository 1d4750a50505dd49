//! Nodes with functions and schedulers on one store, in virtual time.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use segno::clock::Clock;
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{ActivityContext, Context, Failure, Orchestration, Payload, Registry};
use segno_actions::ActionOptions;
use segno_actions::action::{Action, ActionDb, ActionStatus, ActionTrigger};
use segno_actions::functions::{Functions, Scope};
use segno_actions::recurring::RecurringActions;
use segno_actions::schedule::Zones;
use segno_actions::scheduler::{Lane, Scheduler, SchedulerBuilder};
use segno_actions::telemetry::CurrentTrace;
use segno_testkit::TestEnv;
use segno_testkit::clock::VirtualClock;
use segno_testkit::seeded::SeededIds;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// When the tests take place.
pub const START_MS: u64 = 1_770_732_000_000;

/// Every call of a function: the time, and its input.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<(Timestamp, Value)>>>);

impl Calls {
    pub fn add(&self, at_ms: u64, input: Value) {
        let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap()).unwrap();
        self.0.lock().unwrap().push((at, input));
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> Vec<Value> {
        self.0.lock().unwrap().iter().map(|(_, input)| input.clone()).collect()
    }

    /// Seconds from the start of the test to each call.
    pub fn seconds(&self) -> Vec<i64> {
        let start_ms = i64::try_from(START_MS).unwrap();
        self.0.lock().unwrap().iter().map(|(at, _)| (at.as_millisecond() - start_ms) / 1_000).collect()
    }
}

/// The functions of these tests: `note` remembers its input, `fail` fails, `slow` takes so many seconds, `slow_failure` fails after so many, `hang` takes for ever.
pub fn functions(store: Arc<dyn Store>, clock: Arc<VirtualClock>, calls: &Calls) -> Functions {
    let (noted, slow) = (calls.clone(), calls.clone());
    let (note_clock, slow_clock) = (clock.clone(), clock.clone());
    let note = move |_: ActivityContext, input: Value| {
        noted.add(note_clock.now_ms(), input.clone());
        async move { Ok::<_, Failure>(json!({ "noted": input })) }
    };
    let fail = |_: ActivityContext, _: Value| async { Err::<(), _>(Failure::application("it broke")) };
    let slow = move |_: ActivityContext, input: Value| {
        slow.add(slow_clock.now_ms(), input.clone());
        let clock = slow_clock.clone();
        let seconds = input["seconds"].as_u64().or(input["payload"]["seconds"].as_u64()).unwrap();
        async move {
            segno::clock::sleep(&*clock, Duration::from_secs(seconds)).await;
            Ok::<_, Failure>(seconds)
        }
    };
    let failing_clock = clock.clone();
    let slow_failure = move |_: ActivityContext, input: Value| {
        let clock = failing_clock.clone();
        let seconds = input["payload"]["seconds"].as_u64().unwrap();
        async move {
            segno::clock::sleep(&*clock, Duration::from_secs(seconds)).await;
            Err::<(), _>(Failure::application("it broke at last"))
        }
    };
    let hang = |ctx: ActivityContext, _: Value| async move {
        Err::<(), _>(Failure::cancelled(ctx.cancelled().await))
    };
    let builder = Functions::builder(store).clock(clock);
    let builder = builder.rust("slow_failure", slow_failure);
    builder.rust("note", note).rust("fail", fail).rust("slow", slow).rust("hang", hang).build().unwrap()
}

/// An orchestration that waits, goes on in another execution, and fails, as its input says.
pub const STAGES: Orchestration<Value, Value> = Orchestration::new("stages");

async fn stages(ctx: Context, mut input: Value) -> Result<Value, Failure> {
    if let Some(seconds) = input["seconds"].as_u64() {
        ctx.sleep(Duration::from_secs(seconds)).await?;
    }
    if let Some(more @ 1..) = input["more"].as_u64() {
        input["more"] = json!(more - 1);
        return ctx.continue_as_new(input).await;
    }
    if input["fails"] == json!(true) {
        return Err(Failure::application("it broke"));
    }
    Ok(json!({ "staged": input }))
}

/// What the nodes of these tests run.
pub fn registry(functions: &Functions) -> Registry {
    functions.register(Registry::builder()).orchestration(STAGES, stages).build().unwrap()
}

/// A store, a node and a scheduler.
pub struct World {
    pub clock: Arc<VirtualClock>,
    pub store: Arc<dyn Store>,
    pub env: TestEnv,
    pub calls: Calls,
    pub functions: Functions,
    pub db: ActionDb,
    pub options: ActionOptions,
    pub zones: Arc<Zones>,
    pub current_trace: Option<CurrentTrace>,
    /// Lanes of other rooms.
    pub lanes: Vec<Lane>,
    schedulers: Vec<JoinHandle<()>>,
}

/// Makes the store that a world sees of the one that it has.
type Between = fn(Arc<dyn Store>, Arc<VirtualClock>) -> Arc<dyn Store>;

impl World {
    pub async fn start() -> World {
        let mut world = World::idle().await;
        world.schedule();
        world
    }

    /// With a node and without a scheduler.
    pub async fn idle() -> World {
        World::idle_behind(|store, _| store).await
    }

    /// The same, with something between each node and the store.
    pub async fn idle_behind(between: Between) -> World {
        let clock = VirtualClock::auto();
        clock.set_ms(START_MS);
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let calls = Calls::default();
        let functions = functions(store.clone(), clock.clone(), &calls);
        let registry = registry(&functions);
        let (inner, node_clock) = (store.clone(), clock.clone());
        let env = TestEnv::builder(registry)
            .store(store.clone(), clock.clone())
            .node_store(move |_| between(inner.clone(), node_clock.clone()))
            .start()
            .await;
        let db = ActionDb::new(store.clone()).clock(clock.clone());
        World {
            clock,
            store,
            env,
            calls,
            functions,
            db,
            options: ActionOptions::default(),
            zones: Arc::new(Zones::bundled()),
            current_trace: None,
            lanes: Vec::new(),
            schedulers: Vec::new(),
        }
    }

    /// Starts a scheduler, as a node more would.
    pub fn schedule(&mut self) {
        let builder = Scheduler::builder(self.store.clone(), self.functions.clone())
            .clock(self.clock.clone())
            .ids(SeededIds::shared(self.schedulers.len() as u64))
            .zones(self.zones.clone())
            .options(self.options.clone())
            .current_trace(self.current_trace);
        let scheduler = self.lanes.iter().cloned().fold(builder, SchedulerBuilder::lane).build().unwrap();
        self.schedulers.push(tokio::spawn(scheduler.run(std::future::pending())));
    }

    /// Kills all schedulers.
    pub fn kill(&mut self) {
        for scheduler in self.schedulers.drain(..) {
            scheduler.abort();
        }
    }

    /// Seconds since the start of the test.
    pub fn clock_seconds(&self) -> u64 {
        (self.clock.now_ms() - START_MS) / 1_000
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(i64::try_from(self.clock.now_ms()).unwrap()).unwrap()
    }

    /// A time so many seconds after the start of the test.
    pub fn at(&self, seconds: i64) -> Timestamp {
        let start = Timestamp::from_millisecond(i64::try_from(START_MS).unwrap()).unwrap();
        start + jiff::SignedDuration::from_secs(seconds)
    }

    pub async fn pass(&self, seconds: u64) {
        segno::clock::sleep(&*self.clock, Duration::from_secs(seconds)).await;
    }

    /// Stores an action that is due so many seconds after the start.
    pub async fn add(&self, number: u128, function: &str, input: Value, due: i64) -> Action {
        let action = self.action(number, function, input, due);
        self.db.insert(&action).await.unwrap();
        action
    }

    pub fn action(&self, number: u128, function: &str, input: Value, due: i64) -> Action {
        let trigger = ActionTrigger::Scheduled { next_tick_at: self.at(due) };
        let action = Action::new(Uuid::from_u128(number), "test", function, trigger, self.now());
        Action { tool_input: Payload::encode(&input).unwrap(), ..action }
    }

    pub async fn status(&self, number: u128) -> ActionStatus {
        self.db.get(Uuid::from_u128(number)).await.unwrap().status
    }

    pub fn recurring(&self) -> RecurringActions {
        RecurringActions::new(self.store.clone(), self.functions.clone(), self.zones.clone())
            .clock(self.clock.clone())
            .options(self.options.clone())
    }

    pub fn scope(&self) -> Scope {
        Scope::default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}
