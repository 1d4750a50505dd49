//! Batches that ended longer ago than they are kept are deleted, by a cursor over all batches.

use std::time::Duration;

use jiff::SignedDuration;
use segno::store::{ErrorKind, ListRecords, ProviderError, Store};
use serde::{Deserialize, Serialize};

use super::deletion::{self, has_ended};
use super::error::DriveError;
use super::holder::Services;
use super::load::decode;
use super::place::BatchPlace;
use super::post::timestamp;
use super::retire::{BatchArchive, BatchArchiveError, ExpiredBatch};
use super::upkeep::Next;
use crate::rows::{Row, Table};

/// Id of the cursor.
pub(super) const ID: &str = "expiry";

/// Batches that are looked at in one part.
const BATCHES_PER_PART: usize = 100;

/// Between two parts of a sweep.
const PART_PAUSE: Duration = Duration::from_secs(1);

/// Between two sweeps.
const SWEEP_PAUSE: Duration = Duration::from_secs(60);

/// Between two looks at the setting, which has no effect while everything is kept.
const IDLE_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Where the next part begins.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Cursor {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Looks at some batches, and deletes those that have expired, after an archive has stored them.
pub(super) async fn part(
    (services, archive): (&Services, Option<&dyn BatchArchive>),
    cursor: Cursor,
) -> Result<Next<Cursor>, ProviderError> {
    let Some(retention) = services.options.retention else {
        return Ok(Next { cursor, after: IDLE_PAUSE });
    };
    let store = &*services.store;
    let now = timestamp(store.now_ms().await?);
    let kept = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
    let kind = Table::Batches.name();
    let request =
        ListRecords { kind, id_prefix: "", after_id: cursor.after.as_deref(), limit: BATCHES_PER_PART };
    let page = store.list_records(request).await?;
    for record in &page {
        let (Some(place), Ok(Row::Batch(batch))) =
            (BatchPlace::of_lease(&record.id), decode(Table::Batches, record))
        else {
            continue;
        };
        let is_expired = batch.completed_at.is_some_and(|ended| now.duration_since(ended) >= kept);
        if !has_ended(&batch) || !is_expired {
            continue;
        }
        // One that a node holds is deleted by the next sweep.
        match retire(store, archive, &place).await {
            Ok(()) => {}
            Err(Stuck::Batch(error)) => {
                tracing::warn!(batch = %place.id(), error, "an expired batch cannot be deleted");
            }
            Err(Stuck::Archive(error)) => {
                return Err(ProviderError::new(ErrorKind::Unavailable, "archive_batch", error));
            }
        }
    }
    let is_last = page.len() < BATCHES_PER_PART;
    let after = if is_last { None } else { page.last().map(|record| record.id.clone()) };
    Ok(Next { cursor: Cursor { after }, after: if is_last { SWEEP_PAUSE } else { PART_PAUSE } })
}

/// Why a batch is not deleted.
enum Stuck {
    /// For a reason of its own.
    Batch(String),
    /// The archive takes nothing now.
    Archive(String),
}

/// Has a batch archived, and deletes it if it is as it was archived.
async fn retire(
    store: &dyn Store,
    archive: Option<&dyn BatchArchive>,
    place: &BatchPlace,
) -> Result<(), Stuck> {
    let own = |error: DriveError| Stuck::Batch(error.to_string());
    let Ok(deletable) = deletion::check(store, place).await.map_err(own)? else { return Ok(()) };
    if let Some(archive) = archive {
        let batch =
            ExpiredBatch { scope: &place.scope, row: &deletable.batch, revision: deletable.lease_version };
        archive.store(batch).await.map_err(|error| match error {
            BatchArchiveError::Unreadable(_) => Stuck::Batch(error.to_string()),
            BatchArchiveError::Unavailable(reason) => Stuck::Archive(reason),
        })?;
    }
    deletion::delete(store, place, &deletable).await.map_err(own)?;
    Ok(())
}
