//! One seed, one world: made, run to its end, and checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{Client, Error, Registry};

use super::driver::Driver;
use super::interpreter::{self, Effects, PROGRAM};
use super::nodes::{Nodes, Site, faults};
use super::program::{Call, Ending, Expected, Generator, Program, Step};
use crate::clock::VirtualClock;
use crate::crash::dump;
use crate::environment::run;
use crate::faults::FaultStore;
use crate::invariants;
use crate::seeded::{Random, SeededIds};

const ROOT: &str = "root";
/// Most steps of a program with all its children.
const MOST_STEPS: u32 = 24;
/// How long a world may take, in virtual time, before it counts as stuck (H7). Far longer than any program takes.
const PATIENCE: Duration = Duration::from_secs(100 * 24 * 60 * 60);
/// How long a world may take to come to rest after its root has ended.
const REST: Duration = Duration::from_secs(2 * 60 * 60);
/// How often it is asked whether it has.
const REST_CHECK: Duration = Duration::from_secs(5);

/// What a world was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Events recorded in all histories.
    pub events: usize,
    /// How long it took, in virtual milliseconds.
    pub virtual_ms: u64,
    /// All histories, to compare two runs of one seed.
    pub trace: String,
}

/// Makes the world of a seed, runs it and checks it.
///
/// # Errors
/// What went wrong, with the program and all histories. The same seed gives the same error.
pub fn simulate(seed: u64) -> Result<Report, String> {
    run(async {
        let mut random = Random::new(seed);
        let program = Generator::new(random.fork(), MOST_STEPS).root();
        let clock = VirtualClock::auto();
        let shared_clock: Arc<dyn Clock> = clock.clone();
        let store: Arc<dyn Store> = MemoryStore::with_clock(shared_clock.clone());
        let effects = Effects::default();
        let ids = SeededIds::shared(seed);
        let site = Site {
            store: store.clone(),
            clock: shared_clock.clone(),
            registry: interpreter::registry(&shared_clock, &effects),
            ids: ids.clone(),
        };
        let nodes = Nodes::start(&site, &mut random);
        let started_ms = clock.now_ms();
        let client = Client::builder(store).ids(ids).build();
        let world = World { client, program, effects, registry: site.registry.clone(), clock: shared_clock };
        let outcome = world.live(&site, &mut random).await;
        drop(nodes);
        let trace = dump(&world.client).await;
        match outcome {
            Ok(()) => {
                let events = trace.lines().filter(|line| line.starts_with("  ")).count();
                Ok(Report { events, virtual_ms: clock.now_ms() - started_ms, trace })
            }
            Err(problem) => Err(format!("seed {seed}: {problem}\n{:#?}\n{trace}", world.program)),
        }
    })
}

struct World {
    client: Client,
    program: Program,
    effects: Effects,
    registry: Registry,
    clock: Arc<dyn Clock>,
}

impl World {
    async fn live(&self, site: &Site, random: &mut Random) -> Result<(), String> {
        let budget = Arc::new(std::sync::atomic::AtomicU64::new(random.below(6)));
        let plan = faults(random.fork(), 4, budget);
        let faulty = FaultStore::new(site.store.clone(), site.clock.clone(), without_deaths(plan));
        let driver = Driver {
            client: Client::builder(faulty).ids(site.ids.clone()).build(),
            clock: self.clock.clone(),
            root: ROOT.to_owned(),
        };
        let all = async {
            driver.drive(&self.program, random).await;
            self.client.result(PROGRAM, ROOT).await
        };
        let result = clock::timeout(&*self.clock, PATIENCE, all).await.ok_or("H7: stuck")?;
        self.check_result(result)?;
        self.rest().await?;
        invariants::check(&self.client).await.map_err(|violation| violation.to_string())?;
        self.check_effects()?;
        self.replay_all().await
    }

    fn check_result(&self, result: Result<Vec<i64>, Error>) -> Result<(), String> {
        let expected = self.program.expected();
        let fits = match (&expected, &result) {
            (Expected::Completed(values), Ok(results)) => values == results,
            (Expected::Failed, Err(error)) => {
                error.failure().is_some_and(|failure| failure.message == "the program says so")
            }
            (Expected::Cancelled, Err(error)) => error.failure().is_some_and(segno::Failure::is_cancelled),
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("expected {expected:?}, got {result:?}")) }
    }

    async fn rest(&self) -> Result<(), String> {
        let mut waited = Duration::ZERO;
        loop {
            match invariants::check_at_rest(&self.client).await {
                Err(_) if waited < REST => {
                    clock::sleep(&*self.clock, REST_CHECK).await;
                    waited += REST_CHECK;
                }
                other => return other.map_err(|violation| violation.to_string()),
            }
        }
    }

    /// I4: a call has one idempotency key over all attempts, and one that succeeded was done.
    fn check_effects(&self) -> Result<(), String> {
        let effects = self.effects.all();
        let mut succeeded = BTreeMap::new();
        collect_calls(&self.program, &mut succeeded);
        for (key, call) in succeeded {
            let effect = effects.get(&key).cloned().unwrap_or_default();
            if effect.idempotency_keys.len() > 1 {
                return Err(format!("I4: call {key} ran under {:?}", effect.idempotency_keys));
            }
            if call && effect.done == 0 {
                return Err(format!("call {key} has a result, but was never done"));
            }
        }
        Ok(())
    }

    /// H5: every history replays on the code that wrote it.
    async fn replay_all(&self) -> Result<(), String> {
        for instance in invariants::instances(&self.client).await {
            for execution_id in self.client.executions(&instance).await.unwrap_or_default() {
                let history = self.client.history_of_execution(&instance, execution_id).await;
                let history = history.map_err(|error| error.to_string())?;
                let started = history.iter().any(|event| event.kind.name() == "OrchestrationStarted");
                if started && let Err(error) = self.registry.replay(&instance, execution_id, &history) {
                    return Err(format!("H5: {instance} execution {execution_id}: {error}"));
                }
            }
        }
        Ok(())
    }
}

/// The outside does not die: it would have nobody to start it again.
fn without_deaths(mut plan: crate::faults::Plan) -> crate::faults::Plan {
    use crate::faults::Fault;
    Box::new(move |point| match plan(point) {
        Fault::CrashBefore => Fault::FailBefore,
        Fault::CrashAfter => Fault::FailAfter,
        other => other,
    })
}

/// Every call that ran, and whether it succeeded.
fn collect_calls(program: &Program, calls: &mut BTreeMap<i64, bool>) {
    program.executions.iter().flatten().for_each(|step| collect_from_step(step, calls));
    if let Ending::Cancelled(key) = program.ending {
        calls.insert(key, true);
    }
}

fn collect_from_step(step: &Step, calls: &mut BTreeMap<i64, bool>) {
    let mut add = |call: &Call| calls.insert(call.key, call.value() > 0);
    match step {
        Step::Activity(call) | Step::Inline(call) => {
            add(call);
        }
        Step::Child { program, .. } | Step::Detached { program, .. } => collect_calls(program, calls),
        Step::Parallel(branches) => branches.iter().flatten().for_each(|step| collect_from_step(step, calls)),
        Step::Race(winner, _) => winner.iter().for_each(|step| collect_from_step(step, calls)),
        _ => {}
    }
}
