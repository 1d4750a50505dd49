//! Instances that failed, are stuck or paused; calls without a worker; what was given up.

use std::collections::{BTreeMap, BTreeSet};

use segno::client::{HistoryBudget, Instance, OpenKind};
use segno::store::{ExecutionStatus, QueuePlace};
use segno_actions::Listed;
use segno_actions::functions::{CallName, Executor, FunctionName};
use segno_api::problems::{ProblemKind, Severity};

use super::super::{InstanceFilter, Tenant};
use super::{Checked, Known as _, Outcomes, Problem, RECENT_MS, named};
use crate::access::timestamp;
use crate::problem::Refusal;
use crate::stats::{MINUTE_MS, MinuteCounts};

/// Paused instances and dead letters that are counted.
const MAX_COUNTED: usize = 100;

/// An instance is not stuck before so long without an event, in milliseconds.
const STUCK_AFTER_MS: u64 = 10 * 60 * 1_000;

/// Old running instances that are looked at.
const MAX_RUNNING: usize = 300;

/// Of those without a recent event, the histories that are read.
const MAX_HISTORIES: usize = 20;

/// How much of each history is read.
const HISTORY_BUDGET: HistoryBudget = HistoryBudget { events: 2_000, bytes: 4 * 1024 * 1024 };

/// Functions that are looked at.
const MAX_FUNCTIONS: usize = 500;

/// Functions without a worker whose calls are looked at, and calls of each.
const MAX_ORPHANS: usize = 20;
const MAX_CALLS: usize = 20;

/// Workers that are looked at.
const MAX_WORKERS: usize = 1_000;

impl Tenant {
    pub(super) async fn problems_of_instances(&self) -> Outcomes {
        self.checked(vec![
            (ProblemKind::FailedRecently, Box::pin(self.failed_recently())),
            (ProblemKind::Stuck, Box::pin(self.stuck())),
            (ProblemKind::FunctionsWithoutWorker, Box::pin(self.functions_without_worker())),
            (ProblemKind::DeadLetters, Box::pin(self.letters())),
            (ProblemKind::Paused, Box::pin(self.paused())),
        ])
        .await
    }

    /// Counted by the nodes, so that no list is searched.
    async fn failed_recently(&self) -> Result<Checked, Refusal> {
        let now = self.app.clock.now_ms() / MINUTE_MS;
        let first = now.saturating_sub(RECENT_MS / MINUTE_MS - 1);
        let (minutes, is_whole) = self.minutes(first..=now).await?;
        let mut total = MinuteCounts::default();
        minutes.values().for_each(|counts| total.merge(counts));
        let problem = Problem {
            kind: ProblemKind::FailedRecently,
            severity: Severity::Error,
            text: "failed in the last hour",
            page: "instances",
            filter: &[("status", "failed"), ("ended", "<1h")],
        };
        let now_ms = self.app.clock.now_ms();
        let times = minutes.iter().map(|(minute, counts)| (minute.saturating_mul(MINUTE_MS), counts.failed));
        let found = problem.of(total.failed).arose(now_ms, times).parts(total.failures);
        let found = found.since(total.first_failed_at_ms.map(timestamp));
        Ok(Checked::of(found).unknown_if(!is_whole, "counts of some nodes cannot be read"))
    }

    /// Running instances that wait for nothing that comes by itself, and have had no event for
    /// long.
    async fn stuck(&self) -> Result<Checked, Refusal> {
        let now_ms = self.app.clock.now_ms();
        let page = self
            .instances(InstanceFilter {
                statuses: [ExecutionStatus::Running].into(),
                created_before_ms: Some(now_ms.saturating_sub(STUCK_AFTER_MS)),
                limit: MAX_RUNNING,
                ..InstanceFilter::default()
            })
            .await?;
        let is_part = page.next.is_some();
        let usual = self.usual_times().await?;
        let mut silent: Vec<Instance> = page.instances;
        silent.retain(|found| {
            let usual_ms = self.counted_name(found).and_then(|name| usual.get(&name)).copied();
            let limit_ms = usual_ms.unwrap_or(0).saturating_mul(3).max(STUCK_AFTER_MS);
            found.updated_at_ms.saturating_add(limit_ms) < now_ms
        });
        silent.sort_by_key(|found| found.updated_at_ms);
        let is_unread = silent.len() > MAX_HISTORIES;
        silent.truncate(MAX_HISTORIES);
        let mut stuck = Vec::new();
        for found in silent {
            if !self.waits_for_something(&found).await? {
                stuck.push(found);
            }
        }
        let problem = Problem {
            kind: ProblemKind::Stuck,
            severity: Severity::Warning,
            text: "run without progress for longer than usual",
            page: "instances",
            filter: &[("status", "running"), ("started", ">10m")],
        };
        let oldest = stuck.first().map(|found| timestamp(found.updated_at_ms));
        let count = stuck.len() as u64;
        let times: Vec<_> = stuck.iter().map(|found| (found.updated_at_ms, 1)).collect();
        let found = problem.of(count).since(oldest).more(is_unread).arose(now_ms, times);
        let found = found.parts(named(stuck.into_iter().map(|found| found.id)));
        let checked = Checked::of(found);
        Ok(match (is_part, is_unread) {
            (true, _) => checked.unknown_if(true, "of the running instances the newest 300 were looked at"),
            (_, unread) => {
                checked.unknown_if(unread, "20 instances without an event were looked at, there are more")
            }
        })
    }

    /// Whether an instance waits for a timer, a message or a child. A history that is too long to
    /// be read here counts as such, as nothing is said that is not known.
    async fn waits_for_something(&self, found: &Instance) -> Result<bool, Refusal> {
        let waits = match self.waits_of(found, HISTORY_BUDGET).await {
            Err(refusal) if refusal.code() == segno::Code::NotFound.as_str() => return Ok(true),
            waits => waits?,
        };
        let is_delayed = |event: u64| {
            waits.queued.get(&event).is_some_and(|queued| matches!(queued.place, QueuePlace::Delayed { .. }))
        };
        let comes_by_itself = waits.open.operations.iter().any(|operation| match operation.kind {
            OpenKind::Timer { .. } | OpenKind::Message { .. } | OpenKind::Child { .. } => true,
            OpenKind::Activity { .. } => is_delayed(operation.event_id),
        });
        Ok(comes_by_itself || !waits.open.is_complete)
    }

    /// What executions of a name take in all but one of a hundred cases, in the last hour, in
    /// milliseconds.
    async fn usual_times(&self) -> Result<BTreeMap<String, u64>, Refusal> {
        let now = self.app.clock.now_ms() / MINUTE_MS;
        let (minutes, _) = self.minutes(now.saturating_sub(RECENT_MS / MINUTE_MS)..=now).await?;
        let mut total = MinuteCounts::default();
        minutes.values().for_each(|counts| total.merge(counts));
        let all = total.functions.into_iter().chain(total.orchestrations);
        Ok(all.filter_map(|(name, counts)| Some((name, counts.times.quantile(99)?))).collect())
    }

    /// The name under which an instance is counted.
    fn counted_name(&self, found: &Instance) -> Option<String> {
        self.function_of(&found.labels).map(str::to_owned).or_else(|| found.orchestration.clone())
    }

    async fn paused(&self) -> Result<Checked, Refusal> {
        let statuses = [ExecutionStatus::Paused].into();
        let filter = InstanceFilter { statuses, limit: MAX_COUNTED, ..InstanceFilter::default() };
        let page = self.instances(filter).await?;
        let problem = Problem {
            kind: ProblemKind::Paused,
            severity: Severity::Warning,
            text: "instances are paused",
            page: "instances",
            filter: &[("status", "paused")],
        };
        let oldest = page.instances.iter().map(|found| found.updated_at_ms).min();
        let times: Vec<_> = page.instances.iter().map(|found| (found.updated_at_ms, 1)).collect();
        let found = problem.of((page.instances.len() + page.unreadable.len()) as u64);
        let found = found.arose(self.app.clock.now_ms(), times);
        Ok(Checked::of(found.more(page.next.is_some()).since(oldest.map(timestamp))))
    }

    async fn letters(&self) -> Result<Checked, Refusal> {
        let letters = self.dead_letters(None, MAX_COUNTED + 1).await?;
        let count = letters.len().min(MAX_COUNTED) as u64;
        let more = letters.len() > MAX_COUNTED;
        let letters: Vec<_> = letters.into_iter().take(MAX_COUNTED).filter_map(Listed::readable).collect();
        let times = letters.iter().map(|letter| (letter.parked_at_ms, 1));
        let problem = Problem {
            kind: ProblemKind::DeadLetters,
            severity: Severity::Error,
            text: "messages, turns and activities were given up",
            page: "dead_letters",
            filter: &[],
        };
        let oldest = letters.last().map(|letter| timestamp(letter.parked_at_ms));
        let found = problem.of(count).more(more).since(oldest);
        Ok(Checked::of(found.arose(self.app.clock.now_ms(), times)))
    }

    /// Calls in the queue of functions that no worker asks for.
    async fn functions_without_worker(&self) -> Result<Checked, Refusal> {
        let workers = self.resources().presence.list(&self.scope, None, MAX_WORKERS).await?;
        let all_workers = workers.len() < MAX_WORKERS;
        let served: BTreeSet<String> = workers
            .into_iter()
            .filter_map(|(_, worker)| worker.readable())
            .flat_map(|worker| worker.functions)
            .collect();
        let functions = self.functions(None, MAX_FUNCTIONS).await.map_err(|error| self.refused(error))?;
        let is_part = functions.len() == MAX_FUNCTIONS;
        let mut orphans: Vec<FunctionName> = functions
            .into_iter()
            .filter_map(Listed::readable)
            .filter(|found| matches!(found.function.executor, Executor::Remote(_)))
            .map(|found| found.name)
            .filter(|name| !served.contains(name.as_str()))
            .collect();
        let mut reason = (is_part || orphans.len() > MAX_ORPHANS)
            .then_some("the tenant has more functions than were looked at");
        if !all_workers {
            reason = Some("the tenant has more workers than were looked at");
        }
        orphans.truncate(MAX_ORPHANS);
        let (mut counts, mut oldest, mut more) = (BTreeMap::new(), None::<u64>, false);
        for name in orphans {
            let (count, since_ms, is_more) = self.waiting_calls(name.clone()).await?;
            if count > 0 {
                counts.insert(name.to_string(), count);
                (oldest, more) = (oldest.into_iter().chain(since_ms).min(), more || is_more);
            }
        }
        let problem = Problem {
            kind: ProblemKind::FunctionsWithoutWorker,
            severity: Severity::Error,
            text: "calls wait for a function that no worker serves",
            page: "workers",
            filter: &[],
        };
        let found = problem.of(counts.values().sum()).more(more).since(oldest.map(timestamp)).parts(counts);
        Ok(Checked::of(found).unknown_if(reason.is_some(), reason.unwrap_or_default()))
    }

    /// Calls of a function that a worker may take: how many, since when, and whether there may be
    /// more.
    async fn waiting_calls(&self, name: FunctionName) -> Result<(u64, Option<u64>, bool), Refusal> {
        let filter = InstanceFilter {
            statuses: [ExecutionStatus::Running].into(),
            function: Some(CallName::from(name)),
            limit: MAX_CALLS,
            ..InstanceFilter::default()
        };
        let page = self.instances(filter).await?;
        let (mut count, mut oldest) = (0, None::<u64>);
        for found in &page.instances {
            let queued = self.resources().client.queued_activities(&self.stored(&found.id)).await;
            let queued = queued.map_err(|error| self.refused(error))?;
            if queued.iter().any(|activity| activity.work.place == QueuePlace::Ready) {
                count += 1;
                oldest = Some(oldest.map_or(found.created_at_ms, |oldest| oldest.min(found.created_at_ms)));
            }
        }
        Ok((count, oldest, page.next.is_some()))
    }
}
