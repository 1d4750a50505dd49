//! The live rows of a table at one place. Pieces are applied from the oldest to the newest: a row
//! replaces the one with its key, a tombstone removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::fetch::{Rowset, TableFile};
use super::limits::CONCURRENT_FILES;
use super::tables::Spec;
use crate::columnar::{Layout, Pattern};
use crate::manifest::{FileRef, Piece};
use crate::objects::{Objects, Paths, StorageError};
use crate::tables::Cell;

/// The key of a row: its texts.
pub(crate) type Key = Vec<Arc<str>>;

/// The live rows of some pieces (oldest first) that fit a pattern of key columns, in the order of
/// their keys.
///
/// # Errors
/// `NotFound` when a file was deleted, `Corrupt`, `Unavailable`.
pub(crate) async fn live_rows(
    objects: &Objects,
    paths: &Paths,
    spec: &Spec,
    pieces: &[Piece],
    pattern: &Pattern<'_>,
) -> Result<BTreeMap<Key, Vec<Cell>>, StorageError> {
    let reads = pieces.iter().flat_map(|piece| {
        let tombstones = piece.deletions.iter().map(|file| (file, &spec.tombstones, true));
        tombstones.chain(piece.rows.iter().map(|file| (file, &spec.rows, false)))
    });
    let read = |(file, layout, is_tombstones)| async move {
        // Patterns are on columns of the rows; tombstones have other positions and are small.
        let pattern = if is_tombstones { &[] } else { pattern };
        let rows = fitting_rows(objects, paths, file, layout, pattern).await?;
        Ok::<_, StorageError>((layout, is_tombstones, rows))
    };
    // Collected first: a stream of borrowing closures is not known to be `Send`.
    let reads: Vec<_> = reads.map(read).collect();
    let mut live = BTreeMap::new();
    let mut reads = stream::iter(reads).buffered(CONCURRENT_FILES);
    while let Some((layout, is_tombstones, rows)) = reads.try_next().await? {
        for row in rows {
            let key = key_of(layout, &row);
            if is_tombstones {
                live.remove(&key);
            } else {
                live.insert(key, row);
            }
        }
    }
    Ok(live)
}

/// The key of a row.
pub(crate) fn key_of(layout: &Layout, row: &[Cell]) -> Key {
    let text = |at: &usize| match row.get(*at) {
        Some(Cell::Text(text)) => Arc::clone(text),
        _ => Arc::from(""),
    };
    layout.key().iter().map(text).collect()
}

async fn fitting_rows(
    objects: &Objects,
    paths: &Paths,
    file: &FileRef,
    layout: &Layout,
    pattern: &Pattern<'_>,
) -> Result<Rowset, StorageError> {
    if !key_range_may_have(layout, file, pattern) {
        return Ok(Vec::new());
    }
    let file = TableFile::open(objects, paths.state_file(&file.path), file, layout).await?;
    let mut found = Vec::new();
    for group in (0..file.groups()).filter(|group| file.may_have(*group, pattern)) {
        let rows = file.rows(group).await?;
        found.extend(rows.into_iter().filter(|row| fits(row, pattern)));
    }
    Ok(found)
}

/// Whether the range of the first key column after the scope allows the pattern.
pub(super) fn key_range_may_have(layout: &Layout, file: &FileRef, pattern: &Pattern<'_>) -> bool {
    let first_after_scope = layout.key().get(2);
    let wanted = pattern.iter().find(|(at, _)| Some(at) == first_after_scope);
    let (Some((_, wanted)), Some(first), Some(last)) = (wanted, &file.first_key, &file.last_key) else {
        return true;
    };
    first.as_str() <= *wanted && *wanted <= last.as_str()
}

/// Whether a row fits a pattern.
pub(super) fn fits(row: &[Cell], pattern: &Pattern<'_>) -> bool {
    pattern.iter().all(|(at, wanted)| matches!(row.get(*at), Some(Cell::Text(text)) if **text == **wanted))
}
