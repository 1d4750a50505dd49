//! The nodes of a simulated world: each on its own faulty store, and replaced a while after it dies.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::ids::IdSource;
use segno::store::Store;
use segno::{Registry, Retention, Runtime, RuntimeOptions};
use tokio::task::JoinHandle;

use crate::faults::{Fault, FaultStore, Plan};
use crate::seeded::Random;

/// How many faults all nodes of a world may have before faults stop.
const MOST_FAULTS: u64 = 12;

/// What all nodes of a world share.
#[derive(Clone)]
pub struct Site {
    /// The store under all faults.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The code.
    pub registry: Registry,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
}

/// Nodes that run until dropped.
pub struct Nodes {
    keepers: Vec<JoinHandle<()>>,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.keepers.iter().for_each(JoinHandle::abort);
    }
}

impl Nodes {
    /// Starts one to three nodes.
    pub fn start(site: &Site, random: &mut Random) -> Nodes {
        let nodes = random.between(1, 3);
        let keepers = (0..nodes).map(|node| tokio::spawn(keep(site.clone(), node, random.fork()))).collect();
        Nodes { keepers }
    }
}

/// Runs a node, and another one after each death.
async fn keep(site: Site, node: u64, mut random: Random) {
    let budget = Arc::new(std::sync::atomic::AtomicU64::new(random.below(MOST_FAULTS)));
    let one_in = random.between(2, 40);
    for life in 0_u64.. {
        let options = options(&mut random, format!("node-{node}-{life}"));
        let plan = faults(random.fork(), one_in, budget.clone());
        let make_store = if random.chance(1, 3) { FaultStore::without_joins } else { FaultStore::new };
        let store = make_store(site.store.clone(), site.clock.clone(), plan);
        let runtime = Runtime::builder(store.clone())
            .registry(site.registry.clone())
            .options(options)
            .clock(site.clock.clone())
            .ids(site.ids.clone())
            .start()
            .await
            .expect("the options of a simulated node are in range");
        store.died().await;
        drop(runtime);
        clock::sleep(&*site.clock, Duration::from_millis(random.below(40_000))).await;
    }
}

fn options(random: &mut Random, node_id: String) -> RuntimeOptions {
    let resident = [0, 1, 4_096][random.below(3) as usize];
    RuntimeOptions {
        resident_executions: resident,
        orchestration_concurrency: random.between(1, 4) as usize,
        // Enough for every activity of a program that hangs on purpose, or the others would wait for ever.
        worker_concurrency: random.between(32, 64) as usize,
        max_attempts: 100,
        node_id: Some(node_id),
        session_idle_timeout: Duration::from_secs(30),
        retention: Retention {
            executions: random.chance(1, 3).then(|| random.between(1, 3) as u32),
            // Nothing is that old, but it is looked for.
            finished_age: random.chance(1, 3).then_some(Duration::from_secs(30 * 24 * 60 * 60)),
            ..Retention::default()
        },
        // Not a part of what is simulated.
        publish_names_every: None,
        ..RuntimeOptions::default()
    }
}

/// Faults at random, as long as the budget lasts.
pub fn faults(mut random: Random, one_in: u64, budget: Arc<std::sync::atomic::AtomicU64>) -> Plan {
    use std::sync::atomic::Ordering;
    Box::new(move |_| {
        if budget.load(Ordering::Relaxed) == 0 || !random.chance(1, one_in) {
            return Fault::None;
        }
        budget.fetch_sub(1, Ordering::Relaxed);
        let short = Duration::from_millis(random.between(1, 3_000));
        let long = Duration::from_millis(random.between(1, 90_000));
        match random.below(12) {
            0..=2 => Fault::FailBefore,
            3..=5 => Fault::FailAfter,
            6 => Fault::Delay(short),
            7 => Fault::AwayFor(long),
            8 => Fault::StallFor(long),
            9 | 10 => Fault::CrashBefore,
            _ => Fault::CrashAfter,
        }
    })
}
