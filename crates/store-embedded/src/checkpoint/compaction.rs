//! Compaction while the store is in use: rows are copied in key order, a piece at a time, into a new redb
//! file that takes the place of the old one. redb itself only cuts off what happens to be free at the end of its file.
//!
//! Checkpoints continue meanwhile, into the old file. What one changes at or before the place that the copy has reached
//! is changed in the copy too; the rest is copied later. A crash leaves the old file or the new one, each whole.

use std::borrow::Cow;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::copy_on_write::CopyOnWriteFiles;
use crate::disk::directory::Directory;
use crate::disk::files::Files;
use crate::disk::full_disk::FullDisk;
use crate::error::{OpenError, RowError, advised};
use crate::log::{self, SPARE_NAME};
use crate::operate::fill_marker;
use crate::rows::base::{BASE_NAME, Base, Durable, NEW_NAME, Row};
use crate::rows::keys::Key;
use crate::rows::overlay::Overlay;

/// Most that is copied at a time. A checkpoint that is due waits for no more than this.
const PIECE_BYTES: usize = 1024 * 1024;

/// Most rows that are copied at a time.
const PIECE_ROWS: usize = 8_192;

/// The copy is synced after this many bytes, so that no sync has much to do.
const SYNC_BYTES: usize = 32 * 1024 * 1024;

/// How far a compaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactProgress {
    /// Rows that are copied.
    pub rows_done: u64,
    /// Rows that there are.
    pub rows_total: u64,
}

/// What a compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactReport {
    /// Room that the state file took on disk before.
    pub bytes_before: u64,
    /// Room that it takes now.
    pub bytes_after: u64,
}

/// How a compaction ended that did not.
#[derive(Debug)]
pub(crate) enum CompactionError {
    /// The old file is still the one; nothing is lost.
    Harmless(RowError),
    /// It is not known which file the disk has.
    Unknown(String),
}

impl From<RowError> for CompactionError {
    fn from(error: RowError) -> Self {
        CompactionError::Harmless(error)
    }
}

impl From<OpenError> for CompactionError {
    fn from(error: OpenError) -> Self {
        CompactionError::Harmless(match error {
            OpenError::Corrupt(what) => RowError::Corrupt(what),
            OpenError::Io(error) => RowError::Unreadable(advised(&error)),
            other => RowError::Unreadable(other.to_string()),
        })
    }
}

impl From<io::Error> for CompactionError {
    fn from(error: io::Error) -> Self {
        CompactionError::Harmless(RowError::Unreadable(advised(&error)))
    }
}

impl std::fmt::Display for CompactionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompactionError::Harmless(error) => error.fmt(f),
            CompactionError::Unknown(error) => error.fmt(f),
        }
    }
}

/// A copy that is being made.
pub(crate) struct Compaction {
    files: Arc<dyn Files>,
    copy: Base,
    /// The last key that was copied.
    reached: Option<Key>,
    unsynced_bytes: usize,
    rows_done: u64,
    bytes_before: u64,
}

impl Compaction {
    /// Starts a copy of a file.
    pub(crate) fn start(files: &Arc<dyn Files>, base: &Base) -> Result<Self, CompactionError> {
        let bytes_before = base.file_bytes();
        // With no room for the copy there is none; that is better than to wait with the disk full.
        let impatient = FullDisk::new(std::time::Duration::ZERO);
        let copy = Base::create(files, &impatient)?;
        let files = Arc::clone(files);
        Ok(Compaction { files, copy, reached: None, unsynced_bytes: 0, rows_done: 0, bytes_before })
    }

    /// How far it is.
    pub(crate) fn progress(&self, base: &Base) -> CompactProgress {
        CompactProgress { rows_done: self.rows_done, rows_total: base.size().rows.max(self.rows_done) }
    }

    /// Copies the next piece; `true` when there is none.
    pub(crate) fn copy_piece(&mut self, base: &Base) -> Result<bool, CompactionError> {
        let start = self.reached.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut piece: Vec<(Key, Bytes)> = Vec::new();
        let mut bytes = 0;
        for row in base.snapshot()?.from(start)? {
            let (key, value) = row?;
            bytes += key.len() + value.len();
            piece.push((key, value));
            if bytes >= PIECE_BYTES || piece.len() >= PIECE_ROWS {
                break;
            }
        }
        let Some((last, _)) = piece.last() else { return Ok(true) };
        self.reached = Some(last.clone());
        self.rows_done += piece.len() as u64;
        let rows = piece.iter().map(|(key, value)| (Cow::Borrowed(key), Some(Cow::Borrowed(value.as_ref()))));
        self.write(rows, bytes)?;
        Ok(false)
    }

    /// Follows a checkpoint that the old file has.
    pub(crate) fn follow(
        &mut self,
        changes: &Overlay,
        meta_rows: &[(Key, Bytes)],
    ) -> Result<(), CompactionError> {
        let Some(reached) = self.reached.clone() else { return Ok(()) };
        let meta_rows =
            meta_rows.iter().map(|(key, value)| (Cow::Borrowed(key), Some(Cow::Borrowed(value.as_ref()))));
        let copied: Vec<_> =
            changes.to_store().chain(meta_rows).filter(|(key, _)| **key <= reached).collect();
        let bytes = copied.iter().map(|(key, row)| key.len() + row.as_deref().map_or(0, <[u8]>::len)).sum();
        self.write(copied.into_iter(), bytes)
    }

    fn write<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
        bytes: usize,
    ) -> Result<(), CompactionError> {
        self.unsynced_bytes += bytes;
        let durable = if self.unsynced_bytes >= SYNC_BYTES { Durable::Now } else { Durable::Later };
        if durable == Durable::Now {
            self.unsynced_bytes = 0;
        }
        Ok(self.copy.write_rows(rows, durable)?)
    }

    /// Puts the copy into the place of the file and opens it; `None` for the file if the copy is not smaller and was removed.
    pub(crate) fn finish(
        self,
        full_disk: &Arc<FullDisk>,
    ) -> Result<(Option<Base>, CompactReport), CompactionError> {
        let files = Arc::clone(&self.files);
        let report = self.replace()?;
        if report.bytes_after == report.bytes_before {
            return Ok((None, report));
        }
        let unknown = |error: OpenError| CompactionError::Unknown(format!("compaction: {error}"));
        Ok((Some(Base::reopen(&files, full_disk).map_err(unknown)?), report))
    }

    /// Puts the copy into the place of the file; removes it if it is not smaller.
    fn replace(self) -> Result<CompactReport, CompactionError> {
        let Compaction { files, copy, bytes_before, .. } = self;
        copy.write(&Overlay::default(), &[])?;
        // Closing it cuts off what is free at its end.
        drop(copy);
        let bytes_after = Base::bytes_of(&files, NEW_NAME)?;
        if bytes_after >= bytes_before {
            files.remove(NEW_NAME)?;
            return Ok(CompactReport { bytes_before, bytes_after: bytes_before });
        }
        Base::prepare(&files)?;
        Base::publish(&files).map_err(|error| CompactionError::Unknown(format!("compaction: {error}")))?;
        Ok(CompactReport { bytes_before, bytes_after })
    }

    /// Removes what was copied.
    pub(crate) fn abandon(self) {
        let Compaction { files, copy, .. } = self;
        drop(copy);
        // Opening removes it if this does not.
        let _ = files.remove(NEW_NAME);
    }
}

/// Gives unused disk space of a store back that is not open. A state that would not become smaller stays as it is, and so does the
/// log.
///
/// # Errors
/// When there is no store, or it is in use or damaged, or there is too little room for the copy; nothing has changed then.
pub fn compact(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(CompactProgress),
) -> Result<CompactReport, OpenError> {
    let path = path.as_ref();
    let mut open = || compact_files(&(Arc::new(Directory::new(path)?) as Arc<dyn Files>), &mut progress);
    open().map_err(|error| error.in_directory(path))
}

/// The same on any directory; for tests.
#[doc(hidden)]
pub fn compact_files(
    files: &Arc<dyn Files>,
    progress: &mut dyn FnMut(CompactProgress),
) -> Result<CompactReport, OpenError> {
    let _lock = files.lock().map_err(OpenError::of_lock)?;
    fill_marker::refuse_unfinished(&**files)?;
    log::refuse_unknown_format(files)?;
    // redb writes when it opens a file; that must not make it longer if the copy is not used.
    let base = Base::reopen(&CopyOnWriteFiles::of(files), &FullDisk::new(std::time::Duration::ZERO))?;
    let bytes_before = Base::bytes_of(files, BASE_NAME)?;
    let compacted = copy_all(files, &base, bytes_before, progress);
    let report = compacted.map_err(|failed| {
        let _ = files.remove(NEW_NAME);
        match failed {
            CompactionError::Harmless(RowError::Unreadable(what)) => OpenError::NotCompacted(what),
            CompactionError::Harmless(error) => OpenError::from(error),
            CompactionError::Unknown(error) => OpenError::Io(io::Error::other(error)),
        }
    })?;
    // It holds nothing.
    if files.list()?.iter().any(|name| name == SPARE_NAME) {
        files.remove(SPARE_NAME)?;
        files.sync_dir()?;
    }
    Ok(report)
}

fn copy_all(
    files: &Arc<dyn Files>,
    base: &Base,
    bytes_before: u64,
    progress: &mut dyn FnMut(CompactProgress),
) -> Result<CompactReport, CompactionError> {
    let mut compaction = Compaction { bytes_before, ..Compaction::start(files, base)? };
    while !compaction.copy_piece(base)? {
        progress(compaction.progress(base));
    }
    compaction.replace()
}
