//! Sending calls to the URLs of workers, for functions with `push`.
//!
//! A node with the role `worker` takes pushed calls of all tenants under one routing tag. It leases a call, sends it with
//! the lease, and answers for the worker if the worker answers at once; if it says 202, the lease is the worker's.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::limits::MAX_FETCHED_WORK;
use segno::store::ErrorKind;
use segno::work::{FetchWork, LeasedActivity, WorkQueue};
use segno::{Failure, Payload};
use segno_actions::functions::{
    Call, Functions, PushDelivery, Pushed, Scope as FunctionScope, Tag, push_tag,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::seal::{HeldLease, LeaseSeal};
use super::{call_of, fetch, item};
use crate::listen::until_stopped;

/// Calls that a node sends at once.
const MAX_PUSHES: usize = 64;

/// Of these, calls of one function, so that a worker that is slow to answer does not hold up the others.
const MAX_PUSHES_OF_A_FUNCTION: usize = 16;

/// A call of a function that has enough under way waits for so long.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(1);

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
        let tags = self.routing_tags();
        let places = Arc::new(Semaphore::new(MAX_PUSHES));
        let under_way = UnderWay::default();
        let mut pushes = JoinSet::new();
        while !stopping.is_cancelled() {
            let Ok(first) = places.clone().acquire_owned().await else { return };
            while pushes.try_join_next().is_some() {}
            let max_items = (places.available_permits() + 1).min(MAX_FETCHED_WORK);
            let request = FetchWork { tags: tags.clone(), max_items, lease: LEASE, wait: FETCH_WAIT };
            let fetched = match fetch(&self.queue, &self.clock, &stopping, request).await {
                Ok(fetched) => fetched,
                Err(error) => {
                    tracing::warn!(%error, "calls to be pushed could not be fetched; trying again");
                    until_stopped(&stopping, clock::sleep(&*self.clock, STORE_PAUSE)).await;
                    continue;
                }
            };
            let mut place = Some(first);
            for leased in fetched {
                let place = place.take().or_else(|| places.clone().try_acquire_owned().ok());
                pushes.spawn(self.clone().deliver(leased, under_way.clone(), place));
            }
        }
        while pushes.join_next().await.is_some() {}
    }

    fn routing_tags(&self) -> BTreeSet<String> {
        let tags = self.tags.iter().filter_map(|tag| Tag::new(tag.as_str()).ok());
        std::iter::once(push_tag(None)).chain(tags.map(|tag| push_tag(Some(&tag)))).collect()
    }

    /// Sees one call through. The place is given up when it is done.
    async fn deliver(
        self,
        leased: LeasedActivity,
        under_way: UnderWay,
        _place: Option<OwnedSemaphorePermit>,
    ) {
        let call = match call_of(&leased) {
            Ok(call) => call,
            Err(failure) => return self.answer(&leased, Err(failure)).await,
        };
        let scope = call.scope();
        let Some(_turn) = under_way.begin(format!("{}{}", scope.id_prefix(), call.function)) else {
            if let Err(error) = self.queue.release(&leased.lease, Some(WAIT_FOR_OTHERS)).await {
                tracing::debug!(%error, "a call that has to wait comes again when its lease ends");
            }
            return;
        };
        match self.send(&scope, &call, &leased).await {
            Ok(Pushed::Done(result)) => self.answer(&leased, Ok(result)).await,
            Ok(Pushed::Accepted) => {}
            Err(failure) => self.answer(&leased, Err(failure)).await,
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

    /// Answers for the worker. While the store is away the answer is kept, as long as the lease lasts.
    async fn answer(&self, leased: &LeasedActivity, result: Result<Payload, Failure>) {
        loop {
            let answered = match result.clone() {
                Ok(result) => self.queue.complete(&leased.lease, result).await,
                Err(failure) => self.queue.fail(&leased.lease, failure).await,
            };
            let Err(error) = answered else { return };
            let may_try_again =
                error.kind() == ErrorKind::Unavailable && self.clock.now_ms() < leased.lease.expires_at_ms;
            if !may_try_again {
                tracing::warn!(%error, function = leased.activity.name, "the answer to a call that was pushed is lost");
                return;
            }
            clock::sleep(&*self.clock, STORE_PAUSE).await;
        }
    }
}

/// How many calls of each function are under way.
#[derive(Clone, Default)]
struct UnderWay(Arc<Mutex<HashMap<String, usize>>>);

impl UnderWay {
    /// A turn for one call of a function, unless it has enough. It ends when it is dropped.
    fn begin(&self, function: String) -> Option<Turn> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(function.clone()).or_default();
        if *count >= MAX_PUSHES_OF_A_FUNCTION {
            return None;
        }
        *count += 1;
        Some(Turn { under_way: self.clone(), function })
    }
}

struct Turn {
    under_way: UnderWay,
    function: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.under_way.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.function) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.function);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_does_not_take_all_places() {
        let under_way = UnderWay::default();
        let turns: Vec<_> =
            (0..MAX_PUSHES_OF_A_FUNCTION).map(|_| under_way.begin("a".to_owned()).unwrap()).collect();
        assert!(under_way.begin("a".to_owned()).is_none());
        assert!(under_way.begin("b".to_owned()).is_some());
        drop(turns);
        assert!(under_way.begin("a".to_owned()).is_some());
        assert!(under_way.0.lock().unwrap().is_empty());
    }
}
