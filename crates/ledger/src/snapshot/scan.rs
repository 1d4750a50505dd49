//! Some columns of a table, one place after the other: what queries read. Columns that are not wanted are not decoded.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use segno::store::ErrorKind;

use super::fetch::TableFile;
use super::group::Key;
use super::limits::CONCURRENT_FILES;
use super::reader::Snapshot;
use super::tables::{Spec, Tables};
use crate::columnar::Layout;
use crate::manifest::{FileRef, Group, Place};
use crate::objects::StorageError;
use crate::tables::{Cell, Row};

/// Where a part of a table lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Rows that may still change.
    Active,
    /// Rows of finished runs that were triggered on this day (UTC), `YYYY-MM-DD`.
    Day(String),
}

/// Some columns of a layout: those that are wanted, then the rest of the key.
struct Projection {
    columns: Vec<usize>,
    /// Places of the key columns among those.
    key: Vec<usize>,
    wanted: usize,
}

impl Projection {
    fn new(layout: &Layout, wanted: &[&str]) -> Option<Self> {
        let mut columns: Vec<usize> =
            wanted.iter().map(|name| layout.position(name)).collect::<Option<_>>()?;
        let wanted = columns.len();
        let mut key = Vec::with_capacity(layout.key().len());
        for column in layout.key() {
            let place = columns.iter().position(|at| at == column);
            key.push(place.unwrap_or(columns.len()));
            if place.is_none() {
                columns.push(*column);
            }
        }
        Some(Projection { columns, key, wanted })
    }

    fn key_of(&self, row: &[Cell]) -> Key {
        let text = |at: &usize| match row.get(*at) {
            Some(Cell::Text(text)) => std::sync::Arc::clone(text),
            _ => std::sync::Arc::from(""),
        };
        self.key.iter().map(text).collect()
    }
}

impl Snapshot {
    /// The live rows of a part of a table, with these columns in this order; in the order of their keys.
    ///
    /// # Errors
    /// `Invalid` for a column that the table does not have, `NotFound` when a file was deleted since, `Corrupt`, `Unavailable`.
    pub async fn scan<R: Row>(&self, part: &Part, columns: &[&str]) -> Result<Vec<Vec<Cell>>, StorageError> {
        let Some(spec) = Tables::find(R::TABLE) else { return Ok(Vec::new()) };
        let unknown = || StorageError::new(ErrorKind::Invalid, R::TABLE, "it has no such column");
        let rows = Projection::new(&spec.rows, columns).ok_or_else(unknown)?;
        let tombstones = Projection::new(&spec.tombstones, &[]).ok_or_else(unknown)?;
        let place = match part {
            Part::Active => Place::Active,
            Part::Day(day) => Place::Day(day.clone()),
        };
        let live = self.live(Group { table: R::TABLE.to_owned(), place }, spec, [&rows, &tombstones]).await?;
        let wanted = rows.wanted;
        let cut = |mut row: Vec<Cell>| {
            row.truncate(wanted);
            row
        };
        Ok(live.into_values().map(cut).collect())
    }

    async fn live(
        &self,
        group: Group,
        spec: &Spec,
        [rows, tombstones]: [&Projection; 2],
    ) -> Result<BTreeMap<Key, Vec<Cell>>, StorageError> {
        let pieces = self.pieces(&group);
        let files = pieces.iter().flat_map(|piece| {
            let gone = piece.deletions.iter().map(|file| (file, &spec.tombstones, tombstones, true));
            gone.chain(piece.rows.iter().map(|file| (file, &spec.rows, rows, false)))
        });
        let read = |(file, layout, projection, is_gone): (&'_ FileRef, &'_ Layout, &'_ Projection, bool)| {
            let (file, layout) = (file.clone(), layout.clone());
            let columns = projection.columns.clone();
            async move { Ok::<_, StorageError>((self.cells_of(&file, &layout, &columns).await?, is_gone)) }
        };
        // Collected first: a stream of borrowing closures is not known to be `Send`.
        let reads: Vec<_> = files.map(read).collect();
        let mut reads = stream::iter(reads).buffered(CONCURRENT_FILES);
        let mut live = BTreeMap::new();
        while let Some((found, is_gone)) = reads.try_next().await? {
            for row in found {
                if is_gone {
                    live.remove(&tombstones.key_of(&row));
                } else {
                    live.insert(rows.key_of(&row), row);
                }
            }
        }
        Ok(live)
    }

    async fn cells_of(
        &self,
        file: &FileRef,
        layout: &Layout,
        columns: &[usize],
    ) -> Result<Vec<Vec<Cell>>, StorageError> {
        let (objects, path) = self.file(file);
        let file = TableFile::open(objects, path, file, layout).await?;
        let mut rows = Vec::new();
        for group in 0..file.groups() {
            rows.extend(file.some_columns(group, columns.to_vec()).await?);
        }
        Ok(rows)
    }
}
