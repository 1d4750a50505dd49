//! Why something did or did not run.

use jiff::{SignedDuration, Timestamp};
use segno::clock::duration_ms;
use segno::store::{ErrorKind, ListRecords};

use super::book::RecurringActions;
use super::decide::before;
use super::history::{Decision, HistoryEntry, Outcome, SkipReason};
use super::model::RecurringAction;
use super::record::{RECURRING_HISTORY_KIND, decode_history, history_id, history_prefix};
use crate::action::ActionError;
use crate::functions::{HumanDuration, Scope};
use crate::schedule::Schedule;

/// Why a recurring action did or did not run at a time. Its text has no times in it: they are fields, so that readers show them
/// in their own zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The time that was asked for.
    pub time: Timestamp,
    /// Whether it ran, or will run.
    pub runs: bool,
    /// Why, for people.
    pub text: String,
    /// The next occurrence after it that will run; `None` when there is none, or the action is paused without an end.
    pub next: Option<Timestamp>,
    /// Since when the action is paused, if that is why.
    pub paused_at: Option<Timestamp>,
    /// When the action goes on by itself, if that is known and it is paused.
    pub resumes_at: Option<Timestamp>,
    /// When the action was created, if it did not exist at that time.
    pub created_at: Option<Timestamp>,
    /// What is written down about it.
    pub entry: Option<HistoryEntry>,
}

impl Explanation {
    fn new(time: Timestamp, (runs, text): (bool, String)) -> Self {
        Explanation {
            time,
            runs,
            text,
            next: None,
            paused_at: None,
            resumes_at: None,
            created_at: None,
            entry: None,
        }
    }
}

/// What is written down about an occurrence.
struct Written {
    entry: Option<HistoryEntry>,
    /// Why the entry that may be about it cannot be read.
    unreadable: Option<String>,
}

impl Written {
    fn unreadable(reason: &str) -> Self {
        Written { entry: None, unreadable: Some(reason.to_owned()) }
    }
}

/// What can be said when the entry that may be about an occurrence cannot be read.
fn unknown(reason: &str) -> String {
    format!(
        "whether it ran is not known: what is written down about it, or about a stretch that it may be in, cannot be read ({reason})"
    )
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
        let schedule = self.schedule_of(&action)?;
        let Written { entry, unreadable } = self.entry_about(&action, time).await?;
        // A stretch is about the occurrences in it, not about the time between them.
        let is_about = |entry: &HistoryEntry| {
            entry.time == time || schedule.count_with_excluded(time, just_after(time), 1) > 0
        };
        let explained = match entry.filter(is_about) {
            Some(entry) => {
                // A stretch of missed or paused occurrences can have days in it that the calendar leaves out anyway.
                let text = left_out(&schedule, time).filter(|_| entry.time != time);
                let reason = text.map_or_else(|| told(&entry), |text| (false, text));
                Explanation { entry: Some(entry), ..Explanation::new(time, reason) }
            }
            None => match unreadable {
                Some(reason) => Explanation::new(time, (false, unknown(&reason))),
                None => self.reason(&action, &schedule, time),
            },
        };
        let next = next_after(&action, &schedule, time.max(self.now()));
        Ok(Explanation { next, ..explained })
    }

    /// What is written down about an occurrence, by itself or in a stretch that began before it.
    async fn entry_about(&self, action: &RecurringAction, time: Timestamp) -> Result<Written, ActionError> {
        let scope = action.scope();
        let (prefix, after) =
            (history_prefix(&scope, &action.id), history_id(&scope, &action.id, just_after(time)));
        let request = ListRecords {
            kind: RECURRING_HISTORY_KIND,
            id_prefix: &prefix,
            after_id: Some(&after),
            limit: 1,
        };
        let entry = match self.store.list_records(request).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return Ok(Written::unreadable(error.condition().unwrap_or("it does not decode")));
            }
            records => records?.first().map(decode_history).transpose(),
        };
        let entry = match entry {
            Err(ActionError::Unreadable { reason, .. }) => return Ok(Written::unreadable(&reason)),
            entry => entry?,
        };
        // A stretch can reach into what is still to come, and the schedule may have been changed since.
        let is_open = action.next_execution_at.is_some_and(|next| next <= time);
        let entry = entry.filter(|entry| entry.time == time || (entry.covers(time) && !is_open));
        Ok(Written { entry, unreadable: None })
    }

    fn reason(&self, action: &RecurringAction, schedule: &Schedule, time: Timestamp) -> Explanation {
        let no = |text: String| Explanation::new(time, (false, text));
        if let Some(text) = left_out(schedule, time) {
            return no(text);
        }
        let here = schedule.next_after(before(time));
        let Some(here) = here.filter(|here| here.time == time) else {
            return no("the schedule has no occurrence then".to_owned());
        };
        let note = here.note.map(|note| format!(" ({note})")).unwrap_or_default();
        if time < action.created_at {
            let created_at = Some(action.created_at);
            return Explanation {
                created_at,
                ..no("it did not exist then: it was created later".to_owned())
            };
        }
        if !action.enabled && action.paused_at.is_none_or(|since| since <= time) {
            return paused(action, &note, time);
        }
        if action.next_execution_at.is_some_and(|next| next <= time) {
            let text = match time > self.now() {
                true => format!("it will run then{note}"),
                false => format!("it is due and about to be fired{note}"),
            };
            return Explanation::new(time, (true, text));
        }
        let kept = HumanDuration::from_millis(duration_ms(self.options.keep_history));
        no(format!(
            "nothing is known of it: the schedule was another one then, or it is longer ago than history is kept ({kept})"
        ))
    }
}

/// Why an occurrence of an action that is paused or disabled does not run, or that it does because the pause is over by then.
fn paused(action: &RecurringAction, note: &str, time: Timestamp) -> Explanation {
    let (paused_at, resumes_at) = (action.paused_at, action.resumes_at);
    // What is due at the very moment of going on belongs to the pause.
    if resumes_at.is_some_and(|at| at < time) {
        let text = format!("it will run then: it is paused, and goes on by itself before{note}");
        return Explanation { paused_at, resumes_at, ..Explanation::new(time, (true, text)) };
    }
    let state = if paused_at.is_some() { "it is paused then" } else { "it is disabled" };
    let why = action.disabled_reason.as_deref().or(action.pause_note.as_deref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Explanation { paused_at, resumes_at, ..Explanation::new(time, (false, format!("{state}{why}"))) }
}

/// The next occurrence after a time that will run, as far as that is known.
fn next_after(action: &RecurringAction, schedule: &Schedule, time: Timestamp) -> Option<Timestamp> {
    let from = match action.enabled {
        true => time,
        false => action.resumes_at?.max(time),
    };
    schedule.next_after(from).map(|next| next.time)
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
            (true, format!("it was fired{note} and {end}{detail}"))
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
        (Decision::Skipped, Some(SkipReason::Coalesced)) => (
            false,
            "it was skipped: a later occurrence was due as well when a node came to it, and of several that are \
             due at once only the last is run, but for those that the policy \"missed\" catches up with"
                .to_owned(),
        ),
        (Decision::Skipped, _) => (
            false,
            "it was skipped: no node fired it in time, and the policy \"missed\" does not catch up with it"
                .to_owned(),
        ),
    }
}
