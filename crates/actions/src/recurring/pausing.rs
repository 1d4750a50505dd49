//! Pausing and going on.

use jiff::Timestamp;

use super::book::{RecurringActions, never_fires};
use super::decide::before;
use super::history::{HistoryEntry, MAX_COUNTED, SkipReason};
use super::model::RecurringAction;
use crate::action::ActionError;
use crate::functions::Scope;
use crate::schedule::Schedule;

/// How somebody pauses a recurring action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pause {
    /// Why.
    pub note: Option<String>,
    /// When it goes on by itself.
    pub resumes_at: Option<Timestamp>,
}

impl RecurringActions {
    /// Lets a paused action go on, if there is anything left to come.
    pub(super) fn go_on(
        &self,
        action: &mut RecurringAction,
        schedule: &Schedule,
        now: Timestamp,
    ) -> Result<(), ActionError> {
        if action.policy.max_executions.is_some_and(|most| action.execution_count >= most) {
            return Err(ActionError::invalid("max_executions", "is reached; raise it before you resume"));
        }
        self.zones.version().clone_into(&mut action.progress.zones);
        action.resume(schedule, now);
        if action.enabled { Ok(()) } else { Err(never_fires(action)) }
    }

    /// Pauses a recurring action. What runs goes on. Pausing what is paused changes its note and time, and nothing else.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` when the time to go on is not in the future.
    pub async fn pause(&self, scope: &Scope, id: &str, pause: Pause) -> Result<RecurringAction, ActionError> {
        let changed = self.change(scope, id, |action, now| {
            if pause.resumes_at.is_some_and(|at| at <= now) {
                return Err(ActionError::invalid(
                    "resumes_at",
                    "is in the past; choose a later time, or leave it out",
                ));
            }
            let before = action.clone();
            action.pause(pause.clone(), now);
            if *action != before {
                action.updated_at = now;
            }
            // Whatever else is wrong with it by now: it can be paused.
            action.check_free_texts(Some(&before))?;
            Ok(None)
        });
        let action = changed.await?;
        tracing::info!(recurring_id = id, "recurring.pause");
        Ok(action)
    }

    /// Lets a paused recurring action go on, from the next occurrence after now. Resuming what is not paused changes nothing.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` when there is no occurrence left.
    pub async fn resume(&self, scope: &Scope, id: &str) -> Result<RecurringAction, ActionError> {
        let changed = self.change(scope, id, |action, now| {
            if action.enabled {
                return Ok(None);
            }
            let schedule = self.schedule_of(action)?;
            let skipped = action.skipped_while_paused(&schedule, now);
            self.go_on(action, &schedule, now)?;
            action.updated_at = now;
            Ok(skipped)
        });
        let action = changed.await?;
        tracing::info!(recurring_id = id, "recurring.resume");
        Ok(action)
    }
}

impl RecurringAction {
    /// Pauses it, or changes the note and time of its pause.
    pub(super) fn pause(&mut self, pause: Pause, now: Timestamp) {
        if self.enabled {
            self.disable("");
            self.disabled_reason = None;
            self.paused_at = Some(now);
        }
        self.pause_note = pause.note;
        self.resumes_at = pause.resumes_at;
    }

    /// What was not run because of a pause that ends now.
    pub(crate) fn skipped_while_paused(&self, schedule: &Schedule, now: Timestamp) -> Option<HistoryEntry> {
        let since = self.paused_at?;
        let first = schedule.next_after(since).filter(|first| first.time <= now)?.time;
        let count = schedule.between(before(first), now).take(MAX_COUNTED).count();
        let until = schedule.next_after(now).map(|next| next.time);
        let detail = self.pause_note.clone();
        let entry = HistoryEntry::skipped(first, SkipReason::Paused, now);
        Some(HistoryEntry { until, count: Some(count as u64), detail, ..entry })
    }
}
