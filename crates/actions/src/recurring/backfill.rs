//! Running what lies in the past, because somebody says so.

use jiff::Timestamp;
use segno::Code;
use segno::store::ErrorKind;

use super::book::RecurringActions;
use super::decide::before;
use super::dispatch::Firing;
use super::history::{Decision, HistoryEntry};
use super::model::RecurringAction;
use super::plan::Plan;
use super::policy::OverlapPolicy;
use super::record::{RECURRING_HISTORY_KIND, history_id, readable_history};
use crate::action::ActionError;
use crate::functions::Scope;
use crate::schedule::{Occurrence, Schedule};

/// Most occurrences of one backfill.
pub const MAX_BACKFILL: usize = 500;

/// How often a firing is tried again when others change the same action.
const MAX_TRIES: usize = 100;

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    /// From this time on.
    pub start: Timestamp,
    /// Up to and including this time.
    pub end: Timestamp,
    /// At most so many.
    pub limit: usize,
    /// Only say what would be run.
    pub dry_run: bool,
}

/// What became of an occurrence of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackfillOutcome {
    /// It would be started.
    WouldStart,
    /// It was started.
    Started,
    /// It had been run.
    AlreadyRun,
    /// The calendar leaves out its day, and the days up to the next line.
    Excluded,
    /// Its dedup key had been seen.
    Deduplicated,
    /// Its call could not be made.
    Refused,
}

/// What became of one occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillLine {
    /// The scheduled time.
    pub time: Timestamp,
    /// What became of it.
    pub outcome: BackfillOutcome,
    /// Why its call could not be made, or what it is excluded by.
    pub detail: Option<String>,
    /// The instance of its call.
    pub instance: Option<String>,
}

/// What lies in a range of the past.
enum Past {
    /// An occurrence to be run.
    Open(Occurrence),
    /// Those that the calendar leaves out before the next one.
    Excluded { from: Timestamp, detail: Option<String> },
}

/// What lies in the range of a backfill, in order.
fn past_of(schedule: &Schedule, backfill: Backfill) -> Result<Vec<Past>, ActionError> {
    let (mut past, mut last, mut open) = (Vec::new(), before(backfill.start), 0);
    loop {
        let following = schedule.following(last);
        if let Some(from) = following.excluded.filter(|from| *from <= backfill.end) {
            past.push(Past::Excluded { from, detail: schedule.exclusion_of(from) });
        }
        let Some(next) = following.next.filter(|next| next.time <= backfill.end) else { break };
        last = next.time;
        open += 1;
        if open > backfill.limit {
            let problem =
                format!("there are more than {} occurrences; choose a shorter range", backfill.limit);
            return Err(ActionError::invalid("end", problem));
        }
        past.push(Past::Open(next));
    }
    Ok(past)
}

impl RecurringActions {
    /// Runs the occurrences of a time range that have not been run, whatever the policy for missed ones is.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` for a range that is none, `action-state` unless runs of it may
    /// overlap.
    pub async fn backfill(
        &self,
        scope: &Scope,
        id: &str,
        backfill: Backfill,
    ) -> Result<Vec<BackfillLine>, ActionError> {
        let action = self.read(scope, id).await?.action;
        self.check_backfill(&action, backfill)?;
        let schedule = self.schedule_of(&action)?;
        let mut lines = Vec::new();
        for past in past_of(&schedule, backfill)? {
            lines.push(match past {
                Past::Excluded { from, detail } => {
                    let outcome = BackfillOutcome::Excluded;
                    BackfillLine { time: from, outcome, detail, instance: None }
                }
                Past::Open(past) => self.run_past(&action, &schedule, past, backfill.dry_run).await?,
            });
        }
        Ok(lines)
    }

    fn check_backfill(&self, action: &RecurringAction, backfill: Backfill) -> Result<(), ActionError> {
        if backfill.end < backfill.start {
            return Err(ActionError::invalid("end", "is before start; choose a later time"));
        }
        if backfill.end > self.now() {
            return Err(ActionError::invalid(
                "end",
                "is in the future; a backfill runs what lies in the past",
            ));
        }
        if !(1..=MAX_BACKFILL).contains(&backfill.limit) {
            return Err(ActionError::invalid("limit", format!("must be 1 to {MAX_BACKFILL}")));
        }
        if action.policy.overlap_policy != OverlapPolicy::Allow {
            let problem = "a backfill starts many runs at once, and overlap_policy does not allow that; set it to allow";
            return Err(ActionError::State { problem: problem.to_owned() });
        }
        Ok(())
    }

    async fn run_past(
        &self,
        action: &RecurringAction,
        schedule: &Schedule,
        Occurrence { time, note, .. }: Occurrence,
        dry_run: bool,
    ) -> Result<BackfillLine, ActionError> {
        let line = |outcome| BackfillLine { time, outcome, detail: None, instance: None };
        if self.has_run(action, time).await? {
            return Ok(line(BackfillOutcome::AlreadyRun));
        }
        if dry_run {
            return Ok(line(BackfillOutcome::WouldStart));
        }
        for _ in 0..MAX_TRIES {
            let stored = self.read(&action.scope(), &action.id).await?;
            let (mut action, now) = (stored.action, self.now());
            let (mut plan, before) = (Plan::default(), action.before());
            plan.split_stretch(&*self.store, &action, schedule, time).await?;
            let firing = Firing { time, note, cancels: false, is_manual: false };
            let entry = self.dispatcher().fire(&mut action, firing, now, &mut plan).await?;
            plan.conclude(&*self.store, before, &action, now).await?;
            let ended: Vec<_> =
                plan.entries().filter(|entry| entry.decision == Decision::Disabled).cloned().collect();
            let batch = plan.into_batch(&action, stored.version, self.options.history())?;
            match self.store.commit_records(batch).await {
                Ok(_) => {
                    ended.iter().for_each(|entry| entry.tell(&action.id));
                    let outcome = match entry.decision {
                        Decision::Fired => BackfillOutcome::Started,
                        Decision::Skipped => BackfillOutcome::Deduplicated,
                        _ => BackfillOutcome::Refused,
                    };
                    return Ok(BackfillLine {
                        time,
                        outcome,
                        detail: entry.detail,
                        instance: entry.instance,
                    });
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
            if self.has_run(&action, time).await? {
                return Ok(line(BackfillOutcome::AlreadyRun));
            }
        }
        Err(ActionError::State {
            problem: format!("recurring action {} is changed by others all the time", action.id),
        })
    }

    /// Whether an occurrence was run, by what is written down or by what is left of its call.
    async fn has_run(&self, action: &RecurringAction, time: Timestamp) -> Result<bool, ActionError> {
        let id = history_id(&action.scope(), &action.id, time);
        if let Some(record) = self.store.get_record(RECURRING_HISTORY_KIND, &id).await? {
            // Without an entry that can be read, what is left of its call decides.
            let is_run = |entry: HistoryEntry| {
                entry.time == time && matches!(entry.decision, Decision::Fired | Decision::Buffered)
            };
            if readable_history(&record).is_some_and(is_run) {
                return Ok(true);
            }
        }
        match self.client.instance(&action.instance_id(time)?).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Code::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
