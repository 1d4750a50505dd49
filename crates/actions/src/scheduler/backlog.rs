//! Backpressure by tenant: what is due while too many inputs of its tenant wait to be checked is postponed by a write. So
//! a tenant with slow schemas neither holds up a round of firing nor fills the page of what is due, and tenants with
//! nothing to wait for are fired in time.
//!
//! A refused check takes a while, so a refusal is remembered: until the first of what was postponed is due again, all else of
//! the tenant is postponed without a try, in this round and the next ones. As long as anything of a tenant is postponed, only
//! a few of its records are tried at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shortest time by which something is postponed, in milliseconds.
const MIN_DELAY_MS: u64 = 1_000;

/// Between two postponed records of one tenant, in milliseconds: they come back one by one, not all at once.
const SPACING_MS: u64 = 10;

/// Longest time by which something is postponed at once, in milliseconds: a place for 360,000 records of a tenant.
pub(super) const MAX_DELAY_MS: u64 = 60 * 60 * 1_000;

/// Most records of a tenant with a backlog that are tried at once.
const MAX_TRIES: usize = 4;

/// Tenants of one lane that have more to check than they may.
#[derive(Default)]
pub(super) struct Backlog {
    tenants: Mutex<HashMap<String, Waiting>>,
}

/// A tenant of which a check was refused.
#[derive(Default)]
struct Waiting {
    /// Before this time nothing of it is tried, in Unix milliseconds.
    next_try_ms: u64,
    /// The latest time to which something of it was postponed, in Unix milliseconds.
    last_ms: u64,
    /// How many of its records are being tried.
    tries: usize,
}

/// A record that is tried; over when this is dropped.
pub(super) struct Try<'a> {
    backlog: &'a Backlog,
    /// The tenant, if it has a backlog.
    tenant: Option<String>,
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        let Some(tenant) = &self.tenant else { return };
        if let Some(waiting) = self.backlog.lock().get_mut(tenant) {
            waiting.tries = waiting.tries.saturating_sub(1);
        }
    }
}

impl Backlog {
    /// A round begins: tenants of which nothing is postponed any more are forgotten.
    pub(super) fn begin_round(&self, now_ms: u64) {
        self.lock().retain(|_, waiting| {
            waiting.last_ms > now_ms || waiting.next_try_ms > now_ms || waiting.tries > 0
        });
    }

    /// The right to try a record now; `None` when it is to be postponed.
    pub(super) fn admit(&self, record_id: &str, now_ms: u64) -> Option<Try<'_>> {
        let mut tenants = self.lock();
        let Some(waiting) = tenants.get_mut(tenant(record_id)) else {
            return Some(Try { backlog: self, tenant: None });
        };
        if waiting.next_try_ms > now_ms || waiting.tries >= MAX_TRIES {
            return None;
        }
        waiting.tries += 1;
        Some(Try { backlog: self, tenant: Some(tenant(record_id).to_owned()) })
    }

    /// A check of the tenant of a record was refused.
    pub(super) fn note(&self, record_id: &str, now_ms: u64) {
        let mut tenants = self.lock();
        let waiting = tenants.entry(tenant(record_id).to_owned()).or_default();
        waiting.next_try_ms = waiting.next_try_ms.max(now_ms.saturating_add(MIN_DELAY_MS));
    }

    /// When a record is due again.
    pub(super) fn postpone(&self, record_id: &str, now_ms: u64) -> u64 {
        let mut tenants = self.lock();
        let waiting = tenants.entry(tenant(record_id).to_owned()).or_default();
        let earliest_ms = now_ms.saturating_add(MIN_DELAY_MS);
        let latest_ms = now_ms.saturating_add(MAX_DELAY_MS);
        waiting.last_ms = waiting.last_ms.saturating_add(SPACING_MS).clamp(earliest_ms, latest_ms);
        waiting.last_ms
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the ids of a tenant begin with: `namespace/tenant`, two slugs that have no slash in them.
fn tenant(record_id: &str) -> &str {
    let end = record_id.match_indices('/').nth(1).map_or(record_id.len(), |(at, _)| at);
    record_id.get(..end).unwrap_or(record_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_postponed_comes_back_one_by_one_however_much_it_is() {
        let backlog = Backlog::default();
        let delays: Vec<u64> = (0..4).map(|_| backlog.postpone("n/a/1", 100)).collect();
        assert_eq!(delays, [1_100, 1_110, 1_120, 1_130]);
        assert_eq!(backlog.postpone("n/b/1", 100), 1_100, "each tenant has its own");
        for n in 4..100_000 {
            assert_eq!(backlog.postpone("n/a/1", 100), 1_100 + n * SPACING_MS, "no two at the same time");
        }
        for _ in 100_000..400_000 {
            assert!(backlog.postpone("n/a/1", 100) <= 100 + MAX_DELAY_MS);
        }
        backlog.begin_round(100 + MAX_DELAY_MS);
        assert_eq!(
            backlog.postpone("n/a/1", MAX_DELAY_MS + 100),
            MAX_DELAY_MS + 1_100,
            "nothing is remembered"
        );
    }

    #[test]
    fn a_refusal_is_remembered_until_the_first_of_what_was_postponed_is_due() {
        let backlog = Backlog::default();
        backlog.note("n/a/1", 0);
        assert_eq!(backlog.postpone("n/a/1", 0), 1_000);
        backlog.begin_round(999);
        let admitted = ["n/a/2", "n/a/", "n/ab/1", "m/a/1"].map(|id| backlog.admit(id, 999).is_some());
        assert_eq!(admitted, [false, false, true, true]);
        backlog.begin_round(1_000);
        assert!(backlog.admit("n/a/1", 1_000).is_some());
    }

    #[test]
    fn only_a_few_of_a_tenant_with_a_backlog_are_tried_at_once() {
        let backlog = Backlog::default();
        backlog.note("n/a/1", 0);
        assert_eq!((0..100).map(|_| backlog.postpone("n/a/1", 0)).max(), Some(1_990));
        backlog.begin_round(1_500);
        let mut tries: Vec<Try<'_>> = (0..20).filter_map(|_| backlog.admit("n/a/1", 1_500)).collect();
        assert_eq!(tries.len(), MAX_TRIES);
        tries.pop();
        assert!(backlog.admit("n/a/1", 1_500).is_some(), "one is over");
        drop(tries);
        backlog.begin_round(60_000);
        assert!(backlog.lock().is_empty());
        let tries: Vec<Try<'_>> = (0..20).filter_map(|_| backlog.admit("n/a/1", 60_000)).collect();
        assert_eq!(tries.len(), 20, "nothing of it waits");
    }
}
