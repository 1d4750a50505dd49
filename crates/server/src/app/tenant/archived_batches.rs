//! Batches of a tenant: those in the store, and those that are in the archive.

use segno_actions::Listed;
use segno_api::batch as wire;
use segno_ledger::archive::{
    ArchivedRow, BATCHES, BatchRow, Kind, MEMBERS, MemberRow, PHASES, PhaseRow, STEPS, StepRow,
};
use segno_runbook::drive::RunbookError;
use segno_runbook::rows::{BatchId, normal_key};
use serde::de::DeserializeOwned;

use super::Tenant;
use crate::problem::{Code, Refusal};

impl Tenant {
    /// A batch with its phases and init steps, from the archive if it is no longer in the store.
    ///
    /// # Errors
    /// `unknown-batch` when it is in neither, `archive-unavailable` when it is not in the store and the archive cannot be
    /// read.
    pub async fn batch(&self, id: u64) -> Result<wire::BatchDetails, Refusal> {
        match self.live_batch(id).await {
            Err(refusal) if is_unknown(&refusal) => self.archived_batch(id).await?.ok_or(refusal),
            found => found,
        }
    }

    /// Members of a batch after one, from the archive if the batch is no longer in the store.
    ///
    /// # Errors
    /// As those of [`Tenant::batch`].
    pub async fn members(
        &self,
        batch: u64,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Listed<wire::Member>>, Refusal> {
        match self.live_members(batch, after, limit).await {
            Err(refusal) if is_unknown(&refusal) => {
                let rows = self.archived_members(batch).await?.ok_or(refusal)?;
                let is_after = |row: &&MemberRow| after.is_none_or(|after| member_id(row) > after);
                let rows = rows.iter().filter(is_after).take(limit);
                rows.map(|row| parsed(&row.data).map(Listed::Readable)).collect()
            }
            found => found,
        }
    }

    /// The member of a batch that has a key, from the archive if the batch is no longer in the store; none if no member has
    /// it.
    ///
    /// # Errors
    /// As those of [`Tenant::batch`].
    pub async fn member_of_key(&self, batch: u64, key: &str) -> Result<Option<wire::Member>, Refusal> {
        match self.live_member_of_key(batch, key).await {
            Err(refusal) if is_unknown(&refusal) => {
                let rows = self.archived_members(batch).await?.ok_or(refusal)?;
                let key = normal_key(key);
                let row = rows.iter().find(|row| normal_key(&row.key) == key);
                row.map(|row| parsed(&row.data)).transpose()
            }
            found => found,
        }
    }

    /// A member with its steps, from the archive if the batch is no longer in the store.
    ///
    /// # Errors
    /// As those of [`Tenant::batch`]; `not-found` when the batch has no such member.
    pub async fn member(&self, batch: u64, member: u64) -> Result<wire::MemberDetails, Refusal> {
        match self.live_member(batch, member).await {
            Err(refusal) if is_unknown(&refusal) => {
                let rows = self.archived_members(batch).await?.ok_or(refusal)?;
                let Some(row) = rows.iter().find(|row| member_id(row) == member) else {
                    return Err(Refusal::not_found("member", &member.to_string()));
                };
                let steps = self.of_batch::<StepRow>(&STEPS, batch).await?;
                let steps = steps.iter().filter(|step| step.member == Some(row.member));
                Ok(wire::MemberDetails {
                    member: parsed(&row.data)?,
                    steps: steps.map(|row| parsed(&row.data)).collect::<Result<_, _>>()?,
                    unreadable: Vec::new(),
                })
            }
            found => found,
        }
    }

    async fn archived_batch(&self, id: u64) -> Result<Option<wire::BatchDetails>, Refusal> {
        let Some(row) = self.of_batch::<BatchRow>(&BATCHES, id).await?.pop() else { return Ok(None) };
        let batch: wire::Batch = parsed(&row.data)?;
        let phases = self.of_batch::<PhaseRow>(&PHASES, id).await?;
        let init = self.of_batch::<StepRow>(&STEPS, id).await?;
        let init = init.iter().filter(|row| &*row.kind == "init");
        let mut phases: Vec<wire::Phase> =
            phases.iter().map(|row| parsed(&row.data)).collect::<Result<_, _>>()?;
        phases.sort_by_key(|phase| (phase.due_at, phase.id));
        let why = "it has ended; its time in the store is over, and it is in the archive".to_owned();
        Ok(Some(wire::BatchDetails {
            batch: wire::Batch { archived: true, ..batch },
            phases,
            init: init.map(|row| parsed(&row.data)).collect::<Result<_, _>>()?,
            notices: Vec::new(),
            unreadable: Vec::new(),
            explanation: wire::Explanation { why, released_by: None, wakes_at: None },
        }))
    }

    /// The members of a batch, by id; `None` when the batch is not in the archive.
    async fn archived_members(&self, batch: u64) -> Result<Option<Vec<MemberRow>>, Refusal> {
        if self.of_batch::<BatchRow>(&BATCHES, batch).await?.is_empty() {
            return Ok(None);
        }
        self.of_batch::<MemberRow>(&MEMBERS, batch).await.map(Some)
    }

    /// The rows of a batch, in the order of their ids.
    async fn of_batch<R: ArchivedRow>(&self, kind: &'static Kind, id: u64) -> Result<Vec<R>, Refusal> {
        let Some(archive) = &self.resources().archive else { return Ok(Vec::new()) };
        let rows = archive.latest(&self.owner(), kind, &id.to_string()).await;
        rows.map_err(|error| self.refused(error))
    }
}

/// Whether a refusal means that the store does not have the batch.
fn is_unknown(refusal: &Refusal) -> bool {
    refusal.code() == RunbookError::UnknownBatch(BatchId(0)).code()
}

fn member_id(row: &MemberRow) -> u64 {
    u64::try_from(row.member).unwrap_or(0)
}

fn parsed<T: DeserializeOwned>(data: &str) -> Result<T, Refusal> {
    serde_json::from_str(data).map_err(|error| {
        tracing::error!(%error, "an archived row of a batch cannot be read");
        Refusal::new(Code::Internal, "an archived row cannot be read; the server's log has the reason")
    })
}
