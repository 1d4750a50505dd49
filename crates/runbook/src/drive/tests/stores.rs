//! The scenario in real time on the embedded store and on PostgreSQL, with processes that die at some of their
//! commits, and with three nodes of which one dies every second.
//!
//! `SEGNO_RUNBOOK_CRASHES=1000 scripts/with-postgres.sh cargo nextest run --workspace -E 'package(segno-runbook) and
//! test(tests::stores)'` lets them die before and after each commit, and runs the three nodes as often as that many
//! crashes take.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use segno::clock::SystemClock;
use segno::store::Store;
use segno_stores::StoreUrl;
use segno_testkit::faults::{self, Fault, FaultStore};
use tempfile::TempDir;

use super::scenario::{Outcome, outcome, play, workers};
use super::world::{Pace, Process, World};
use crate::rows::BatchId;

/// Crashes of a test in the gate.
const CRASHES: u64 = 6;

/// Runs at the same time.
const RUNS_AT_ONCE: usize = 6;

/// Nodes that share a database.
const NODES: usize = 3;

/// How long a node of several lives.
const LIFE: Duration = Duration::from_secs(1);

/// Where a run keeps its data.
enum Place {
    Directory(TempDir),
    Schema(StoreUrl),
}

impl Place {
    fn directory() -> Place {
        Place::Directory(tempfile::tempdir().unwrap())
    }

    /// A schema that no other test uses.
    fn schema() -> Place {
        let server = std::env::var("SEGNO_TEST_POSTGRES");
        let server = server.expect("SEGNO_TEST_POSTGRES is not set; run this by scripts/with-postgres.sh");
        let separator = if server.contains('?') { '&' } else { '?' };
        let url =
            format!("{server}{separator}schema=runbook_{:x}", segno::ids::SystemIds::shared().new_seed());
        Place::Schema(url.parse().unwrap())
    }

    async fn open(&self) -> Arc<dyn Store> {
        let url = match self {
            Place::Directory(directory) => StoreUrl::Embedded(directory.path().to_owned()),
            Place::Schema(url) => url.clone(),
        };
        url.open().await.unwrap()
    }
}

fn crashes() -> u64 {
    let crashes = std::env::var("SEGNO_RUNBOOK_CRASHES").ok().and_then(|text| text.parse().ok());
    crashes.unwrap_or(CRASHES)
}

async fn ended(world: &World, batch: BatchId) -> Outcome {
    outcome(world, &[batch]).await.without_polls_of("d")
}

/// One process, and another one after it if it dies.
async fn run(place: Place, crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    let clock = SystemClock::shared();
    let world = World::on(place.open().await, clock.clone(), Pace::Real, workers());
    let faulty = FaultStore::new(world.store.clone(), clock, faults::script(crash));
    let first = world.process(faulty.clone() as Arc<dyn Store>, "node-1").await;
    let scenario = play(&world);
    tokio::pin!(scenario);
    let batch = tokio::select! {
        biased;
        batch = &mut scenario => batch,
        () = faulty.died() => {
            drop(first);
            let _second = world.process(world.store.clone(), "node-2").await;
            scenario.await
        }
    };
    (ended(&world, batch).await, faulty.commits())
}

/// At so many commits, evenly spread, or before and after each of them if there are fewer.
async fn dies_at_commits(place: fn() -> Place) {
    let (expected, commits) = run(place(), None).await;
    assert!(commits > 50, "{commits}");
    let crashes = crashes().min(2 * commits);
    let runs = stream::iter(1..=crashes).map(|number| async move {
        let fault = if number % 2 == 0 { Fault::CrashBefore } else { Fault::CrashAfter };
        let at = (commits * number).div_ceil(crashes + 1).max(1);
        (at, fault, run(place(), Some((at, fault))).await.0)
    });
    // Most of a run is waiting, so several go on at once.
    let mut runs = std::pin::pin!(runs.buffer_unordered(RUNS_AT_ONCE));
    while let Some((at, fault, outcome)) = runs.next().await {
        outcome.check(&expected, &format!("{fault:?} at commit {at} of about {commits}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_loses_nothing_on_the_embedded_store() {
    dies_at_commits(Place::directory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_loses_nothing_on_postgresql() {
    dies_at_commits(Place::schema).await;
}

/// A node with connections of its own.
async fn node(world: &World, place: &Place, number: usize) -> Process {
    world.process(place.open().await, &format!("node-{number}")).await
}

/// Kills the oldest of several nodes every second, and starts another one.
async fn kill_and_replace(world: &World, place: &Place) {
    let mut nodes = std::collections::VecDeque::new();
    for number in 0..NODES {
        nodes.push_back(node(world, place, number).await);
    }
    for number in NODES.. {
        segno::clock::sleep(&*world.clock, LIFE).await;
        nodes.pop_front();
        nodes.push_back(node(world, place, number).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_of_which_one_dies_every_second_lose_nothing() {
    let (expected, _) = run(Place::schema(), None).await;
    for round in 0..crashes().div_ceil(CRASHES) {
        let place = Place::schema();
        let world = World::on(place.open().await, SystemClock::shared(), Pace::Real, workers());
        let batch = tokio::select! {
            batch = play(&world) => batch,
            () = kill_and_replace(&world, &place) => unreachable!("it goes on until the batch has ended"),
        };
        ended(&world, batch).await.check(&expected, &format!("round {round}"));
    }
}
