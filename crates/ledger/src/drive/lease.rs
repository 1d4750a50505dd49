//! Which node holds a scope. The version of the lease record is the fencing token of record commits; the epoch in its body,
//! one higher at each acquisition, is the fencing token of manifests.
//!
//! The record is due when the scope has to be looked after: at the end of the lease while it is held, at the earliest
//! wake-up of its state while it is free. A writer creates it with the first event of the scope.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::error::DriveError;
use super::place::{LEASES, lease_id};
use crate::objects::StorageError;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Body {
    /// Acquisitions so far.
    #[serde(default)]
    epoch: u64,
    /// The node; none while the scope is free.
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
    epoch: u64,
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
    /// Takes the scope of a lease record, unless another node holds it or is first.
    ///
    /// # Errors
    /// `Unreadable` when the record cannot be read: its epoch is unknown, and a lower one must never be used.
    pub(super) async fn acquire(
        store: &dyn Store,
        record: &Record,
        holder: Holder,
        now_ms: u64,
    ) -> Result<Option<Self>, DriveError> {
        let body = serde_json::from_slice::<Body>(&record.body).map_err(|error| DriveError::Unreadable {
            kind: LEASES,
            id: record.id.clone(),
            problem: error.to_string(),
        })?;
        if Tenure::of(record, now_ms).is_some() {
            return Ok(None);
        }
        let epoch = body.epoch.saturating_add(1);
        let mut lease = Lease { id: record.id.clone(), holder, epoch, version: record.version, until_ms: 0 };
        match commit(store, lease.renewal(now_ms)).await {
            Ok(version) => {
                lease.renewed(version, now_ms);
                Ok(Some(lease))
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The fencing token of manifests: higher than that of every earlier holder.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes an epoch above that of a manifest. That of the record is lower if the store is older than the ledger: it was
    /// restored.
    pub(super) async fn raise_epoch(
        &mut self,
        store: &dyn Store,
        published: u64,
        now_ms: u64,
    ) -> Result<(), DriveError> {
        let too_large = || StorageError::corrupt("the newest manifest", "its epoch is the largest there is");
        self.epoch = published.checked_add(1).ok_or_else(too_large)?;
        self.commit(store, RecordBatch::default(), now_ms).await
    }

    /// The write that keeps the scope, for a commit of its holder. It fails if another node has taken the scope.
    pub(super) fn renewal(&self, now_ms: u64) -> RecordWrite {
        let until_ms = now_ms.saturating_add(duration_ms(self.holder.lease));
        let Holder { node, process, .. } = &self.holder;
        let body = Body {
            epoch: self.epoch,
            node: Some(node.clone()),
            until_ms: Some(until_ms),
            process: process.clone(),
        };
        write(&self.id, &body, Some(until_ms), Expect::Version(self.version))
    }

    /// Notes that a commit with [`Lease::renewal`] was made.
    pub(super) fn renewed(&mut self, version: u64, now_ms: u64) {
        self.version = version;
        self.until_ms = now_ms.saturating_add(duration_ms(self.holder.lease));
    }

    /// How long until it has to be renewed.
    pub(super) fn time_to_renewal(&self, now_ms: u64) -> Duration {
        let left_ms = self.until_ms.saturating_sub(now_ms);
        Duration::from_millis(left_ms.saturating_sub(duration_ms(self.holder.lease) / 2))
    }

    /// Commits writes of the holder, and keeps the scope for another while.
    pub(super) async fn commit(
        &mut self,
        store: &dyn Store,
        mut batch: RecordBatch,
        now_ms: u64,
    ) -> Result<(), DriveError> {
        let place = batch.writes.len();
        batch.writes.push(self.renewal(now_ms));
        let versions = store.commit_records(batch).await.map_err(lost_or)?;
        self.renewed(versions.get(place).copied().unwrap_or_default(), now_ms);
        Ok(())
    }

    /// Releases the scope. It is due at its next wake-up.
    pub(super) async fn release(self, store: &dyn Store, due_at_ms: Option<u64>) -> Result<(), DriveError> {
        let body = Body { epoch: self.epoch, ..Body::default() };
        let write = write(&self.id, &body, due_at_ms, Expect::Version(self.version));
        commit(store, write).await.map(drop).map_err(lost_or)
    }
}

/// What a writer has to do so that a scope is looked after.
#[derive(Debug)]
pub(super) enum Look {
    /// A node holds the scope, or is about to take it.
    Attended,
    /// The scope is free or new: this write makes it due, if the lease is still so.
    Wake(RecordWrite, Expect),
}

/// Finds out whether a scope has to be woken.
pub(super) async fn look(store: &dyn Store, scope: &Scope, now_ms: u64) -> Result<Look, ProviderError> {
    let id = lease_id(scope);
    Ok(match store.get_record(LEASES, &id).await? {
        None => Look::Wake(write(&id, &Body::default(), Some(now_ms), Expect::Absent), Expect::Absent),
        Some(record) if record.due_at_ms.is_some_and(|due_at_ms| due_at_ms <= now_ms) => Look::Attended,
        Some(record) if Tenure::of(&record, now_ms).is_some() => Look::Attended,
        Some(record) => Look::Wake(due(&record, now_ms), Expect::Version(record.version)),
    })
}

/// Has a free scope looked after at once.
pub(super) async fn wake(store: &dyn Store, scope: &Scope, now_ms: u64) -> Result<(), ProviderError> {
    let Look::Wake(write, _) = look(store, scope, now_ms).await? else { return Ok(()) };
    ignore_conflict(commit(store, write).await)
}

/// Ends the lease of a process that is gone: the scope is free, and due at once. Nothing happens if the lease has changed
/// since it was read.
pub(super) async fn end(store: &dyn Store, record: &Record, now_ms: u64) -> Result<(), ProviderError> {
    ignore_conflict(commit(store, due(record, now_ms)).await)
}

/// Frees a scope that this process has taken and does not drive any more: nothing has to wait for the end of its lease.
pub(super) async fn give_back(
    store: &dyn Store,
    scope: &Scope,
    holder: &Holder,
) -> Result<(), ProviderError> {
    let now_ms = store.now_ms().await?;
    let Some(record) = store.get_record(LEASES, &lease_id(scope)).await? else { return Ok(()) };
    match Tenure::of(&record, now_ms) {
        Some(tenure) if (&tenure.node, &tenure.process) == (&holder.node, &holder.process) => {
            end(store, &record, now_ms).await
        }
        _ => Ok(()),
    }
}

/// Another has changed the lease: a node took the scope and reads its outbox, or a writer woke it.
fn ignore_conflict(committed: Result<u64, ProviderError>) -> Result<(), ProviderError> {
    match committed {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        other => other.map(drop),
    }
}

/// A failed commit of a holder.
pub(super) fn lost_or(error: ProviderError) -> DriveError {
    if error.kind() == ErrorKind::Conflict { DriveError::LeaseLost } else { error.into() }
}

/// Which node holds a scope, and until when.
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
    /// The tenure of a lease record; none if the scope is free.
    pub(super) fn of(record: &Record, now_ms: u64) -> Option<Self> {
        let body = serde_json::from_slice::<Body>(&record.body).unwrap_or_default();
        let until_ms = body.until_ms.filter(|until_ms| *until_ms > now_ms)?;
        Some(Tenure { node: body.node?, process: body.process, until_ms })
    }
}

/// Makes a free scope due, and keeps its epoch. A body that cannot be read is kept as it is.
fn due(record: &Record, now_ms: u64) -> RecordWrite {
    let expect = Expect::Version(record.version);
    match serde_json::from_slice::<Body>(&record.body) {
        Ok(body) => {
            let free = Body { epoch: body.epoch, ..Body::default() };
            write(&record.id, &free, Some(now_ms), expect)
        }
        Err(_) => RecordWrite::Put {
            kind: LEASES.to_owned(),
            id: record.id.clone(),
            expect,
            due_at_ms: Some(now_ms),
            time_to_live: None,
            body: record.body.clone(),
        },
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

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;

    use super::*;

    fn holder(node: &str) -> Holder {
        Holder { node: node.to_owned(), process: None, lease: Duration::from_secs(30) }
    }

    async fn record(store: &dyn Store, scope: &Scope) -> Record {
        store.get_record(LEASES, &lease_id(scope)).await.unwrap().unwrap()
    }

    async fn acquire(store: &dyn Store, scope: &Scope, node: &str, now_ms: u64) -> Option<Lease> {
        let record = record(store, scope).await;
        Lease::acquire(store, &record, holder(node), now_ms).await.unwrap()
    }

    #[tokio::test]
    async fn one_node_holds_a_scope_and_each_holder_has_a_higher_epoch() {
        let (store, scope) = (MemoryStore::new(), Scope::default());
        let store: &dyn Store = &*store;
        wake(store, &scope, 1_000).await.unwrap();
        let first = acquire(store, &scope, "a", 1_000).await.unwrap();
        assert!(acquire(store, &scope, "b", 2_000).await.is_none(), "it is held");
        let mut second = acquire(store, &scope, "b", 40_000).await.unwrap();
        assert!(first.epoch() < second.epoch(), "{} {}", first.epoch(), second.epoch());
        let lost = first.release(store, None).await.unwrap_err();
        assert!(matches!(lost, DriveError::LeaseLost), "{lost}");
        second.commit(store, RecordBatch::default(), 41_000).await.unwrap();
        let epoch = second.epoch();
        second.release(store, None).await.unwrap();
        wake(store, &scope, 50_000).await.unwrap();
        assert_eq!(acquire(store, &scope, "c", 50_000).await.unwrap().epoch(), epoch + 1);
    }

    #[tokio::test]
    async fn a_scope_that_is_free_is_woken_and_one_that_is_held_is_not() {
        let (store, scope) = (MemoryStore::new(), Scope::default());
        let store: &dyn Store = &*store;
        wake(store, &scope, 1_000).await.unwrap();
        assert_eq!(record(store, &scope).await.due_at_ms, Some(1_000));
        assert!(matches!(look(store, &scope, 1_000).await.unwrap(), Look::Attended), "it is due");
        let lease = acquire(store, &scope, "a", 1_000).await.unwrap();
        assert!(matches!(look(store, &scope, 2_000).await.unwrap(), Look::Attended), "it is held");
        assert_eq!(record(store, &scope).await.due_at_ms, Some(31_000), "due at the end of the lease");
        lease.release(store, Some(90_000)).await.unwrap();
        assert!(matches!(look(store, &scope, 2_000).await.unwrap(), Look::Wake(..)));
        wake(store, &scope, 2_000).await.unwrap();
        assert_eq!(record(store, &scope).await.due_at_ms, Some(2_000));
    }

    #[tokio::test]
    async fn a_lease_that_cannot_be_read_is_not_taken_with_a_lower_epoch() {
        let (store, scope) = (MemoryStore::new(), Scope::default());
        let store: &dyn Store = &*store;
        let broken = RecordWrite::Put {
            kind: LEASES.to_owned(),
            id: lease_id(&scope),
            expect: Expect::Absent,
            due_at_ms: Some(1),
            time_to_live: None,
            body: bytes::Bytes::from_static(b"{"),
        };
        commit(store, broken).await.unwrap();
        let record = record(store, &scope).await;
        let refused = Lease::acquire(store, &record, holder("a"), 1_000).await.unwrap_err();
        assert!(refused.to_string().contains("eu") || refused.to_string().contains("lease"), "{refused}");
        end(store, &record, 2_000).await.unwrap();
        assert_eq!(store.get_record(LEASES, &lease_id(&scope)).await.unwrap().unwrap().body, "{");
    }
}
