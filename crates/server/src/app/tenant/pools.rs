//! Pools of a tenant, and how their calls are handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use segno::clock::{self, duration_ms};
use segno::work::{FetchWork, LockLife, TagFilter};
use segno_actions::Listed;
use segno_actions::functions::{CallName, FunctionError, Invocation, PoolName, pool_tag};
use segno_actions::pools::{FoundPool, Headroom, PoolCall, PoolOrigin, PoolState, Transport};
use segno_api::pool::{self as wire, Pool};
use segno_api::work::WorkItem;
use segno_api::worker::Worker;

use super::Tenant;
use crate::access::timestamp;
use crate::listen::until_stopped;
use crate::problem::Refusal;
use crate::work::{Asked, Untold, fetch};

/// How often a fetch looks at a pool that it waits for. It is woken when the pool is resumed; this is the safety net.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What a worker of a pool asks for.
pub struct PoolFetch {
    /// The pool.
    pub pool: PoolName,
    /// Functions that the worker has.
    pub functions: Vec<CallName>,
    /// At most this many calls.
    pub max_items: usize,
    /// For how long each is leased.
    pub lease: Duration,
    /// How long to wait for one.
    pub wait: Duration,
}

impl Tenant {
    /// Pools after a name, by name, with what their workers do.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pools(
        &self,
        workers: &BTreeMap<String, Vec<Worker>>,
        after: Option<&PoolName>,
        limit: usize,
    ) -> Result<Vec<Listed<Pool>>, Refusal> {
        let resources = self.resources();
        let found = resources.pools.list(&self.owner(), after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        let mut pools = Vec::with_capacity(found.len());
        for row in found {
            pools.push(match row {
                Listed::Unreadable(row) => Listed::Unreadable(row),
                Listed::Readable(found) => {
                    let state = self.shown_state(&found.name).await?;
                    let of_pool = workers.get(found.name.as_str()).map_or(&[][..], Vec::as_slice);
                    Listed::Readable(shown(&found, state, of_pool, self.app.clock.now_ms()))
                }
            });
        }
        Ok(pools)
    }

    /// One pool, with its workers by name.
    ///
    /// # Errors
    /// `unknown-pool` when there is none.
    pub async fn pool(&self, name: &PoolName) -> Result<(Pool, Vec<Worker>), Refusal> {
        let state = self.shown_state(name).await?;
        self.details(name, state).await
    }

    /// The state of a pool, or why it cannot be read: all else of the pool is shown without it.
    async fn shown_state(&self, name: &PoolName) -> Result<ShownState, Refusal> {
        match self.pool_state(name).await {
            Ok(state) => Ok(Ok(state)),
            Err(refusal) => match refusal.damage() {
                Some(damage) => Ok(Err(format!("whether it is paused or rests cannot be read: {damage}"))),
                None => Err(refusal),
            },
        }
    }

    async fn details(&self, name: &PoolName, state: ShownState) -> Result<(Pool, Vec<Worker>), Refusal> {
        let found = self.resources().pools.find(&self.owner(), name).await;
        let found = found.map_err(|error| self.refused(error))?;
        let workers = self.workers_by_pool().await?.remove(name.as_str()).unwrap_or_default();
        Ok((shown(&found, state, &workers, self.app.clock.now_ms()), workers))
    }

    /// Pauses a pool.
    ///
    /// # Errors
    /// `unknown-pool`, `invalid-pool`.
    pub async fn pause_pool(&self, name: &PoolName, reason: Option<String>) -> Result<Pool, Refusal> {
        let paused = self.resources().pools.pause(&self.owner(), name, reason).await;
        let state = paused.map_err(|error| self.refused(error))?;
        Ok(self.details(name, Ok(state)).await?.0)
    }

    /// Resumes a pool.
    ///
    /// # Errors
    /// `unknown-pool`.
    pub async fn resume_pool(&self, name: &PoolName) -> Result<Pool, Refusal> {
        let resumed = self.resources().pools.resume(&self.owner(), name).await;
        let state = resumed.map_err(|error| self.refused(error))?;
        Ok(self.details(name, Ok(state)).await?.0)
    }

    /// Forgets an announced pool.
    ///
    /// # Errors
    /// `unknown-pool`, `invalid-pool` for one of the settings.
    pub async fn forget_pool(&self, name: &PoolName) -> Result<(), Refusal> {
        let forgotten = self.resources().pools.forget(&self.owner(), name).await;
        forgotten.map_err(|error| self.refused(error))
    }

    /// A call through a pool that is ready to be made.
    ///
    /// # Errors
    /// Those of the pool and of the catalogue.
    pub async fn prepare_pool_call(&self, call: PoolCall) -> Result<Invocation, FunctionError> {
        let resources = self.resources();
        resources.pools.prepare(&resources.functions, &self.owner(), call).await
    }

    /// Leases calls of a pool for a worker, or waits for them. Nothing is handed out while the pool is paused or rests.
    ///
    /// # Errors
    /// `unknown-pool` when the worker names no function of a pool that nothing has declared; those of the engine.
    pub async fn fetch_pool_work(&self, worker: &str, asked: PoolFetch) -> Result<Vec<WorkItem>, Refusal> {
        let (owner, pools) = (self.owner(), &self.resources().pools);
        let announced = pools.announce(&owner, &asked.pool, worker, &asked.functions).await;
        announced.map_err(|error| self.refused(error))?;
        let functions: Vec<String> = asked.functions.iter().map(ToString::to_string).collect();
        let (pool, untagged) = (Some(asked.pool.as_str()), false);
        let noted = Asked { functions: &functions, tags: &[], untagged, pool };
        self.resources().presence.asks(&self.scope, worker, noted);
        let until_ms = self.app.clock.now_ms().saturating_add(duration_ms(asked.wait));
        loop {
            let room = pools.headroom(&owner, &asked.pool).await.map_err(|error| self.refused(error))?;
            let now_ms = self.app.clock.now_ms();
            if room.calls == 0 {
                if now_ms >= until_ms || self.wait_for_room(&asked.pool, &room, until_ms).await?.is_none() {
                    return Ok(Vec::new());
                }
                continue;
            }
            let request = FetchWork {
                tags: TagFilter::tags([pool_tag(&owner, &asked.pool)]),
                max_items: asked.max_items.min(room.calls),
                lease: asked.lease,
                wait: Duration::from_millis(until_ms.saturating_sub(now_ms)),
                life: LockLife::Durable,
            };
            let calls = (&self.resources().work, &self.resources().functions);
            let fetched = fetch(calls, &self.app.clock, &self.app.stopping, request).await;
            let fetched = fetched.map_err(|error| self.refused(error))?;
            if fetched.items().is_empty() {
                return Ok(Vec::new());
            }
            let admitted = self.admitted(&asked.pool, fetched).await?;
            if !admitted.items().is_empty() {
                return Ok(self.hand_out_all(worker, Some(&asked.pool), admitted).await);
            }
            if self.app.clock.now_ms() >= until_ms {
                return Ok(Vec::new());
            }
        }
    }

    /// Waits until a pool may have room, but not beyond a time; `None` when the server stops.
    async fn wait_for_room(
        &self,
        pool: &PoolName,
        room: &Headroom,
        until_ms: u64,
    ) -> Result<Option<()>, Refusal> {
        let rest = room.rest.map_or(LOOK_EVERY, |rest| rest.min(LOOK_EVERY));
        if !room.is_closed {
            return Ok(self.sleep(rest, until_ms).await);
        }
        let left = Duration::from_millis(until_ms.saturating_sub(self.app.clock.now_ms()));
        let owner = self.owner();
        let resumed = self.resources().pools.wait_for_resume(&owner, pool, rest.min(left));
        let waited = until_stopped(&self.app.stopping, resumed).await;
        waited.transpose().map_err(|error| self.refused(error))
    }

    /// Those of the fetched calls that may be handed out now. The others are released, which counts as nothing.
    async fn admitted(&self, pool: &PoolName, mut fetched: Untold) -> Result<Untold, Refusal> {
        let admission = self.resources().pools.admit(&self.owner(), pool, fetched.items().len()).await;
        let admission = admission.map_err(|error| self.refused(error))?;
        let refused = fetched.split_off(admission.calls);
        if !refused.items().is_empty() {
            refused.release(admission.delay).await;
        }
        Ok(fetched)
    }

    /// Waits, but not beyond a time; `None` when the server stops.
    pub(super) async fn sleep(&self, rest: Duration, until_ms: u64) -> Option<()> {
        let left = Duration::from_millis(until_ms.saturating_sub(self.app.clock.now_ms()));
        until_stopped(&self.app.stopping, clock::sleep(&*self.app.clock, rest.min(left))).await
    }

    pub(super) async fn pool_state(&self, name: &PoolName) -> Result<PoolState, Refusal> {
        self.resources().pools.state(&self.owner(), name).await.map_err(|error| self.refused(error))
    }

    /// Workers that were heard of lately, by the pools that they fetch for or hold calls of.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn workers_by_pool(&self) -> Result<BTreeMap<String, Vec<Worker>>, Refusal> {
        Ok(self.resources().presence.by_pool(&self.scope).await?)
    }
}

/// The state of a pool, or why it cannot be read.
type ShownState = Result<PoolState, String>;

/// How many workers these are: one that has talked to several nodes, or to one that has died since, is listed for
/// each of them.
pub(super) fn names(workers: &[Worker]) -> usize {
    workers.iter().map(|worker| worker.worker.as_str()).collect::<BTreeSet<_>>().len()
}

/// A pool as it goes over the wire.
fn shown(found: &FoundPool, state: ShownState, workers: &[Worker], now_ms: u64) -> Pool {
    let pool = &found.pool;
    let (state, unreadable) = match state {
        Ok(state) => (state, None),
        Err(reason) => (PoolState::default(), Some(reason)),
    };
    Pool {
        name: found.name.to_string(),
        origin: match found.origin {
            PoolOrigin::Configured => wire::PoolOrigin::Settings,
            PoolOrigin::Announced => wire::PoolOrigin::Announced,
        },
        transport: match pool.transport {
            Transport::Queue => wire::PoolTransport::Queue,
            Transport::Local => wire::PoolTransport::Local,
            Transport::Bus => wire::PoolTransport::Bus,
        },
        functions: pool.functions.entries(),
        calls_per_second: pool.calls_per_second,
        timeout: pool.timeout.map(|timeout| timeout.to_string()),
        worker_count: names(workers) as u64,
        in_flight: workers.iter().map(|worker| worker.in_flight).sum(),
        last_seen_at: workers.iter().map(|worker| worker.last_seen_at).max(),
        paused: state
            .paused
            .as_ref()
            .map(|pause| wire::PoolPause { at: pause.at, reason: pause.reason.clone() }),
        throttled_until: state.throttled_until_ms.filter(|until_ms| *until_ms > now_ms).map(timestamp),
        unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_several_nodes_know_is_one_worker() {
        let worker = |name: &str, node: &str| Worker {
            worker: name.to_owned(),
            functions: Vec::new(),
            tags: Vec::new(),
            pools: vec!["Edge".to_owned()],
            in_flight: 1,
            last_seen_at: timestamp(0),
            node: node.to_owned(),
        };
        let known = [worker("w-1", "one"), worker("w-1", "two"), worker("w-2", "two")];
        assert_eq!(names(&known), 2);
        assert_eq!(names(&[]), 0);
    }
}
