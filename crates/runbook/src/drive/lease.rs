//! Which node holds a batch. The version of the lease record is the fencing token: every commit of
//! a holder expects it, so a node that has lost the batch cannot change its rows.
//!
//! The record is due when the batch has to be looked after: at the end of the lease while it is
//! held, at the earliest wake-up of its rows while it is free.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

use super::error::DriveError;
use super::place::{BatchPlace, LEASES};

/// How long a holder that commits nothing keeps its batch, unless the driver sets another time. A
/// lease is renewed when half of it is over.
pub(super) const LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Body {
    /// The node; none while the batch is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// When the lease ends, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
    /// Id of the process, fresh at every start; none if the driver has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<String>,
}

/// A lease that this node has.
#[derive(Debug)]
pub(super) struct Lease {
    id: String,
    holder: Holder,
    version: u64,
    until_ms: u64,
}

/// Who takes leases, and for how long.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// Name of the node.
    pub(super) node: String,
    /// Id of the process.
    pub(super) process: Option<String>,
    /// How long a lease lasts.
    pub(super) lease: Duration,
}

impl Lease {
    /// Takes the batch of a lease record, unless another node holds it or is first.
    pub(super) async fn acquire(
        store: &dyn Store,
        record: &Record,
        holder: Holder,
        now_ms: u64,
    ) -> Result<Option<Self>, ProviderError> {
        if Tenure::of(record, now_ms).is_some() {
            return Ok(None);
        }
        let mut lease = Lease { id: record.id.clone(), holder, version: record.version, until_ms: 0 };
        match commit(store, lease.renewal(now_ms)).await {
            Ok(version) => {
                lease.renewed(version, now_ms);
                Ok(Some(lease))
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The write that keeps the batch, for a commit of its rows. It fails if another node has taken
    /// the batch.
    pub(super) fn renewal(&self, now_ms: u64) -> RecordWrite {
        let until_ms = now_ms.saturating_add(duration_ms(self.holder.lease));
        let Holder { node, process, .. } = &self.holder;
        let body = Body { node: Some(node.clone()), until_ms: Some(until_ms), process: process.clone() };
        write(&self.id, &body, Some(until_ms), Expect::Version(self.version))
    }

    /// Notes that a commit with [`Lease::renewal`] was made.
    pub(super) fn renewed(&mut self, version: u64, now_ms: u64) {
        self.version = version;
        self.until_ms = now_ms.saturating_add(duration_ms(self.holder.lease));
    }

    /// The fencing token: every commit of the batch has another one.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// How long until it has to be renewed.
    pub(super) fn time_to_renewal(&self, now_ms: u64) -> Duration {
        let left_ms = self.until_ms.saturating_sub(now_ms);
        Duration::from_millis(left_ms.saturating_sub(duration_ms(self.holder.lease) / 2))
    }

    /// Keeps the batch for another while.
    pub(super) async fn renew(&mut self, store: &dyn Store, now_ms: u64) -> Result<(), DriveError> {
        let version = commit(store, self.renewal(now_ms)).await.map_err(lost_or)?;
        self.renewed(version, now_ms);
        Ok(())
    }

    /// Releases the batch. It is due at its next wake-up.
    pub(super) async fn release(self, store: &dyn Store, due_at_ms: Option<u64>) -> Result<(), DriveError> {
        let write = write(&self.id, &Body::default(), due_at_ms, Expect::Version(self.version));
        commit(store, write).await.map(drop).map_err(lost_or)
    }
}

/// What a writer has to do so that a batch is looked after.
#[derive(Debug)]
pub(super) enum Look {
    /// The batch has no lease record.
    Absent,
    /// A node holds the batch, or is about to take it.
    Attended,
    /// The batch is free: this write makes it due.
    Wake(RecordWrite),
}

/// Finds out whether a batch has to be woken.
pub(super) async fn look(store: &dyn Store, place: &BatchPlace, now_ms: u64) -> Result<Look, ProviderError> {
    let id = place.id();
    Ok(match store.get_record(LEASES, &id).await? {
        None => Look::Absent,
        Some(record) if record.due_at_ms.is_some_and(|due_at_ms| due_at_ms <= now_ms) => Look::Attended,
        Some(record) if Tenure::of(&record, now_ms).is_some() => Look::Attended,
        Some(record) => {
            let expect = Expect::Version(record.version);
            Look::Wake(write(&id, &Body::default(), Some(now_ms), expect))
        }
    })
}

/// Has a free batch looked after at once.
pub(super) async fn wake(store: &dyn Store, place: &BatchPlace, now_ms: u64) -> Result<(), ProviderError> {
    let Look::Wake(write) = look(store, place, now_ms).await? else { return Ok(()) };
    match commit(store, write).await {
        // Another has changed the lease: a node took the batch and reads its inbox, or a writer
        // woke it.
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        other => other.map(drop),
    }
}

/// The lease record of a new batch: free, and due at once.
pub(super) fn first(place: &BatchPlace, now_ms: u64) -> RecordWrite {
    write(&place.id(), &Body::default(), Some(now_ms), Expect::Absent)
}

/// A failed commit of a holder.
pub(super) fn lost_or(error: ProviderError) -> DriveError {
    if error.kind() == ErrorKind::Conflict { DriveError::LeaseLost } else { error.into() }
}

/// Whether a node holds the batch of a lease record.
pub(super) fn is_held(record: &Record, now_ms: u64) -> bool {
    Tenure::of(record, now_ms).is_some()
}

/// Which node holds a batch, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tenure {
    /// Name of the node.
    pub(super) node: String,
    /// Id of its process, if it has one.
    pub(super) process: Option<String>,
    /// The end of the lease, in Unix milliseconds.
    pub(super) until_ms: u64,
}

impl Tenure {
    /// The tenure of a lease record; none if the batch is free. A record that cannot be read is
    /// free: its version still fences.
    pub(super) fn of(record: &Record, now_ms: u64) -> Option<Self> {
        let body = serde_json::from_slice::<Body>(&record.body).unwrap_or_default();
        let until_ms = body.until_ms.filter(|until_ms| *until_ms > now_ms)?;
        Some(Tenure { node: body.node?, process: body.process, until_ms })
    }
}

/// Frees a batch that this process has taken and does not drive any more: nothing has to wait for the end of its lease.
pub(super) async fn give_back(
    store: &dyn Store,
    place: &BatchPlace,
    holder: &Holder,
) -> Result<(), ProviderError> {
    let now_ms = store.now_ms().await?;
    let Some(record) = store.get_record(LEASES, &place.id()).await? else { return Ok(()) };
    match Tenure::of(&record, now_ms) {
        Some(tenure) if (&tenure.node, &tenure.process) == (&holder.node, &holder.process) => {
            end(store, &record, now_ms).await
        }
        _ => Ok(()),
    }
}

/// Ends the lease of a process that is gone: the batch is free, and due at once. Nothing happens if
/// the lease has changed since it was read.
pub(super) async fn end(store: &dyn Store, record: &Record, now_ms: u64) -> Result<(), ProviderError> {
    let expect = Expect::Version(record.version);
    match commit(store, write(&record.id, &Body::default(), Some(now_ms), expect)).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        other => other.map(drop),
    }
}

fn write(id: &str, body: &Body, due_at_ms: Option<u64>, expect: Expect) -> RecordWrite {
    RecordWrite::Put {
        kind: LEASES.to_owned(),
        id: id.to_owned(),
        expect,
        due_at_ms,
        time_to_live: None,
        body: serde_json::to_vec(body).expect("a lease has plain fields").into(),
    }
}

async fn commit(store: &dyn Store, write: RecordWrite) -> Result<u64, ProviderError> {
    let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
    let versions = store.commit_records(batch).await?;
    Ok(versions.first().copied().unwrap_or_default())
}
