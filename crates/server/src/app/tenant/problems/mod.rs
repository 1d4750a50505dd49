//! What is wrong in a tenant now.
//!
//! | file | what |
//! |---|---|
//! | `instances` | failed, stuck, paused; calls without a worker; what was given up |
//! | `automations` | schedules, actions, webhooks, runbooks, DAG runs |
//! | `server` | the store, the clock, the nodes |
//!
//! Each check reads a bounded number of rows, found by an index or the newest of a list, within a
//! bounded time. What it could not look at is reported as unknown, never as absent.

mod automations;
mod instances;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use segno::clock;
use segno_api::problems::{
    KnownProblem, ProblemItem, ProblemKind, ProblemLink, ProblemReport, Severity, UnknownProblem,
};

use super::{OfStore, Tenant};
use crate::access::timestamp;
use crate::problem::Refusal;

/// A check that takes longer is given up; its kinds are unknown.
const CHECK_TIME: Duration = Duration::from_secs(3);

/// Names of parts that a problem has.
const MAX_ITEMS: usize = 20;

/// What "recently" is, in milliseconds.
const RECENT_MS: u64 = 60 * 60 * 1_000;

/// A trend has one number for so many milliseconds.
const TREND_STEP_MS: u64 = 5 * 60 * 1_000;

/// What came of a check: a problem or none, and why it is not sure of all.
#[derive(Default)]
struct Checked {
    problem: Option<KnownProblem>,
    unknown: Option<String>,
}

impl Checked {
    fn of(problem: Option<KnownProblem>) -> Self {
        Checked { problem, unknown: None }
    }

    fn unknown_if(self, is_unknown: bool, reason: &str) -> Self {
        Checked { unknown: is_unknown.then(|| reason.to_owned()), ..self }
    }
}

/// The outcomes of a check, each of a kind.
type Outcomes = Vec<(ProblemKind, Result<Checked, Refusal>)>;

impl Tenant {
    /// What is wrong now; the same answer again for a second.
    ///
    /// # Errors
    /// None: what cannot be looked at is unknown.
    pub async fn problems(&self, of_store: OfStore) -> Result<Arc<ProblemReport>, Refusal> {
        let key = (self.scope.prefix().to_owned(), of_store);
        let found = async { Ok(self.found_problems(of_store).await) };
        self.resources().recent_problems.get(&key, &*self.app.clock, found).await
    }

    async fn found_problems(&self, of_store: OfStore) -> ProblemReport {
        let mut outcomes = self.problems_of_instances().await;
        outcomes.extend(self.problems_of_automations().await);
        if of_store == OfStore::Shown {
            outcomes.extend(self.problems_of_server().await);
        }
        let mut report = ProblemReport {
            at: timestamp(self.app.clock.now_ms()),
            problems: Vec::new(),
            checked: Vec::new(),
            unknown: Vec::new(),
        };
        for (kind, outcome) in outcomes {
            let Checked { problem, unknown } = outcome.unwrap_or_else(|refusal| Checked {
                problem: None,
                unknown: Some(refusal.detail().to_owned()),
            });
            report.problems.extend(problem);
            match unknown {
                Some(reason) => report.unknown.push(UnknownProblem { kind, reason }),
                None => report.checked.push(kind),
            }
        }
        report.problems.sort_by_key(|problem| problem.severity);
        report
    }

    /// Runs checks at once, each within its time.
    async fn checked<'t>(
        &'t self,
        checks: Vec<(ProblemKind, futures_util::future::BoxFuture<'t, Result<Checked, Refusal>>)>,
    ) -> Outcomes {
        let run = checks.into_iter().map(|(kind, check)| async move {
            let reason = || format!("it took longer than {CHECK_TIME:?} to look");
            let outcome = match clock::timeout(&*self.app.clock, CHECK_TIME, check).await {
                Some(outcome) => outcome,
                None => Ok(Checked { problem: None, unknown: Some(reason()) }),
            };
            (kind, outcome)
        });
        join_all(run).await
    }
}

/// A problem with so many of something; none if there are none.
struct Problem {
    kind: ProblemKind,
    severity: Severity,
    text: &'static str,
    page: &'static str,
    filter: &'static [(&'static str, &'static str)],
}

impl Problem {
    fn of(self, count: u64) -> Option<KnownProblem> {
        let filter = self.filter.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned()));
        (count > 0).then(|| KnownProblem {
            kind: self.kind,
            severity: self.severity,
            count,
            more: false,
            text: self.text.to_owned(),
            oldest: None,
            trend: Vec::new(),
            link: ProblemLink { page: self.page.to_owned(), filter: filter.collect() },
            items: Vec::new(),
        })
    }
}

/// Adds to a problem what is known of it.
trait Known: Sized {
    /// There are more than were counted.
    fn more(self, more: bool) -> Self;
    /// Since when.
    fn since(self, oldest: Option<Timestamp>) -> Self;
    /// When so many of them arose, in Unix milliseconds.
    fn arose(self, now_ms: u64, times: impl IntoIterator<Item = (u64, u64)>) -> Self;
    /// Parts of the count.
    fn parts(self, items: BTreeMap<String, u64>) -> Self;
}

impl Known for Option<KnownProblem> {
    fn more(self, more: bool) -> Self {
        self.map(|problem| KnownProblem { more, ..problem })
    }

    fn since(self, oldest: Option<Timestamp>) -> Self {
        self.map(|problem| KnownProblem { oldest, ..problem })
    }

    fn arose(self, now_ms: u64, times: impl IntoIterator<Item = (u64, u64)>) -> Self {
        self.map(|problem| KnownProblem { trend: trend(now_ms, times), ..problem })
    }

    fn parts(self, items: BTreeMap<String, u64>) -> Self {
        let mut items: Vec<_> = items.into_iter().map(|(name, count)| ProblemItem { name, count }).collect();
        items.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        items.truncate(MAX_ITEMS);
        self.map(|problem| KnownProblem { items, ..problem })
    }
}

/// How many arose in each step of the last hour, the one that ends now last. What a clock ahead of ours has noted counts as now.
fn trend(now_ms: u64, times: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
    let steps = RECENT_MS / TREND_STEP_MS;
    let mut counts = vec![0; usize::try_from(steps).unwrap_or(0)];
    for (at_ms, count) in times {
        let ago = now_ms.saturating_sub(at_ms) / TREND_STEP_MS;
        let place = counts.len().checked_sub(1 + usize::try_from(ago).unwrap_or(usize::MAX - 1));
        if let Some(place) = place.and_then(|place| counts.get_mut(place)) {
            *place += count;
        }
    }
    counts
}

/// Names with one of each.
fn named<S: Into<String>>(names: impl IntoIterator<Item = S>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.into()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_has_what_arose_in_the_last_hour_by_five_minutes() {
        let now_ms = 10 * RECENT_MS;
        let ago = |minutes: u64| now_ms - minutes * 60_000;
        let found = trend(
            now_ms,
            [(ago(0), 1), (ago(4), 2), (ago(5), 3), (ago(59), 4), (ago(60), 5), (now_ms + 9, 6), (0, 7)],
        );
        assert_eq!(found, [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 9]);
    }
}
