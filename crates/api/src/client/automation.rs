//! Queries of runbooks' data sources.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::automation::{Automation, DecideRemoval, PreviewRunbook, RunbookPreview, SetAutomation};

/// How long a preview may wait for a place and take, longer than other answers.
const PREVIEW_WAIT: Duration = Duration::from_secs(60);

impl Client {
    /// The query of a runbook: when it runs, and what came of it.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn automation(&self, runbook: &str) -> Result<Automation, ClientError> {
        self.get(&["v1", "runbooks", runbook, "automation"]).await
    }

    /// Switches the query of a runbook on or off.
    ///
    /// # Errors
    /// `unknown-runbook`, `source-not-queried`, `source-failed` when the tenant may not use what
    /// the source names.
    pub async fn set_automation(
        &self,
        runbook: &str,
        switch: SetAutomation,
    ) -> Result<Automation, ClientError> {
        let path = ["v1", "runbooks", runbook, "automation"];
        self.read(self.request(Method::PUT, &path, Duration::ZERO).json(&switch)).await
    }

    /// Approves the removal of the members that were shown.
    ///
    /// # Errors
    /// `unknown-runbook`, `removal-not-pending`.
    pub async fn approve_removal(
        &self,
        runbook: &str,
        decided: DecideRemoval,
    ) -> Result<Automation, ClientError> {
        self.post(&["v1", "runbooks", runbook, "removal", "approve"], &decided).await
    }

    /// Keeps the members that were shown.
    ///
    /// # Errors
    /// `unknown-runbook`, `removal-not-pending`.
    pub async fn reject_removal(
        &self,
        runbook: &str,
        decided: DecideRemoval,
    ) -> Result<Automation, ClientError> {
        self.post(&["v1", "runbooks", runbook, "removal", "reject"], &decided).await
    }

    /// Runs the query of a runbook, published or not, and changes nothing.
    ///
    /// # Errors
    /// `unknown-runbook`, `invalid-runbook`, `source-not-queried`, `source-failed`,
    /// `invalid-members`.
    pub async fn preview_runbook(
        &self,
        runbook: &str,
        preview: &PreviewRunbook,
    ) -> Result<RunbookPreview, ClientError> {
        let path = ["v1", "runbooks", runbook, "preview"];
        // The server decides how long a query may take; here it only makes the patience of the connection longer.
        let call =
            self.request(Method::POST, &path, Duration::ZERO).timeout(super::ANSWER_TIMEOUT + PREVIEW_WAIT);
        self.read(call.json(preview)).await
    }
}
