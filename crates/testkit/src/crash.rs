//! Kills a node at every one of its commits, before it and after it, and sees whether anything changes.
//!
//! A scenario is run once undisturbed to count the commits of its node. Then it is run from scratch twice for each of them.
//! The node dies there, a new one takes over, and the scenario must come to the same outcome with the same history,
//! apart from what a retry may add.

use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::event::{Event, EventKind};
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{Client, Registry, RuntimeOptions};

use crate::clock::VirtualClock;
use crate::environment::{TestEnv, run};
use crate::faults::{self, Fault, FaultStore};
use crate::invariants;

/// How long a scenario may take, in virtual time, before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long the store may take to come to rest after the outcome, in virtual time.
const REST: Duration = Duration::from_secs(60 * 60);
/// How often it is asked whether it has.
const REST_CHECK: Duration = Duration::from_secs(1);

/// What a scenario works with: the outside of the system, which does not die with the node.
#[derive(Clone)]
pub struct Outside {
    /// A client on the store.
    pub client: Client,
    /// The clock of the run.
    pub clock: Arc<VirtualClock>,
}

impl Outside {
    /// Waits in virtual time.
    pub async fn sleep(&self, duration: Duration) {
        segno::clock::sleep(&*self.clock, duration).await;
    }
}

/// What a crash test did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashReport {
    /// Commits of the undisturbed run in which the end of every activity is one.
    pub commits: u64,
    /// Commits of the undisturbed run in which turns join their activities.
    pub joined_commits: u64,
    /// Runs with a crash: two for each commit of both.
    pub runs: u64,
}

/// A scenario to be run with a crash at every commit.
pub struct CrashTest<S> {
    registry: Registry,
    scenario: S,
    options: RuntimeOptions,
    any_order: bool,
}

/// Whether turns join their activities, where they can.
#[derive(Debug, Clone, Copy)]
enum Joins {
    Never,
    Always,
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct Outcome<T> {
    result: T,
    /// Every history, as the names of what happened.
    shape: Vec<(String, u64, Vec<String>)>,
}

impl<S> CrashTest<S> {
    /// A test of a scenario: start instances, talk to them, and return what came out.
    pub fn new<T, F>(registry: Registry, scenario: S) -> Self
    where
        S: Fn(Outside) -> F,
        F: Future<Output = T>,
        T: PartialEq + Debug,
    {
        // Names are published by a task of their own; its commits are not the scenario's.
        let options = RuntimeOptions { publish_names_every: None, ..RuntimeOptions::default() };
        CrashTest { registry, scenario, options, any_order: false }
    }

    /// Settings of the nodes.
    #[must_use]
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = RuntimeOptions { publish_names_every: None, ..options };
        self
    }

    /// Things that run at the same time may end in any order.
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.any_order = true;
        self
    }

    /// Runs the scenario with a crash at every commit.
    ///
    /// Call it outside an asynchronous runtime: every run has one of its own.
    ///
    /// # Panics
    /// When a crash changes the outcome, breaks an invariant or leaves something undone.
    pub fn run<T, F>(self) -> CrashReport
    where
        S: Fn(Outside) -> F,
        F: Future<Output = T>,
        T: PartialEq + Debug,
    {
        let (expected, commits) = self.run_once(Joins::Never, None, "without a crash");
        assert!(commits > 0, "the scenario makes its node commit nothing, so there is nothing to crash");
        let (outcome, joined_commits) = self.run_once(Joins::Always, None, "with joined turns");
        assert_eq!(outcome, expected, "turns that join their activities changed the outcome");
        for (joins, commits) in [(Joins::Never, commits), (Joins::Always, joined_commits)] {
            for number in 1..=commits {
                for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                    let what = format!("{fault:?} at commit {number} of {commits}, turns join {joins:?}");
                    let (outcome, _) = self.run_once(joins, Some((number, fault)), &what);
                    assert_eq!(outcome, expected, "{what} changed the outcome");
                }
            }
        }
        CrashReport { commits, joined_commits, runs: 2 * (commits + joined_commits) }
    }

    fn run_once<T, F>(&self, joins: Joins, crash: Option<(u64, Fault)>, what: &str) -> (Outcome<T>, u64)
    where
        S: Fn(Outside) -> F,
        F: Future<Output = T>,
        T: PartialEq + Debug,
    {
        run(async {
            let clock = VirtualClock::auto();
            let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
            let nodes = Arc::new(Mutex::new(Vec::new()));
            let node_store = {
                let (store, clock, nodes) = (store.clone(), clock.clone(), nodes.clone());
                move |node: usize| {
                    let plan = faults::script(crash.filter(|_| node == 0));
                    let make_store = match joins {
                        Joins::Never => FaultStore::without_joins,
                        Joins::Always => FaultStore::new,
                    };
                    let faulty = make_store(store.clone(), clock.clone(), plan);
                    nodes.lock().unwrap_or_else(PoisonError::into_inner).push(faulty.clone());
                    faulty as Arc<dyn Store>
                }
            };
            let mut env = TestEnv::builder(self.registry.clone())
                .options(self.options.clone())
                .store(store, clock.clone())
                .node_store(node_store)
                .start()
                .await;
            let first = nodes.lock().unwrap_or_else(PoisonError::into_inner)[0].clone();
            let outside = Outside { client: env.client().clone(), clock: clock.clone() };
            let outcome = (self.scenario)(outside);
            let work = async {
                tokio::pin!(outcome);
                let result = tokio::select! {
                    biased;
                    result = &mut outcome => result,
                    () = first.died() => {
                        env.restart().await;
                        outcome.await
                    }
                };
                rest(&env).await.map(|()| result)
            };
            let ended = segno::clock::timeout(&*clock, PATIENCE, work).await;
            let client = env.client().clone();
            let result = match ended {
                Some(Ok(result)) => result,
                Some(Err(violation)) => panic!("{what}: {violation}\n{}", dump(&client).await),
                None => panic!("{what}: stuck\n{}", dump(&client).await),
            };
            if let Err(violation) = invariants::check(&client).await {
                panic!("{what}: {violation}\n{}", dump(&client).await);
            }
            let shape = shape(&client, self.any_order).await;
            (Outcome { result, shape }, first.commits())
        })
    }
}

/// Waits until nothing is left to do.
async fn rest(env: &TestEnv) -> Result<(), invariants::Violation> {
    let mut waited = Duration::ZERO;
    loop {
        match invariants::check_at_rest(env.client()).await {
            Err(_) if waited < REST => {
                env.sleep(REST_CHECK).await;
                waited += REST_CHECK;
            }
            other => return other,
        }
    }
}

/// Every history of a store and its queues, for the message of a failed test.
pub async fn dump(client: &Client) -> String {
    let mut text = format!("{:?}\n", client.queue_depths().await);
    for instance in invariants::instances(client).await {
        let status = client.instance(&instance).await.map(|instance| instance.status.to_string());
        text.push_str(&format!("{instance}: {}\n", status.unwrap_or_else(|error| error.to_string())));
        for execution_id in client.executions(&instance).await.unwrap_or_default() {
            for event in client.history_of_execution(&instance, execution_id).await.unwrap_or_default() {
                let Event { event_id, at_ms, kind } = event;
                text.push_str(&format!("  {execution_id}.{event_id} {at_ms} {}\n", kind.describe()));
            }
        }
    }
    text
}

async fn shape(client: &Client, any_order: bool) -> Vec<(String, u64, Vec<String>)> {
    let mut shape = Vec::new();
    for instance in invariants::instances(client).await {
        for execution_id in client.executions(&instance).await.unwrap_or_default() {
            let history = client.history_of_execution(&instance, execution_id).await.unwrap_or_default();
            let mut names: Vec<String> = history.iter().filter_map(|event| name_of(&event.kind)).collect();
            if any_order {
                names.sort();
            }
            shape.push((instance.clone(), execution_id, names));
        }
    }
    shape
}

/// A kind with its names and without its numbers; `None` for what a retry may add.
fn name_of(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::ActivityAttemptFailed { .. } => None,
        kind => Some(kind.describe().split("(of event").next().unwrap_or_default().to_owned()),
    }
}

/// Every how many of them a crash is tried in the gate, where a scenario takes long.
const CRASH_STRIDE: usize = 3;

/// Crashes of a scenario that is too slow to be crashed at every commit in the gate: at every third point before or after one of its
/// commits; at all of them if `SEGNO_ALL_CRASHES` is set.
pub fn crash_points(commits: u64) -> impl Iterator<Item = (u64, Fault)> {
    let stride = if std::env::var_os("SEGNO_ALL_CRASHES").is_some() { 1 } else { CRASH_STRIDE };
    (1..=commits)
        .flat_map(|number| [(number, Fault::CrashBefore), (number, Fault::CrashAfter)])
        .step_by(stride)
}
