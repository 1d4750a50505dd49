//! Deciding: controllers read the folded state; what they want appended or done outside is collected for the next commit.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::try_join_all;
use segno_actions::functions::Scope;
use serde_json::Value;

use super::error::DriveError;
use super::holder::{Held, as_time};
use super::inputs;
use super::ledger::Ledger;
use super::limits::CALLS_AT_ONCE;
use super::outbox::WaitingEvent;
use super::planning;
use crate::controllers::{
    AntiEntropy, Backfills, Dispatcher, Execution, Expansion, Heartbeat, OrchestrationController, Outside,
    Partitions, ReadyDispatch, Retry, RunBridge, Schedules, Snapshot, Timers,
};
use crate::event::{RunRequested, TasksAdded};
use crate::fold::TaskRef;
use crate::tables::BackfillRow;
use crate::telemetry;

/// How often controllers are run that follow the clock and not events.
const TICK_MS: u64 = 1_000;

/// Selectors are resolved when a backfill is created, so events have the keys themselves.
struct ListedPartitions;

impl Partitions for ListedPartitions {
    fn slice(&self, backfill: &BackfillRow, _: u32, _: u32) -> Result<Vec<Arc<str>>, String> {
        Err(format!("the partitions of backfill {} are not listed; create it again", backfill.backfill_id))
    }
}

impl Held {
    /// Runs the controllers, and does what needs no commit: plans and lists become events.
    pub(super) async fn decide(&mut self, now_ms: u64) -> Result<(), DriveError> {
        let execution = self.reconcile(now_ms);
        for report in execution.reports {
            tracing::debug!(scope = %self.scope.id_prefix(), ?report, "a controller left something undone");
        }
        let events = execution.events.into_iter().flatten();
        self.own.extend(events.map(|data| WaitingEvent { data, key: None }));
        let mut runs = Vec::new();
        for outside in execution.outside {
            match outside {
                Outside::Enqueue(enqueue) => self.dispatches.want(enqueue),
                Outside::Expand { task, attempt } => self.expand(&task, attempt).await?,
                Outside::PlanRun(request) => runs.push(*request),
                // The holder itself wakes at the time of every timer.
                Outside::CreateTimer(timer) => {
                    let accepted = timer.accepted(timer.queue_name());
                    self.own.push(accepted.into());
                }
                Outside::EvaluateSensor(_) => {}
            }
        }
        self.plan_runs(runs).await
    }

    fn reconcile(&mut self, now_ms: u64) -> Execution {
        let secret = Arc::clone(&self.secret);
        let mut controllers: Vec<Box<dyn OrchestrationController + Send>> = vec![
            Box::new(ReadyDispatch),
            Box::new(Dispatcher),
            Box::new(Timers),
            Box::new(Retry),
            Box::new(Heartbeat),
            Box::new(Expansion),
            Box::new(RunBridge),
            Box::new(Backfills::new(Arc::new(ListedPartitions), Arc::clone(&secret))),
        ];
        if now_ms >= self.ticked_at_ms.saturating_add(TICK_MS) {
            self.ticked_at_ms = now_ms;
            let zones = Arc::clone(&self.services.ledger.options().zones);
            controllers.push(Box::new(AntiEntropy));
            controllers.push(Box::new(Schedules::new(zones, secret)));
        }
        let snapshot = Snapshot { state: self.compactor.state(), freshness: self.freshness(now_ms) };
        let mut all = Execution::default();
        for controller in controllers {
            let Execution { events, outside, reports } = controller.run(&snapshot, as_time(now_ms));
            if controller.name() == AntiEntropy.name() {
                count_repairs(&self.scope, &events, &outside);
            }
            all.events.extend(events);
            all.outside.extend(outside);
            all.reports.extend(reports);
        }
        all
    }

    /// The tasks of a list, or why there are none.
    async fn expand(&mut self, task: &TaskRef, attempt: u32) -> Result<(), DriveError> {
        let state = self.compactor.state();
        let expanded = inputs::expand(&self.services, &self.scope, state, task).await?;
        let (tasks, error) = match expanded {
            Ok(tasks) => (tasks, None),
            Err(problem) => (Vec::new(), Some(problem.into())),
        };
        let (run_id, task_key) = (Arc::clone(&task.run_id), Arc::clone(&task.task_key));
        self.own.push(TasksAdded { run_id, task_key, attempt, tasks, error }.into());
        Ok(())
    }

    /// The first events of runs that were requested by key.
    async fn plan_runs(&mut self, requests: Vec<RunRequested>) -> Result<(), DriveError> {
        let (ledger, scope): (&Ledger, &Scope) = (&self.services.ledger, &self.scope);
        let mut planned = Vec::new();
        for part in requests.chunks(CALLS_AT_ONCE) {
            let part = part.iter().map(|request| planning::plan_requested(ledger, scope, request));
            planned.extend(try_join_all(part).await?);
        }
        self.own.extend(planned.into_iter().flatten().map(|data| WaitingEvent { data, key: None }));
        Ok(())
    }
}

/// Repairs are rare: each of them stands for a step that was missed.
fn count_repairs<E: Debug>(scope: &Scope, events: &[E], outside: &[Outside]) {
    let repairs = events.len() + outside.len();
    if repairs > 0 {
        tracing::warn!(scope = %scope.id_prefix(), ?events, ?outside, "tasks that were stuck are repaired");
        metrics::counter!(telemetry::REPAIRS).increment(repairs as u64);
    }
}

/// JSON of a row's column; nothing for one that cannot be read.
pub(super) fn read(json: Option<&Arc<str>>) -> Option<Value> {
    serde_json::from_str(json?).ok()
}
