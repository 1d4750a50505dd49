//! A recurring action that somebody has to look at: what is due is fired, what has ended without telling is settled, and
//! the next time is set, in one commit.

use std::time::Duration;

use jiff::Timestamp;
use segno::store::{ErrorKind, Record};

use super::check_action::check_pause_ms;
use super::lane::LaneError;
use super::{Handled, Scheduler, lateness_seconds};
use crate::action::ActionError;
use crate::action::record::FIRST_CHECK;
use crate::ended::Ended;
use crate::functions::FunctionError;
use crate::moment::{due_ms, timestamp};
use crate::recurring::advance::later;
use crate::recurring::decide::{Moment, Step, decide};
use crate::recurring::dispatch::{Dispatcher, Firing};
use crate::recurring::history::{Decision, HistoryEntry, SkipReason};
use crate::recurring::plan::Plan;
use crate::recurring::record::{
    RECURRING_HISTORY_KIND, decode, history_id, history_prefix, readable_history,
};
use crate::recurring::run_end::RunEnds;
use crate::recurring::{RecurringAction, RunningOccurrence};
use crate::schedule::Schedule;
use crate::telemetry;

/// Most steps of one commit. What is left is still due, and comes next.
const MAX_STEPS: usize = 32;

/// After so much time no more steps are added to a commit, so that others have their turn.
const MAX_STEPS_TIME: Duration = Duration::from_millis(500);

impl Scheduler {
    /// Does all that is to be done about a recurring action now.
    pub(super) async fn fire_recurring(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError> {
        let stored = decode(&record).map_err(LaneError::unreadable)?;
        let (mut action, now) = (stored.action, timestamp(now_ms));
        let (mut plan, mut failed, before) = (Plan::default(), Vec::new(), action.before());
        // In this order: an instance that had ended by then has told so in what is read after it.
        let looked_at = self.look_at_running(&action, now).await?;
        let ends = self.ends_of(&action).await?;
        ends.fold_into(&mut action);
        match action.schedule.compile(&self.zones) {
            Ok(schedule) => {
                action.refresh(&schedule, self.zones.version());
                // With more ends to come, what seems to have ended without telling may be among
                // them.
                match looked_at {
                    Some(_) if !ends.is_complete => action.progress.check_at = Some(later(now, FIRST_CHECK)),
                    Some(looked_at) => {
                        failed = self.settle_silent(&mut action, looked_at, now, &mut plan).await?;
                    }
                    None => {}
                }
                self.take_steps(&mut action, &schedule, now, &mut plan).await?;
            }
            // It could be compiled when it was stored; a zone may be gone from the database.
            Err(error) => action.disable(&error.to_string()),
        }
        plan.conclude(&*self.store, before, &action, now).await?;
        let entries: Vec<HistoryEntry> = plan.entries().cloned().collect();
        let mut batch = plan.into_batch(&action, stored.version, self.options.history())?;
        batch.writes.extend(ends.into_deletes());
        match self.store.commit_records(batch).await {
            Ok(_) => {
                report(&action, &entries, now_ms);
                failed.iter().for_each(|run| run.report(&action.id));
                Ok(Handled::Done)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                tracing::debug!(recurring_id = action.id, "recurring.skip_claimed");
                Ok(Handled::Lost)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn take_steps(
        &self,
        action: &mut RecurringAction,
        schedule: &Schedule,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Result<(), ActionError> {
        let moment = Moment { now, missed_after: self.options.missed_after };
        let begun_ns = self.clock.monotonic_ns();
        for number in 0..MAX_STEPS {
            let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(begun_ns));
            if took > MAX_STEPS_TIME {
                return Ok(());
            }
            let Some(step) = decide(action, schedule, moment) else { return Ok(()) };
            let is_later_firing = number > 0 && matches!(step, Step::Fire { .. });
            let before_step = is_later_firing.then(|| action.clone());
            if step == Step::Resume
                && let Some(skipped) = action.skipped_while_paused(schedule, now)
            {
                plan.note_stretch(&*self.store, action, schedule, skipped).await?;
            }
            action.advance(&step, schedule, now);
            match step {
                Step::Resume | Step::Disable { .. } => {}
                Step::Buffer { time } => plan.note(HistoryEntry::new(time, Decision::Buffered, now)),
                Step::Skip { time, reason } => plan.note(HistoryEntry::skipped(time, reason, now)),
                Step::LeaveOut { from, until } => {
                    let stretch = HistoryEntry::left_out(schedule, from, until, now);
                    plan.note_stretch(&*self.store, action, schedule, stretch).await?;
                }
                Step::SkipRange { from, in_time_from, until } => {
                    let middle = in_time_from.unwrap_or(until);
                    for (stretch, reason) in
                        [((from, middle), SkipReason::Missed), ((middle, until), SkipReason::Coalesced)]
                    {
                        if stretch.0 < stretch.1 {
                            let stretch = HistoryEntry::stretch(schedule, stretch, reason, now);
                            plan.note_stretch(&*self.store, action, schedule, stretch).await?;
                        }
                    }
                }
                Step::Fire { time, note, cancels, .. } => {
                    let dispatcher = Dispatcher {
                        store: &*self.store,
                        client: &self.client,
                        functions: &self.functions,
                        options: &self.options,
                        current_trace: self.current_trace,
                    };
                    let firing = Firing { time, note, cancels, is_manual: false };
                    let fired = dispatcher.fire(action, firing, now, plan).await;
                    match (fired, before_step) {
                        // What was decided before is committed; the occurrence is still due, and comes next.
                        (Err(error), Some(before_step)) if is_refused_check(&error) => {
                            *action = before_step;
                            return Ok(());
                        }
                        (fired, _) => drop(fired?),
                    }
                }
            }
        }
        Ok(())
    }

    /// The ends that wait for an action. What does not run has no say in what is fired: the lane of
    /// ends takes that in.
    async fn ends_of(&self, action: &RecurringAction) -> Result<RunEnds, ActionError> {
        if action.progress.running.is_empty() {
            return Ok(RunEnds::none());
        }
        let folder = history_prefix(&action.scope(), &action.id);
        Ok(RunEnds::read(&*self.store, &folder).await?)
    }

    /// How far the instances of an action are, if it is time to look after those whose ends have
    /// not come.
    async fn look_at_running(
        &self,
        action: &RecurringAction,
        now: Timestamp,
    ) -> Result<Option<Vec<LookedAt>>, ActionError> {
        if action.progress.check_at.is_none_or(|at| at > now) {
            return Ok(None);
        }
        let mut looked_at = Vec::new();
        for running in &action.progress.running {
            let ended = self.ended(&running.instance).await?;
            looked_at.push(LookedAt { running: running.clone(), ended });
        }
        Ok(Some(looked_at))
    }

    /// Settles what has ended without telling; those that have failed.
    async fn settle_silent(
        &self,
        action: &mut RecurringAction,
        looked_at: Vec<LookedAt>,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Result<Vec<FailedRun>, ActionError> {
        let (mut failed, mut longest_ms) = (Vec::new(), 0);
        for LookedAt { running, ended } in looked_at {
            if !action.progress.running.contains(&running) {
                continue;
            }
            let Some(ended) = ended else {
                longest_ms = longest_ms.max(check_pause_ms(due_ms(running.started_at), due_ms(now)));
                continue;
            };
            let id = history_id(&action.scope(), &action.id, running.time);
            let entry = self.store.get_record(RECURRING_HISTORY_KIND, &id).await?;
            let mut entry = entry.as_ref().and_then(readable_history);
            if action.end(entry.as_mut(), &running.instance, &ended, now) {
                entry.into_iter().for_each(|entry| plan.note(entry));
                if let Ended::Failed(error) = ended {
                    failed.push(FailedRun { instance: running.instance, error });
                }
            } else {
                // Its end was written down, so it does not run.
                action.progress.running.retain(|other| other.instance != running.instance);
            }
        }
        action.progress.check_at = (longest_ms > 0).then(|| later(now, Duration::from_millis(longest_ms)));
        Ok(failed)
    }
}

/// A run that was looked after.
struct LookedAt {
    running: RunningOccurrence,
    /// How it ended; none if it has not.
    ended: Option<Ended>,
}

/// A run whose failure nothing has told of.
struct FailedRun {
    instance: String,
    error: String,
}

impl FailedRun {
    /// Counts and logs it, once it is committed.
    fn report(&self, recurring_id: &str) {
        let FailedRun { instance, error } = self;
        metrics::counter!(telemetry::RECURRING_ERRORS).increment(1);
        tracing::error!(recurring_id, instance, error, "recurring.dispatch_error");
    }
}

/// Whether an error says that too many inputs of the tenant wait to be checked.
fn is_refused_check(error: &ActionError) -> bool {
    matches!(error, ActionError::Function(FunctionError::Busy))
}

/// Counts and logs what was committed.
fn report(action: &RecurringAction, entries: &[HistoryEntry], now_ms: u64) {
    let id = &action.id;
    for entry in entries {
        match entry.decision {
            Decision::Fired if entry.outcome.is_none() => {
                metrics::counter!(telemetry::RECURRING_DISPATCHED).increment(1);
                metrics::histogram!(telemetry::LATENESS_SECONDS, "kind" => "recurring")
                    .record(lateness_seconds(due_ms(action.fires_at(entry.time)), now_ms));
                tracing::info!(recurring_id = id, time = %entry.time, instance = entry.instance, "recurring.dispatch");
            }
            Decision::Skipped | Decision::Disabled => entry.tell(id),
            Decision::Refused => {
                metrics::counter!(telemetry::RECURRING_ERRORS).increment(1);
                tracing::error!(recurring_id = id, time = %entry.time, error = entry.detail, "recurring.dispatch_error");
            }
            _ => {}
        }
    }
}
