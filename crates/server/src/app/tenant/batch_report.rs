//! The report of a batch of a tenant, as a stream of lines.

use std::io;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use segno_runbook::drive::Report;
use segno_runbook::rows::BatchId;

use super::Tenant;
use crate::problem::Refusal;

impl Tenant {
    /// The report of a batch as CSV, read in parts while it is sent. An error in between breaks the answer off, so that half
    /// a report does not look like a whole one.
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
