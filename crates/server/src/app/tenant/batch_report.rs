//! A batch of a tenant after its end: its report as a stream of lines, and its deletion.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use segno::clock;
use segno_runbook::drive::{BatchDeletion, Report};
use segno_runbook::report::incomplete_line;
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

    /// The report of a batch as CSV, read in parts while it is sent. Its first part is read before
    /// it is answered. An error behind it ends the report with a line that says so, and breaks the
    /// answer off, so that half a report looks like a whole one neither to people nor to programs.
    ///
    /// # Errors
    /// `unknown-batch`, and why its first part cannot be read.
    pub async fn batch_report(
        &self,
        batch: u64,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, Refusal> {
        let report = self.resources().runbooks.report(&self.owner(), BatchId(batch)).await;
        let mut report = report.map_err(|error| self.refused(error))?;
        let first = self.resources().runbooks.report_part(&self.owner(), &mut report).await;
        let first = first.map_err(|error| self.refused(error))?;
        let first = stream::iter(first.map(|part| Ok(Bytes::from(part))));
        Ok(first.chain(stream::unfold(Reading::Parts(self.clone(), Box::new(report)), next_part)))
    }
}

/// A report that is being sent.
enum Reading {
    Parts(Tenant, Box<Report>),
    /// The line that says so was sent.
    Failed(String),
    Ended,
}

async fn next_part(reading: Reading) -> Option<(io::Result<Bytes>, Reading)> {
    let (tenant, mut report) = match reading {
        Reading::Parts(tenant, report) => (tenant, report),
        Reading::Failed(reason) => return Some((Err(io::Error::other(reason)), Reading::Ended)),
        Reading::Ended => return None,
    };
    match tenant.resources().runbooks.report_part(&tenant.owner(), &mut report).await {
        Ok(part) => Some((Ok(Bytes::from(part?)), Reading::Parts(tenant, report))),
        Err(error) => {
            tracing::warn!(%error, "a report of a batch is broken off");
            let refusal = tenant.refused(error);
            let line = incomplete_line(&format!("the report ends here: {}", refusal.detail()));
            Some((Ok(Bytes::from(line)), Reading::Failed(refusal.detail().to_owned())))
        }
    }
}
