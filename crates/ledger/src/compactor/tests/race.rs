//! Two compactors and three controllers that race on one faulty store, without a lease between them: every run ends, no
//! attempt is started twice, and the tables are what the log says. `SEGNO_LEDGER_SEEDS=1000` runs more seeds; a failure
//! prints its seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::clock::Clock;
use segno::store::ErrorKind;
use serde_json::json;

use super::world::{START_MS, World, eager, event, seeds};
use crate::compactor::Compactor;
use crate::controllers::{
    AntiEntropy, Dispatcher, Freshness, Heartbeat, OrchestrationController, Outside, ReadyDispatch, Retry,
    Snapshot, Timers,
};
use crate::event::{Attempt, Envelope, EventData, Header, TaskStarted};
use crate::fold::{Scope, State};
use crate::ids::Ulid;
use crate::log::LogWriter;
use crate::objects::faulty::{Faults, Faulty};
use crate::objects::{Objects, StorageError, Stores};
use crate::snapshot::{Days, Reader};
use crate::tables::{OutboxRow, Rows};

/// Steps within which all runs have to end.
const MAX_STEPS: usize = 3_000;
/// Runs of one race.
const RUNS: usize = 3;

fn scope() -> Scope {
    let scope = World::scope();
    Scope::new(scope.tenant.as_str(), scope.namespace.as_str())
}

/// A compactor that opens again after a failure, as a node does.
struct Folder {
    store: Arc<Faulty>,
    compactor: Option<Compactor<State>>,
}

impl Folder {
    async fn fold(&mut self, world: &World) {
        let compactor = match self.compactor.take() {
            Some(compactor) => Ok(compactor),
            None => Compactor::open(world.setup(&self.store, 7)).await,
        };
        let folded = match compactor {
            Ok(mut compactor) => compactor.fold_waiting().await.map(|_| compactor),
            Err(error) => Err(error),
        };
        match folded {
            Ok(compactor) => self.compactor = Some(compactor),
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::NotFound),
                "{error}"
            ),
        }
    }
}

/// A node with controllers and the workers of its dispatches. It has nothing but the tables and the log.
struct Node {
    objects: Objects,
    reader: Reader,
    /// How far its clock is ahead.
    ahead_ms: u64,
}

/// What the workers of all nodes have done: the engine starts every dispatch once, whoever asks for it.
#[derive(Default)]
struct Work {
    /// Attempts that were started, and how often their start was requested.
    requested: BTreeMap<Arc<str>, u32>,
    /// Attempts that are under way.
    open: Vec<OutboxRow>,
    /// Starts of every task.
    starts: BTreeMap<(Arc<str>, Arc<str>), u32>,
}

struct Race {
    world: World,
    random: fastrand::Rng,
    work: Work,
    sequence: u128,
}

impl Race {
    /// Appends what a node wants. A node that dies before it knows the outcome leaves it open.
    async fn append(&mut self, node: &Node, watermark: Option<Ulid>, events: Vec<EventData>) {
        if events.is_empty() {
            return;
        }
        let known_ms = watermark.map_or(0, |watermark| watermark.time_ms().cast_unsigned());
        let at_ms = (self.world.clock.now_ms() + node.ahead_ms).max(known_ms + 1);
        let header = Header {
            tenant_id: "acme".into(),
            workspace_id: "prod".into(),
            timestamp: jiff::Timestamp::from_millisecond(at_ms.cast_signed()).unwrap(),
        };
        let envelopes = events.into_iter().map(|data| {
            self.sequence += 1;
            Envelope::new(&header, Ulid::at(at_ms, self.sequence), data)
        });
        let batch: Vec<Envelope> = envelopes.collect();
        let writer = LogWriter::new(node.objects.clone(), World::paths());
        while let Err(error) = writer.append(&batch).await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            if self.random.u8(0..4) == 0 {
                return;
            }
        }
    }

    /// One look at the tables, and what follows from it.
    async fn decide(&mut self, node: &Node) {
        let now_ms = self.world.clock.now_ms() + node.ahead_ms;
        let read = async {
            let Some(snapshot) = node.reader.snapshot(None).await? else {
                return Ok::<_, StorageError>(None);
            };
            let watermark = snapshot.watermarks().events_processed_through;
            Ok(Some((snapshot.tables(Days::None).await?, watermark)))
        };
        let (rows, watermark) = match read.await {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => return explained(&error),
        };
        let state = State::load(scope(), rows, watermark);
        let now = now_ms.cast_signed();
        let snapshot = Snapshot { state: &state, freshness: Freshness::current(now) };
        let controllers: [&dyn OrchestrationController; 6] =
            [&ReadyDispatch, &Dispatcher, &Timers, &Retry, &Heartbeat, &AntiEntropy];
        let mut events = Vec::new();
        for controller in controllers {
            let execution = controller.run(&snapshot, now);
            events.extend(execution.events.into_iter().flatten());
            for outside in execution.outside {
                if let Outside::Enqueue(enqueue) = outside {
                    self.start(&enqueue.dispatch);
                    events.push(enqueue.accepted("queue").into());
                }
            }
        }
        self.append(node, watermark, events).await;
    }

    fn start(&mut self, dispatch: &OutboxRow) {
        let requests = self.work.requested.entry(Arc::clone(&dispatch.dispatch_id)).or_default();
        *requests += 1;
        if *requests == 1 {
            self.work.open.push(dispatch.clone());
            let task = (Arc::clone(&dispatch.run_id), Arc::clone(&dispatch.task_key));
            *self.work.starts.entry(task).or_default() += 1;
        }
    }

    /// A worker ends an attempt. The engine keeps its end until it is in the log, so this append is repeated.
    async fn finish(&mut self, node: &Node) {
        if self.work.open.is_empty() {
            return;
        }
        let at = self.random.usize(..self.work.open.len());
        let dispatch = self.work.open.swap_remove(at);
        let attempt = Attempt {
            run_id: dispatch.run_id,
            task_key: dispatch.task_key,
            attempt: dispatch.attempt,
            attempt_id: dispatch.attempt_id,
        };
        let worker_id: Arc<str> = "w".into();
        let outcome = if self.random.u8(0..5) == 0 { "failed" } else { "succeeded" };
        let started = TaskStarted { attempt: attempt.clone(), worker_id };
        let finished = finished(&attempt, outcome);
        let reliable = Node {
            objects: Objects::new(self.world.objects.clone(), self.world.clock.clone()),
            reader: node.reader.clone(),
            ahead_ms: node.ahead_ms,
        };
        self.append(&reliable, None, vec![started.into(), finished]).await;
    }
}

fn finished(attempt: &Attempt, outcome: &str) -> EventData {
    let Attempt { run_id, task_key, attempt, attempt_id } = attempt;
    event(json!({"type": "task_finished", "run_id": run_id, "task_key": task_key, "attempt": attempt,
        "attempt_id": attempt_id, "worker_id": "w", "outcome": outcome}))
}

fn explained(error: &StorageError) {
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound), "{error}");
}

/// The events of a run that begins: tasks in two chains that meet, with retries.
fn run(number: usize) -> Vec<EventData> {
    let run = format!("run-{number}");
    let trigger = json!({"type": "manual", "user_id": "ada"});
    let task = |key: &str, upstream: &[&str], attempts: u32| json!({"key": key, "depends_on": upstream, "max_attempts": attempts, "heartbeat_timeout_sec": 0});
    let tasks = [task("a", &[], 2), task("b", &["a"], 3), task("c", &["a"], 1), task("d", &["b", "c"], 2)];
    vec![
        event(json!({"type": "run_triggered", "run_id": run, "plan_id": "p:1", "trigger": trigger})),
        event(json!({"type": "plan_created", "run_id": run, "plan_id": "p:1", "tasks": tasks})),
    ]
}

fn have_ended(rows: &Rows) -> bool {
    rows.runs.len() == RUNS && rows.runs.iter().all(|run| run.state.is_final())
}

async fn race(seed: u64) {
    let world = World::new(eager());
    let stores =
        |store: &Arc<Faulty>| Stores::shared(Arc::clone(store) as Arc<dyn object_store::ObjectStore>);
    let nodes: Vec<Node> = (0..3)
        .map(|number| {
            let store = world.store(Faults::ALL);
            let objects = Objects::new(store.clone(), world.clock.clone());
            let reader = Reader::new(World::paths(), &stores(&store), world.clock.clone());
            Node { objects, reader, ahead_ms: number * 700 }
        })
        .collect();
    let mut folders = [(); 2].map(|()| Folder { store: world.store(Faults::ALL), compactor: None });
    let random = fastrand::Rng::with_seed(seed);
    let mut race = Race { world, random, work: Work::default(), sequence: 0 };
    for number in 0..RUNS {
        let events = run(number);
        let writer = Node {
            objects: Objects::new(race.world.objects.clone(), race.world.clock.clone()),
            reader: nodes[0].reader.clone(),
            ahead_ms: 0,
        };
        race.append(&writer, None, events).await;
    }
    let mut steps = 0;
    loop {
        race.world.clock.advance(race.random.u64(0..400));
        let node = race.random.usize(0..3);
        match race.random.u8(0..10) {
            0..=3 => race.decide(&nodes[node]).await,
            4..=5 => race.finish(&nodes[node]).await,
            6 => race.world.clock.advance(race.random.u64(0..20_000)),
            _ => {
                let at = race.random.usize(0..2);
                if race.random.u8(0..25) == 0 {
                    folders[at].compactor = None;
                }
                folders[at].fold(&race.world).await;
            }
        }
        steps += 1;
        assert!(steps < MAX_STEPS, "seed {seed}: a run does not end");
        if steps % 20 == 0 && race.world.clock.now_ms() > START_MS {
            let snapshot = race.world.reader().snapshot(None).await.unwrap();
            // Without faults a file may still be deleted while it is read.
            let rows = match snapshot {
                Some(snapshot) => snapshot.tables(Days::All).await.unwrap_or_default(),
                None => Rows::default(),
            };
            if have_ended(&rows) {
                break;
            }
        }
    }
    drop(folders);
    let mut last = race.world.open(7).await;
    while last.fold_waiting().await.unwrap().events > 0 {}
    last.settle().await.unwrap();
    let tables = race.world.tables().await;
    assert!(have_ended(&tables), "seed {seed}");
    let mut rebuilt = last.replay().await.unwrap().rows();
    rebuilt.sort();
    assert_eq!(tables, rebuilt, "seed {seed}: rebuilt from the log");
    for task in &tables.tasks {
        let key = (Arc::clone(&task.run_id), Arc::clone(&task.task_key));
        let starts = race.work.starts.get(&key).copied().unwrap_or(0);
        assert_eq!(starts, task.attempt, "seed {seed}: starts of {key:?}, {:?}", task.state);
    }
    assert!(race.work.open.is_empty() && tables.dispatch_outbox.is_empty(), "seed {seed}: something is left");
}

#[tokio::test]
async fn compactors_and_controllers_that_race_end_every_run_and_start_every_attempt_once() {
    for seed in seeds(400, 4) {
        race(seed).await;
    }
}
