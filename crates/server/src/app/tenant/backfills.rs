//! Backfills of a tenant.

use segno_api::backfill::{Backfill, BackfillChanged, BackfillChunk, CreateBackfill, CreatedBackfill};
use segno_ledger::drive::{self, Accepted, NewBackfill, Request};

use super::run_rows as rows;
use super::{Requester, Tenant};
use crate::problem::Refusal;

/// What is requested of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackfillRequest {
    /// No further chunks are started.
    Pause,
    /// Chunks are started again.
    Resume,
    /// It ends, and its runs with it.
    Cancel,
}

impl Tenant {
    /// Creates a backfill.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run`.
    pub async fn create_backfill(
        &self,
        request: CreateBackfill,
        requester: Requester,
    ) -> Result<CreatedBackfill, Refusal> {
        let defaults = NewBackfill::new(request.dag, request.partitions);
        let new = NewBackfill {
            chunk_size: request.chunk_size.unwrap_or(defaults.chunk_size),
            max_concurrent_runs: request.max_concurrent_runs.unwrap_or(defaults.max_concurrent_runs),
            params: request.params,
            by: requester.by,
            request_id: requester.key,
            ..defaults
        };
        let created = self.ledger()?.backfills().create(&self.owner(), new).await;
        created.map(made).map_err(|error| self.refused(error))
    }

    /// Creates a backfill for what has failed of another.
    ///
    /// # Errors
    /// `unknown-backfill`, `unknown-dag`, `run-request-refused`.
    pub async fn retry_backfill(&self, id: &str, requester: Requester) -> Result<CreatedBackfill, Refusal> {
        let by = Request { by: requester.by, reason: None, request_id: requester.key };
        let created = self.ledger()?.backfills().retry(&self.owner(), id, by).await;
        created.map(made).map_err(|error| self.refused(error))
    }

    /// Backfills after a place (time of creation in milliseconds, id), newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn backfills(
        &self,
        after: Option<(i64, &str)>,
        limit: usize,
    ) -> Result<Vec<Backfill>, Refusal> {
        let found = self.ledger()?.backfills().list(&self.owner(), after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        Ok(found.iter().map(rows::backfill).collect())
    }

    /// A backfill.
    ///
    /// # Errors
    /// `unknown-backfill`.
    pub async fn backfill(&self, id: &str) -> Result<Backfill, Refusal> {
        let found = self.ledger()?.backfills().show(&self.owner(), id).await;
        found.map(|detail| rows::backfill(&detail.backfill)).map_err(|error| self.refused(error))
    }

    /// Chunks of a backfill after one, in order.
    ///
    /// # Errors
    /// `unknown-backfill`.
    pub async fn backfill_chunks(
        &self,
        id: &str,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<BackfillChunk>, Refusal> {
        let found = self.ledger()?.backfills().show(&self.owner(), id).await;
        let chunks = found.map_err(|error| self.refused(error))?.chunks;
        let chunks = chunks.iter().filter(|chunk| after.is_none_or(|after| chunk.chunk_index > after));
        Ok(chunks.take(limit).map(rows::chunk).collect())
    }

    /// Pauses, resumes or cancels a backfill.
    ///
    /// # Errors
    /// `unknown-backfill`, `run-request-refused`.
    pub async fn request_of_backfill(
        &self,
        id: &str,
        request: BackfillRequest,
        requester: Requester,
    ) -> Result<BackfillChanged, Refusal> {
        let (backfills, owner) = (self.ledger()?.backfills(), self.owner());
        let by = Request { by: requester.by, reason: None, request_id: requester.key };
        let done = match request {
            BackfillRequest::Pause => backfills.pause(&owner, id, by).await,
            BackfillRequest::Resume => backfills.resume(&owner, id, by).await,
            BackfillRequest::Cancel => backfills.cancel(&owner, id, by).await,
        };
        let Accepted { visible } = done.map_err(|error| self.refused(error))?;
        Ok(BackfillChanged { id: id.to_owned(), is_visible: visible })
    }
}

fn made(created: drive::CreatedBackfill) -> CreatedBackfill {
    CreatedBackfill {
        id: created.backfill_id,
        total_partitions: created.total_partitions,
        is_visible: created.visible,
    }
}
