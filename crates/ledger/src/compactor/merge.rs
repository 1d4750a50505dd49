//! Merging pieces of one table and place into one, as a stream: one row group of each file is in
//! memory.

use std::sync::Arc;

use super::output::{Naming, PieceWriter};
use super::plan::Due;
use crate::columnar::{Damaged, Layout};
use crate::ids::Ulid;
use crate::log::EVENTS;
use crate::manifest::{FileRef, Group, Piece};
use crate::objects::{Objects, Paths, Put, StorageError};
use crate::snapshot::{Key, Spec, TableFile, Tables, key_of};
use crate::tables::Cell;

/// One merge.
#[derive(Debug, Clone)]
pub(super) struct Merge {
    pub(super) group: Group,
    /// The pieces that go, the oldest first.
    pub(super) inputs: Vec<Piece>,
    /// The level of the result.
    pub(super) level: u32,
    /// Whether nothing older is there that tombstones could be for.
    pub(super) is_bottom: bool,
    pub(super) token: String,
}

/// What became of a merge.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) merge: Merge,
    /// What takes the place of the inputs; nothing if no row is left.
    pub(super) output: Option<Piece>,
}

impl Merge {
    pub(super) fn new(group: Group, pieces: &[Piece], due: &Due, token: String) -> Self {
        let inputs = pieces[due.range.clone()].to_vec();
        Merge { group, inputs, level: due.level, is_bottom: due.range.start == 0, token }
    }
}

/// Where the files of a table are: those of events are with the log.
#[derive(Debug, Clone)]
pub(super) struct Shelves {
    pub(super) ledger: Objects,
    pub(super) state: Objects,
    pub(super) paths: Arc<Paths>,
}

impl Shelves {
    pub(super) fn of(&self, table: &str, file: &str) -> (&Objects, object_store::path::Path) {
        match table {
            EVENTS => (&self.ledger, self.paths.segment(file)),
            _ => (&self.state, self.paths.state_file(file)),
        }
    }

    async fn open(&self, table: &str, file: &FileRef, layout: &Layout) -> Result<TableFile, StorageError> {
        let (objects, path) = self.of(table, &file.path);
        TableFile::open(objects, path, file, layout).await
    }
}

/// Reads the inputs, writes the output. The result counts once a manifest names it.
pub(super) async fn merge(shelves: Shelves, merge: Merge) -> Result<Merged, StorageError> {
    let table = merge.group.table.clone();
    let damaged = |damaged: Damaged| StorageError::damaged(&table, &damaged);
    let Some(spec) = Tables::find(&table) else {
        return Err(StorageError::corrupt(&table, "this version of Segno does not have the table"));
    };
    let sequence = merge.inputs.last().map_or(0, |piece| piece.sequence);
    let naming = Naming { sequence, token: merge.token.clone() };
    let mut cursors = cursors(&shelves, spec, &merge).await?;
    let mut writer = PieceWriter::new(spec, Ulid::MIN).map_err(damaged)?;
    while let Some(least) = cursors.iter().filter_map(|cursor| cursor.head.as_ref().map(|(key, _)| key)).min()
    {
        let least = least.clone();
        // Cursors are in the order of their pieces, so the last one with the key counts.
        let mut newest = None;
        for cursor in &mut cursors {
            if cursor.head.as_ref().is_some_and(|(key, _)| *key == least) {
                newest = cursor.take().await?.map(|cells| (cursor.is_tombstones, cells));
            }
        }
        match newest {
            Some((false, cells)) => writer.push(&least, Some(cells), true).map_err(damaged)?,
            Some((true, mut cells)) if !merge.is_bottom => {
                let version = cells.pop().unwrap_or(Cell::Null);
                writer.push_tombstone(&least, version).map_err(damaged)?;
            }
            _ => (),
        }
    }
    let mut output = Piece { sequence, level: merge.level, rows: None, deletions: None };
    let files = writer.finish(&naming, &merge.group, merge.level).map_err(damaged)?;
    for (file, bytes) in files.into_iter(&mut output) {
        let (objects, path) = shelves.of(&table, &file);
        if objects.put_new(&path, bytes).await? == Put::Taken {
            return Err(StorageError::corrupt(&path, "another object has its name"));
        }
    }
    let output = (output.rows.is_some() || output.deletions.is_some()).then_some(output);
    Ok(Merged { merge, output })
}

/// One file of one input.
struct Cursor {
    file: TableFile,
    layout: Layout,
    is_tombstones: bool,
    next_group: usize,
    rows: std::vec::IntoIter<Vec<Cell>>,
    head: Option<(Key, Vec<Cell>)>,
}

async fn cursors(shelves: &Shelves, spec: &Spec, merge: &Merge) -> Result<Vec<Cursor>, StorageError> {
    let mut cursors = Vec::new();
    for piece in &merge.inputs {
        let files = [(&piece.deletions, &spec.tombstones, true), (&piece.rows, &spec.rows, false)];
        for (file, layout, is_tombstones) in files {
            let Some(file) = file else { continue };
            let file = shelves.open(&merge.group.table, file, layout).await?;
            let (rows, layout) = (Vec::new().into_iter(), layout.clone());
            let mut cursor = Cursor { file, layout, is_tombstones, next_group: 0, rows, head: None };
            cursor.take().await?;
            cursors.push(cursor);
        }
    }
    Ok(cursors)
}

impl Cursor {
    /// The cells of the head; the next row becomes the head.
    async fn take(&mut self) -> Result<Option<Vec<Cell>>, StorageError> {
        let next = loop {
            if let Some(row) = self.rows.next() {
                break Some((key_of(&self.layout, &row), row));
            }
            if self.next_group == self.file.groups() {
                break None;
            }
            self.rows = self.file.rows(self.next_group).await?.into_iter();
            self.next_group += 1;
        };
        Ok(std::mem::replace(&mut self.head, next).map(|(_, cells)| cells))
    }
}
