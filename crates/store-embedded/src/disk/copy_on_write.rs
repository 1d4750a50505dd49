//! Copy-on-write files: a directory that is never changed, because writes stay in memory. redb writes
//! when it opens a file, even to read it.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::blocks::BLOCK_BYTES;
use crate::disk::files::{Files, StoreFile};

/// The files of another directory, read-only.
#[derive(Debug)]
pub(crate) struct CopyOnWriteFiles(Arc<dyn Files>);

impl CopyOnWriteFiles {
    /// Every opened file starts with the content on disk.
    pub(crate) fn of(files: &Arc<dyn Files>) -> Arc<dyn Files> {
        Arc::new(CopyOnWriteFiles(Arc::clone(files)))
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the directory is only read")
}

impl Files for CopyOnWriteFiles {
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.0.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let file = self.0.open(name)?;
        let len = file.len()?;
        Ok(Arc::new(ShadowFile { file, changed: Mutex::new(ShadowBlocks { len, blocks: BTreeMap::new() }) }))
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn StoreFile>> {
        Err(refused())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Err(refused())
    }
}

/// A file, and the blocks that were written to it.
#[derive(Debug)]
struct ShadowFile {
    file: Arc<dyn StoreFile>,
    changed: Mutex<ShadowBlocks>,
}

#[derive(Debug)]
struct ShadowBlocks {
    len: u64,
    /// By number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl ShadowFile {
    fn changed(&self) -> MutexGuard<'_, ShadowBlocks> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block as it is on disk; zeros behind the end of the file.
    fn on_disk(&self, number: u64) -> io::Result<Vec<u8>> {
        let mut block = vec![0; BLOCK_BYTES as usize];
        let start = number * BLOCK_BYTES;
        let len = self.file.len()?.saturating_sub(start).min(BLOCK_BYTES);
        self.file.read_at(start, &mut block[..usize::try_from(len).unwrap_or(0)])?;
        Ok(block)
    }
}

/// The parts of a range by block: number of the block, offset in the block, and part of the range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = usize::try_from(at % BLOCK_BYTES).unwrap_or(0);
        let part = (BLOCK_BYTES as usize - within).min(len - done);
        let range = done..done + part;
        done += part;
        (part > 0).then_some((at / BLOCK_BYTES, within, range))
    })
}

impl StoreFile for ShadowFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed().len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let changed = self.changed();
        if offset.saturating_add(buffer.len() as u64) > changed.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, within, range) in parts(offset, buffer.len()) {
            let part = &mut buffer[range];
            match changed.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block[within..within + part.len()]),
                None => part.copy_from_slice(&self.on_disk(number)?[within..within + part.len()]),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        for (number, within, range) in parts(offset, bytes.len()) {
            let part = &bytes[range];
            let block = match changed.blocks.entry(number) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(place) => place.insert(self.on_disk(number)?),
            };
            block[within..within + part.len()].copy_from_slice(part);
        }
        changed.len = changed.len.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changed().len = len;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
