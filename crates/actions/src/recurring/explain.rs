//! Why something did or did not run.

use jiff::{SignedDuration, Timestamp};
use segno::store::ListRecords;

use super::book::RecurringActions;
use super::decide::before;
use super::history::{Decision, HistoryEntry, Outcome, SkipReason};
use super::model::RecurringAction;
use super::record::{RECURRING_HISTORY_KIND, decode_history, history_id, history_prefix};
use crate::action::ActionError;
use crate::functions::Scope;
use crate::schedule::Schedule;

/// Why a recurring action did or did not run at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The time that was asked for.
    pub time: Timestamp,
    /// Whether it ran, or will run.
    pub runs: bool,
    /// Why, for people.
    pub text: String,
    /// What is written down about it.
    pub entry: Option<HistoryEntry>,
}

impl RecurringActions {
    /// Says why a recurring action did or did not run at a time.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn explain(
        &self,
        scope: &Scope,
        id: &str,
        time: Timestamp,
    ) -> Result<Explanation, ActionError> {
        let action = self.read(scope, id).await?.action;
        let entry = self.entry_about(&action, time).await?;
        if let Some(entry) = entry.clone().filter(|entry| entry.time == time) {
            let (runs, text) = told(&entry);
            return Ok(Explanation { time, runs, text, entry: Some(entry) });
        }
        let schedule = self.schedule_of(&action)?;
        // A stretch is about the occurrences in it, not about the time between them.
        let is_occurrence = schedule.count_with_excluded(time, just_after(time), 1) > 0;
        if let Some(entry) = entry.filter(|_| is_occurrence) {
            // A stretch of missed or paused occurrences can have days in it that the calendar leaves out anyway.
            let (runs, text) = left_out(&schedule, time).map_or_else(|| told(&entry), |text| (false, text));
            return Ok(Explanation { time, runs, text, entry: Some(entry) });
        }
        let (runs, text) = self.reason(&action, &schedule, time);
        Ok(Explanation { time, runs, text, entry: None })
    }

    /// What is written down about an occurrence, by itself or in a stretch that began before it.
    async fn entry_about(
        &self,
        action: &RecurringAction,
        time: Timestamp,
    ) -> Result<Option<HistoryEntry>, ActionError> {
        let scope = action.scope();
        let (prefix, after) =
            (history_prefix(&scope, &action.id), history_id(&scope, &action.id, just_after(time)));
        let request = ListRecords {
            kind: RECURRING_HISTORY_KIND,
            id_prefix: &prefix,
            after_id: Some(&after),
            limit: 1,
        };
        let records = self.store.list_records(request).await?;
        let entry = records.first().map(decode_history).transpose()?;
        // A stretch can reach into what is still to come, and the schedule may have been changed since.
        let is_open = action.next_execution_at.is_some_and(|next| next <= time);
        Ok(entry.filter(|entry| entry.time == time || (entry.covers(time) && !is_open)))
    }

    fn reason(&self, action: &RecurringAction, schedule: &Schedule, time: Timestamp) -> (bool, String) {
        let now = self.now();
        if let Some(text) = left_out(schedule, time) {
            return (false, text);
        }
        let here = schedule.next_after(before(time));
        let Some(here) = here.filter(|here| here.time == time) else {
            let next = schedule.next_after(time);
            let next = next.map_or("none".to_owned(), |next| next.time.to_string());
            return (
                false,
                format!("the schedule has no occurrence at {time}; the next one after it is {next}"),
            );
        };
        let note = here.note.map(|note| format!(" ({note})")).unwrap_or_default();
        if time < action.created_at {
            return (false, format!("it did not exist then: it was created at {}", action.created_at));
        }
        if !action.enabled && action.paused_at.is_none_or(|since| since <= time) {
            let why = action.disabled_reason.as_deref().or(action.pause_note.as_deref());
            let since = action.paused_at.map(|at| format!(" since {at}")).unwrap_or_default();
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            return (false, format!("it is paused or has ended{since}{why}"));
        }
        if action.next_execution_at.is_some_and(|next| next <= time) {
            return match time > now {
                true => (true, format!("it will run then{note}")),
                false => (true, format!("it is due and about to be fired{note}")),
            };
        }
        let kept = self.options.keep_history;
        (
            false,
            format!(
                "nothing is known of it: the schedule was another one then, or it is longer ago than history is kept ({kept:?})"
            ),
        )
    }
}

fn just_after(time: Timestamp) -> Timestamp {
    time.checked_add(SignedDuration::from_millis(1)).unwrap_or(time)
}

/// Why an occurrence is left out, if the calendar does that.
fn left_out(schedule: &Schedule, time: Timestamp) -> Option<String> {
    schedule.following(before(time)).excluded.filter(|excluded| *excluded == time)?;
    let exclusion = schedule.exclusion_of(time)?;
    Some(format!("the calendar leaves out its day: {exclusion} (exclude)"))
}

fn told(entry: &HistoryEntry) -> (bool, String) {
    let detail = entry.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let note = entry.note.map(|note| format!(" ({note})")).unwrap_or_default();
    match (entry.decision, entry.reason) {
        (Decision::Fired, _) => {
            let end = match entry.outcome {
                None => "has not ended yet",
                Some(Outcome::Completed) => "completed",
                Some(Outcome::Failed) => "failed",
                Some(Outcome::Cancelled) => "was cancelled",
            };
            (true, format!("it was fired at {}{note} and {end}{detail}", entry.decided_at))
        }
        (Decision::Buffered, _) => (true, "it waits for the end of the run before it".to_owned()),
        (Decision::Refused, _) => (false, format!("its call could not be made{detail}")),
        (Decision::Disabled, _) => (false, format!("it was disabled then{detail}")),
        (Decision::Skipped, Some(SkipReason::Overlap)) => {
            (false, "it was skipped: the run before it had not ended (overlap_policy)".to_owned())
        }
        (Decision::Skipped, Some(SkipReason::Calendar)) => {
            (false, format!("it was skipped: the calendar leaves out its day (exclude){detail}"))
        }
        (Decision::Skipped, Some(SkipReason::Dedup)) => {
            (false, "it was skipped: its dedup key had been seen within the dedup window".to_owned())
        }
        (Decision::Skipped, Some(SkipReason::Paused)) => {
            (false, format!("it was skipped: the action was paused or disabled{detail}"))
        }
        (Decision::Skipped, _) => (
            false,
            "it was skipped: no node fired it in time, and the policy \"missed\" does not catch up with it"
                .to_owned(),
        ),
    }
}
