//! Rows that go into the archive, as files: one for each scope, kind and day.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use segno::runtime::{Archive, ArchiveBatch, ArchiveError};
use segno::store::InstanceVersion;
use segno_actions::functions::Scope;

use super::events::EventRow;
use super::file::{FileName, day_of};
use super::instances::{InstanceRow, unsigned};
use super::kind::{ENDED_AT, EVENTS, ID, INCARNATION, INSTANCES, KINDS, Kind, integer, text};
use super::limits::MAX_INLINE_BYTES;
use super::row::ArchivedRow;
use super::store::{ArchiveFault, ArchiveStore};
use crate::columnar::{Damaged, Encoder};
use crate::objects::{Put, StorageError};
use crate::tables::Cell;
use crate::telemetry;

/// Rows of one kind.
pub(super) type Rows = Vec<Vec<Cell>>;

/// Rows by scope, then by the name of their kind.
pub(super) type Sorted = BTreeMap<Scope, BTreeMap<&'static str, Rows>>;

#[async_trait]
impl Archive for ArchiveStore {
    fn has_place_for(&self, instance: &str) -> bool {
        scope_of(instance).is_some()
    }

    async fn store(&self, batch: ArchiveBatch) -> Result<(), ArchiveError> {
        let sorted = sorted(&batch).map_err(|error| ArchiveError(error.to_string()))?;
        self.write(sorted).await.map_err(|error| ArchiveError(error.to_string()))
    }

    async fn settle(&self, kept: Vec<InstanceVersion>) -> Result<(), ArchiveError> {
        self.settle_doubts(kept).await.map_err(|error| ArchiveError(error.to_string()))
    }
}

impl ArchiveStore {
    /// Writes rows, durably when it returns.
    pub(super) async fn write(&self, sorted: Sorted) -> Result<(), ArchiveFault> {
        let outcome = self.try_write(sorted).await;
        self.note(&outcome);
        outcome
    }

    /// Writes rows of a scope, durably when it returns. The same rows may be written again.
    ///
    /// # Errors
    /// Those of the object store and of the store. Whether rows are there is unknown then.
    pub async fn keep(
        &self,
        scope: &Scope,
        rows: Vec<(&'static Kind, Vec<Cell>)>,
    ) -> Result<(), ArchiveFault> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut kinds: BTreeMap<&'static str, Rows> = BTreeMap::new();
        for (kind, row) in rows {
            kinds.entry(kind.name).or_default().push(row);
        }
        self.write(Sorted::from([(scope.clone(), kinds)])).await
    }

    async fn try_write(&self, sorted: Sorted) -> Result<(), ArchiveFault> {
        for (scope, mut kinds) in sorted {
            let erased = self.erasures(&scope).await?;
            let instances = kinds.get(INSTANCES.name).into_iter().flatten();
            let ids = instances.map(|row| (text(row, ID).to_owned(), unsigned(integer(row, INCARNATION))));
            self.doubt(&scope, &ids.collect::<Vec<_>>()).await?;
            for kind in KINDS {
                let mut rows = kinds.remove(kind.name).unwrap_or_default();
                rows.retain(|row| !erased.covers(kind, row));
                self.put(&scope, kind, rows).await?;
            }
            self.raise_generation(&scope).await?;
            // An erasure that began meanwhile may have listed the files before these were there.
            let now = self.erasures(&scope).await?;
            if now != erased {
                self.apply(&scope, &now).await?;
            }
        }
        Ok(())
    }

    /// Writes rows, a file for each day. Returns the names of the files.
    pub(super) async fn put(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        rows: Rows,
    ) -> Result<Vec<FileName>, ArchiveFault> {
        let mut days: BTreeMap<String, Rows> = BTreeMap::new();
        for row in rows {
            days.entry(day_of(integer(&row, ENDED_AT))).or_default().push(row);
        }
        let mut names = Vec::with_capacity(days.len());
        for mut rows in days.into_values() {
            kind.sort(&mut rows);
            kind.deduplicate(&mut rows);
            let count = rows.len() as u64;
            let (name, bytes) = encoded(kind, rows).await?;
            let path = ArchiveStore::path(scope, kind, &name);
            metrics::counter!(telemetry::ARCHIVE_BYTES).increment(bytes.len() as u64);
            match self.inner.objects.put_new(&path, bytes).await? {
                Put::Done => names.push(name),
                Put::Taken => {
                    let problem = "another object is there, whose name is not that of its bytes";
                    return Err(StorageError::corrupt(&path, problem).into());
                }
            }
            metrics::counter!(telemetry::ARCHIVE_ROWS, "kind" => kind.name).increment(count);
        }
        Ok(names)
    }
}

/// The scope of a stored id, and the id in it; `None` for an id without one. Namespaces and tenants have no slash.
pub(super) fn scope_of(stored: &str) -> Option<(Scope, &str)> {
    let (namespace, rest) = stored.split_once('/')?;
    let (tenant, id) = rest.split_once('/')?;
    Some((Scope::new(namespace, tenant).ok()?, id))
}

fn sorted(batch: &ArchiveBatch) -> Result<Sorted, serde_json::Error> {
    let mut sorted = Sorted::new();
    let mut add = |scope: Scope, kind: &'static Kind, rows: Rows| {
        sorted.entry(scope).or_default().entry(kind.name).or_default().extend(rows);
    };
    for history in &batch.histories {
        let Some((scope, id)) = scope_of(&history.instance) else { continue };
        let rows = EventRow::of(&scope, id, history)?;
        add(scope, &EVENTS, rows.iter().map(EventRow::to_cells).collect());
    }
    for instance in &batch.instances {
        let Some((scope, id)) = scope_of(&instance.id) else { continue };
        let row = InstanceRow::of(&scope, id, instance);
        add(scope, &INSTANCES, row.iter().map(InstanceRow::to_cells).collect());
    }
    Ok(sorted)
}

/// The file of some rows of one day.
async fn encoded(kind: &'static Kind, rows: Rows) -> Result<(FileName, Bytes), StorageError> {
    let size = bytes_of(&rows);
    let encode = move || -> Result<(FileName, Bytes), Damaged> {
        let mut encoder = Encoder::new(kind.layout())?;
        for row in &rows {
            encoder.push(row.clone())?;
        }
        let bytes = encoder.finish()?;
        Ok((FileName::of(&rows, &bytes), bytes))
    };
    let outcome = if size <= MAX_INLINE_BYTES {
        encode()
    } else {
        let joined = tokio::task::spawn_blocking(encode).await;
        joined.unwrap_or_else(|_| Err(Damaged("its encoder was stopped".to_owned())))
    };
    outcome.map_err(|damaged| StorageError::damaged(kind.name, &damaged))
}

fn bytes_of(rows: &Rows) -> usize {
    rows.iter().flatten().map(cell_bytes).sum()
}

/// Roughly the bytes of a cell.
pub(super) fn cell_bytes(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len(),
        _ => 8,
    }
}
