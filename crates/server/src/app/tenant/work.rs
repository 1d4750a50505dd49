//! Work of a tenant, and the workers that take it. A lease is text: one of another tenant is none.

use std::time::Duration;

use jiff::Timestamp;
use segno::work::{FetchWork, Heartbeat, LeasedActivity};
use segno::{Failure, Payload};
use segno_actions::Listed;
use segno_actions::functions::{Call, FunctionName, PoolName, Tag, remote_tag};
use segno_actions::pools::THROTTLED;
use segno_api::work::{HeartbeatAction, HeartbeatAnswer, WorkItem};
use segno_api::worker::Worker;

use super::Tenant;
use crate::access::timestamp;
use crate::problem::Refusal;
use crate::work::{Asked, HeldLease, Untold, call_of, fetch, item, no_call};

/// Inputs of one answer have so many bytes in all, unless the first alone has more. Further calls are given back.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// For so long a call is held while it is noted that its pool is throttled.
const THROTTLING_LEASE: Duration = Duration::from_secs(60);

/// How many calls of a fetch fit into one answer; the first always does.
fn fitting(fetched: &[LeasedActivity]) -> usize {
    let mut bytes = 0;
    let fits = |leased: &&LeasedActivity| {
        bytes += leased.activity.input.as_str().len();
        bytes <= MAX_ANSWER_BYTES
    };
    fetched.iter().take_while(fits).count().max(1)
}

impl Tenant {
    /// Leases calls for a worker, or waits for them.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn fetch_work(&self, worker: &str, request: FetchWork) -> Result<Vec<WorkItem>, Refusal> {
        let resources = self.resources();
        let calls = (&resources.work, &resources.functions);
        let fetched = fetch(calls, &self.app.clock, &self.app.stopping, request).await;
        let fetched = fetched.map_err(|error| self.refused(error))?;
        Ok(self.hand_out_all(worker, None, fetched).await)
    }

    /// Calls for the worker to see. They are released if the worker goes away before.
    pub(super) async fn hand_out_all(
        &self,
        worker: &str,
        pool: Option<&PoolName>,
        mut fetched: Untold,
    ) -> Vec<WorkItem> {
        // One of the next fetches gets the others.
        drop(fetched.split_off(fitting(fetched.items())));
        let mut items = Vec::with_capacity(fetched.items().len());
        for leased in fetched.items() {
            items.extend(self.hand_out(worker, pool, leased).await);
        }
        fetched.keep();
        items
    }

    /// A call for the worker to see. One that cannot be read, is not this tenant's, or was begun before and is not to be
    /// begun again, fails: trying again would not help.
    async fn hand_out(
        &self,
        worker: &str,
        pool: Option<&PoolName>,
        leased: &LeasedActivity,
    ) -> Option<WorkItem> {
        let shown = match self.shown_call(worker, pool, leased) {
            Ok((call, item)) => {
                self.resources().functions.begin_leased(&call, &leased.lease).await.map(|()| item)
            }
            Err(failure) => Err(failure),
        };
        match shown {
            Ok(item) => {
                self.resources().presence.holds(
                    &self.scope,
                    worker,
                    pool.map(PoolName::as_str),
                    &leased.lease,
                );
                Some(item)
            }
            Err(failure) => {
                if let Err(error) = self.resources().work.fail(&leased.lease, failure).await {
                    tracing::warn!(%error, "a call that cannot be handed out could not be given up; it will be delivered again");
                }
                None
            }
        }
    }

    fn shown_call(
        &self,
        worker: &str,
        pool: Option<&PoolName>,
        leased: &LeasedActivity,
    ) -> Result<(Call, WorkItem), Failure> {
        let (owner, mut call) = (self.owner(), call_of(leased)?);
        if call.scope() != owner {
            return Err(no_call("it was queued for workers of another namespace and tenant"));
        }
        self.resources().functions.hand_out(&mut call)?;
        let held = HeldLease::new(&owner, Some(worker), leased.lease.clone()).of_pool(pool);
        let item = item(leased, &call, self.resources().seal.seal(&held)).map_err(no_call)?;
        Ok((call, item))
    }

    /// The tag under which calls of a function wait for workers of this tenant.
    pub fn routing_tag(&self, function: &FunctionName, tag: Option<&Tag>) -> String {
        remote_tag(&self.owner(), &function.clone().into(), tag)
    }

    /// Notes that a worker asks for work.
    pub fn note_worker(&self, worker: &str, asked: Asked<'_>) {
        self.resources().presence.asks(&self.scope, worker, asked);
    }

    /// Extends a lease, and says whether to go on.
    ///
    /// # Errors
    /// `lease-lost` when it does not hold.
    pub async fn heartbeat(
        &self,
        lease: &str,
        extend: Duration,
        progress: Option<Payload>,
    ) -> Result<HeartbeatAnswer, Refusal> {
        let held = self.opened(lease)?;
        match self.resources().work.heartbeat(&held.lease, extend, progress).await {
            Ok(Heartbeat::GoOn(lease)) => {
                if let Some(worker) = &held.worker {
                    let pool = held.pool.as_ref().map(PoolName::as_str);
                    self.resources().presence.holds(&self.scope, worker, pool, &lease);
                }
                let expires_at: Timestamp = timestamp(lease.expires_at_ms);
                Ok(HeartbeatAnswer {
                    action: HeartbeatAction::Continue,
                    lease: Some(self.resources().seal.seal(&held.extended(lease))),
                    lease_expires_at: Some(expires_at),
                    reason: None,
                })
            }
            Ok(Heartbeat::Stop(reason)) => {
                self.resources().presence.ended(&self.scope, &held);
                let (action, reason) = (HeartbeatAction::Cancel, Some(reason.to_string()));
                Ok(HeartbeatAnswer { action, lease: None, lease_expires_at: None, reason })
            }
            Err(error) => Err(self.lost(&held, &error)),
        }
    }

    /// Answers a call with its result.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold.
    pub async fn complete_work(&self, lease: &str, result: Payload) -> Result<(), Refusal> {
        let held = self.opened(lease)?;
        self.answered(&held, self.resources().work.complete(&held.lease, result).await)
    }

    /// Answers a call with a failure. A worker of a pool that was throttled has not failed: its call is given back, and the
    /// pool rests.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold.
    pub async fn fail_work(&self, lease: &str, failure: Failure) -> Result<(), Refusal> {
        let held = self.opened(lease)?;
        if let Some(pool) = held.pool.as_ref().filter(|_| failure.has_code(THROTTLED)) {
            // A worker that has lost the call says nothing about the pool any more.
            let renewed = self.resources().work.heartbeat(&held.lease, THROTTLING_LEASE, None).await;
            renewed.map_err(|error| self.lost(&held, &error))?;
            let retry_after = failure.retry_after_ms.map(Duration::from_millis);
            let rests = self.resources().pools.throttled(&self.owner(), pool, retry_after).await;
            rests.map_err(|error| self.refused(error))?;
            // It is the pool that waits, not the call: once the pool is resumed, the call is handed out at once.
            return self.give_back(&held, None).await;
        }
        self.answered(&held, self.resources().work.fail(&held.lease, failure).await)
    }

    /// Gives a call back.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold.
    pub async fn release_work(&self, lease: &str, delay: Option<Duration>) -> Result<(), Refusal> {
        let held = self.opened(lease)?;
        self.give_back(&held, delay).await
    }

    /// Gives a call back to be handed out again, also one that is begun once.
    async fn give_back(&self, held: &HeldLease, delay: Option<Duration>) -> Result<(), Refusal> {
        let forgotten = self.resources().functions.forget_beginning(&held.lease).await;
        forgotten.map_err(|error| self.refused(error))?;
        self.answered(held, self.resources().work.release(&held.lease, delay).await)
    }

    /// Workers after a cursor, with the cursor of each.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn workers(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Listed<Worker>)>, Refusal> {
        Ok(self.resources().presence.list(&self.scope, after, limit).await?)
    }

    pub(super) fn opened(&self, lease: &str) -> Result<HeldLease, Refusal> {
        self.resources().seal.open(&self.scope, lease)
    }

    fn answered(&self, held: &HeldLease, outcome: Result<(), segno::Error>) -> Result<(), Refusal> {
        outcome.map_err(|error| self.lost(held, &error))?;
        self.resources().presence.ended(&self.scope, held);
        Ok(())
    }

    fn lost(&self, held: &HeldLease, error: &segno::Error) -> Refusal {
        if error.code() == segno::Code::LeaseLost {
            self.resources().presence.ended(&self.scope, held);
        }
        self.refused(error)
    }
}
