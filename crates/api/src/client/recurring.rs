//! Recurring actions.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::Json;
use crate::recurring::{
    BackfillRecurring, Backfilled, PauseRecurring, RecurringAction, RecurringCreated, RecurringExplanation,
    RecurringFields, RecurringHistory, RecurringList, RecurringPreview, RecurringRun, RecurringState,
    RunRecurring,
};

impl Client {
    /// Makes a recurring action.
    ///
    /// # Errors
    /// `invalid-action` with the field, `unknown-function`, `invalid-input`, `too-many-recurring`.
    pub async fn create_recurring(&self, request: &RecurringFields) -> Result<RecurringCreated, ClientError> {
        self.post(&["v1", "recurring"], request).await
    }

    /// A page of recurring actions.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn recurring_list(
        &self,
        enabled: Option<bool>,
        page: impl Into<PageRequest>,
    ) -> Result<RecurringList, ClientError> {
        let call = self.request(Method::GET, &["v1", "recurring"], Duration::ZERO);
        let call = call.query(&enabled.map(|enabled| [("enabled", enabled)]));
        self.read(call.query(&page.into())).await
    }

    /// One recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn recurring(&self, id: &str) -> Result<RecurringAction, ClientError> {
        self.get(&["v1", "recurring", id]).await
    }

    /// Changes a recurring action: fields as in [`RecurringFields`]; `null` clears one.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` with the field.
    pub async fn update_recurring(&self, id: &str, changes: &Json) -> Result<RecurringAction, ClientError> {
        let call = self.request(Method::PUT, &["v1", "recurring", id], Duration::ZERO).json(changes);
        self.read(call).await
    }

    /// Deletes a recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn delete_recurring(&self, id: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &["v1", "recurring", id], Duration::ZERO);
        self.done(call).await
    }

    /// Pauses a recurring action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn pause_recurring(
        &self,
        id: &str,
        pause: &PauseRecurring,
    ) -> Result<RecurringState, ClientError> {
        self.post(&["v1", "recurring", id, "pause"], pause).await
    }

    /// Lets a recurring action go on.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` when there is no occurrence left.
    pub async fn resume_recurring(&self, id: &str) -> Result<RecurringState, ClientError> {
        self.post(&["v1", "recurring", id, "resume"], &serde_json::json!({})).await
    }

    /// Runs a recurring action now, out of schedule.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when another run is in the way.
    pub async fn run_recurring(&self, id: &str, run: &RunRecurring) -> Result<RecurringRun, ClientError> {
        self.post(&["v1", "recurring", id, "run"], run).await
    }

    /// What became of its occurrences, newest first.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn recurring_history(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<RecurringHistory, ClientError> {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        self.get_with(&["v1", "recurring", id, "history"], &query).await
    }

    /// Why it did or did not run at a time.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn explain_recurring(
        &self,
        id: &str,
        time: Timestamp,
    ) -> Result<RecurringExplanation, ClientError> {
        self.get_with(&["v1", "recurring", id, "explain"], &[("time", time.to_string())]).await
    }

    /// Its next times.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn preview_recurring(&self, id: &str, count: usize) -> Result<RecurringPreview, ClientError> {
        self.get_with(&["v1", "recurring", id, "preview"], &[("count", count.to_string())]).await
    }

    /// Runs what lies in the past and was not run.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `invalid-action` for a range that is none, `action-state` unless runs may overlap.
    pub async fn backfill_recurring(
        &self,
        id: &str,
        range: &BackfillRecurring,
    ) -> Result<Backfilled, ClientError> {
        self.post(&["v1", "recurring", id, "backfill"], range).await
    }
}
