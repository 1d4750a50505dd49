//! A batch of a tenant after its end: its report as a stream of lines, and its deletion.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use segno::clock;
use segno_runbook::drive::{BatchDeletion, Report};
use segno_runbook::rows::BatchId;

use super::Tenant;
use crate::problem::{Code, Refusal};

/// How long the deletion of a batch waits for its node, which keeps it for some seconds after its
/// end.
const RELEASED_WITHIN: Duration = Duration::from_secs(10);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Tenant {
    /// Deletes a batch that has ended.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused` when it has not ended.
    pub async fn delete_batch(&self, batch: u64) -> Result<(), Refusal> {
        let until_ms = self.app.clock.now_ms().saturating_add(clock::duration_ms(RELEASED_WITHIN));
        loop {
            let deleted = self.resources().runbooks.delete_batch(&self.owner(), BatchId(batch)).await;
            if deleted.map_err(|error| self.refused(error))? == BatchDeletion::Deleted {
                return Ok(());
            }
            let is_late = self.app.clock.now_ms() >= until_ms;
            if is_late || self.sleep(LOOK_EVERY, until_ms).await.is_none() {
                let detail = format!("a node still holds batch {batch}; try again in some seconds");
                return Err(Refusal::new(Code::BatchRequestRefused, detail));
            }
        }
    }

    /// The report of a batch as CSV, read in parts while it is sent. An error in between breaks the
    /// answer off, so that half a report does not look like a whole one.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn batch_report(
        &self,
        batch: u64,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, Refusal> {
        let report = self.resources().runbooks.report(&self.owner(), BatchId(batch)).await;
        let report = report.map_err(|error| self.refused(error))?;
        Ok(stream::try_unfold((self.clone(), report), next_part))
    }
}

async fn next_part((tenant, mut report): (Tenant, Report)) -> io::Result<Option<(Bytes, (Tenant, Report))>> {
    let part = tenant.resources().runbooks.report_part(&tenant.owner(), &mut report).await;
    let part = part.map_err(|error| {
        tracing::warn!(%error, "a report of a batch is broken off");
        io::Error::other(error.to_string())
    })?;
    Ok(part.map(|part| (Bytes::from(part), (tenant, report))))
}
