//! A file whose every block carries a checksum, verified by every read. redb lives on it: a flipped bit in one of its
//! pages is an error of the read that meets it, never a wrong value, a row that seems to be gone, or a panic.
//!
//! Blocks are in groups. Before the blocks of a group lies a block with their checksums. See `docs/embedded-format.md`.
//!
//! Checksums are written when the file is synced. So after a power cut, blocks that were being written may contradict
//! theirs. redb never reads those: it refers to a page only after a sync, and never writes over one that it refers to.
//! Its header is the exception, so that is in two sectors, one written after the other, each with its checksum inside.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::files::StoreFile;
use crate::disk::full_disk::FullDisk;

/// Length of a block: that of redb's pages.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// As many as a block has room for checksums.
const GROUP_BLOCKS: u64 = BLOCK_BYTES / SUM_BYTES;

const SUM_BYTES: u64 = 4;

/// What redb may write into its first block: the rest of the sector is the checksum.
pub(crate) const HEADER_BYTES: usize = 508;

/// redb's header.
pub(crate) type Header = [u8; HEADER_BYTES];

/// Length of a sector that holds redb's header.
const SECTOR_BYTES: usize = 512;

/// The sum of a block that was never written. No sum of a written block is this number.
const UNWRITTEN: u32 = 0;

/// A file of checked blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: Arc<dyn StoreFile>,
    sums: Mutex<Sums>,
    when_full: Arc<FullDisk>,
}

#[derive(Debug, Default)]
struct Sums {
    /// By number of the block.
    of_blocks: Vec<u32>,
    /// Groups whose checksums are not written yet.
    changed: BTreeSet<u64>,
    /// Blocks that were written.
    written: u64,
    /// The sector of redb's header, without its checksum.
    header: Option<Header>,
}

fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn sum_of(number: u64, block: &[u8]) -> u32 {
    // The number is part of it, so that a block at the wrong place is noticed too.
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), block).max(1)
}

/// How many blocks have been written.
fn written(sums: &[u32]) -> u64 {
    sums.iter().filter(|sum| **sum != UNWRITTEN).count() as u64
}

/// Where a block lies in the file.
fn place(block: u64) -> u64 {
    (block + block / GROUP_BLOCKS + 1) * BLOCK_BYTES
}

/// Where the checksums of a group lie in the file.
fn sums_place(group: u64) -> u64 {
    group * (GROUP_BLOCKS + 1) * BLOCK_BYTES
}

/// Length of a file that holds this many bytes in blocks.
fn file_len(len: u64) -> u64 {
    match len.div_ceil(BLOCK_BYTES) {
        0 => 0,
        blocks => place(blocks - 1) + BLOCK_BYTES,
    }
}

/// How many bytes in blocks a file of this length holds.
fn content_len(file_len: u64) -> u64 {
    let group_bytes = (GROUP_BLOCKS + 1) * BLOCK_BYTES;
    let rest = (file_len % group_bytes).saturating_sub(BLOCK_BYTES);
    file_len / group_bytes * GROUP_BLOCKS * BLOCK_BYTES + rest
}

impl Blocks {
    /// The blocks of a file, which may be empty.
    pub(crate) fn open(file: Arc<dyn StoreFile>, when_full: Arc<FullDisk>) -> io::Result<Self> {
        let len = file.len()?;
        let blocks = content_len(len) / BLOCK_BYTES;
        let mut of_blocks = Vec::new();
        let mut sums = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(0)];
        for group in 0..blocks.div_ceil(GROUP_BLOCKS) {
            file.read_at(sums_place(group), &mut sums)?;
            of_blocks
                .extend(sums.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]])));
        }
        of_blocks.resize(usize::try_from(blocks).unwrap_or(usize::MAX), UNWRITTEN);
        let written = written(&of_blocks);
        let sums = Mutex::new(Sums { of_blocks, written, ..Sums::default() });
        Ok(Blocks { file, sums, when_full })
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Length of the content.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(content_len(self.file.len()?))
    }

    /// How much room it takes on disk: what was never written is a hole in the file.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.sums().written * BLOCK_BYTES
    }

    /// Cuts or extends the content.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.when_full.retry(|| self.file.set_len(file_len(len)))?;
        let mut sums = self.sums();
        let blocks = len.div_ceil(BLOCK_BYTES);
        let known = sums.of_blocks.len() as u64;
        if blocks < known && !blocks.is_multiple_of(GROUP_BLOCKS) {
            // The sums of what was cut off must not meet what comes to its place.
            sums.changed.insert(blocks / GROUP_BLOCKS);
        }
        let kept = usize::try_from(blocks).unwrap_or(usize::MAX);
        sums.written -= written(sums.of_blocks.get(kept..).unwrap_or_default());
        sums.of_blocks.resize(kept, UNWRITTEN);
        sums.changed.retain(|group| group * GROUP_BLOCKS < blocks);
        Ok(())
    }

    /// Fills the buffer from an offset, after verifying every block.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset + (out.len() as u64) <= HEADER_BYTES as u64 {
            let header = self.header()?;
            let start = usize::try_from(offset).unwrap_or(HEADER_BYTES);
            out.copy_from_slice(&header[start..start + out.len()]);
            return Ok(());
        }
        let mut done = 0;
        self.pieces(offset, out.len(), |first, place, len| {
            let piece = &mut out[done..done + len];
            done += len;
            self.file.read_at(place, piece)?;
            self.verify(first, piece)
        })
    }

    fn verify(&self, first: u64, piece: &[u8]) -> io::Result<()> {
        let sums = self.sums();
        for (number, block) in (first..).zip(piece.chunks(BLOCK_BYTES as usize)) {
            let sum = usize::try_from(number).ok().and_then(|number| sums.of_blocks.get(number)).copied();
            let sound = match sum {
                Some(UNWRITTEN) | None => block.iter().all(|byte| *byte == 0),
                Some(sum) => sum == sum_of(number, block),
            };
            if !sound {
                // Checksums lie between the blocks, so the number alone does not determine where to
                // look.
                let byte = place(number);
                return Err(damaged(format!(
                    "block {number} (at byte {byte}) of state.redb fails its checksum"
                )));
            }
        }
        Ok(())
    }

    /// Writes at an offset.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset + (data.len() as u64) <= HEADER_BYTES as u64 {
            return self.write_header(offset, data);
        }
        let mut done = 0;
        self.pieces(offset, data.len(), |first, place, len| {
            let piece = &data[done..done + len];
            done += len;
            self.when_full.retry(|| self.file.write_at(place, piece))?;
            let mut sums = self.sums();
            for (number, block) in (first..).zip(piece.chunks(BLOCK_BYTES as usize)) {
                let slot = usize::try_from(number).unwrap_or(usize::MAX);
                if sums.of_blocks.len() <= slot {
                    sums.of_blocks.resize(slot + 1, UNWRITTEN);
                }
                sums.written += u64::from(sums.of_blocks[slot] == UNWRITTEN);
                sums.of_blocks[slot] = sum_of(number, block);
            }
            sums.changed.insert(first / GROUP_BLOCKS);
            Ok(())
        })
    }

    /// Makes everything written so far durable, with its checksums.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let changed = std::mem::take(&mut self.sums().changed);
        for group in changed {
            let start = usize::try_from(group * GROUP_BLOCKS).unwrap_or(usize::MAX);
            let bytes: Vec<u8> = {
                let sums = self.sums();
                let of_group = sums.of_blocks.iter().skip(start).take(GROUP_BLOCKS as usize);
                of_group.flat_map(|sum| sum.to_le_bytes()).collect()
            };
            self.when_full.retry(|| self.file.write_at(sums_place(group), &bytes))?;
        }
        self.file.sync()
    }

    /// Cuts a stretch of whole blocks into pieces that lie together in the file.
    fn pieces(
        &self,
        offset: u64,
        len: usize,
        mut each: impl FnMut(u64, u64, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        if !offset.is_multiple_of(BLOCK_BYTES) || !(len as u64).is_multiple_of(BLOCK_BYTES) {
            let what = format!("the state is read or written in whole blocks, not {len} bytes at {offset}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let (mut block, end) = (offset / BLOCK_BYTES, (offset + len as u64) / BLOCK_BYTES);
        while block < end {
            let until = end.min((block / GROUP_BLOCKS + 1) * GROUP_BLOCKS);
            each(block, place(block), usize::try_from((until - block) * BLOCK_BYTES).unwrap_or(0))?;
            block = until;
        }
        Ok(())
    }

    /// redb's header as it was last written.
    pub(crate) fn header(&self) -> io::Result<Header> {
        if let Some(header) = self.sums().header {
            return Ok(header);
        }
        let mut sectors = [0; 2 * SECTOR_BYTES];
        self.file.read_at(place(0), &mut sectors)?;
        let sound = sectors.chunks_exact(SECTOR_BYTES).find_map(|sector| {
            let (header, sum) = sector.split_first_chunk::<HEADER_BYTES>()?;
            (sum_of(0, header).to_le_bytes() == *sum).then_some(*header)
        });
        let header = match sound {
            Some(header) => header,
            None if sectors == [0; 2 * SECTOR_BYTES] => [0; HEADER_BYTES],
            None => return Err(damaged("the header of state.redb fails its checksum".to_owned())),
        };
        self.sums().header = Some(header);
        Ok(header)
    }

    fn write_header(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut header = self.header()?;
        let start = usize::try_from(offset).unwrap_or(HEADER_BYTES);
        header[start..start + data.len()].copy_from_slice(data);
        let mut sector = [0; SECTOR_BYTES];
        sector[..HEADER_BYTES].copy_from_slice(&header);
        sector[HEADER_BYTES..].copy_from_slice(&sum_of(0, &header).to_le_bytes());
        for copy in [0, SECTOR_BYTES as u64] {
            self.when_full.retry(|| self.file.write_at(place(0) + copy, &sector))?;
        }
        self.sums().header = Some(header);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_places_agree() {
        assert_eq!((file_len(0), content_len(0)), (0, 0));
        for blocks in [1, 2, GROUP_BLOCKS - 1, GROUP_BLOCKS, GROUP_BLOCKS + 1, 5 * GROUP_BLOCKS] {
            let len = blocks * BLOCK_BYTES;
            assert_eq!(content_len(file_len(len)), len, "{blocks} blocks");
            assert_eq!(place(blocks - 1) + BLOCK_BYTES, file_len(len));
        }
        assert_eq!(place(0), BLOCK_BYTES);
        assert_eq!(place(GROUP_BLOCKS), sums_place(1) + BLOCK_BYTES);
    }
}
