//! Batches of a tenant that are in the archive.

use segno_actions::Listed;
use segno_api::batch as wire;
use segno_ledger::archive::{
    ArchivedRow, BATCHES, BatchRow, Kind, MEMBERS, MemberRow, PHASES, PhaseRow, STEPS, StepRow,
};
use serde::de::DeserializeOwned;

use super::Tenant;
use crate::problem::{Code, Refusal};

impl Tenant {
    /// An archived batch with its phases and init steps; `None` when it is not in the archive.
    ///
    /// # Errors
    /// `archive-unavailable`.
    pub(super) async fn archived_batch(&self, id: u64) -> Result<Option<wire::BatchDetails>, Refusal> {
        let Some(row) = self.of_batch::<BatchRow>(&BATCHES, id).await?.pop() else { return Ok(None) };
        let mut batch: wire::Batch = parsed(&row.data)?;
        batch.archived = true;
        let phases = self.of_batch::<PhaseRow>(&PHASES, id).await?;
        let init = self.of_batch::<StepRow>(&STEPS, id).await?;
        let init = init.iter().filter(|row| &*row.kind == "init");
        let mut phases: Vec<wire::Phase> =
            phases.iter().map(|row| parsed(&row.data)).collect::<Result<_, _>>()?;
        phases.sort_by_key(|phase| (phase.due_at, phase.id));
        let why = "it has ended; its time in the store is over, and it is in the archive".to_owned();
        Ok(Some(wire::BatchDetails {
            batch,
            phases,
            init: init.map(|row| parsed(&row.data)).collect::<Result<_, _>>()?,
            notices: Vec::new(),
            unreadable: Vec::new(),
            explanation: wire::Explanation { why, released_by: None, wakes_at: None },
        }))
    }

    /// Members of an archived batch after one; `None` when the batch is not in the archive.
    ///
    /// # Errors
    /// `archive-unavailable`.
    pub(super) async fn archived_members(
        &self,
        batch: u64,
        (after, limit): (Option<u64>, usize),
    ) -> Result<Option<Vec<Listed<wire::Member>>>, Refusal> {
        if self.of_batch::<BatchRow>(&BATCHES, batch).await?.is_empty() {
            return Ok(None);
        }
        let rows = self.of_batch::<MemberRow>(&MEMBERS, batch).await?;
        let id = |row: &MemberRow| u64::try_from(row.member).unwrap_or(0);
        let wanted = rows.iter().filter(|row| after.is_none_or(|after| id(row) > after)).take(limit);
        let members = wanted.map(|row| parsed(&row.data).map(Listed::Readable));
        Ok(Some(members.collect::<Result<_, _>>()?))
    }

    /// A member of an archived batch with its steps; `None` when it is not in the archive.
    ///
    /// # Errors
    /// `archive-unavailable`.
    pub(super) async fn archived_member(
        &self,
        batch: u64,
        member: u64,
    ) -> Result<Option<wire::MemberDetails>, Refusal> {
        let rows = self.of_batch::<MemberRow>(&MEMBERS, batch).await?;
        let Some(row) = rows.iter().find(|row| u64::try_from(row.member) == Ok(member)) else {
            return Ok(None);
        };
        let steps = self.of_batch::<StepRow>(&STEPS, batch).await?;
        let steps = steps.iter().filter(|step| step.member == Some(row.member));
        Ok(Some(wire::MemberDetails {
            member: parsed(&row.data)?,
            steps: steps.map(|row| parsed(&row.data)).collect::<Result<_, _>>()?,
            unreadable: Vec::new(),
        }))
    }

    /// The rows of a batch, in the order of their ids.
    async fn of_batch<R: ArchivedRow>(&self, kind: &'static Kind, id: u64) -> Result<Vec<R>, Refusal> {
        let Some(archive) = &self.resources().archive else { return Ok(Vec::new()) };
        let rows = archive.latest(&self.owner(), kind, &id.to_string()).await;
        rows.map_err(|error| self.refused(error))
    }
}

fn parsed<T: DeserializeOwned>(data: &str) -> Result<T, Refusal> {
    serde_json::from_str(data).map_err(|error| {
        tracing::error!(%error, "an archived row of a batch cannot be read");
        Refusal::new(Code::Internal, "an archived row cannot be read; the server's log has the reason")
    })
}
