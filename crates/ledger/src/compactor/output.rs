//! Files and objects that one publication needs, written in parallel before the manifest.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;

use super::change::TableEntries;
use super::merge::Shelves;
use crate::columnar::{Damaged, Encoder, Layout};
use crate::ids::Ulid;
use crate::manifest::{FileRef, Group, Piece, Place, sha256};
use crate::objects::limits::CONCURRENT_CALLS;
use crate::objects::{Objects, Put, StorageError};
use crate::snapshot::{Key, Spec, Tables};
use crate::tables::Cell;

/// How files of one publication are named: by its number, and by a token that no other compactor
/// has. So no two compactors ever write the same path, and a file that was given up can be deleted.
#[derive(Debug, Clone)]
pub(super) struct Naming {
    pub(super) sequence: u64,
    pub(super) token: String,
}

/// Objects to be put if absent.
#[derive(Default)]
pub(super) struct Output {
    puts: Vec<(Objects, Path, Bytes)>,
}

impl Output {
    /// Adds an object.
    pub(super) fn add(&mut self, objects: &Objects, path: Path, bytes: Bytes) {
        self.puts.push((objects.clone(), path, bytes));
    }

    /// Writes all objects, several at a time.
    pub(super) async fn put(self) -> Result<(), StorageError> {
        let puts = self.puts.into_iter().map(|(objects, path, bytes)| async move {
            match objects.put_new(&path, bytes).await? {
                Put::Done => Ok(()),
                Put::Taken => Err(StorageError::corrupt(&path, "another object has its name")),
            }
        });
        stream::iter(puts).buffer_unordered(CONCURRENT_CALLS).try_collect().await
    }

    /// Adds the files of a piece: rows and, unless nothing older is there, tombstones.
    pub(super) fn add_piece(
        &mut self,
        shelves: &Shelves,
        naming: &Naming,
        target: &PieceTarget<'_>,
        entries: &TableEntries,
    ) -> Result<Piece, Damaged> {
        let mut piece = Piece { sequence: naming.sequence, level: target.level, rows: None, deletions: None };
        let Some(spec) = Tables::find(&target.group.table) else { return Ok(piece) };
        let mut writer = PieceWriter::new(spec, target.buried_by)?;
        for (key, cells) in entries {
            writer.push(key, cells.clone(), target.keeps_tombstones)?;
        }
        for (file, bytes) in writer.finish(naming, target.group, target.level)?.into_iter(&mut piece) {
            self.add(&shelves.state, shelves.paths.state_file(&file), bytes);
        }
        Ok(piece)
    }
}

/// Where a piece goes.
pub(super) struct PieceTarget<'a> {
    pub(super) group: &'a Group,
    pub(super) level: u32,
    /// The version that tombstones get.
    pub(super) buried_by: Ulid,
    pub(super) keeps_tombstones: bool,
}

/// Writes rows and tombstones of one piece, in the order of the keys.
pub(super) struct PieceWriter {
    spec: &'static Spec,
    rows: FileWriter,
    tombstones: FileWriter,
    buried_by: Cell,
}

impl PieceWriter {
    pub(super) fn new(spec: &'static Spec, buried_by: Ulid) -> Result<Self, Damaged> {
        Ok(PieceWriter {
            spec,
            rows: FileWriter::new(&spec.rows)?,
            tombstones: FileWriter::new(&spec.tombstones)?,
            buried_by: Cell::Text(buried_by.to_string().into()),
        })
    }

    pub(super) fn push(
        &mut self,
        key: &Key,
        cells: Option<Vec<Cell>>,
        keeps_tombstones: bool,
    ) -> Result<(), Damaged> {
        match cells {
            Some(cells) => self.rows.push(key, cells),
            None if keeps_tombstones => {
                let version = self.buried_by.clone();
                self.push_tombstone(key, version)
            }
            None => Ok(()),
        }
    }

    /// A tombstone with the version that it has already.
    pub(super) fn push_tombstone(&mut self, key: &Key, version: Cell) -> Result<(), Damaged> {
        let columns = self.spec.tombstones.columns().len();
        let mut cells = vec![Cell::Null; columns];
        for (text, at) in key.iter().zip(self.spec.tombstones.key()) {
            cells[*at] = Cell::Text(text.clone());
        }
        cells[columns - 1] = version;
        self.tombstones.push(key, cells)
    }

    pub(super) fn finish(self, naming: &Naming, group: &Group, level: u32) -> Result<PieceFiles, Damaged> {
        let place = match &group.place {
            Place::Active => "day=active".to_owned(),
            Place::Day(day) => format!("day={day}"),
        };
        let table = &group.table;
        let name = format!("{:020}-L{level}-{}", naming.sequence, naming.token);
        Ok(PieceFiles {
            rows: self.rows.finish(|| format!("{table}/{place}/{name}.parquet"))?,
            tombstones: self.tombstones.finish(|| format!("tombstones/{table}/{place}/{name}.parquet"))?,
        })
    }
}

/// The files of a piece, not written yet.
pub(super) struct PieceFiles {
    rows: Option<(FileRef, Bytes)>,
    tombstones: Option<(FileRef, Bytes)>,
}

impl PieceFiles {
    /// Names the files in the piece, and returns their paths and bytes.
    pub(super) fn into_iter(self, piece: &mut Piece) -> impl Iterator<Item = (String, Bytes)> {
        let mut written = Vec::new();
        for (slot, file) in [(&mut piece.rows, self.rows), (&mut piece.deletions, self.tombstones)] {
            if let Some((file, bytes)) = file {
                written.push((file.path.clone(), bytes));
                *slot = Some(file);
            }
        }
        written.into_iter()
    }
}

/// One file.
struct FileWriter {
    encoder: Encoder,
    first: Option<String>,
    last: Option<Key>,
}

impl FileWriter {
    fn new(layout: &Layout) -> Result<Self, Damaged> {
        Ok(FileWriter { encoder: Encoder::new(layout.clone())?, first: None, last: None })
    }

    fn push(&mut self, key: &Key, cells: Vec<Cell>) -> Result<(), Damaged> {
        if self.first.is_none() {
            self.first = key.get(2).map(|text| text.to_string());
        }
        self.last = Some(key.clone());
        self.encoder.push(cells)
    }

    fn finish(self, path: impl FnOnce() -> String) -> Result<Option<(FileRef, Bytes)>, Damaged> {
        let rows = self.encoder.rows();
        if rows == 0 {
            return Ok(None);
        }
        let bytes = self.encoder.finish()?;
        let last_key = self.last.and_then(|key| Some(key.get(2)?.to_string()));
        let file = FileRef {
            path: path(),
            sha256: sha256(&bytes),
            bytes: bytes.len() as u64,
            rows,
            first_key: self.first,
            last_key,
        };
        Ok(Some((file, bytes)))
    }
}
