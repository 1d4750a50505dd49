//! A file of a table, read as a whole or in parts.

use std::ops::Range;

use bytes::Bytes;
use object_store::GetRange;
use object_store::path::Path;
use segno::store::ErrorKind;

use super::limits::WHOLE_FILE_BYTES;
use crate::columnar::limits::{MAX_FILE_BYTES, TAIL_BYTES};
use crate::columnar::{ColumnarFile, Damaged, Layout, Pattern};
use crate::manifest::{FileRef, sha256};
use crate::objects::{Objects, StorageError};
use crate::tables::Cell;

/// Rows of one row group.
pub(crate) type Rowset = Vec<Vec<Cell>>;

/// A file whose footer was read.
pub(crate) struct TableFile {
    objects: Objects,
    path: Path,
    file: ColumnarFile,
    /// All bytes, if the file was read as a whole.
    whole: Option<Bytes>,
    file_bytes: u64,
}

impl TableFile {
    /// Opens a file: small ones are read as a whole and verified.
    ///
    /// # Errors
    /// `NotFound` when the file was deleted, `Corrupt`, `Unavailable`.
    pub(crate) async fn open(
        objects: &Objects,
        path: Path,
        file: &FileRef,
        layout: &Layout,
    ) -> Result<Self, StorageError> {
        let is_intact = |bytes: &Bytes| sha256(bytes) == file.sha256;
        Self::open_checked(objects, path, file.bytes, layout, is_intact).await
    }

    /// The same for a file of so many bytes, whose bytes are intact if they pass a check.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub(crate) async fn open_checked(
        objects: &Objects,
        path: Path,
        file_bytes: u64,
        layout: &Layout,
        is_intact: impl Fn(&Bytes) -> bool,
    ) -> Result<Self, StorageError> {
        if file_bytes > MAX_FILE_BYTES {
            let problem = format!("it has {file_bytes} bytes; at most {MAX_FILE_BYTES} are read");
            return Err(StorageError::corrupt(&path, problem));
        }
        let is_whole = file_bytes <= WHOLE_FILE_BYTES;
        let mut tail_bytes = if is_whole { file_bytes } else { TAIL_BYTES };
        loop {
            let tail = if is_whole {
                objects.get(&path, file_bytes).await?
            } else {
                // Not as a suffix, which Azure does not have.
                let tail = file_bytes.saturating_sub(tail_bytes)..file_bytes;
                objects.get_part(&path, GetRange::Bounded(tail), MAX_FILE_BYTES).await?
            };
            let tail = tail.ok_or_else(|| gone(&path))?;
            if is_whole && (tail.len() as u64 != file_bytes || !is_intact(&tail)) {
                return Err(StorageError::corrupt(
                    &path,
                    "its SHA-256 is not the one that it was written with",
                ));
            }
            let opened = ColumnarFile::open(layout, file_bytes, &tail);
            match opened.map_err(|damaged| StorageError::damaged(&path, &damaged))? {
                Ok(columnar) => {
                    let whole = is_whole.then_some(tail);
                    let objects = objects.clone();
                    return Ok(TableFile { objects, path, file: columnar, whole, file_bytes });
                }
                Err(needed) if needed > tail_bytes => tail_bytes = needed,
                Err(_) => return Err(StorageError::corrupt(&path, "it is shorter than it was listed")),
            }
        }
    }

    /// How many row groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.file.groups()
    }

    /// Whether a row group can have a row of this pattern.
    pub(crate) fn may_have(&self, group: usize, pattern: &Pattern<'_>) -> bool {
        self.file.may_have(group, pattern)
    }

    /// Bounds of a text column of a row group: no value is less than the first or greater than the second.
    pub(crate) fn bounds(&self, group: usize, column: usize) -> (Option<&[u8]>, Option<&[u8]>) {
        self.file.bounds(group, column)
    }

    /// The rows of a row group. They are decoded on a thread for blocking work.
    ///
    /// # Errors
    /// `NotFound` when the file was deleted, `Corrupt`, `Unavailable`.
    pub(crate) async fn rows(&self, group: usize) -> Result<Rowset, StorageError> {
        let bytes = self.bytes(self.file.range(group)).await?;
        let file = self.file.clone();
        self.decoded(move || file.rows(group, &bytes)).await
    }

    /// The rows of a row group with these columns only. They are decoded on a thread for blocking work.
    ///
    /// # Errors
    /// As [`TableFile::rows`].
    pub(crate) async fn some_columns(
        &self,
        group: usize,
        columns: Vec<usize>,
    ) -> Result<Rowset, StorageError> {
        let bytes = self.bytes(self.file.range(group)).await?;
        let file = self.file.clone();
        self.decoded(move || file.some_columns(group, &bytes, &columns)).await
    }

    /// The cells of one column of a row group.
    ///
    /// # Errors
    /// As [`TableFile::rows`].
    pub(crate) async fn column(&self, group: usize, column: usize) -> Result<Vec<Cell>, StorageError> {
        let bytes = self.bytes(self.file.range(group)).await?;
        let file = self.file.clone();
        let columns = self.decoded(move || file.cells(group, &bytes, &[column])).await?;
        Ok(columns.into_iter().next().unwrap_or_default())
    }

    async fn decoded<T: Send + 'static>(
        &self,
        decode: impl FnOnce() -> Result<T, Damaged> + Send + 'static,
    ) -> Result<T, StorageError> {
        // A small file is decoded faster than a thread is found for it.
        let outcome = if self.file_bytes <= WHOLE_FILE_BYTES {
            decode()
        } else {
            let joined = tokio::task::spawn_blocking(decode).await;
            joined.unwrap_or_else(|_| Err(Damaged("its decoder was stopped".to_owned())))
        };
        outcome.map_err(|damaged| StorageError::damaged(&self.path, &damaged))
    }

    async fn bytes(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let Some(whole) = &self.whole else {
            let part = self.objects.get_part(&self.path, GetRange::Bounded(range), MAX_FILE_BYTES).await?;
            return part.ok_or_else(|| gone(&self.path));
        };
        let (start, end) = (range.start as usize, range.end as usize);
        if start > end || end > whole.len() {
            return Err(StorageError::corrupt(&self.path, "a row group lies outside of the file"));
        }
        Ok(whole.slice(start..end))
    }
}

/// The file was deleted: a newer manifest does not name it.
fn gone(path: &Path) -> StorageError {
    StorageError::new(ErrorKind::NotFound, path, "it was deleted; read the newest manifest")
}
