//! Random logs, and compactors over stores in memory.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use object_store::ObjectStore;
use segno::clock::Clock;
use segno_actions::functions::Scope;
use segno_testkit::seeded::SeededIds;
use serde_json::json;

use crate::compactor::{Compactor, Options, Setup};
use crate::event::{Envelope, EventData, Header};
use crate::fold::State;
use crate::ids::{Ulid, attempt_id, dispatch_id};
use crate::log::LogWriter;
use crate::objects::faulty::{Faults, Faulty};
use crate::objects::testing::place;
use crate::objects::{Objects, Paths, Stores};
use crate::snapshot::{Days, Reader};
use crate::tables::Rows;

/// A clock on which nothing waits: a sleeper moves it to its time.
pub(super) struct Rushing(AtomicU64);

impl Clock for Rushing {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep_until_ms(&self, at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_max(at_ms, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }

    fn monotonic_ns(&self) -> u64 {
        self.now_ms() * 1_000_000
    }
}

impl Rushing {
    pub(super) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

/// One scope in a store in memory.
pub(super) struct World {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) clock: Arc<Rushing>,
    pub(super) options: Options,
    seeds: AtomicU64,
}

pub(super) const START_MS: u64 = 1_700_000_000_000;

/// Everything happens early, so that short logs see all of it.
pub(super) fn eager() -> Options {
    Options { max_deltas: 3, archive_runs: 2, join_batches: 4, ..Options::default() }
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        World {
            objects: place(),
            clock: Arc::new(Rushing(AtomicU64::new(START_MS))),
            options,
            seeds: AtomicU64::new(1),
        }
    }

    pub(super) fn scope() -> Scope {
        Scope::new("prod", "acme").unwrap()
    }

    pub(super) fn paths() -> Paths {
        Paths::new(World::scope())
    }

    /// A view of the store with faults and counters of its own.
    pub(super) fn store(&self, faults: Faults) -> Arc<Faulty> {
        Faulty::new(Arc::clone(&self.objects), faults, self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn setup(&self, store: &Arc<Faulty>, epoch: u64) -> Setup {
        Setup {
            scope: World::scope(),
            stores: Stores::shared(Arc::clone(store) as Arc<dyn ObjectStore>),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: SeededIds::shared(self.seeds.fetch_add(1, Ordering::Relaxed)),
            epoch,
            options: self.options.clone(),
        }
    }

    pub(super) async fn open(&self, epoch: u64) -> Compactor<State> {
        Compactor::open(self.setup(&self.store(Faults::NONE), epoch)).await.unwrap()
    }

    pub(super) fn writer(&self) -> LogWriter {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let store = Arc::clone(&self.objects);
        LogWriter::new(Objects::new(store, clock), World::paths())
    }

    pub(super) fn reader(&self) -> Reader {
        let stores = Stores::shared(Arc::clone(&self.objects));
        Reader::new(World::paths(), &stores, Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// All rows as a reader sees them.
    pub(super) async fn tables(&self) -> Rows {
        let snapshot = self.reader().snapshot(None).await.unwrap().expect("something was published");
        let mut rows = snapshot.tables(Days::All).await.unwrap();
        rows.sort();
        rows
    }
}

/// Seeds of a test: a few in the gate, as many as `SEGNO_LEDGER_SEEDS` says by command.
pub(super) fn seeds(first: u64, few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("SEGNO_LEDGER_SEEDS").ok().and_then(|many| many.parse().ok());
    first..first + many.unwrap_or(few)
}

/// What the tables have to be: the whole log, folded at once.
pub(super) fn folded(events: &[Envelope]) -> Rows {
    let scope = World::scope();
    let scope = crate::fold::Scope::new(scope.tenant.as_str(), scope.namespace.as_str());
    let mut state = State::new(scope);
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.event_id);
    crate::fold::fold(&mut state, &events);
    state.rows()
}

/// A random log.
pub(super) struct Script {
    pub(super) random: fastrand::Rng,
    next_ms: u64,
    next_low: u128,
    runs: u64,
    /// Runs that go on: the events that come next.
    going: Vec<VecDeque<EventData>>,
    pub(super) going_at_most: usize,
    pub(super) skips_days: bool,
}

pub(super) fn event(value: serde_json::Value) -> EventData {
    serde_json::from_value(value).unwrap()
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        Script {
            random: fastrand::Rng::with_seed(seed),
            next_ms: START_MS,
            next_low: 0,
            runs: 0,
            going: Vec::new(),
            going_at_most: 6,
            skips_days: true,
        }
    }

    /// The next event with an id of its own.
    pub(super) fn envelope(&mut self, data: EventData) -> Envelope {
        // Some events share a millisecond; days pass now and then.
        self.next_ms += match self.random.u32(0..1_000) {
            0..300 => 0,
            300..998 => self.random.u64(1..2_000),
            _ if self.skips_days => 86_400_000,
            _ => 1,
        };
        self.next_low += 1;
        let header = Header {
            tenant_id: "acme".into(),
            workspace_id: "prod".into(),
            timestamp: Timestamp::from_millisecond(self.next_ms.cast_signed()).unwrap(),
        };
        Envelope::new(&header, Ulid::at(self.next_ms, self.next_low), data)
    }

    /// The next events of random runs.
    pub(super) fn events(&mut self, count: usize) -> Vec<Envelope> {
        let next = |_| {
            let data = self.step();
            self.envelope(data)
        };
        (0..count).map(next).collect()
    }

    /// Events until no run is under way.
    pub(super) fn rest(&mut self) -> Vec<Envelope> {
        let mut events = Vec::new();
        while let Some(mut run) = self.going.pop() {
            events.extend(run.drain(..).map(|data| self.envelope(data)).collect::<Vec<_>>());
        }
        events
    }

    fn step(&mut self) -> EventData {
        if self.going.is_empty()
            || (self.going.len() < self.going_at_most
                && self.random.u8(0..10) < 1 + (self.going_at_most > 100) as u8)
        {
            self.runs += 1;
            let run = self.run(self.runs);
            self.going.push(run);
        }
        let at = self.random.usize(..self.going.len());
        let data = self.going[at].pop_front().expect("runs that ended are removed");
        if self.going[at].is_empty() {
            self.going.swap_remove(at);
        }
        data
    }

    fn run(&mut self, number: u64) -> VecDeque<EventData> {
        let run = format!("run-{number:05}");
        let trigger = json!({"type": "manual", "user_id": "ada"});
        let mut events = VecDeque::new();
        events.push_back(event(
            json!({"type": "run_triggered", "run_id": run, "plan_id": "p:1", "trigger": trigger, "labels": {"n": "1"}}),
        ));
        let count = self.random.usize(1..5);
        let task = |at: usize| {
            let upstream: Vec<String> = (at > 0).then(|| format!("task-{}", at - 1)).into_iter().collect();
            json!({"key": format!("task-{at}"), "depends_on": upstream, "max_attempts": 1})
        };
        let tasks: Vec<_> = (0..count).map(task).collect();
        events.push_back(event(
            json!({"type": "plan_created", "run_id": run, "plan_id": "p:1", "tasks": tasks}),
        ));
        let fails_at = (self.random.u8(0..5) == 0).then(|| self.random.usize(..count));
        for at in 0..count {
            let outcome = if fails_at == Some(at) { "failed" } else { "succeeded" };
            events.extend(attempt(&run, at, 1, outcome));
            if fails_at == Some(at) {
                break;
            }
        }
        if self.random.u8(0..6) == 0 {
            let clear = json!({"type": "task_cleared", "run_id": run, "task_keys": [format!("task-{}", count - 1)],
                "request_id": "again", "requested_by": "ada"});
            events.push_back(event(clear));
            events.extend(attempt(&run, count - 1, 2, "succeeded"));
        }
        events
    }
}

fn attempt(run: &str, task: usize, number: u32, outcome: &str) -> Vec<EventData> {
    let task = format!("task-{task}");
    let dispatch = dispatch_id(run, &task, number);
    let attempt_id = attempt_id(&dispatch);
    let of = |mut fields: serde_json::Value, name: &str| {
        fields["type"] = name.into();
        fields["run_id"] = run.into();
        fields["task_key"] = task.clone().into();
        fields["attempt"] = number.into();
        fields["attempt_id"] = attempt_id.clone().into();
        event(fields)
    };
    vec![
        of(json!({"dispatch_id": dispatch}), "dispatch_requested"),
        event(json!({"type": "dispatch_enqueued", "dispatch_id": dispatch, "cloud_task_id": "q-1"})),
        of(json!({"worker_id": "w"}), "task_started"),
        of(json!({"worker_id": "w", "message": "going on"}), "task_heartbeat"),
        of(json!({"worker_id": "w", "outcome": outcome}), "task_finished"),
    ]
}

/// Events in batches of random sizes.
pub(super) fn batches(events: &[Envelope], random: &mut fastrand::Rng) -> Vec<Vec<Envelope>> {
    let mut batches = Vec::new();
    let mut rest = events;
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(random.usize(1..12).min(rest.len()));
        batches.push(batch.to_vec());
        rest = others;
    }
    batches
}
