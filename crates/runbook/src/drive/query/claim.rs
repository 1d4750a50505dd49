//! Which node runs a query. The version of the record is the fencing token: every commit of a run
//! expects it.
//!
//! People change the same record: they switch the query on and off, and decide about removals. A
//! run whose commit fails reads the record again. If the lease is still its own, it takes over what
//! people have written and goes on.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::row::QueryRow;
use crate::drive::error::DriveError;
use crate::drive::lease::{self, Holder, Look};
use crate::drive::place::{BatchPlace, QUERIES, head_id};
use crate::drive::post::{self, timestamp};
use crate::message::Request;

/// Attempts to commit beside records that others change.
pub(super) const ATTEMPTS: usize = 32;

/// A query that this node runs.
pub(super) struct Claim {
    store: Arc<dyn Store>,
    holder: Holder,
    pub(super) scope: Scope,
    pub(super) row: QueryRow,
    version: u64,
    /// When the lease was renewed last, in Unix milliseconds of the store.
    renewed_ms: u64,
}

/// What a commit of a run writes besides the lease.
#[derive(Default)]
pub(super) struct Part<'p> {
    /// A message for a batch.
    pub(super) message: Option<(&'p BatchPlace, &'p Request)>,
    /// Records.
    pub(super) writes: Vec<RecordWrite>,
}

impl Claim {
    /// Takes the query of a due record, unless another node is first.
    pub(super) async fn take(
        store: Arc<dyn Store>,
        record: &Record,
        holder: Holder,
    ) -> Result<Option<Self>, DriveError> {
        let (Some(scope), Ok(row)) = (scope_of(record), QueryRow::read(record)) else {
            return Err(unreadable(record));
        };
        let now_ms = store.now_ms().await?;
        if row.is_running(now_ms) {
            return Ok(None);
        }
        let mut claim = Claim { store, holder, scope, row, version: record.version, renewed_ms: 0 };
        claim.row.run += 1;
        claim.row.attempts += 1;
        claim.row.last_run_at = Some(timestamp(now_ms));
        match claim.commit_at(now_ms, Vec::new()).await {
            Ok(()) => Ok(Some(claim)),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How long until the lease has to be renewed.
    pub(super) fn renew_every(&self) -> Duration {
        self.holder.lease / 2
    }

    /// Renews the lease if half of it is over.
    pub(super) async fn keep(&mut self) -> Result<(), DriveError> {
        let now_ms = self.store.now_ms().await?;
        if now_ms.saturating_sub(self.renewed_ms) < duration_ms(self.renew_every()) {
            return Ok(());
        }
        self.commit(Part::default()).await
    }

    /// Commits a part with the renewed lease. A message for a batch that was deleted is left out.
    pub(super) async fn commit(&mut self, part: Part<'_>) -> Result<(), DriveError> {
        for _ in 0..ATTEMPTS {
            let now_ms = self.store.now_ms().await?;
            let mut writes = part.writes.clone();
            let mut attended = None;
            if let Some((place, request)) = part.message {
                let look = lease::look(&*self.store, place, now_ms).await?;
                if !matches!(look, Look::Absent) {
                    writes.extend(post::writes(place, std::slice::from_ref(request), now_ms).0);
                }
                match look {
                    Look::Absent => {}
                    Look::Attended => attended = Some(place),
                    Look::Wake(write) => writes.push(write),
                }
            }
            match self.commit_at(now_ms, writes).await {
                Ok(()) => {
                    if let Some(place) = attended {
                        lease::wake(&*self.store, place, now_ms).await?;
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict => self.adopt().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.contended())
    }

    /// Others change the same records all the time.
    pub(super) fn contended(&self) -> DriveError {
        let message = format!("the query of {} is changed by many writers", self.row.name);
        ProviderError::unavailable("commit_query", message).into()
    }

    /// Ends the run: the record is as the row, without the lease. Returns whether it was stored; if
    /// not, the row of this claim has what people have written meanwhile.
    pub(super) async fn release(&mut self, mut row: QueryRow) -> Result<bool, DriveError> {
        (row.node, row.until_ms) = (None, None);
        let writes = vec![row.write(&self.scope, Expect::Version(self.version))];
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => self.adopt().await.map(|()| false),
            Err(error) => Err(error.into()),
        }
    }

    async fn commit_at(&mut self, now_ms: u64, mut writes: Vec<RecordWrite>) -> Result<(), ProviderError> {
        self.row.node = Some(self.holder.node.clone());
        self.row.until_ms = Some(now_ms.saturating_add(duration_ms(self.holder.lease)));
        writes.push(self.row.write(&self.scope, Expect::Version(self.version)));
        let versions = self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        self.version = versions.last().copied().unwrap_or_default();
        self.renewed_ms = now_ms;
        Ok(())
    }

    /// Takes over what people have written, if the lease is still that of this run.
    async fn adopt(&mut self) -> Result<(), DriveError> {
        let id = head_id(&self.scope, &self.row.name);
        let record = self.store.get_record(QUERIES, &id).await?.ok_or(DriveError::LeaseLost)?;
        let stored = QueryRow::read(&record).map_err(|_| DriveError::LeaseLost)?;
        if stored.run != self.row.run || stored.node.as_deref() != Some(&self.holder.node) {
            return Err(DriveError::LeaseLost);
        }
        self.version = record.version;
        self.row.pending_removal = stored.pending_removal;
        self.row.last_decision = stored.last_decision;
        self.row.approved_run = stored.approved_run;
        self.row.rejected_run = stored.rejected_run;
        Ok(())
    }
}

fn scope_of(record: &Record) -> Option<Scope> {
    let mut parts = record.id.splitn(3, '/');
    Scope::new(parts.next()?, parts.next()?).ok()
}

fn unreadable(record: &Record) -> DriveError {
    let problem = QueryRow::read(record).err().map_or_else(|| "its id".to_owned(), |error| error.to_string());
    DriveError::Unreadable { kind: QUERIES, id: record.id.clone(), problem }
}
