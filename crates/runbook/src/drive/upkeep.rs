//! What nodes do for batches besides driving them: deleting batches in parts, batches that have
//! expired, the calls of ended steps, and the audit. One node at a time does each.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::{self, duration_ms};
use segno::store::{DueRecords, ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::holder::Services;
use super::retire::BatchArchive;
use super::{audit, deletion, ended_calls, expiry};
use crate::telemetry;

/// Kind of the records with the cursors of work that one node at a time does.
pub const UPKEEP: &str = "runbook_upkeep";

/// How long a node may take for a part before another does it again. Doing it twice is harmless.
const CLAIM: Duration = Duration::from_secs(60);

/// Longest wait for something that is due.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store refuses, and when everything that is due was just claimed by others.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks after batches that nobody drives.
pub struct Upkeep {
    services: Arc<Services>,
    archive: Option<Arc<dyn BatchArchive>>,
}

impl Upkeep {
    /// The upkeep of a node.
    pub fn new(services: Services) -> Self {
        Upkeep { services: Arc::new(services), archive: None }
    }

    /// Has batches that have expired archived before they are deleted.
    #[must_use]
    pub fn archive(self, archive: Arc<dyn BatchArchive>) -> Self {
        Upkeep { archive: Some(archive), ..self }
    }

    /// Runs until told to stop. Stopping at any moment is safe.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        telemetry::show(&[telemetry::UNATTENDED_ROWS]);
        let services = &*self.services;
        let archive = self.archive.as_deref();
        let work = async {
            tokio::join!(
                each_due(services, deletion::DELETIONS, |record| deletion::finish(services, record)),
                each_due(services, ended_calls::ENDED_CALLS, |record| ended_calls::delete(services, record)),
                in_turns(services, expiry::ID, |cursor| expiry::part((services, archive), cursor)),
                in_turns(services, audit::ID, |cursor| audit::part(services, cursor)),
            )
        };
        tokio::select! {
            biased;
            () = stop => {}
            _ = work => {}
        }
    }
}

/// Does something for every due record of a kind. The record is claimed first: it is due again
/// after a while unless it was deleted.
async fn each_due<F>(services: &Services, kind: &str, each: impl Fn(Record) -> F)
where
    F: Future<Output = Result<(), ProviderError>>,
{
    loop {
        let due = match due(services, kind, "").await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, kind, "batches cannot be looked after; trying again");
                clock::sleep(&*services.clock, PAUSE).await;
                continue;
            }
        };
        let mut done = 0;
        for record in due {
            let worked = match claim(services, record).await {
                Ok(Some(record)) => each(record).await,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match worked {
                Ok(()) => done += 1,
                Err(error) => tracing::warn!(%error, kind, "upkeep of batches failed; trying again"),
            }
        }
        if done == 0 {
            clock::sleep(&*services.clock, PAUSE).await;
        }
    }
}

/// What is to be done after a part.
pub(super) struct Next<C> {
    /// Where the next part begins.
    pub(super) cursor: C,
    /// When.
    pub(super) after: Duration,
}

/// Does work by a stored cursor, part by part, one node at a time.
async fn in_turns<C, F>(services: &Services, id: &'static str, part: impl Fn(C) -> F)
where
    C: Serialize + DeserializeOwned + Default,
    F: Future<Output = Result<Next<C>, ProviderError>>,
{
    loop {
        let worked = turn(services, id, &part).await;
        match worked {
            Ok(()) => {}
            // Another node was first.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                clock::sleep(&*services.clock, PAUSE).await;
            }
            Err(error) => {
                tracing::warn!(%error, work = id, "upkeep of batches failed; trying again");
                clock::sleep(&*services.clock, PAUSE).await;
            }
        }
    }
}

async fn turn<C, F>(
    services: &Services,
    id: &'static str,
    part: &impl Fn(C) -> F,
) -> Result<(), ProviderError>
where
    C: Serialize + DeserializeOwned + Default,
    F: Future<Output = Result<Next<C>, ProviderError>>,
{
    let store = &*services.store;
    if store.get_record(UPKEEP, id).await?.is_none() {
        let now_ms = store.now_ms().await?;
        let first = put(UPKEEP, id, Expect::Absent, now_ms, Bytes::new());
        store.commit_records(RecordBatch { writes: vec![first], ..RecordBatch::default() }).await?;
    }
    let Some(record) = due(services, UPKEEP, id).await?.pop() else { return Ok(()) };
    let Some(record) = claim(services, record).await? else { return Ok(()) };
    // A cursor that cannot be read begins anew.
    let cursor = serde_json::from_slice(&record.body).unwrap_or_default();
    let Next { cursor, after } = part(cursor).await?;
    let now_ms = store.now_ms().await?;
    let body = serde_json::to_vec(&cursor).unwrap_or_default();
    let due_at_ms = now_ms.saturating_add(duration_ms(after));
    let write = put(UPKEEP, id, Expect::Version(record.version), due_at_ms, body);
    store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.map(drop)
}

async fn due(services: &Services, kind: &str, id_prefix: &str) -> Result<Vec<Record>, ProviderError> {
    let request = DueRecords { kind, id_prefix, now_ms: None, limit: 16, poll_timeout: WAIT };
    services.store.due_records(request).await
}

/// Makes a due record due later; `None` when another node was first.
async fn claim(services: &Services, record: Record) -> Result<Option<Record>, ProviderError> {
    let store = &*services.store;
    let due_at_ms = store.now_ms().await?.saturating_add(duration_ms(CLAIM));
    let expect = Expect::Version(record.version);
    let write = put(&record.kind, &record.id, expect, due_at_ms, record.body.clone());
    match store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await {
        Ok(versions) => Ok(Some(Record { version: versions.first().copied().unwrap_or_default(), ..record })),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn put(
    kind: &str,
    id: &str,
    expect: Expect,
    due_at_ms: u64,
    body: impl Into<Bytes>,
) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expect,
        due_at_ms: Some(due_at_ms),
        time_to_live: None,
        body: body.into(),
    }
}
