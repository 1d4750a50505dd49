//! Snapshots of the tables for controllers and queries. A snapshot is one manifest; what is
//! published later does not change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use segno::clock::Clock;
use segno::store::ErrorKind;

use super::group::live_rows;
use super::limits::{CONCURRENT_FILES, SNAPSHOT_TRIES};
use super::tables::{Spec, Tables};
use crate::ids::Ulid;
use crate::manifest::{Catalog, FileRef, Group, Manifest, Manifests, Piece, Place, Watermarks};
use crate::objects::{Objects, Paths, StorageError, Stores};
use crate::tables::{Cell, Row, Rows, VisitRows};

/// Reads the tables of a scope. It has no access to the log.
#[derive(Debug, Clone)]
pub struct Reader {
    objects: Objects,
    paths: Paths,
    manifests: Manifests,
}

/// Which day partitions a read includes, by the day on which a run was triggered (UTC),
/// `YYYY-MM-DD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Days {
    /// Active rows only.
    None,
    /// Active rows, and the days from the first to the last, both included.
    Range(String, String),
    /// Everything.
    All,
}

/// What a read includes.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Which day partitions.
    pub days: Days,
    /// Values of the first key columns after tenant and workspace, such as the run.
    pub key: Vec<Arc<str>>,
}

impl Reader {
    /// A reader of a scope.
    pub fn new(paths: Paths, stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        let objects = Objects::new(Arc::clone(&stores.state), clock);
        let manifests = Manifests::new(objects.clone(), paths.clone());
        Reader { objects, paths, manifests }
    }

    /// The newest snapshot; nothing before the first fold. Pass the last snapshot to save calls.
    ///
    /// # Errors
    /// `Corrupt`, `Unavailable`.
    pub async fn snapshot(&self, last: Option<&Snapshot>) -> Result<Option<Snapshot>, StorageError> {
        let mut known = last.map_or(0, |last| last.manifest.manifest_id);
        let mut tries = 0;
        loop {
            let Some(manifest) = self.manifests.newest(known).await? else { return Ok(None) };
            if let Some(last) = last.filter(|last| last.manifest.revision_ulid == manifest.revision_ulid) {
                return Ok(Some(last.clone()));
            }
            known = manifest.manifest_id;
            tries += 1;
            let earlier = last.map(|last| (&*last.manifest, &*last.catalog));
            match self.manifests.catalog_after(&manifest, earlier).await {
                Ok(catalog) => {
                    let reader = self.clone();
                    return Ok(Some(Snapshot {
                        reader,
                        manifest: Arc::new(manifest),
                        catalog: Arc::new(catalog),
                    }));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && tries < SNAPSHOT_TRIES => (),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The tables as one manifest has them. Its files are kept for the grace period of the compactor
/// after a newer manifest replaces it; a read that comes later fails with `NotFound`, and the
/// caller takes the newest snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    reader: Reader,
    manifest: Arc<Manifest>,
    catalog: Arc<Catalog>,
}

impl Snapshot {
    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How far the log is folded.
    pub fn watermarks(&self) -> &Watermarks {
        &self.manifest.watermarks
    }

    /// Whether an event is visible.
    pub fn has_event(&self, event: Ulid) -> bool {
        self.manifest.watermarks.last_visible_event_id.is_some_and(|last| last >= event)
    }

    /// The days that have partitions, oldest first.
    pub fn days(&self) -> impl Iterator<Item = &str> {
        self.catalog.days().map(String::as_str)
    }

    /// The paths of all files of a table, below `state/orchestration/`, with the tombstones: what
    /// an external reader needs.
    pub fn files(&self, table: &str) -> Vec<&str> {
        let files = self.catalog.files().filter(|(of, _)| *of == table);
        files.map(|(_, file)| file.path.as_str()).collect()
    }

    /// The pieces of a table at one place, deltas included, oldest first.
    pub(super) fn pieces(&self, group: &Group) -> Vec<Piece> {
        self.catalog.all_pieces(group)
    }

    /// Where a file of a table is read.
    pub(super) fn file(&self, file: &FileRef) -> (&Objects, Path) {
        (&self.reader.objects, self.reader.paths.state_file(&file.path))
    }

    /// The rows of a table, in the order of their keys within each partition: active rows first,
    /// then days from the oldest.
    ///
    /// # Errors
    /// `NotFound` when a file was deleted since, `Corrupt`, `Unavailable`.
    pub async fn rows<R: Row>(&self, filter: &Filter) -> Result<Vec<R>, StorageError> {
        let Some(spec) = Tables::find(R::TABLE) else { return Ok(Vec::new()) };
        let cells = self.cells(R::TABLE, spec, filter).await?;
        read(cells)
    }

    /// The row with a key, given after tenant and workspace.
    ///
    /// # Errors
    /// As [`Snapshot::rows`].
    pub async fn row<R: Row>(&self, key: &[Arc<str>], days: Days) -> Result<Option<R>, StorageError> {
        let rows = self.rows::<R>(&Filter { days, key: key.to_vec() }).await?;
        Ok(rows.into_iter().next())
    }

    /// All rows of a run: those of its run, tasks, edges and dispatches.
    ///
    /// # Errors
    /// As [`Snapshot::rows`].
    pub async fn run(&self, run_id: &str, days: Days) -> Result<Rows, StorageError> {
        let mut all = BTreeMap::new();
        let filter = Filter { days, key: vec![run_id.into()] };
        for (table, spec) in Tables::all() {
            if spec.is_keyed_by_run() {
                all.insert(table, self.cells(table, spec, &filter).await?);
            }
        }
        rows_of(all)
    }

    /// The rows of all tables.
    ///
    /// # Errors
    /// As [`Snapshot::rows`].
    pub async fn tables(&self, days: Days) -> Result<Rows, StorageError> {
        let filter = Filter { days, key: Vec::new() };
        let reads = Tables::all().map(|(table, spec)| {
            let filter = &filter;
            async move { Ok::<_, StorageError>((table, self.cells(table, spec, filter).await?)) }
        });
        let all: Vec<_> = stream::iter(reads).buffered(CONCURRENT_FILES).try_collect().await?;
        rows_of(all.into_iter().collect())
    }

    /// Where rows of these days are: the active ones, and the partitions from the oldest.
    pub(super) fn places(&self, days: &Days) -> Vec<Place> {
        let days = self.catalog.days().filter(|day| match days {
            Days::None => false,
            Days::Range(first, last) => first <= *day && *day <= last,
            Days::All => true,
        });
        std::iter::once(Place::Active).chain(days.map(|day| Place::Day(day.clone()))).collect()
    }

    async fn cells(&self, table: &str, spec: &Spec, filter: &Filter) -> Result<Vec<Vec<Cell>>, StorageError> {
        let pattern = pattern(spec, &filter.key);
        let mut rows = Vec::new();
        for place in self.places(&filter.days) {
            let pieces = self.catalog.all_pieces(&Group { table: table.to_owned(), place });
            let live = live_rows(&self.reader.objects, &self.reader.paths, spec, &pieces, &pattern).await?;
            rows.extend(live.into_values());
        }
        Ok(rows)
    }
}

/// Values of the first key columns after tenant and workspace, by their positions.
pub(crate) fn pattern<'a>(spec: &Spec, key: &'a [Arc<str>]) -> Vec<(usize, &'a str)> {
    let columns = spec.rows.key().iter().skip(2).copied();
    columns.zip(key.iter().map(AsRef::as_ref)).collect()
}

fn read<R: Row>(cells: Vec<Vec<Cell>>) -> Result<Vec<R>, StorageError> {
    let row = |cells| R::from_cells(cells).map_err(|error| StorageError::corrupt(R::TABLE, error));
    cells.into_iter().map(row).collect()
}

/// Cells of all tables as rows.
pub(crate) fn rows_of(cells: BTreeMap<&'static str, Vec<Vec<Cell>>>) -> Result<Rows, StorageError> {
    struct Fill(BTreeMap<&'static str, Vec<Vec<Cell>>>);
    impl VisitRows for Fill {
        type Error = StorageError;
        fn rows<R: Row>(&mut self, rows: &mut Vec<R>) -> Result<(), StorageError> {
            *rows = read(self.0.remove(R::TABLE).unwrap_or_default())?;
            Ok(())
        }
    }
    let mut rows = Rows::default();
    rows.visit(&mut Fill(cells))?;
    Ok(rows)
}
