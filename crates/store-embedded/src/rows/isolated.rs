//! Reading a state file that has damage. redb refuses every access to a file after one read of it has failed. So the rows of a
//! checkpoint are read by another redb, on the same blocks; when that one meets damage too, the next takes its place. What is
//! not on a damaged block can be read, and the redb that writes never meets damage that only a reader looks for.
//!
//! The other redb starts from the header that the file had when the checkpoint was made. The pages of that checkpoint are not
//! reused, because the redb that writes has a read transaction on it. What the other one writes stays in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use redb::{Database, ReadOnlyTable, ReadableDatabase, StorageBackend, TableDefinition};

use crate::disk::blocks::{BLOCK_BYTES, Blocks, HEADER_BYTES, Header};
use crate::disk::directory::without_path;
use crate::error::RowError;
use crate::repair::damage::FailedReads;
use crate::rows::base::unreadable;

/// The one table.
pub(crate) const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");

/// Rows of redb for reading.
pub(crate) type RawTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Memory that it may use for pages.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Where the rows of a checkpoint are in a file.
#[derive(Debug)]
pub(crate) struct CheckpointLocation {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) header: Header,
    /// Length of the content of the file.
    pub(crate) len: u64,
    pub(crate) failed: Arc<FailedReads>,
}

/// Another redb on the rows of a checkpoint.
pub(crate) struct IsolatedReader {
    pub(crate) table: RawTable,
    /// The table is read from it. It comes last, so that it is dropped last.
    _database: Database,
}

impl fmt::Debug for IsolatedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IsolatedReader").finish_non_exhaustive()
    }
}

impl IsolatedReader {
    /// Opens the rows of a checkpoint.
    pub(crate) fn open(place: &CheckpointLocation) -> Result<Self, RowError> {
        let backend = MemoryOverBlocks {
            blocks: Arc::clone(&place.blocks),
            failed: Arc::clone(&place.failed),
            written: Mutex::new(Written { header: place.header, len: place.len, blocks: BTreeMap::new() }),
        };
        let opened = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend);
        let database = opened.map_err(unreadable)?;
        let transaction = database.begin_read().map_err(unreadable)?;
        let table = transaction.open_table(ROWS).map_err(unreadable)?;
        Ok(IsolatedReader { table, _database: database })
    }
}

/// Blocks that are read and never changed: what is written stays in memory.
#[derive(Debug)]
struct MemoryOverBlocks {
    blocks: Arc<Blocks>,
    failed: Arc<FailedReads>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    header: Header,
    len: u64,
    /// By number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// The part of the header that a stretch is, if it is one.
fn part_of_header(offset: u64, len: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(len)?;
    (end <= HEADER_BYTES).then_some(start..end)
}

impl StorageBackend for MemoryOverBlocks {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().unwrap_or_else(PoisonError::into_inner).len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = part_of_header(offset, out.len()) {
            out.copy_from_slice(&written.header[part]);
            return Ok(());
        }
        let noted = |error: &io::Error| self.failed.note(&without_path(error));
        let first = offset / BLOCK_BYTES;
        let blocks = first..first + (out.len() as u64).div_ceil(BLOCK_BYTES);
        if written.blocks.range(blocks.clone()).next().is_none() {
            drop(written);
            return self.blocks.read(offset, out).inspect_err(noted);
        }
        for (number, part) in blocks.zip(out.chunks_mut(BLOCK_BYTES as usize)) {
            match written.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block[..part.len()]),
                None => self.blocks.read(number * BLOCK_BYTES, part).inspect_err(noted)?,
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // What lies behind the old end was never written: it reads as zeros.
        for number in written.len.div_ceil(BLOCK_BYTES)..len.div_ceil(BLOCK_BYTES) {
            written.blocks.insert(number, vec![0; BLOCK_BYTES as usize]);
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = part_of_header(offset, data.len()) {
            written.header[part].copy_from_slice(data);
            return Ok(());
        }
        if !offset.is_multiple_of(BLOCK_BYTES) || !(data.len() as u64).is_multiple_of(BLOCK_BYTES) {
            let what = format!("{} bytes at {offset} are no whole blocks", data.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        for (number, block) in (offset / BLOCK_BYTES..).zip(data.chunks(BLOCK_BYTES as usize)) {
            written.blocks.insert(number, block.to_vec());
        }
        Ok(())
    }
}
