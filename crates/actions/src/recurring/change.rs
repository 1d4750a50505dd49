//! Changing a recurring action that is stored: what changes, what follows from it, and the commit of both.

use jiff::Timestamp;
use segno::store::ErrorKind;

use super::book::{MAX_TRIES, RecurringActions, busy, check_end, never_fires};
use super::history::HistoryEntry;
use super::model::RecurringAction;
use super::named;
use super::pausing::Pause;
use super::plan::Plan;
use super::record::StoredRecurring;
use crate::action::ActionError;
use crate::functions::Scope;
use crate::schedule::Schedule;

impl RecurringActions {
    /// Changes the definition of a recurring action. If its schedule changes, the next time is found again, and what was
    /// decided is not decided again.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` with the field, and what the change says.
    pub async fn update(
        &self,
        scope: &Scope,
        id: &str,
        change: impl Fn(&mut RecurringAction) -> Result<(), ActionError> + Send + Sync,
    ) -> Result<RecurringAction, ActionError> {
        for _ in 0..MAX_TRIES {
            let stored = self.read(scope, id).await?;
            let (mut action, now) = (stored.action.clone(), self.now());
            let schedule = self.redefine(&mut action, &change, now)?;
            action.check_free_texts(Some(&stored.action))?;
            self.check(&action, &schedule, now).await?;
            let skipped = match (stored.action.enabled, action.enabled) {
                // What was passed over was passed over by the schedule of then.
                (false, true) => {
                    let schedule = self.schedule_of(&stored.action)?;
                    stored.action.skipped_while_paused(&schedule, now)
                }
                _ => None,
            };
            if self.replace(&stored, &action, skipped).await? {
                tracing::info!(recurring_id = id, "recurring.update");
                return Ok(action);
            }
        }
        Err(busy(id))
    }

    /// Makes a change of the definition, and what follows from it.
    fn redefine(
        &self,
        action: &mut RecurringAction,
        change: impl Fn(&mut RecurringAction) -> Result<(), ActionError>,
        now: Timestamp,
    ) -> Result<Schedule, ActionError> {
        let before = action.clone();
        change(action)?;
        if action.schedule.ends_at != before.schedule.ends_at {
            check_end(action, now)?;
        }
        let schedule = self.schedule_of(action)?;
        match (before.enabled, action.enabled) {
            (true, true) if action.schedule != before.schedule => self.rearm(action, &schedule, now)?,
            (false, true) => self.go_on(action, &schedule, now)?,
            (true, false) => {
                action.enabled = true;
                action.pause(Pause::default(), now);
            }
            _ => {}
        }
        action.updated_at = now;
        Ok(schedule)
    }

    fn rearm(
        &self,
        action: &mut RecurringAction,
        schedule: &Schedule,
        now: Timestamp,
    ) -> Result<(), ActionError> {
        self.zones.version().clone_into(&mut action.progress.zones);
        action.arm(schedule, now);
        if action.enabled { Ok(()) } else { Err(never_fires(action)) }
    }

    /// Makes a change to what is stored, also while others change it at the same time. What the change returns is a stretch
    /// that was passed over.
    pub(super) async fn change(
        &self,
        scope: &Scope,
        id: &str,
        change: impl Fn(&mut RecurringAction, Timestamp) -> Result<Option<HistoryEntry>, ActionError>,
    ) -> Result<RecurringAction, ActionError> {
        for _ in 0..MAX_TRIES {
            let stored = self.read(scope, id).await?;
            let mut action = stored.action.clone();
            let skipped = change(&mut action, self.now())?;
            if action == stored.action || self.replace(&stored, &action, skipped).await? {
                return Ok(action);
            }
        }
        Err(busy(id))
    }

    /// Writes an action over the version that was read, with what the change has ended. False when another writer was
    /// first.
    async fn replace(
        &self,
        stored: &StoredRecurring,
        action: &RecurringAction,
        skipped: Option<HistoryEntry>,
    ) -> Result<bool, ActionError> {
        let mut plan = Plan::default();
        if let Some(stretch) = skipped {
            let schedule = self.schedule_of(&stored.action)?;
            plan.note_stretch(&*self.store, action, &schedule, stretch).await?;
        }
        plan.conclude(&*self.store, stored.action.before(), action, self.now()).await?;
        let entries: Vec<HistoryEntry> = plan.entries().cloned().collect();
        let mut batch = plan.into_batch(action, stored.version, self.options.history())?;
        batch.writes.extend(named::renamed(&stored.action, action));
        match self.store.commit_records(batch).await {
            Ok(_) => {
                entries.iter().for_each(|entry| entry.tell(&action.id));
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
