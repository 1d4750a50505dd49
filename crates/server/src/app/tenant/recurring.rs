//! Recurring actions of a tenant. Instances in what is returned are in the caller's ids.

use jiff::Timestamp;
use segno_actions::Listed;
use segno_actions::action::ActionError;
use segno_actions::listing::Place;
use segno_actions::recurring::{
    Backfill, BackfillLine, Explanation, HistoryEntry, NewRecurringAction, Pause, RecurringAction, RunAnswer,
};
use segno_actions::schedule::{Schedule, Zones};

use super::Tenant;

impl Tenant {
    /// Makes a recurring action.
    ///
    /// # Errors
    /// Those of recurring actions.
    pub async fn create_recurring(&self, new: NewRecurringAction) -> Result<RecurringAction, ActionError> {
        let created = self.resources().recurring.create(&self.owner(), new).await?;
        Ok(self.shown_recurring(created))
    }

    /// Recurring actions after a place, newest first.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn recurring_page(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, Listed<RecurringAction>)>, ActionError> {
        let page = self.resources().recurring.page(&self.owner(), after, limit).await?;
        let shown = |row: Listed<RecurringAction>| match row {
            Listed::Readable(action) => Listed::Readable(self.shown_recurring(action)),
            unreadable => unreadable,
        };
        Ok(page.into_iter().map(|(place, row)| (place, shown(row))).collect())
    }

    /// One recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn recurring(&self, id: &str) -> Result<RecurringAction, ActionError> {
        Ok(self.shown_recurring(self.resources().recurring.get(&self.owner(), id).await?))
    }

    /// Changes a recurring action.
    ///
    /// # Errors
    /// Those of recurring actions.
    pub async fn update_recurring(
        &self,
        id: &str,
        change: impl Fn(&mut RecurringAction) -> Result<(), ActionError> + Send + Sync,
    ) -> Result<RecurringAction, ActionError> {
        Ok(self.shown_recurring(self.resources().recurring.update(&self.owner(), id, change).await?))
    }

    /// Deletes a recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn delete_recurring(&self, id: &str) -> Result<(), ActionError> {
        self.resources().recurring.delete(&self.owner(), id).await
    }

    /// Pauses a recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn pause_recurring(&self, id: &str, pause: Pause) -> Result<RecurringAction, ActionError> {
        Ok(self.shown_recurring(self.resources().recurring.pause(&self.owner(), id, pause).await?))
    }

    /// Resumes a recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn resume_recurring(&self, id: &str) -> Result<RecurringAction, ActionError> {
        Ok(self.shown_recurring(self.resources().recurring.resume(&self.owner(), id).await?))
    }

    /// What became of occurrences, newest first.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn recurring_history(
        &self,
        id: &str,
        earlier_than: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<Listed<HistoryEntry>>, ActionError> {
        let entries = self.resources().recurring.history(&self.owner(), id, earlier_than, limit).await?;
        Ok(entries.into_iter().map(|entry| entry.map(|entry| self.shown_entry(entry))).collect())
    }

    /// Why it did or did not run at a time.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn explain_recurring(&self, id: &str, time: Timestamp) -> Result<Explanation, ActionError> {
        let explained = self.resources().recurring.explain(&self.owner(), id, time).await?;
        let entry = explained.entry.map(|entry| self.shown_entry(entry));
        Ok(Explanation { entry, ..explained })
    }

    /// Runs what lies in the past and was not run.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn backfill_recurring(
        &self,
        id: &str,
        backfill: Backfill,
    ) -> Result<Vec<BackfillLine>, ActionError> {
        let lines = self.resources().recurring.backfill(&self.owner(), id, backfill).await?;
        let shown = |line: BackfillLine| BackfillLine {
            instance: self.shown_instance(line.instance.as_deref()),
            ..line
        };
        Ok(lines.into_iter().map(shown).collect())
    }

    /// Runs a recurring action now, out of schedule.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when another run is in the way.
    pub async fn run_recurring(&self, id: &str, key: &str) -> Result<RunAnswer, ActionError> {
        let mut answer = self.resources().recurring.run(&self.owner(), id, key).await?;
        answer.run.instance = self.shown_instance(answer.run.instance.as_deref());
        Ok(answer)
    }

    /// The schedule of a stored recurring action.
    ///
    /// # Errors
    /// `invalid-schedule` when it cannot be read any more.
    pub fn schedule_of(&self, action: &RecurringAction) -> Result<Schedule, ActionError> {
        self.resources().recurring.schedule_of(action)
    }

    /// The schedule of a recurring action that could be made.
    ///
    /// # Errors
    /// What its creation would be refused with.
    pub async fn check_new_recurring(&self, new: NewRecurringAction) -> Result<Schedule, ActionError> {
        self.resources().recurring.check_new(&self.owner(), new).await
    }

    /// The schedule of a recurring action that does not say yet what it calls.
    ///
    /// # Errors
    /// What is wrong with the schedule.
    pub fn check_schedule(&self, new: NewRecurringAction) -> Result<Schedule, ActionError> {
        self.resources().recurring.check_schedule(&self.owner(), new)
    }

    /// The time zones in use.
    pub fn zones(&self) -> &Zones {
        self.resources().recurring.zones()
    }

    fn shown_recurring(&self, action: RecurringAction) -> RecurringAction {
        let last_execution_id = self.shown_instance(action.last_execution_id.as_deref());
        RecurringAction { last_execution_id, ..action }
    }

    /// An entry of a history, in the ids of the caller.
    pub fn shown_entry(&self, entry: HistoryEntry) -> HistoryEntry {
        let instance = self.shown_instance(entry.instance.as_deref());
        HistoryEntry { instance, ..entry }
    }
}
