//! The scenario in real time, on the embedded store or the one that `SEGNO_TEST_STORE` names, with
//! processes that die at some of their commits.
//!
//! `SEGNO_TEST_STORE=postgres SEGNO_RUNBOOK_CRASHES=40 scripts/with-postgres.sh cargo nextest run
//! -p segno-runbook on_the_store_of_this_run`

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use segno::clock::SystemClock;
use segno::store::Store;
use segno_stores::StoreUrl;
use segno_testkit::faults::{self, Fault, FaultStore};
use tempfile::TempDir;

use super::scenario::{Outcome, outcome, play, workers};
use super::world::{Pace, World};

/// Crashes in a test of the gate.
const CRASHES: u64 = 6;

/// Runs at the same time.
const RUNS_AT_ONCE: usize = 6;

/// An empty store, and its directory.
async fn empty_store() -> (Arc<dyn Store>, Option<TempDir>) {
    let kind = std::env::var("SEGNO_TEST_STORE").unwrap_or_default();
    let directory = tempfile::tempdir().unwrap();
    let url = match kind.as_str() {
        "postgres" => own_schema().parse().unwrap(),
        _ => StoreUrl::Embedded(directory.path().to_owned()),
    };
    (url.open().await.unwrap(), Some(directory))
}

/// The URL of a schema that no other test uses.
fn own_schema() -> String {
    let server = std::env::var("SEGNO_TEST_POSTGRES");
    let server = server.expect("SEGNO_TEST_POSTGRES is not set; run this by scripts/with-postgres.sh");
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}schema=runbook_{:x}", segno::ids::SystemIds::shared().new_seed())
}

async fn run(crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    let (store, _directory) = empty_store().await;
    let clock = SystemClock::shared();
    let world = World::on(store, clock.clone(), Pace::Real, workers());
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
    (outcome(&world, &[batch]).await.without_polls_of("d"), faulty.commits())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_loses_nothing_on_the_store_of_this_run() {
    let crashes = std::env::var("SEGNO_RUNBOOK_CRASHES").ok().and_then(|text| text.parse().ok());
    let crashes: u64 = crashes.unwrap_or(CRASHES);
    let (expected, commits) = run(None).await;
    assert!(commits > 50, "{commits}");
    let runs = stream::iter(1..=crashes).map(|number| async move {
        let fault = if number % 2 == 0 { Fault::CrashBefore } else { Fault::CrashAfter };
        let at = (commits * number).div_ceil(crashes + 1).max(1);
        (at, fault, run(Some((at, fault))).await.0)
    });
    // Most of a run is waiting, so several go on at once.
    let mut runs = std::pin::pin!(runs.buffer_unordered(RUNS_AT_ONCE));
    while let Some((at, fault, outcome)) = runs.next().await {
        outcome.check(&expected, &format!("{fault:?} at commit {at} of about {commits}"));
    }
}
