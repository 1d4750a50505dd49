//! What can happen to a database, its connections and its nodes, while they work: nothing is lost, nothing is committed
//! twice, late writers are refused, and everything ends.
//!
//! * `cluster`: a private server that can be crashed. `proxy`: connections that are cut between statement and answer.
//! * `node`: a process that runs orchestrations. `storm`: everything at once.
//! * `failover`: the primary is lost and its synchronous standby takes over.
//!
//! `SEGNO_CHAOS_ROUNDS=100 scripts/with-postgres.sh cargo nextest run -p segno-postgres --test chaos` takes longer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/cluster.rs"]
mod cluster;
mod failover;
mod node;
mod proxy;
mod storm;

use std::time::Duration;

/// How many rounds to run: the number in the environment variable, or this many.
fn rounds(normally: u64) -> u64 {
    std::env::var("SEGNO_CHAOS_ROUNDS").ok().and_then(|value| value.parse().ok()).unwrap_or(normally)
}

/// Real time: chaos takes place in the real world.
async fn pause(duration: Duration) {
    segno::clock::sleep(&segno::clock::SystemClock, duration).await;
}
