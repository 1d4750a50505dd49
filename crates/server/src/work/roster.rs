//! The workers that a node remembers, in memory. Bounded in number and in bytes, for the node and for
//! each scope: a scope may take as much as is left free (a dynamic threshold), so one tenant with very
//! many workers neither fills the memory of the node nor keeps the workers of others from being listed.
//! What does not fit is served all the same; it is not listed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::presence::Asked;

/// Most workers that a node remembers. One scope alone gets half of it.
const MAX_WORKERS: usize = 20_000;

/// Most bytes that a node remembers of workers. One scope alone gets half of it.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// What a worker counts for beside its texts, in bytes.
const WORKER_BYTES: usize = 256;

/// What a lease counts for, in bytes: in memory, and about as much where it is written down.
const LEASE_BYTES: usize = 48;

/// What a text counts for beside its bytes.
const TEXT_BYTES: usize = 24;

/// A worker as a node knows it.
#[derive(Default)]
pub(super) struct Known {
    /// Functions that it asked for by themselves. Those of a pool are kept with the pool.
    pub(super) functions: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) takes_untagged: bool,
    /// When it last asked for functions by themselves.
    functions_at_ms: u64,
    /// The pools that it asked for, and when it last did. One worker may serve several at once.
    pub(super) pools: BTreeMap<String, u64>,
    pub(super) seen_at_ms: u64,
    /// By the number of the lock.
    pub(super) leases: HashMap<u64, KnownLease>,
    /// Names of the pools whose calls it holds, each once.
    lease_pools: BTreeSet<Arc<str>>,
    pub(super) is_written: bool,
}

/// A lease that a worker holds.
#[derive(Clone)]
pub(super) struct KnownLease {
    /// The pool of the call, which need not be the one that the worker fetched for last.
    pub(super) pool: Option<Arc<str>>,
    pub(super) ends_at_ms: u64,
    /// When the worker last fetched or extended it.
    pub(super) heard_at_ms: u64,
}

impl Known {
    /// Calls of each pool that it holds at a time.
    pub(super) fn in_flight_by_pool(&self, now_ms: u64) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        let held = self.leases.values().filter(|lease| lease.ends_at_ms > now_ms);
        for pool in held.filter_map(|lease| lease.pool.as_deref()) {
            match counts.get_mut(pool) {
                Some(count) => *count += 1,
                None => drop(counts.insert(pool.to_owned(), 1)),
            }
        }
        counts
    }

    /// Forgets what it has not asked for since a time.
    fn forget_asked(&mut self, before_ms: u64) {
        self.pools.retain(|_, asked_at_ms| *asked_at_ms >= before_ms);
        if self.functions_at_ms < before_ms {
            (self.functions, self.tags, self.takes_untagged) = (Vec::new(), Vec::new(), false);
        }
    }

    /// Notes a pool; returns whether it fits.
    fn asks_for_pool(&mut self, pool: &str, now_ms: u64, room: &dyn Fn(usize) -> bool) -> bool {
        let does_fit = self.pools.contains_key(pool) || room(text_bytes(pool));
        if does_fit {
            self.pools.insert(pool.to_owned(), now_ms);
        }
        does_fit
    }

    /// Notes functions and tags, all or none: half of them would tell of a worker that there is not. Returns whether they
    /// fit.
    fn asks_for_functions(&mut self, asked: Asked<'_>, now_ms: u64, room: &dyn Fn(usize) -> bool) -> bool {
        let bytes = |functions: &[String], tags: &[String]| {
            functions.iter().chain(tags).map(|text| text_bytes(text)).sum::<usize>()
        };
        let (wanted, had) = (bytes(asked.functions, asked.tags), bytes(&self.functions, &self.tags));
        let does_fit = wanted <= had || room(wanted - had);
        self.functions = if does_fit { asked.functions.to_vec() } else { Vec::new() };
        self.tags = if does_fit { asked.tags.to_vec() } else { Vec::new() };
        (self.takes_untagged, self.functions_at_ms) = (asked.untagged, now_ms);
        does_fit
    }

    fn pool_name(&mut self, pool: &str) -> Arc<str> {
        if let Some(known) = self.lease_pools.get(pool) {
            return Arc::clone(known);
        }
        let name: Arc<str> = pool.into();
        self.lease_pools.insert(Arc::clone(&name));
        name
    }

    fn bytes(&self, worker: &str) -> usize {
        let texts = self.functions.iter().chain(&self.tags).chain(self.pools.keys());
        WORKER_BYTES
            + worker.len()
            + self.leases.len() * LEASE_BYTES
            + self.lease_pools.iter().map(|pool| text_bytes(pool)).sum::<usize>()
            + texts.map(|text| text_bytes(text)).sum::<usize>()
    }
}

fn text_bytes(text: &str) -> usize {
    TEXT_BYTES + text.len()
}

/// The workers of one scope, by name.
#[derive(Default)]
struct ScopeRoster {
    workers: HashMap<String, Known>,
    bytes: usize,
    /// Until then something of a worker may be missing, because it did not fit.
    incomplete_until_ms: u64,
}

/// The workers of a node, by what all ids of their scope begin with.
pub(super) struct Roster {
    scopes: HashMap<String, ScopeRoster>,
    workers: usize,
    bytes: usize,
    max_workers: usize,
    max_bytes: usize,
    remember_ms: u64,
}

/// Where a worker is, and when it was heard of.
#[derive(Clone, Copy)]
pub(super) struct Heard<'a> {
    /// What all ids of its scope begin with.
    pub(super) prefix: &'a str,
    pub(super) worker: &'a str,
    pub(super) now_ms: u64,
}

/// Whether a scope that has so much of what is bounded may take more. What it takes is free no more.
fn fits(has: usize, more: usize, all: usize, most: usize) -> bool {
    let free = most.saturating_sub(all).saturating_sub(more);
    has.saturating_add(more) <= free
}

impl Roster {
    /// Nobody yet. What was left out for want of room is missing for so long.
    pub(super) fn new(remember_ms: u64) -> Self {
        Roster {
            scopes: HashMap::new(),
            workers: 0,
            bytes: 0,
            max_workers: MAX_WORKERS,
            max_bytes: MAX_BYTES,
            remember_ms,
        }
    }

    /// A worker asks for work.
    pub(super) fn asks(&mut self, heard: Heard<'_>, asked: Asked<'_>) {
        let forget_before_ms = heard.now_ms.saturating_sub(self.remember_ms);
        self.change(heard, |known, room| {
            known.forget_asked(forget_before_ms);
            match asked.pool {
                Some(pool) => known.asks_for_pool(pool, heard.now_ms, room),
                None => known.asks_for_functions(asked, heard.now_ms, room),
            }
        });
    }

    /// A worker holds a lease, or holds it for longer.
    pub(super) fn holds(&mut self, heard: Heard<'_>, pool: Option<&str>, lock_token: u64, ends_at_ms: u64) {
        self.change(heard, |known, room| {
            let pool_bytes = pool.map_or(0, text_bytes);
            let does_fit = known.leases.contains_key(&lock_token) || room(LEASE_BYTES + pool_bytes);
            if does_fit {
                let pool = pool.map(|pool| known.pool_name(pool));
                known.leases.insert(lock_token, KnownLease { pool, ends_at_ms, heard_at_ms: heard.now_ms });
            }
            does_fit
        });
    }

    /// A worker has answered, or has lost its lease.
    pub(super) fn ended(&mut self, heard: Heard<'_>, lock_token: u64) {
        self.change(heard, |known, _| {
            known.leases.remove(&lock_token);
            true
        });
    }

    /// Changes what is known of a worker. The change is told whether so many bytes more fit, and returns whether all of it
    /// did.
    fn change(&mut self, heard: Heard<'_>, change: impl FnOnce(&mut Known, &dyn Fn(usize) -> bool) -> bool) {
        let Heard { prefix, worker, now_ms } = heard;
        let is_known = self.scopes.get(prefix).is_some_and(|scope| scope.workers.contains_key(worker));
        let has_room = is_known || self.has_room(prefix, worker);
        let incomplete_until_ms = now_ms.saturating_add(self.remember_ms);
        if !has_room {
            if let Some(scope) = self.scopes.get_mut(prefix) {
                scope.incomplete_until_ms = incomplete_until_ms;
            }
            return;
        }
        let scope = self.scopes.entry(prefix.to_owned()).or_default();
        let known = scope.workers.entry(worker.to_owned()).or_default();
        let had = if is_known { known.bytes(worker) } else { 0 };
        known.seen_at_ms = now_ms;
        known.is_written = false;
        let (own, all, most) = (scope.bytes, self.bytes, self.max_bytes);
        if !change(known, &|more| fits(own, more, all, most)) {
            scope.incomplete_until_ms = incomplete_until_ms;
        }
        let has = known.bytes(worker);
        scope.bytes = scope.bytes + has - had;
        self.bytes = self.bytes + has - had;
        self.workers += usize::from(!is_known);
    }

    fn has_room(&self, prefix: &str, worker: &str) -> bool {
        let (workers, bytes) =
            self.scopes.get(prefix).map_or((0, 0), |scope| (scope.workers.len(), scope.bytes));
        fits(workers, 1, self.workers, self.max_workers)
            && fits(bytes, Known::default().bytes(worker), self.bytes, self.max_bytes)
    }

    /// Whether something of the workers of a scope may be missing.
    pub(super) fn is_incomplete(&self, prefix: &str, now_ms: u64) -> bool {
        match self.scopes.get(prefix) {
            Some(scope) => scope.incomplete_until_ms > now_ms,
            None => !self.has_room(prefix, ""),
        }
    }

    /// The workers of a scope, with their names.
    pub(super) fn of(&self, prefix: &str) -> impl Iterator<Item = (&str, &Known)> {
        let workers = self.scopes.get(prefix).into_iter().flat_map(|scope| &scope.workers);
        workers.map(|(worker, known)| (worker.as_str(), known))
    }

    /// All workers, with the prefixes of their scopes and their names.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&str, &str, &mut Known)> {
        self.scopes.iter_mut().flat_map(|(prefix, scope)| {
            scope.workers.iter_mut().map(|(worker, known)| (prefix.as_str(), worker.as_str(), known))
        })
    }

    /// Forgets leases that have ended, and workers that were not heard of for too long.
    pub(super) fn forget(&mut self, now_ms: u64) {
        let forget_before_ms = now_ms.saturating_sub(self.remember_ms);
        (self.workers, self.bytes) = (0, 0);
        for scope in self.scopes.values_mut() {
            scope.workers.retain(|_, known| {
                known.leases.retain(|_, lease| lease.ends_at_ms > now_ms);
                known.lease_pools.retain(|pool| Arc::strong_count(pool) > 1);
                known.forget_asked(forget_before_ms);
                known.seen_at_ms >= forget_before_ms || !known.leases.is_empty()
            });
            scope.bytes = scope.workers.iter().map(|(worker, known)| known.bytes(worker)).sum();
            self.workers += scope.workers.len();
            self.bytes += scope.bytes;
        }
        self.scopes.retain(|_, scope| !scope.workers.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard<'a>(prefix: &'a str, worker: &'a str) -> Heard<'a> {
        Heard { prefix, worker, now_ms: 1_000 }
    }

    fn asked(functions: &[String]) -> Asked<'_> {
        Asked { functions, tags: &[], untagged: true, pool: None }
    }

    fn roster(max_workers: usize, max_bytes: usize) -> Roster {
        Roster { max_workers, max_bytes, ..Roster::new(100) }
    }

    #[test]
    fn one_scope_leaves_room_for_the_workers_of_others() {
        let mut roster = roster(8, MAX_BYTES);
        let fill = |roster: &mut Roster, prefix: &str| {
            (0..20).for_each(|n| roster.asks(heard(prefix, &n.to_string()), asked(&[])));
            roster.of(prefix).count()
        };
        assert_eq!(fill(&mut roster, "n/a/"), 4);
        assert_eq!(fill(&mut roster, "n/b/"), 2);
        assert_eq!(fill(&mut roster, "n/c/"), 1);
        assert_eq!(fill(&mut roster, "n/d/"), 0);
        assert!(["n/a/", "n/b/", "n/c/", "n/d/"].iter().all(|prefix| roster.is_incomplete(prefix, 1_099)));
        assert!(!roster.is_incomplete("n/a/", 1_100), "what was left out is heard of no more");
        roster.forget(1_101);
        assert_eq!((roster.workers, roster.bytes, roster.scopes.len()), (0, 0, 0));
        assert_eq!(fill(&mut roster, "n/d/"), 4);
    }

    #[test]
    fn bytes_are_bounded_and_counted_exactly() {
        let mut roster = roster(MAX_WORKERS, 400_000);
        let functions = |count: usize| vec!["f".repeat(104); count];
        // 128 bytes each: of 400,000 bytes one scope gets half.
        for n in 0..20 {
            roster.asks(heard("n/a/", &n.to_string()), asked(&functions(1_000)));
        }
        let named = roster.of("n/a/").filter(|(_, known)| !known.functions.is_empty()).count();
        assert_eq!((named, roster.of("n/a/").count()), (1, 20), "the others are known by name");
        assert!(roster.is_incomplete("n/a/", 1_000));
        roster.asks(heard("n/b/", "w"), asked(&functions(200)));
        assert_eq!(roster.of("n/b/").next().unwrap().1.functions.len(), 200);
        assert!(!roster.is_incomplete("n/b/", 1_000));
        for token in 0..10_000 {
            roster.holds(heard("n/a/", "1"), None, token, 5_000);
        }
        assert!(roster.bytes <= 400_000);
        roster.ended(heard("n/a/", "1"), 0);
        roster.asks(heard("n/a/", "0"), asked(&functions(1)));
        let sum = |roster: &Roster, prefix: &str| -> usize {
            roster.of(prefix).map(|(worker, known)| known.bytes(worker)).sum()
        };
        assert_eq!(roster.bytes, sum(&roster, "n/a/") + sum(&roster, "n/b/"));
        roster.forget(9_000);
        assert_eq!((roster.workers, roster.bytes), (0, 0));
    }

    #[test]
    fn functions_of_a_pool_are_not_kept_with_each_of_its_workers() {
        let mut roster = roster(9, MAX_BYTES);
        let functions = ["Set-User".to_owned()];
        roster.asks(heard("n/a/", "w"), Asked { pool: Some("Cloud"), ..asked(&functions) });
        let known = roster.of("n/a/").next().unwrap().1;
        assert_eq!((known.functions.len(), known.pools.len()), (0, 1));
    }

    #[test]
    fn a_worker_is_known_by_all_that_it_asked_for_lately() {
        let mut roster = roster(9, MAX_BYTES);
        let functions = ["render".to_owned()];
        let at = |now_ms| Heard { now_ms, ..heard("n/a/", "w") };
        roster.asks(at(1_000), asked(&functions));
        roster.asks(at(1_010), Asked { pool: Some("Cloud"), untagged: false, ..asked(&[]) });
        roster.asks(at(1_050), Asked { pool: Some("Edge"), untagged: false, ..asked(&[]) });
        let shown = |roster: &Roster| {
            let known = roster.of("n/a/").next().unwrap().1;
            (known.functions.len(), known.takes_untagged, known.pools.keys().cloned().collect::<Vec<_>>())
        };
        assert_eq!(shown(&roster), (1, true, vec!["Cloud".to_owned(), "Edge".to_owned()]));
        roster.asks(at(1_105), Asked { pool: Some("Edge"), untagged: false, ..asked(&[]) });
        assert_eq!(shown(&roster), (0, false, vec!["Cloud".to_owned(), "Edge".to_owned()]));
        roster.forget(1_111);
        assert_eq!(shown(&roster), (0, false, vec!["Edge".to_owned()]));
        let (worker, known) = roster.of("n/a/").next().unwrap();
        assert_eq!(roster.bytes, known.bytes(worker));
    }
}
