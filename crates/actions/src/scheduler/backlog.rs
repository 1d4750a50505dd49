//! Backpressure by tenant: what is due while too many inputs of its tenant wait to be checked is postponed by a write. So
//! a tenant with slow schemas neither holds up a round of firing nor fills the page of what is due, and tenants with
//! nothing to wait for are fired in time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::action::ActionError;
use crate::functions::FunctionError;

/// Shortest time by which something is postponed, in milliseconds.
const MIN_DELAY_MS: u64 = 1_000;

/// Between two postponed records of one tenant, in milliseconds: they come back one by one, not all at once.
const SPACING_MS: u64 = 10;

/// Longest time by which something is postponed at once, in milliseconds.
pub(super) const MAX_DELAY_MS: u64 = 30_000;

/// Tenants of one lane that have more to check than they may.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tenants of which a check was refused in this round.
    refused: HashSet<String>,
    /// The latest time to which something of a tenant was postponed, in Unix milliseconds.
    last_ms: HashMap<String, u64>,
}

impl Backlog {
    /// A round begins: every tenant is tried again.
    pub(super) fn begin_round(&self, now_ms: u64) {
        let mut state = self.lock();
        state.refused.clear();
        state.last_ms.retain(|_, last_ms| *last_ms > now_ms);
    }

    /// Whether a check of the tenant of a record was refused in this round.
    pub(super) fn has(&self, record_id: &str) -> bool {
        self.lock().refused.contains(tenant(record_id))
    }

    /// A check of the tenant of a record was refused.
    pub(super) fn note(&self, record_id: &str) {
        self.lock().refused.insert(tenant(record_id).to_owned());
    }

    /// When a record is due again.
    pub(super) fn postpone(&self, record_id: &str, now_ms: u64) -> u64 {
        let mut state = self.lock();
        let last_ms = state.last_ms.entry(tenant(record_id).to_owned()).or_insert(0);
        let earliest_ms = now_ms.saturating_add(MIN_DELAY_MS);
        let latest_ms = now_ms.saturating_add(MAX_DELAY_MS);
        *last_ms = last_ms.saturating_add(SPACING_MS).clamp(earliest_ms, latest_ms);
        *last_ms
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an error says that too many inputs of the tenant wait to be checked.
pub(super) fn is_refused_check(error: &ActionError) -> bool {
    matches!(error, ActionError::Function(FunctionError::Busy))
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
    fn what_is_postponed_comes_back_one_by_one_and_within_the_longest_delay() {
        let backlog = Backlog::default();
        let delays: Vec<u64> = (0..4).map(|_| backlog.postpone("n/a/1", 100)).collect();
        assert_eq!(delays, [1_100, 1_110, 1_120, 1_130]);
        assert_eq!(backlog.postpone("n/b/1", 100), 1_100, "each tenant has its own");
        for _ in 0..10_000 {
            assert!(backlog.postpone("n/a/1", 100) <= 30_100);
        }
        assert_eq!(backlog.postpone("n/a/1", 100), 30_100);
        backlog.begin_round(30_100);
        assert_eq!(backlog.postpone("n/a/1", 30_100), 31_100, "nothing is remembered for longer than needed");
    }

    #[test]
    fn a_refused_check_counts_for_its_tenant_until_the_next_round() {
        let backlog = Backlog::default();
        backlog.note("n/a/1");
        let seen = ["n/a/2", "n/a/", "n/ab/1", "m/a/1"].map(|id| backlog.has(id));
        assert_eq!(seen, [true, true, false, false]);
        backlog.begin_round(0);
        assert!(!backlog.has("n/a/2"));
    }
}
