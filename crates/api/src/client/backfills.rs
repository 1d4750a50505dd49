//! Backfills.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError, PageRequest};
use crate::backfill::{
    Backfill, BackfillChanged, BackfillChunkList, BackfillList, CreateBackfill, CreatedBackfill,
};

impl Client {
    /// Creates a backfill.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run` when the partitions or a number are wrong.
    pub async fn create_backfill(&self, request: &CreateBackfill) -> Result<CreatedBackfill, ClientError> {
        self.post(&["v1", "backfills"], request).await
    }

    /// A page of backfills, newest first.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn backfills(&self, page: impl Into<PageRequest>) -> Result<BackfillList, ClientError> {
        self.get_with(&["v1", "backfills"], &page.into()).await
    }

    /// A backfill.
    ///
    /// # Errors
    /// `unknown-backfill`.
    pub async fn backfill(&self, id: &str) -> Result<Backfill, ClientError> {
        self.get(&["v1", "backfills", id]).await
    }

    /// A page of the chunks of a backfill that were started, in order.
    ///
    /// # Errors
    /// `unknown-backfill`.
    pub async fn backfill_chunks(
        &self,
        id: &str,
        page: impl Into<PageRequest>,
    ) -> Result<BackfillChunkList, ClientError> {
        self.get_with(&["v1", "backfills", id, "chunks"], &page.into()).await
    }

    /// Pauses a backfill: no further chunks are started.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it does not run.
    pub async fn pause_backfill(&self, id: &str) -> Result<BackfillChanged, ClientError> {
        self.backfill_request(id, "pause").await
    }

    /// Resumes a paused backfill.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it is not paused.
    pub async fn resume_backfill(&self, id: &str) -> Result<BackfillChanged, ClientError> {
        self.backfill_request(id, "resume").await
    }

    /// Cancels a backfill with its runs.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it has ended.
    pub async fn cancel_backfill(&self, id: &str) -> Result<BackfillChanged, ClientError> {
        self.backfill_request(id, "cancel").await
    }

    /// Runs the chunks of a backfill again that have failed, as a new backfill.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused` when it has not ended or none of its chunks has failed.
    pub async fn retry_backfill(&self, id: &str) -> Result<CreatedBackfill, ClientError> {
        self.read(self.request(Method::POST, &["v1", "backfills", id, "retry"], Duration::ZERO)).await
    }

    async fn backfill_request(&self, id: &str, verb: &str) -> Result<BackfillChanged, ClientError> {
        self.read(self.request(Method::POST, &["v1", "backfills", id, verb], Duration::ZERO)).await
    }
}
