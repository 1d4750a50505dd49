//! The edge between the bus and batches: messages of two subscriptions become inbox records, rows
//! of the outbox become messages.
//!
//! | file | what |
//! |---|---|
//! | `read.rs` | what a message is, or why it becomes a dead letter; pure |
//! | `receive.rs` | received, stored, completed |
//! | `send.rs` | rows of the outbox: claimed, sent, marked |
//! | `watch.rs` | how long messages wait, for the metric; expired ones become dead letters |
//! | `subscriptions.rs` | what the built-in bus needs before it is used |
//!
//! **Invariants.** A message is completed only after its inbox record is durable. What cannot be
//! taken becomes a dead letter with a reason and is never deleted. A store that is away delays
//! messages and makes no dead letters. One edge serves one namespace and tenant.

mod read;
mod receive;
mod send;
mod subscriptions;
mod watch;

pub use subscriptions::prepare;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use segno::clock::{self, Clock};
use segno::store::Store;
use segno_actions::functions::{PoolName, Scope};
use segno_actions::pools::Pools;

use crate::bus::Bus;

/// First and longest pause after an error of the bus or the store.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What an edge connects.
pub struct BusEdge {
    /// The store with batches and outbox.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// Pools, for pauses and rates of those that are reached over the bus.
    pub pools: Pools,
    /// Whose batches the bus serves.
    pub scope: Scope,
}

impl BusEdge {
    /// Receives and sends until told to stop. Stopping at any moment is safe: what was not
    /// completed is delivered again, and what was not marked is sent again under the same id.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let pools: Vec<PoolName> = self.pools.over_bus().cloned().collect();
        let jobs = join_all(pools.iter().map(|pool| self.send_jobs(pool)));
        let events =
            async { tokio::join!(self.receive_events(), self.receive_results(), self.send_events()) };
        let work = async { tokio::join!(events, jobs, self.watch(&pools)) };
        tokio::select! {
            biased;
            () = stop => {}
            _ = work => {}
        }
    }

    async fn sleep(&self, pause: Duration) {
        clock::sleep(&*self.clock, pause).await;
    }
}

/// Pauses after errors, each twice as long as the one before.
struct Backoff {
    next: Duration,
}

impl Backoff {
    fn new() -> Self {
        Backoff { next: FIRST_PAUSE }
    }

    fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    fn reset(&mut self) {
        self.next = FIRST_PAUSE;
    }
}
