//! The physical limit: turns of the usual size appended to a synced log with group commit, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock, duration_ms};
use segno_embedded::SyncedLog;
use segno_stores::StoreUrl;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::arguments::FloorArguments;

/// What a turn writes on average: a few events, messages and rows.
const TURN_BYTES: usize = 1_100;

/// Where the log goes inside the store's directory, so that a store there is left alone.
const DIRECTORY: &str = "floor";

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Floor {
    store: String,
    concurrency: u32,
    turns_per_s: f64,
}

/// Measures and prints.
pub async fn run(arguments: &FloorArguments) -> anyhow::Result<()> {
    let StoreUrl::Embedded(directory) = &arguments.store else {
        anyhow::bail!("the floor is that of a disk; use --store segno:DIR");
    };
    let directory = directory.join(DIRECTORY);
    let log = Arc::new(SyncedLog::open(&directory)?);
    let milliseconds = duration_ms(Duration::from_secs(arguments.seconds));
    let until_ms = SystemClock.now_ms() + milliseconds;
    let mut writers = JoinSet::new();
    for _ in 0..arguments.concurrency {
        writers.spawn(append_until(Arc::clone(&log), until_ms));
    }
    let mut turns = 0;
    while let Some(appended) = writers.join_next().await {
        turns += appended??;
    }
    drop(log);
    std::fs::remove_dir_all(directory)?;
    let floor = Floor {
        store: arguments.store.to_string(),
        concurrency: arguments.concurrency,
        turns_per_s: (turns as f64 / arguments.seconds as f64).round(),
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&floor)?);
    } else {
        println!("floor: {} clients, {} turns/s", floor.concurrency, floor.turns_per_s);
    }
    Ok(())
}

/// Appends turns until the time; returns how many.
async fn append_until(log: Arc<SyncedLog>, until_ms: u64) -> anyhow::Result<u64> {
    let turn = vec![0xa5; TURN_BYTES];
    let mut turns = 0;
    while SystemClock.now_ms() < until_ms {
        anyhow::ensure!(log.append(&turn).await, "the disk refused");
        turns += 1;
    }
    Ok(turns)
}
