//! A page of a table: the first live rows of some key after a place, without reading all rows of that key. Row groups are read in
//! the order of their smallest keys, and no more of them than the page needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fetch::TableFile;
use super::group::{fits, key_range_may_have};
use super::reader::{Filter, Snapshot, pattern};
use super::tables::{Spec, Tables};
use crate::manifest::{Group, Place};
use crate::objects::StorageError;
use crate::tables::{Cell, Row};

/// Which rows.
#[derive(Debug, Clone, Copy)]
pub struct PageOf<'a> {
    /// Values of the first key columns; all but one.
    pub filter: &'a Filter,
    /// Rows whose last key column is greater than this.
    pub after: Option<&'a str>,
    /// At most this many.
    pub limit: usize,
}

/// A row group that is read when the page needs it.
struct Chunk {
    /// Pieces that came later replace rows of earlier ones.
    order: usize,
    file: usize,
    group: usize,
    /// A lower bound of its keys.
    first: Vec<u8>,
}

/// The newest version of a row that was read; nothing for a tombstone.
type Found = BTreeMap<Arc<str>, (usize, Option<Vec<Cell>>)>;

impl Snapshot {
    /// The first live rows that fit, in the order of their keys, among rows that are active or of the first day that has some.
    ///
    /// # Errors
    /// `NotFound` when a file was deleted since, `Corrupt`, `Unavailable`.
    pub async fn page<R: Row>(
        &self,
        page: PageOf<'_>,
        wanted: impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, StorageError> {
        let Some(spec) = Tables::find(R::TABLE) else { return Ok(Vec::new()) };
        for place in self.places(&page.filter.days) {
            let rows = self.page_at(spec, place, page, &wanted).await?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    async fn page_at<R: Row>(
        &self,
        spec: &Spec,
        place: Place,
        page: PageOf<'_>,
        wanted: &impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, StorageError> {
        let pattern = pattern(spec, &page.filter.key);
        let Some(key) = spec.rows.key().get(2 + pattern.len()).copied() else { return Ok(Vec::new()) };
        let mut found = Found::new();
        let (mut files, mut chunks) = (Vec::new(), Vec::new());
        for (number, piece) in self.pieces(&Group { table: R::TABLE.to_owned(), place }).iter().enumerate() {
            if let Some(gone) = &piece.deletions {
                self.read_tombstones(spec, gone, (&page.filter.key, number), &mut found).await?;
            }
            for file in piece.rows.iter().filter(|file| key_range_may_have(&spec.rows, file, &pattern)) {
                let (objects, path) = self.file(file);
                let file = TableFile::open(objects, path, file, &spec.rows).await?;
                let groups = (0..file.groups()).filter(|group| file.may_have(*group, &pattern));
                for group in groups {
                    let (first, last) = file.bounds(group, key);
                    let is_before =
                        page.after.zip(last).is_some_and(|(after, last)| last <= after.as_bytes());
                    if !is_before {
                        let first = first.unwrap_or_default().to_vec();
                        chunks.push(Chunk { order: number, file: files.len(), group, first });
                    }
                }
                files.push(file);
            }
        }
        chunks.sort_by(|a, b| a.first.cmp(&b.first));
        let mut chunks = chunks.into_iter().peekable();
        let mut rows = Vec::new();
        while let Some(chunk) = chunks.next() {
            let read = files[chunk.file].rows(chunk.group).await?;
            for row in read.into_iter().filter(|row| fits(row, &pattern)) {
                let Some(Cell::Text(at)) = row.get(key) else { continue };
                if page.after.is_some_and(|after| **at <= *after) {
                    continue;
                }
                let at = Arc::clone(at);
                if found.get(&at).is_none_or(|(order, _)| *order <= chunk.order) {
                    found.insert(at, (chunk.order, Some(row)));
                }
            }
            // Keys below those of all row groups that are left are complete.
            let until = chunks.peek().map(|next| next.first.as_slice());
            take_complete(&mut found, (until, wanted), &mut rows)?;
            if rows.len() >= page.limit {
                break;
            }
        }
        rows.truncate(page.limit);
        Ok(rows)
    }

    async fn read_tombstones(
        &self,
        spec: &Spec,
        file: &crate::manifest::FileRef,
        (key, order): (&[Arc<str>], usize),
        found: &mut Found,
    ) -> Result<(), StorageError> {
        let (objects, path) = self.file(file);
        let file = TableFile::open(objects, path, file, &spec.tombstones).await?;
        let columns = spec.tombstones.key();
        let text = |row: &[Cell], at: usize| match columns.get(at).and_then(|column| row.get(*column)) {
            Some(Cell::Text(text)) => Some(Arc::clone(text)),
            _ => None,
        };
        for group in 0..file.groups() {
            for row in file.rows(group).await? {
                let is_ours = key
                    .iter()
                    .enumerate()
                    .all(|(place, wanted)| text(&row, 2 + place).is_some_and(|found| found == *wanted));
                if is_ours && let Some(at) = text(&row, 2 + key.len()) {
                    found.insert(at, (order, None));
                }
            }
        }
        Ok(())
    }
}

/// Moves rows whose keys are below a bound from what was found to the page.
fn take_complete<R: Row>(
    found: &mut Found,
    (until, wanted): (Option<&[u8]>, &impl Fn(&R) -> bool),
    rows: &mut Vec<R>,
) -> Result<(), StorageError> {
    while let Some(entry) = found.first_entry() {
        if until.is_some_and(|until| entry.key().as_bytes() >= until) {
            return Ok(());
        }
        if let (_, Some(cells)) = entry.remove() {
            let row = R::from_cells(cells).map_err(|error| StorageError::corrupt(R::TABLE, error))?;
            if wanted(&row) {
                rows.push(row);
            }
        }
    }
    Ok(())
}
