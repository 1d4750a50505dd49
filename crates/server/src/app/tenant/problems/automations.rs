//! Schedules, actions, webhooks, runbooks and DAG runs.

use std::collections::BTreeMap;

use segno_actions::Listed;
use segno_actions::hooks::{ListEvents, Outcome};
use segno_api::problems::{ProblemKind, Severity};
use segno_ledger::drive::RunQuery;
use segno_ledger::tables::RunState;
use segno_runbook::rows::PhaseStatus;

use super::super::Tenant;
use super::{Checked, Known as _, Outcomes, Problem, RECENT_MS, named};
use crate::access::timestamp;
use crate::problem::Refusal;

/// What is due is overdue after so long, in milliseconds.
const OVERDUE_AFTER_MS: u64 = 60_000;

/// Overdue actions that are counted; their records have inputs.
const MAX_OVERDUE: usize = 20;

/// Events of webhooks that are looked at.
const MAX_EVENTS: usize = 500;

/// Newest batches that are looked at, and open ones of them whose phases are read.
const MAX_BATCHES: usize = 200;
const MAX_OPEN_BATCHES: usize = 50;

/// Runbooks that are looked at.
const MAX_RUNBOOKS: usize = 200;

/// Sensors that are looked at.
const MAX_SENSORS: usize = 1_000;

/// A sensor is a problem when so many polls in a row have failed.
const SENSOR_FAILURES: u32 = 2;

/// Runs that are counted.
const MAX_RUNS: usize = 100;

/// Runs that began so long ago are not looked at, in milliseconds.
const OLDEST_RUN_MS: u64 = 24 * 60 * 60 * 1_000;

impl Tenant {
    pub(super) async fn problems_of_automations(&self) -> Outcomes {
        let mut outcomes = self
            .checked(vec![
                (ProblemKind::OverdueSchedules, Box::pin(self.overdue_schedules())),
                (ProblemKind::OverdueActions, Box::pin(self.overdue_actions())),
                (ProblemKind::HooksRefused, Box::pin(self.hooks_refused())),
                (ProblemKind::BatchesWaiting, Box::pin(self.batches_waiting())),
                (ProblemKind::RemovalsWaiting, Box::pin(self.removals_waiting())),
            ])
            .await;
        if self.resources().ledger.is_some() {
            let of_dags = self.checked(vec![
                (ProblemKind::RunsFailed, Box::pin(self.runs_failed())),
                (ProblemKind::SensorsFailing, Box::pin(self.sensors_failing())),
            ]);
            outcomes.extend(of_dags.await);
        }
        outcomes
    }

    async fn overdue_schedules(&self) -> Result<Checked, Refusal> {
        let before_ms = self.app.clock.now_ms().saturating_sub(OVERDUE_AFTER_MS);
        let overdue = self.resources().recurring.due(&self.owner(), before_ms, MAX_OVERDUE + 1).await;
        let overdue = overdue.map_err(|error| self.refused(error))?;
        let problem = Problem {
            kind: ProblemKind::OverdueSchedules,
            severity: Severity::Error,
            text: "schedules are overdue",
            page: "recurring",
            filter: &[],
        };
        let more = overdue.len() > MAX_OVERDUE;
        let oldest = overdue.first().and_then(|(due_ms, _)| *due_ms);
        let counted = overdue.iter().take(MAX_OVERDUE);
        let times: Vec<_> = counted.filter_map(|(due_ms, _)| Some(((*due_ms)?, 1))).collect();
        let counted = overdue.into_iter().take(MAX_OVERDUE).map(|(_, row)| match row {
            Listed::Readable(action) => action.name.unwrap_or(action.id),
            Listed::Unreadable(row) => row.id,
        });
        let items = named(counted);
        let found = problem.of(items.values().sum()).parts(items).more(more);
        let found = found.arose(self.app.clock.now_ms(), times);
        // What has no time yet was due in 1970.
        Ok(Checked::of(found.since(oldest.filter(|due_ms| *due_ms > 0).map(timestamp))))
    }

    async fn overdue_actions(&self) -> Result<Checked, Refusal> {
        let before_ms = self.app.clock.now_ms().saturating_sub(OVERDUE_AFTER_MS);
        let overdue = self.actions().due(before_ms, MAX_OVERDUE + 1).await;
        let overdue = overdue.map_err(|error| self.refused(error))?;
        let problem = Problem {
            kind: ProblemKind::OverdueActions,
            severity: Severity::Error,
            text: "actions are overdue",
            page: "actions",
            filter: &[],
        };
        let oldest = overdue.first().copied().map(timestamp);
        let times = overdue.iter().take(MAX_OVERDUE).map(|due_ms| (*due_ms, 1));
        let found = problem.of(overdue.len().min(MAX_OVERDUE) as u64).arose(self.app.clock.now_ms(), times);
        Ok(Checked::of(found.more(overdue.len() > MAX_OVERDUE).since(oldest)))
    }

    async fn hooks_refused(&self) -> Result<Checked, Refusal> {
        let now_ms = self.app.clock.now_ms();
        let since = timestamp(now_ms.saturating_sub(RECENT_MS));
        let request = ListEvents { limit: MAX_EVENTS, ..ListEvents::default() };
        let events = self.hook_events(&request).await.map_err(|error| self.refused(error))?;
        let (read, mut oldest, mut is_whole) = (events.len(), None, false);
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        let mut times = Vec::new();
        for event in events.into_iter().filter_map(Listed::readable) {
            if event.at < since {
                is_whole = true;
                break;
            }
            let (reason, count) = match event.outcome {
                Outcome::Refused { reason, count } => (reason, count),
                Outcome::DispatchError { .. } => ("no call could be made".to_owned(), 1),
                _ => continue,
            };
            *reasons.entry(reason).or_default() += count;
            times.push((unix_ms(event.at), count));
            oldest = Some(event.at);
        }
        let problem = Problem {
            kind: ProblemKind::HooksRefused,
            severity: Severity::Warning,
            text: "requests to webhooks were refused in the last hour",
            page: "hooks",
            filter: &[],
        };
        let more = read == MAX_EVENTS && !is_whole;
        let found = problem.of(reasons.values().sum()).parts(reasons).since(oldest).more(more);
        Ok(Checked::of(found.arose(now_ms, times)))
    }

    async fn batches_waiting(&self) -> Result<Checked, Refusal> {
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let found = runbooks.newest_batches(&owner, None, None, MAX_BATCHES).await;
        let found = found.map_err(|error| self.refused(error))?;
        let is_part = found.len() == MAX_BATCHES;
        let open = found.into_iter().filter_map(Listed::readable).filter(|batch| !batch.status.is_terminal());
        let open: Vec<_> = open.collect();
        let is_unread = open.len() > MAX_OPEN_BATCHES;
        let (mut waiting, mut times, mut oldest) = (Vec::new(), Vec::new(), None::<jiff::Timestamp>);
        for batch in open.into_iter().take(MAX_OPEN_BATCHES) {
            let phases = runbooks.phases(&owner, batch.id).await.map_err(|error| self.refused(error))?;
            let since = phases.iter().filter(|phase| phase.status == PhaseStatus::Pending);
            let since = since.filter(|phase| phase.approved_at.is_none());
            let since = since.filter_map(|phase| phase.approval_requested_at).min();
            if let Some(since) = since {
                waiting.push(format!("{} {}", batch.runbook_name, batch.id.0));
                times.push((unix_ms(since), 1));
                oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
            }
        }
        let problem = Problem {
            kind: ProblemKind::BatchesWaiting,
            severity: Severity::Warning,
            text: "batches wait for an approval",
            page: "batches",
            filter: &[],
        };
        let found = problem.of(waiting.len() as u64).since(oldest).parts(named(waiting));
        let found = found.arose(self.app.clock.now_ms(), times);
        let unknown = is_part || is_unread;
        Ok(Checked::of(found)
            .unknown_if(unknown, "the newest 200 batches, and of these 50 open ones, were looked at"))
    }

    async fn removals_waiting(&self) -> Result<Checked, Refusal> {
        let runbooks = self.runbooks(None, MAX_RUNBOOKS).await?;
        let is_part = runbooks.len() == MAX_RUNBOOKS;
        let mut oldest = None::<jiff::Timestamp>;
        let mut waiting = BTreeMap::new();
        for runbook in runbooks.into_iter().filter_map(Listed::readable) {
            let Some(held) = runbook.automation.pending_removal else { continue };
            oldest = Some(oldest.map_or(held.at, |oldest| oldest.min(held.at)));
            waiting.insert(runbook.name, 1);
        }
        let problem = Problem {
            kind: ProblemKind::RemovalsWaiting,
            severity: Severity::Warning,
            text: "runbooks wait for an approval to remove members",
            page: "runbooks",
            filter: &[],
        };
        let found = problem.of(waiting.len() as u64).since(oldest).parts(waiting);
        Ok(Checked::of(found).unknown_if(is_part, "200 runbooks were looked at, there are more"))
    }

    async fn runs_failed(&self) -> Result<Checked, Refusal> {
        let now_ms = self.app.clock.now_ms();
        let query = RunQuery {
            states: vec![RunState::Failed],
            since_ms: Some(i64::try_from(now_ms.saturating_sub(OLDEST_RUN_MS)).unwrap_or(0)),
            limit: MAX_RUNS,
            ..RunQuery::default()
        };
        let page = self.runs(&query).await?;
        let since = timestamp(now_ms.saturating_sub(RECENT_MS));
        let runs = page.runs.iter().map(|row| self.shown_run(row));
        let failed: Vec<_> = runs.filter(|run| run.completed_at.is_some_and(|at| at >= since)).collect();
        let problem = Problem {
            kind: ProblemKind::RunsFailed,
            severity: Severity::Error,
            text: "runs of DAGs failed in the last hour",
            page: "runs",
            filter: &[("status", "failed")],
        };
        let oldest = failed.iter().filter_map(|run| run.completed_at).min();
        let times: Vec<_> = failed.iter().filter_map(|run| Some((unix_ms(run.completed_at?), 1))).collect();
        let found = problem.of(failed.len() as u64).since(oldest).more(page.next.is_some());
        let found = found.arose(now_ms, times);
        Ok(Checked::of(found.parts(named(failed.into_iter().map(|run| run.dag)))))
    }
    async fn sensors_failing(&self) -> Result<Checked, Refusal> {
        let found = self.ledger()?.dags().sensors_of_all(&self.owner(), MAX_SENSORS).await;
        let (sensors, is_complete) = found.map_err(|error| self.refused(error))?;
        let failing = sensors.into_iter().filter(|sensor| sensor.failures >= SENSOR_FAILURES);
        let items = named(failing.map(|sensor| sensor.sensor_id().to_string()));
        let problem = Problem {
            kind: ProblemKind::SensorsFailing,
            severity: Severity::Warning,
            text: "sensors of DAGs fail again and again, and are polled less often",
            page: "dags",
            filter: &[],
        };
        let checked = Checked::of(problem.of(items.values().sum()).parts(items));
        Ok(checked.unknown_if(!is_complete, "there are more sensors than were looked at"))
    }
}

/// Milliseconds since 1970; times before it are 1970.
fn unix_ms(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}
