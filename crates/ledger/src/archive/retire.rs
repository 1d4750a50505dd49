//! Retirement: records whose time is over are archived, then removed from the store.
//!
//! What has ended becomes due when its time is over, in place of ceasing to exist. A sweep takes
//! what is due, a part at a time: it writes the rows of a part to the archive, and then removes the
//! records in one commit, on condition that none of them has changed. So the due index is where a
//! sweep stands: a node that ends in between leaves rows that are archived and still in the store,
//! the next sweep writes them again under the same keys, and readers take them once. What is not
//! due costs nothing.
//!
//! One node sweeps at a time: it holds a lease with a life, and each removal also renews the lease
//! on condition that it is still its own (fencing).

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use segno::clock::{self, Clock, duration_ms};
use segno::store::{DueRecords, ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::kind::Kind;
use super::limits::{
    BYTES_PER_PART, MAX_CHANGED_PARTS, PART_PAUSE, RECORDS_PER_PART, RETIRE_INTERVAL, RETIRE_LEASE,
    UNREADABLE_PAUSE,
};
use super::store::{ArchiveFault, ArchiveStore};
use super::write::Sorted;
use crate::tables::Cell;
use crate::telemetry;

/// Kind of the record that is the lease.
const LEASE: &str = "segno.archive-retire";

/// Records of one kind that are archived when their time is over.
#[async_trait]
pub trait Retiring: Send + Sync + 'static {
    /// Kind of the records that are due when the time of something is over.
    fn due_kind(&self) -> &'static str;

    /// What becomes of that which a due record stands for.
    ///
    /// # Errors
    /// Those of the store.
    async fn retire(&self, store: &dyn Store, due: &Record) -> Result<Retired, ProviderError>;
}

/// What becomes of something whose time is over.
#[derive(Debug)]
pub enum Retired {
    /// It is archived and removed.
    Moves(Moving),
    /// There is nothing to archive any more; the due record is removed.
    Gone,
    /// It is not over: it is due again at this time, in Unix milliseconds.
    DueAt(u64),
    /// It cannot be read, for this reason, and stays. It is looked at again later.
    Stays(String),
}

/// Something that is archived and removed.
#[derive(Debug)]
pub struct Moving {
    /// Whose it is.
    pub scope: Scope,
    /// Its rows, each with its kind.
    pub rows: Vec<(&'static Kind, Vec<Cell>)>,
    /// The writes that remove it, on condition that it is as it was read. The due record is removed
    /// with it.
    pub removal: Vec<RecordWrite>,
}

/// Archives and removes records whose time is over.
pub struct Retirement {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    archive: Option<ArchiveStore>,
    kinds: Vec<Arc<dyn Retiring>>,
}

/// Why a sweep ended early.
#[derive(Debug, thiserror::Error)]
pub enum RetireFault {
    /// The store, or the archive.
    #[error("{0}")]
    Archive(#[from] ArchiveFault),
    /// Another node has taken over.
    #[error("another node has taken over; it does what is left")]
    TakenOver,
    /// Records changed again and again while they were archived.
    #[error("records of kind {0} change all the time while they are archived")]
    Changing(&'static str),
}

impl From<ProviderError> for RetireFault {
    fn from(error: ProviderError) -> Self {
        RetireFault::Archive(error.into())
    }
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Committed {
    Done,
    /// A record was changed since it was read.
    Changed,
}

/// What is archived and removed at once.
#[derive(Default)]
struct Part {
    sorted: Sorted,
    bytes: usize,
    writes: Vec<RecordWrite>,
    is_last: bool,
}

impl Retirement {
    /// Retirement of records of a store. Without an archive they are removed only: those that
    /// became due while there was one.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        archive: Option<ArchiveStore>,
        kinds: Vec<Arc<dyn Retiring>>,
    ) -> Self {
        Retirement { store, clock, archive, kinds }
    }

    /// Works until `stopping` resolves.
    pub async fn run(self, stopping: impl Future<Output = ()>) {
        tokio::select! {
            () = self.work() => {}
            () = stopping => {}
        }
    }

    async fn work(&self) {
        loop {
            clock::sleep(&*self.clock, RETIRE_INTERVAL).await;
            if let Err(error) = self.sweep().await {
                metrics::counter!(telemetry::ARCHIVE_RETIRE_FAILURES).increment(1);
                tracing::warn!(%error, "archiving of records was interrupted; the next interval continues");
            }
        }
    }

    /// Archives and removes what is due, unless another node does.
    ///
    /// # Errors
    /// Those of the store and of the archive, and when another node has taken over. What was done
    /// until then stays done.
    pub async fn sweep(&self) -> Result<(), RetireFault> {
        if !self.is_any_due().await? {
            return Ok(());
        }
        let Some(mut lease) = self.claim().await? else { return Ok(()) };
        let mut swept = Ok(());
        for kind in &self.kinds {
            match self.sweep_kind(&**kind, &mut lease).await {
                Ok(()) => {}
                // What keeps one kind waiting says nothing about the others.
                Err(changing @ RetireFault::Changing(_)) => swept = Err(changing),
                Err(fault) => {
                    swept = Err(fault);
                    break;
                }
            }
        }
        if !matches!(swept, Err(RetireFault::TakenOver)) {
            self.release(lease).await?;
        }
        swept
    }

    /// Whether there is something to do: a node that finds nothing writes no lease.
    async fn is_any_due(&self) -> Result<bool, ProviderError> {
        for kind in &self.kinds {
            if !self.due(&**kind, self.store.now_ms().await?, 1).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn due(
        &self,
        kind: &dyn Retiring,
        now_ms: u64,
        limit: usize,
    ) -> Result<Vec<Record>, ProviderError> {
        let request =
            DueRecords { kind: kind.due_kind(), now_ms: Some(now_ms), limit, ..DueRecords::default() };
        self.store.due_records(request).await
    }

    async fn sweep_kind(&self, kind: &dyn Retiring, lease: &mut u64) -> Result<(), RetireFault> {
        let mut changed = 0;
        loop {
            let part = self.part(kind).await?;
            if part.writes.is_empty() {
                return Ok(());
            }
            if let Some(archive) = &self.archive
                && !part.sorted.is_empty()
            {
                archive.write(part.sorted).await?;
            }
            match self.commit(lease, part.writes).await? {
                Committed::Done => changed = 0,
                Committed::Changed if changed == MAX_CHANGED_PARTS => {
                    return Err(RetireFault::Changing(kind.due_kind()));
                }
                Committed::Changed => changed += 1,
            }
            if part.is_last && changed == 0 {
                return Ok(());
            }
            clock::sleep(&*self.clock, PART_PAUSE).await;
        }
    }

    /// Reads some of what is due.
    async fn part(&self, kind: &dyn Retiring) -> Result<Part, RetireFault> {
        let now_ms = self.store.now_ms().await?;
        let due = self.due(kind, now_ms, RECORDS_PER_PART).await?;
        let mut part = Part { is_last: due.len() < RECORDS_PER_PART, ..Part::default() };
        for record in due {
            if part.bytes >= BYTES_PER_PART {
                part.is_last = false;
                break;
            }
            match kind.retire(&*self.store, &record).await? {
                Retired::Moves(moving) => part.add(moving, &record),
                Retired::Gone => part.writes.push(removed(&record)),
                Retired::DueAt(at_ms) => part.writes.push(due_at(record, at_ms)),
                Retired::Stays(reason) => {
                    metrics::counter!(telemetry::ARCHIVE_RECORDS_KEPT).increment(1);
                    tracing::warn!(
                        kind = record.kind,
                        id = record.id,
                        reason,
                        "a record cannot be archived, so it stays in the store"
                    );
                    part.writes.push(due_at(record, now_ms.saturating_add(duration_ms(UNREADABLE_PAUSE))));
                }
            }
        }
        Ok(part)
    }

    /// Commits writes as the holder of the lease, which is renewed by it.
    async fn commit(&self, lease: &mut u64, mut writes: Vec<RecordWrite>) -> Result<Committed, RetireFault> {
        writes.insert(0, lease_write(Expect::Version(*lease)));
        match self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
            Ok(versions) => {
                *lease = versions.first().copied().unwrap_or_default();
                Ok(Committed::Done)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let held = self.store.get_record(LEASE, LEASE_ID).await?;
                match held.is_some_and(|held| held.version == *lease) {
                    true => Ok(Committed::Changed),
                    false => Err(RetireFault::TakenOver),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn claim(&self) -> Result<Option<u64>, ProviderError> {
        // A look, so that nodes that find it taken write nothing.
        if self.store.get_record(LEASE, LEASE_ID).await?.is_some() {
            return Ok(None);
        }
        let batch = RecordBatch { writes: vec![lease_write(Expect::Absent)], ..RecordBatch::default() };
        match self.store.commit_records(batch).await {
            Ok(versions) => Ok(versions.first().copied()),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn release(&self, lease: u64) -> Result<(), ProviderError> {
        let write = RecordWrite::Delete {
            kind: LEASE.to_owned(),
            id: LEASE_ID.to_owned(),
            expect: Expect::Version(lease),
        };
        match self.store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            released => released.map(drop),
        }
    }
}

/// There is one lease.
const LEASE_ID: &str = "all";

impl Part {
    fn add(&mut self, moving: Moving, due: &Record) {
        for (kind, row) in moving.rows {
            self.bytes += row.iter().map(super::write::cell_bytes).sum::<usize>();
            let of_scope = self.sorted.entry(moving.scope.clone()).or_default();
            of_scope.entry(kind.name).or_default().push(row);
        }
        let is_due_record = |write: &RecordWrite| write.key() == (due.kind.as_str(), due.id.as_str());
        if !moving.removal.iter().any(is_due_record) {
            self.writes.push(removed(due));
        }
        self.writes.extend(moving.removal);
    }
}

fn lease_write(expect: Expect) -> RecordWrite {
    RecordWrite::Put {
        kind: LEASE.to_owned(),
        id: LEASE_ID.to_owned(),
        expect,
        due_at_ms: None,
        time_to_live: Some(RETIRE_LEASE),
        body: Bytes::new(),
    }
}

/// The write that removes a record as it was read.
pub(super) fn removed(record: &Record) -> RecordWrite {
    let (kind, id) = (record.kind.clone(), record.id.clone());
    RecordWrite::Delete { kind, id, expect: Expect::Version(record.version) }
}

fn due_at(record: Record, at_ms: u64) -> RecordWrite {
    let Record { kind, id, version, body, .. } = record;
    RecordWrite::Put {
        kind,
        id,
        expect: Expect::Version(version),
        due_at_ms: Some(at_ms),
        time_to_live: None,
        body,
    }
}
