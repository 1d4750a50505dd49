//! Whose query runs next on a node: fair queueing by tenant.
//!
//! A free place goes to the tenant with the fewest queries running; among those with as many, to the
//! one whose last query began longest ago; then by due time. Some places are reserved for tenants
//! with nothing running. So a tenant that has nothing running waits for those before it that have
//! nothing running either, and never for the backlog of any tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segno::store::Record;

/// Most queries that a node runs at once: each may return 256 MiB.
pub(super) const MAX_RUNNING: usize = 4;

/// Most of them that are of one tenant.
const MAX_RUNNING_OF_TENANT: usize = 2;

/// So many of all places are for tenants that have nothing running.
const RESERVED: usize = 2;

/// Tenants whose last query is remembered. One that is forgotten is served as a new one.
const MAX_REMEMBERED: usize = 10_000;

/// What the ids of a tenant's queries begin with. The name of a runbook has no slash.
pub(super) fn folder_of(record: &Record) -> &str {
    record.id.rfind('/').map_or("", |slash| &record.id[..=slash])
}

/// The queries that run on a node, and who had one before. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Queries that run, by tenant. No count is 0.
    running: HashMap<String, usize>,
    /// The number of the query that a tenant began last.
    begun: HashMap<String, u64>,
    last: u64,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sorts due queries by whose turn it is. Those of one tenant stay in the order of their time.
    pub(super) fn sort(&self, due: &mut [Record]) {
        let state = self.state();
        due.sort_by_cached_key(|record| {
            let folder = folder_of(record);
            let running = state.running.get(folder).copied().unwrap_or_default();
            (running, state.begun.get(folder).copied().unwrap_or_default())
        });
    }

    /// Whether a tenant may begin a query.
    pub(super) fn admits(&self, folder: &str) -> bool {
        let state = self.state();
        let all: usize = state.running.values().sum();
        let free = MAX_RUNNING.saturating_sub(all);
        match state.running.get(folder) {
            None => free > 0,
            Some(count) => *count < MAX_RUNNING_OF_TENANT && free > RESERVED,
        }
    }

    /// Counts a query of a tenant until the return value is dropped.
    pub(super) fn begin(&self, folder: String) -> RunningQuery {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if state.begun.len() >= MAX_REMEMBERED {
            let oldest = number.saturating_sub(MAX_REMEMBERED as u64 / 2);
            state.begun.retain(|_, begun| *begun >= oldest);
        }
        state.begun.insert(folder.clone(), number);
        *state.running.entry(folder.clone()).or_default() += 1;
        RunningQuery { turns: self.clone(), folder }
    }
}

/// A query that is counted until it is dropped.
pub(super) struct RunningQuery {
    turns: Turns,
    folder: String,
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if let Some(count) = state.running.get_mut(&self.folder) {
            *count -= 1;
        }
        state.running.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(ids: &[&str]) -> Vec<Record> {
        let record = |id: &&str| Record {
            kind: String::new(),
            id: format!("eu/{id}"),
            version: 1,
            due_at_ms: None,
            expires_at_ms: None,
            body: Vec::new().into(),
        };
        ids.iter().map(record).collect()
    }

    /// Takes what may begin, in order, until nothing may.
    fn fill(turns: &Turns, backlog: &mut Vec<Record>) -> Vec<(String, RunningQuery)> {
        let mut begun = Vec::new();
        loop {
            turns.sort(backlog);
            let Some(place) = backlog.iter().position(|record| turns.admits(folder_of(record))) else {
                return begun;
            };
            let record = backlog.remove(place);
            begun.push((record.id.clone(), turns.begin(folder_of(&record).to_owned())));
        }
    }

    fn names(begun: &[(String, RunningQuery)]) -> Vec<&str> {
        begun.iter().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn a_free_place_goes_to_who_has_the_fewest_and_waits_longest() {
        let turns = Turns::default();
        let mut backlog = due(&["a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "b/3"]);
        let mut running = fill(&turns, &mut backlog);
        assert_eq!(names(&running), ["eu/a/1", "eu/b/1"], "two places are reserved");
        // Others come, and the places that were reserved are theirs, one each.
        backlog.extend(due(&["c/1", "c/2", "d/1", "e/1"]));
        running.extend(fill(&turns, &mut backlog));
        assert_eq!(names(&running), ["eu/a/1", "eu/b/1", "eu/c/1", "eu/d/1"]);
        // The next place is for the one that has none, although all queries of a were due before.
        running.remove(0);
        running.extend(fill(&turns, &mut backlog));
        assert_eq!(names(&running), ["eu/b/1", "eu/c/1", "eu/d/1", "eu/e/1"]);
        // Then in turn: a began longest ago, and d has nothing left.
        running.remove(2);
        running.extend(fill(&turns, &mut backlog));
        assert_eq!(names(&running)[3..], ["eu/a/2"]);
        running.remove(0);
        running.extend(fill(&turns, &mut backlog));
        assert_eq!(names(&running)[3..], ["eu/b/2"]);
    }

    #[test]
    fn a_tenant_alone_has_two_places_until_its_queries_end() {
        let turns = Turns::default();
        let mut backlog = due(&["a/1", "a/2", "a/3"]);
        let mut running = fill(&turns, &mut backlog);
        assert_eq!(names(&running), ["eu/a/1", "eu/a/2"]);
        running.remove(0);
        running.extend(fill(&turns, &mut backlog));
        assert_eq!(names(&running), ["eu/a/2", "eu/a/3"]);
        drop(running);
        assert!(turns.state().running.is_empty());
    }
}
