//! Actions.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::Json;
use crate::action::{Action, ActionList, CreateAction};

impl Client {
    /// Makes an action.
    ///
    /// # Errors
    /// `invalid-action` with the field, `unknown-function`, `invalid-input`.
    pub async fn create_action(&self, request: &CreateAction) -> Result<Action, ClientError> {
        self.post(&["v1", "actions"], request).await
    }

    /// A page of actions, in one state or in several with commas between them.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn actions(
        &self,
        status: Option<&str>,
        page: impl Into<PageRequest>,
    ) -> Result<ActionList, ClientError> {
        let call = self.request(Method::GET, &["v1", "actions"], Duration::ZERO);
        let call = call.query(&status.map(|status| [("status", status)]));
        self.read(call.query(&page.into())).await
    }

    /// One action.
    ///
    /// # Errors
    /// `unknown-action` when there is none.
    pub async fn action(&self, id: &str) -> Result<Action, ClientError> {
        self.get(&["v1", "actions", id]).await
    }

    /// Changes an action; `null` clears a field.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when it is too late.
    pub async fn patch_action(&self, id: &str, changes: &Json) -> Result<Action, ClientError> {
        let call = self.request(Method::PATCH, &["v1", "actions", id], Duration::ZERO).json(changes);
        self.read(call).await
    }

    /// Cancels an action that waits or runs.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when it has ended.
    pub async fn cancel_action(&self, id: &str) -> Result<Action, ClientError> {
        self.post(&["v1", "actions", id, "cancel"], &serde_json::json!({})).await
    }

    /// Runs an action now: one that waits does so no more, and one that has ended is done once more as a new one.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `action-state` when it runs.
    pub async fn run_action(&self, id: &str) -> Result<Action, ClientError> {
        self.post(&["v1", "actions", id, "run"], &serde_json::json!({})).await
    }

    /// Deletes an action.
    ///
    /// # Errors
    /// `unknown-action` when there is none, `forbidden` without a grant.
    pub async fn delete_action(&self, id: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &["v1", "actions", id], Duration::ZERO);
        self.done(call).await
    }
}
