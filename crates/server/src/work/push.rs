//! Sending calls to the URLs of workers, for functions with `push`.
//!
//! A node with the role `worker` takes pushed calls of all functions and tenants, oldest first, and
//! never more than it can send at once: [admission control](Places) decides before each fetch how
//! many that are, and which functions and tenants have enough. It leases a call, sends it with the lease, and
//! answers for the worker if the worker answers at once; if it says 202, the lease is the worker's,
//! and outlives this process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::ErrorKind;
use segno::work::{FetchWork, LeasedActivity, LockLife, TagFilter, WorkQueue};
use segno::{Failure, Payload};
use segno_actions::functions::{
    Call, Functions, PushDelivery, Pushed, Scope as FunctionScope, Tag, push_prefix, shared_push_tag,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::places::{LeftOut, Place, Places, Shares};
use super::seal::{HeldLease, LeaseSeal};
use super::{call_of, item};
use crate::listen::until_stopped;

/// Calls that a node sends at once.
const MAX_PUSHES: usize = 128;

/// Of these, calls of one function, so that a worker that is slow to answer does not delay the
/// others.
const MAX_PUSHES_OF_A_FUNCTION: usize = 16;

/// Of these, calls of one tenant, so that one with many slow workers does not delay the others.
const MAX_PUSHES_OF_A_TENANT: usize = 48;

/// Of these, places for tenants that have no other call under way, so that a few tenants with slow
/// workers together do not delay the others.
const RESERVED_PUSHES: usize = MAX_PUSHES / 4;

/// How long a call is leased: what a worker that says 202 has until its first heartbeat or answer.
const LEASE: Duration = Duration::from_secs(60);

/// Within this time a worker must have answered.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long one fetch waits.
const FETCH_WAIT: Duration = Duration::from_secs(30);

/// Pause before a store that did not answer is asked again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Sends calls.
#[derive(Clone)]
pub struct Pusher {
    /// Where the calls are.
    pub queue: WorkQueue,
    /// The functions, which know the URLs.
    pub functions: Functions,
    /// Makes text of leases.
    pub seal: LeaseSeal,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Also send calls with one of these tags.
    pub tags: BTreeSet<String>,
}

impl Pusher {
    /// Sends calls until it is time to stop, and then waits for those under way.
    pub async fn run(self, stopping: CancellationToken) {
        let tags: Vec<Tag> = self.tags.iter().filter_map(|tag| Tag::new(tag.as_str()).ok()).collect();
        let served = || std::iter::once(None).chain(tags.iter().map(Some));
        let prefixes: BTreeSet<String> = served().map(push_prefix).collect();
        let shared: BTreeSet<String> = served().map(shared_push_tag).collect();
        let own = Places::new(Shares {
            places: MAX_PUSHES,
            of_a_function: Some(MAX_PUSHES_OF_A_FUNCTION),
            of_a_scope: MAX_PUSHES_OF_A_TENANT,
            reserved: RESERVED_PUSHES,
        });
        // Calls that were made before each function had a tag of its own: nothing tells their
        // functions and tenants apart before they are fetched, and no more of them are made. They
        // have places of their own, of which they take all.
        let of_all = MAX_PUSHES_OF_A_FUNCTION;
        let old =
            Places::new(Shares { places: of_all, of_a_function: None, of_a_scope: of_all, reserved: 0 });
        let by_function = |left_out: LeftOut| left_out.filter(&prefixes);
        let together = |_| TagFilter::Tags(shared.clone());
        tokio::join!(self.send_all(own, by_function, &stopping), self.send_all(old, together, &stopping));
    }

    /// Sends what passes a filter, which is told what to leave out.
    async fn send_all(
        &self,
        places: Places,
        filter: impl Fn(LeftOut) -> TagFilter,
        stopping: &CancellationToken,
    ) {
        let mut pushes = JoinSet::new();
        while !stopping.is_cancelled() {
            while pushes.try_join_next().is_some() {}
            let Some(admission) = until_stopped(stopping, places.admit()).await else { break };
            let request = FetchWork {
                tags: filter(admission.left_out),
                max_items: admission.most,
                lease: LEASE,
                wait: FETCH_WAIT,
                life: LockLife::Process,
            };
            // What was left out and has a free place again is to be fetched too.
            let changed = async {
                tokio::select! {
                    () = admission.changed => {}
                    () = stopping.cancelled() => {}
                }
            };
            match self.queue.fetch_until(request, changed).await {
                Ok(fetched) => {
                    for leased in fetched {
                        let place = places.take(leased.activity.options.tag.as_deref().unwrap_or_default());
                        pushes.spawn(self.clone().deliver(leased, place));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "calls to be pushed could not be fetched; trying again");
                    until_stopped(stopping, clock::sleep(&*self.clock, STORE_PAUSE)).await;
                }
            }
        }
        while pushes.join_next().await.is_some() {}
    }

    /// Sees one call through. The place is given up when it is done.
    async fn deliver(self, leased: LeasedActivity, _place: Place) {
        let call = match call_of(&leased) {
            Ok(call) => call,
            Err(failure) => return self.answer(&leased, Err(failure)).await,
        };
        let scope = call.scope();
        // Noted before the worker can have heard of it.
        if let Err(failure) = self.functions.begin_leased(&call, &leased.lease).await {
            return self.answer(&leased, Err(failure)).await;
        }
        match self.send(&scope, &call, &leased).await {
            Ok(Pushed::Done(result)) => self.answer(&leased, Ok(result)).await,
            Ok(Pushed::Accepted) => self.hand_over(&leased).await,
            Err(failure) => self.answer(&leased, Err(failure)).await,
        }
    }

    /// Makes the lease the worker's: from now on it outlives this process.
    async fn hand_over(&self, leased: &LeasedActivity) {
        let keep = || self.queue.keep(&leased.lease, LEASE);
        if let Err(error) = self.while_leased(leased, keep).await {
            // The worker may have answered already. Else the call is redelivered when its lease has
            // ended.
            tracing::debug!(%error, function = leased.activity.name, "a lease that was handed over is not durable");
        }
    }

    async fn send(
        &self,
        scope: &FunctionScope,
        call: &Call,
        leased: &LeasedActivity,
    ) -> Result<Pushed, Failure> {
        let lease = self.seal.seal(&HeldLease::new(scope, None, leased.lease.clone()));
        let item = item(leased, call, lease)?;
        let body = serde_json::to_string(&item)?;
        let lease = &leased.lease;
        let held_for = Duration::from_millis(lease.expires_at_ms.saturating_sub(lease.fetched_at_ms));
        let delivery = PushDelivery {
            function: &call.function,
            idempotency_key: &leased.activity.idempotency_key,
            body: &body,
            timeout: held_for.min(ANSWER_WITHIN),
        };
        self.functions.push(scope, delivery).await
    }

    /// Answers for the worker.
    async fn answer(&self, leased: &LeasedActivity, result: Result<Payload, Failure>) {
        let answer = || async {
            match result.clone() {
                Ok(result) => self.queue.complete(&leased.lease, result).await,
                Err(failure) => self.queue.fail(&leased.lease, failure).await,
            }
        };
        if let Err(error) = self.while_leased(leased, answer).await {
            tracing::warn!(%error, function = leased.activity.name, "the answer to a call that was pushed is lost");
        }
    }

    /// Repeats an operation while the store is away, as long as the lease lasts.
    async fn while_leased<F: Future<Output = Result<(), segno::Error>>>(
        &self,
        leased: &LeasedActivity,
        operation: impl Fn() -> F,
    ) -> Result<(), segno::Error> {
        loop {
            let Err(error) = operation().await else { return Ok(()) };
            let may_try_again =
                error.kind() == ErrorKind::Unavailable && self.clock.now_ms() < leased.lease.expires_at_ms;
            if !may_try_again {
                return Err(error);
            }
            clock::sleep(&*self.clock, STORE_PAUSE).await;
        }
    }
}
