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

use futures_util::future::BoxFuture;
use segno::clock::{self, Clock};
use segno::store::ErrorKind;
use segno::work::{FetchWork, LeasedActivity, LockLife, TagFilter, WorkQueue};
use segno::{Category, Failure, Payload};
use segno_actions::functions::{
    Call, Functions, PushDelivery, PushTarget, Pushed, Scope as FunctionScope, Tag, push_prefix,
    shared_push_tag,
};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::limit::Ended;
use super::places::{Admission, LowAdmission, Place, Places, Shares};
use super::seal::{HeldLease, LeaseSeal};
use super::{call_of, item};
use crate::listen::until_stopped;

/// Calls that a node sends at once.
const MAX_PUSHES: usize = 128;

/// Of these, calls of one function as long as nothing is known of its worker, so that one that is
/// slow to answer does not delay the others.
const PUSHES_OF_A_FUNCTION: usize = 16;

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

/// Statuses of a worker that is overloaded.
const OVERLOADED: [u16; 2] = [429, 503];

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

/// What a loop may fetch.
struct Admitted {
    /// At most so many calls.
    most: usize,
    /// With these tags.
    tags: TagFilter,
    /// Done when it may be others.
    changed: BoxFuture<'static, ()>,
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
            of_a_function: Some(PUSHES_OF_A_FUNCTION),
            of_a_scope: MAX_PUSHES_OF_A_TENANT,
            reserved: RESERVED_PUSHES,
        });
        // Calls that were made before each function had a tag of its own: nothing tells their
        // functions and tenants apart before they are fetched, and no more of them are made. They
        // have places of their own, of which they take all.
        let of_all = PUSHES_OF_A_FUNCTION;
        let old =
            Places::new(Shares { places: of_all, of_a_function: None, of_a_scope: of_all, reserved: 0 });
        let (of_usual, of_low, of_old) = (own.clone(), own.clone(), old.clone());
        let usual = move || -> BoxFuture<'static, Admitted> {
            let (places, prefixes) = (of_usual.clone(), prefixes.clone());
            Box::pin(async move {
                let Admission { most, left_out, changed } = places.admit().await;
                Admitted { most, tags: left_out.filter(&prefixes), changed }
            })
        };
        let low = move || -> BoxFuture<'static, Admitted> {
            let places = of_low.clone();
            Box::pin(async move {
                let LowAdmission { most, tags, changed } = places.admit_low().await;
                Admitted { most, tags: TagFilter::Tags(tags), changed }
            })
        };
        let together = move || -> BoxFuture<'static, Admitted> {
            let (places, shared) = (of_old.clone(), shared.clone());
            Box::pin(async move {
                let Admission { most, changed, .. } = places.admit().await;
                Admitted { most, tags: TagFilter::Tags(shared), changed }
            })
        };
        tokio::join!(
            self.send_all(&own, usual, &stopping),
            self.send_all(&own, low, &stopping),
            self.send_all(&old, together, &stopping)
        );
    }

    /// Sends what is admitted.
    async fn send_all(
        &self,
        places: &Places,
        admit: impl Fn() -> BoxFuture<'static, Admitted>,
        stopping: &CancellationToken,
    ) {
        let mut pushes = JoinSet::new();
        while !stopping.is_cancelled() {
            while pushes.try_join_next().is_some() {}
            let Some(Admitted { most, tags, changed }) = until_stopped(stopping, admit()).await else {
                break;
            };
            let request =
                FetchWork { tags, max_items: most, lease: LEASE, wait: FETCH_WAIT, life: LockLife::Process };
            // What was left out and has a free place again is to be fetched too.
            let changed = async {
                tokio::select! {
                    () = changed => {}
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
    async fn deliver(self, leased: LeasedActivity, place: Place) {
        let handed_out =
            call_of(&leased).and_then(|mut call| self.functions.hand_out(&mut call).map(|()| call));
        let call = match handed_out {
            Ok(call) => call,
            Err(failure) => return self.answer(&leased, Err(failure)).await,
        };
        let scope = call.scope();
        let target = match self.functions.push_target(&scope, &call.function).await {
            Ok(target) => target,
            Err(failure) => return self.answer(&leased, Err(failure)).await,
        };
        if !place.bound(target.max_in_flight()) {
            return self.give_back(&leased).await;
        }
        // Noted before the worker can have heard of it.
        if let Err(failure) = self.functions.begin_leased(&call, &leased.lease).await {
            return self.answer(&leased, Err(failure)).await;
        }
        let began_ns = self.clock.monotonic_ns();
        let pushed = self.send(&scope, &call, &target, &leased).await;
        let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(began_ns));
        place.ended(match &pushed {
            Err(failure) if is_overload(failure) => Ended::Overloaded,
            _ => Ended::Answered(took),
        });
        match pushed {
            Ok(Pushed::Done(result)) => self.answer(&leased, Ok(result)).await,
            Ok(Pushed::Accepted) => self.hand_over(&leased).await,
            Err(failure) => self.answer(&leased, Err(failure)).await,
        }
    }

    /// Gives back a call that was fetched before it was known how many its function allows at once.
    async fn give_back(&self, leased: &LeasedActivity) {
        if let Err(error) = self.queue.release(&leased.lease, None).await {
            tracing::debug!(%error, "a call that was fetched too early is sent when its lease has ended");
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
        target: &PushTarget,
        leased: &LeasedActivity,
    ) -> Result<Pushed, Failure> {
        let lease = self.seal.seal(&HeldLease::new(scope, None, leased.lease.clone()));
        let item = item(leased, call, lease)?;
        let body = serde_json::to_string(&item)?;
        let lease = &leased.lease;
        let held_for = Duration::from_millis(lease.expires_at_ms.saturating_sub(lease.fetched_at_ms));
        let delivery = PushDelivery {
            target,
            idempotency_key: &leased.activity.idempotency_key,
            body: &body,
            timeout: held_for.min(ANSWER_WITHIN),
        };
        self.functions.push(delivery).await
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

/// Whether a worker did not take a call because it is overloaded or not reachable.
fn is_overload(failure: &Failure) -> bool {
    let status = failure.details.as_ref().and_then(|details| details.decode::<BadStatus>().ok());
    match status {
        Some(BadStatus { status }) => OVERLOADED.contains(&status),
        None => matches!(failure.category, Category::Infrastructure | Category::Timeout),
    }
}

/// What the details of a failure by status have.
#[derive(Deserialize)]
struct BadStatus {
    status: u16,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_overload_is_told_by_status_and_by_silence() {
        let by_status =
            |status: u16| Failure::application("x").code("http-status").details(json!({ "status": status }));
        for (failure, expected) in [
            (by_status(429), true),
            (by_status(503), true),
            (by_status(500), false),
            (by_status(404), false),
            (Failure::new(Category::Infrastructure, "no connection"), true),
            (Failure::new(Category::Timeout, "no answer").code("http-timeout"), true),
            (Failure::application("output-not-json"), false),
        ] {
            assert_eq!(is_overload(&failure), expected, "{failure:?}");
        }
    }
}
