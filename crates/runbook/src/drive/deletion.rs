//! Deleting a batch that has ended. Its own row, its entry in the index and its lease go in one
//! commit, together with a record that is due until all other rows are gone. So a batch is either
//! there as a whole or unknown, and a node that dies leaves nothing behind.

use std::time::Duration;

use segno::clock;
use segno::store::{ErrorKind, Expect, ListRecords, ProviderError, Record, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::error::{DriveError, RunbookError};
use super::holder::Services;
use super::inbox;
use super::lease;
use super::load::decode;
use super::notices::NOTICES;
use super::place::{BATCH_INDEX, BatchPlace, INBOX, LEASES, RECEIPTS};
use super::runbooks::Runbooks;
use super::upkeep::put;
use crate::rows::{BatchId, BatchRow, Row, Table};
use crate::telemetry;

/// Kind of the records of batches whose rows have yet to be deleted.
pub const DELETIONS: &str = "runbook_deletions";

/// Rows that one commit deletes.
const ROWS_PER_COMMIT: usize = 500;

/// Pause between two commits, so that other work comes between.
const PAUSE: Duration = Duration::from_millis(5);

/// Kinds of records below the folder of a batch.
const KINDS: [&str; 10] = [
    Table::PhaseExecutions.name(),
    Table::InitExecutions.name(),
    Table::BatchMembers.name(),
    Table::MemberKeys.name(),
    Table::StepExecutions.name(),
    Table::RollbackExecutions.name(),
    Table::RemovalExecutions.name(),
    INBOX,
    RECEIPTS,
    NOTICES,
];

/// What became of the beginning of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The batch is gone; its rows follow.
    Deleted,
    /// There is no such batch.
    Absent,
    /// The batch has not ended, or steps for removed members are running.
    Open,
    /// A node holds the batch, or has just changed it.
    Held,
}

/// A batch that has ended and that no node holds.
pub(super) struct Deletable {
    /// Its row.
    pub(super) batch: BatchRow,
    /// The version of its lease: as long as the lease has it, no row of the batch has changed.
    pub(super) lease_version: u64,
}

/// Deletes a batch that has ended, if no node holds it.
async fn begin(store: &dyn Store, place: &BatchPlace) -> Result<Beginning, DriveError> {
    match check(store, place).await? {
        Ok(deletable) => delete(store, place, &deletable).await,
        Err(beginning) => Ok(beginning),
    }
}

/// Whether a batch may be deleted now.
pub(super) async fn check(
    store: &dyn Store,
    place: &BatchPlace,
) -> Result<Result<Deletable, Beginning>, DriveError> {
    let id = place.id();
    let Some(lease) = store.get_record(LEASES, &id).await? else { return Ok(Err(Beginning::Absent)) };
    let now_ms = store.now_ms().await?;
    if lease::is_held(&lease, now_ms) {
        return Ok(Err(Beginning::Held));
    }
    // A waiting message may bring the batch back to work: it is applied first. Late results wake no
    // node by themselves.
    if inbox::has_messages(store, place).await? {
        lease::wake(store, place, now_ms).await?;
        return Ok(Err(Beginning::Held));
    }
    // Only a holder writes the row, so it is current as long as the lease has this version.
    let Some(record) = store.get_record(Table::Batches.name(), &id).await? else {
        return Ok(Err(Beginning::Absent));
    };
    let Row::Batch(batch) = decode(Table::Batches, &record)? else { return Ok(Err(Beginning::Absent)) };
    if !has_ended(&batch) {
        return Ok(Err(Beginning::Open));
    }
    Ok(Ok(Deletable { batch, lease_version: lease.version }))
}

/// Deletes a batch if it is as it was checked.
pub(super) async fn delete(
    store: &dyn Store,
    place: &BatchPlace,
    deletable: &Deletable,
) -> Result<Beginning, DriveError> {
    let (id, now_ms) = (place.id(), store.now_ms().await?);
    let delete = |kind: &str, id: String, expect| RecordWrite::Delete { kind: kind.to_owned(), id, expect };
    let writes = vec![
        delete(LEASES, id.clone(), Expect::Version(deletable.lease_version)),
        delete(Table::Batches.name(), id.clone(), Expect::Anything),
        delete(BATCH_INDEX, place.index_id(&deletable.batch.runbook_name), Expect::Anything),
        put(DELETIONS, &id, Expect::Anything, now_ms, Vec::new()),
    ];
    match store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
        Ok(_) => Ok(Beginning::Deleted),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(Beginning::Held),
        Err(error) => Err(error.into()),
    }
}

/// Whether nothing of a batch is running.
pub(super) fn has_ended(batch: &BatchRow) -> bool {
    batch.status.is_terminal() && batch.member_counts.leaving == 0 && batch.rollback_of.is_none()
}

/// Deletes the rows of a batch that is gone.
pub(super) async fn finish(services: &Services, record: Record) -> Result<(), ProviderError> {
    let store = &*services.store;
    let folder = format!("{}/", record.id);
    for kind in KINDS {
        loop {
            let request = ListRecords { kind, id_prefix: &folder, after_id: None, limit: ROWS_PER_COMMIT };
            let page = store.list_records(request).await?;
            let is_last = page.len() < ROWS_PER_COMMIT;
            let delete = |row: Record| RecordWrite::Delete {
                kind: kind.to_owned(),
                id: row.id,
                expect: Expect::Anything,
            };
            let writes: Vec<RecordWrite> = page.into_iter().map(delete).collect();
            if !writes.is_empty() {
                store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
                clock::sleep(&*services.clock, PAUSE).await;
            }
            if is_last {
                break;
            }
        }
    }
    let done = RecordWrite::Delete { kind: DELETIONS.to_owned(), id: record.id, expect: Expect::Anything };
    store.commit_records(RecordBatch { writes: vec![done], ..RecordBatch::default() }).await?;
    metrics::counter!(telemetry::BATCHES_DELETED).increment(1);
    Ok(())
}

/// What became of a request to delete a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchDeletion {
    /// It is deleted.
    Deleted,
    /// It has ended, and a node still holds it, for some seconds; nothing was changed.
    Held,
}

impl Runbooks {
    /// Deletes a batch that has ended, with its members and steps.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused` when it has not ended, `store`.
    pub async fn delete_batch(&self, scope: &Scope, batch: BatchId) -> Result<BatchDeletion, RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        match begin(&*self.store, &place).await? {
            Beginning::Deleted => Ok(BatchDeletion::Deleted),
            Beginning::Absent => Err(RunbookError::UnknownBatch(batch)),
            Beginning::Open => Err(RunbookError::BatchNotEnded(batch)),
            Beginning::Held if has_ended(&self.batch(scope, batch).await?) => Ok(BatchDeletion::Held),
            Beginning::Held => Err(RunbookError::BatchNotEnded(batch)),
        }
    }
}
