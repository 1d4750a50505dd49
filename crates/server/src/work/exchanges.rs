//! Exchanges of workers by number, so that a repeated request gets the answer of the first one: an
//! idempotency cache in the memory of a node.
//!
//! | a request whose number | gets |
//! |---|---|
//! | is new | an answer of its own |
//! | belongs to an exchange that is under way | the answer of that |
//! | belongs to one of the last [`KEPT_OF_A_WORKER`] answered exchanges of the worker | its answer |
//! | belongs to another request | a refusal |
//! | was evicted, or used at another node or before a restart | an answer of its own; leases decide what its answers do |
//!
//! Answers are evicted by worker, by age, and, when all of them together are too large, from the
//! tenant that has the most.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use segno::clock::{self, Clock, duration_ms};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::listen::until_stopped;
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// So many answers are kept for each worker.
const KEPT_OF_A_WORKER: usize = 16;

/// An answer is kept for so long.
const KEEP: Duration = Duration::from_secs(120);

/// All answers that are kept have so many bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What an exchange costs beside its answer, in bytes.
const OVERHEAD_BYTES: usize = 256;

/// The exchanges of the workers of a node.
pub struct Exchanges {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By prefix of their scope.
    tenants: HashMap<String, OfTenant>,
    bytes: usize,
    next_turn: u64,
}

#[derive(Default)]
struct OfTenant {
    workers: HashMap<Arc<str>, OfWorker>,
    /// Answered exchanges, the oldest first: worker, number, and when it was answered.
    oldest: BTreeMap<u64, (Arc<str>, u64, u64)>,
    bytes: usize,
}

#[derive(Default)]
struct OfWorker {
    by_number: HashMap<u64, Known>,
    /// Turns of the answered ones, the oldest first.
    answered: VecDeque<u64>,
}

/// An exchange that is under way or answered.
struct Known {
    request: u64,
    answer: Arc<OnceCell<Bytes>>,
    /// Requests that perform it or wait for its answer.
    open: usize,
    /// What its answer takes, once it is counted.
    bytes: Option<usize>,
}

/// A request for an exchange. Dropped without an answer, it leaves nothing behind.
pub struct Exchange {
    all: Arc<Exchanges>,
    prefix: String,
    worker: Arc<str>,
    number: u64,
    answer: Arc<OnceCell<Bytes>>,
}

impl Exchanges {
    /// None yet.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Exchanges { clock, hasher: RandomState::new(), kept: Mutex::default() })
    }

    /// The exchange that a request is for.
    ///
    /// # Errors
    /// `conflict` when the worker has used the number for another request.
    pub fn open(
        self: &Arc<Self>,
        scope: &Scope,
        (worker, number): (&str, u64),
        request: &impl Hash,
    ) -> Result<Exchange, Refusal> {
        let request = self.hasher.hash_one(request);
        let mut kept = self.kept();
        let of_tenant = kept.tenants.entry(scope.prefix().to_owned()).or_default();
        let worker = match of_tenant.workers.get_key_value(worker) {
            Some((known, _)) => known.clone(),
            None => Arc::from(worker),
        };
        let of_worker = of_tenant.workers.entry(worker.clone()).or_default();
        let new = || Known { request, answer: Arc::default(), open: 0, bytes: None };
        let known = of_worker.by_number.entry(number).or_insert_with(new);
        if known.request != request {
            let detail = format!(
                "worker {worker:?} has used the number {number} for another exchange; number each of its requests differently"
            );
            return Err(Refusal::new(Code::Conflict, detail));
        }
        known.open += 1;
        let answer = known.answer.clone();
        Ok(Exchange { all: self.clone(), prefix: scope.prefix().to_owned(), worker, number, answer })
    }

    /// Evicts answers that are too old, until it is time to stop.
    pub async fn keep(self: Arc<Self>, stopping: CancellationToken) {
        while until_stopped(&stopping, clock::sleep(&*self.clock, KEEP)).await.is_some() {
            self.expire();
        }
    }

    fn expire(&self) {
        let before_ms = self.clock.now_ms().saturating_sub(duration_ms(KEEP));
        let mut kept = self.kept();
        let Kept { tenants, bytes, .. } = &mut *kept;
        tenants.retain(|_, of_tenant| {
            while of_tenant.oldest.first_key_value().is_some_and(|(_, (_, _, at_ms))| *at_ms < before_ms) {
                *bytes -= of_tenant.evict_oldest();
            }
            !of_tenant.workers.is_empty()
        });
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// The answer, which is made if there is none. A failure is not kept.
    ///
    /// # Errors
    /// That of making it.
    pub async fn answer(self, make: impl Future<Output = Result<Bytes, Refusal>>) -> Result<Bytes, Refusal> {
        self.answer.get_or_try_init(|| make).await.cloned()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let now_ms = self.all.clock.now_ms();
        let mut kept = self.all.kept();
        kept.close(&self.prefix, (&self.worker, self.number), now_ms);
        kept.evict();
    }
}

impl Kept {
    /// A request for an exchange has ended: an answer is counted, and an exchange without one is
    /// forgotten.
    fn close(&mut self, prefix: &str, (worker, number): (&Arc<str>, u64), now_ms: u64) {
        let Some(of_tenant) = self.tenants.get_mut(prefix) else { return };
        let Some(of_worker) = of_tenant.workers.get_mut(worker) else { return };
        let Some(known) = of_worker.by_number.get_mut(&number) else { return };
        known.open = known.open.saturating_sub(1);
        match (known.answer.get(), known.bytes) {
            (Some(answer), None) => {
                let bytes = answer.len() + OVERHEAD_BYTES;
                known.bytes = Some(bytes);
                let turn = self.next_turn;
                self.next_turn += 1;
                of_worker.answered.push_back(turn);
                let surplus = (of_worker.answered.len() > KEPT_OF_A_WORKER).then(|| of_worker.answered[0]);
                of_tenant.oldest.insert(turn, (worker.clone(), number, now_ms));
                of_tenant.bytes += bytes;
                self.bytes += bytes;
                if let Some(turn) = surplus {
                    self.bytes -= of_tenant.evict(turn);
                }
            }
            (None, _) if known.open == 0 => {
                of_worker.by_number.remove(&number);
                if of_worker.by_number.is_empty() {
                    of_tenant.workers.remove(worker);
                }
            }
            _ => {}
        }
    }

    /// Makes room, at the cost of the tenant that has the most.
    fn evict(&mut self) {
        while self.bytes > MAX_BYTES {
            let largest = self.tenants.values_mut().max_by_key(|of_tenant| of_tenant.bytes);
            let freed = largest.map_or(0, OfTenant::evict_oldest);
            if freed == 0 {
                return;
            }
            self.bytes -= freed;
        }
    }
}

impl OfTenant {
    /// Forgets the oldest answer; how many bytes that frees.
    fn evict_oldest(&mut self) -> usize {
        let oldest = self.oldest.first_key_value().map(|(turn, _)| *turn);
        oldest.map_or(0, |turn| self.evict(turn))
    }

    fn evict(&mut self, turn: u64) -> usize {
        let Some((worker, number, _)) = self.oldest.remove(&turn) else { return 0 };
        let Some(of_worker) = self.workers.get_mut(&worker) else { return 0 };
        of_worker.answered.retain(|answered| *answered != turn);
        let freed = of_worker.by_number.remove(&number).and_then(|known| known.bytes).unwrap_or_default();
        if of_worker.by_number.is_empty() {
            self.workers.remove(&worker);
        }
        self.bytes -= freed;
        freed
    }
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;

    use super::*;

    fn scope(tenant: &str) -> Scope {
        Scope::new("shop", tenant).unwrap()
    }

    async fn made(exchange: Exchange, answer: &'static [u8]) -> Bytes {
        exchange.answer(async { Ok(Bytes::from_static(answer)) }).await.unwrap()
    }

    #[tokio::test]
    async fn a_number_has_one_answer_in_a_tenant_and_none_in_another() {
        let all = Exchanges::new(VirtualClock::new());
        let open = |tenant: &str, request: &str| all.open(&scope(tenant), ("w", 1), &request);
        assert_eq!(made(open("eu", "a").unwrap(), b"one").await, "one");
        assert_eq!(made(open("eu", "a").unwrap(), b"two").await, "one");
        assert_eq!(open("eu", "b").err().unwrap().code(), "conflict");
        assert_eq!(made(open("us", "b").unwrap(), b"three").await, "three");
    }

    #[tokio::test]
    async fn a_repeat_waits_for_the_first_and_makes_the_answer_when_that_was_dropped_or_failed() {
        let all = Exchanges::new(VirtualClock::new());
        let open = || all.open(&scope("eu"), ("w", 1), &"a").unwrap();
        let mut first = Box::pin(open().answer(std::future::pending()));
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        let mut second = Box::pin(made(open(), b"second"));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(first);
        assert_eq!(second.await, "second");

        let failing = all.open(&scope("eu"), ("w", 2), &"a").unwrap();
        let refusal = failing.answer(async { Err(Refusal::new(Code::Unavailable, "away")) }).await;
        assert_eq!(refusal.unwrap_err().code(), "unavailable");
        let other = all.open(&scope("eu"), ("w", 2), &"another request").unwrap();
        assert_eq!(made(other, b"again").await, "again");
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_by_worker_size_and_age() {
        let clock = VirtualClock::new();
        let all = Exchanges::new(clock.clone());
        for number in 0..100 {
            made(all.open(&scope("eu"), ("w", number), &number).unwrap(), b"x").await;
        }
        assert_eq!(all.kept().tenants.values().next().unwrap().oldest.len(), KEPT_OF_A_WORKER);
        assert_eq!(made(all.open(&scope("eu"), ("w", 99), &99_u64).unwrap(), b"y").await, "x");
        assert_eq!(made(all.open(&scope("eu"), ("w", 3), &"other").unwrap(), b"y").await, "y");

        let large: &'static [u8] = Box::leak(vec![0; MAX_BYTES / 4].into_boxed_slice());
        for number in 0..8 {
            made(all.open(&scope("us"), ("large", number), &number).unwrap(), large).await;
        }
        assert!(all.kept().bytes <= MAX_BYTES);
        assert_eq!(made(all.open(&scope("eu"), ("w", 99), &99_u64).unwrap(), b"y").await, "x");

        clock.advance(KEEP + Duration::from_secs(1));
        all.expire();
        let kept = all.kept();
        assert_eq!((kept.bytes, kept.tenants.len()), (0, 0));
    }
}
