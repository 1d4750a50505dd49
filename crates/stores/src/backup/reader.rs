//! Reading a backup. Nothing of a damaged file is taken for content, and a whole content is told only at its trailer.

use std::fs::File;
use std::io::{BufReader, ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use segno::store::{ContentItem, ErrorKind, Export, ProviderError, decode_item};

use super::block::{self, BLOCK_HEADER_BYTES, BlockKind, u32_at};
use super::{FILE_HEADER_BYTES, FORMAT_VERSION, MAGIC};
use crate::digest::{ContentDigest, ContentSummary};
use crate::error::Error;

/// Length of the checksum in the trailer.
const DIGEST_BYTES: usize = 32;

/// A backup that is being read. It is an [`Export`], so a store is filled from it as from another store.
#[derive(Debug)]
pub struct BackupReader {
    path: PathBuf,
    file: BufReader<File>,
    len: u64,
    position: u64,
    blocks: u64,
    digest: ContentDigest,
    /// There once the trailer has been read and is right.
    summary: Option<ContentSummary>,
}

impl BackupReader {
    /// Opens a backup.
    ///
    /// # Errors
    /// When there is none, or none that this build reads.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let file = File::open(&path).map_err(Error::file(&path))?;
        let metadata = file.metadata().map_err(Error::file(&path))?;
        if !metadata.is_file() {
            return Err(Error::NotABackup(path));
        }
        let mut reader = BackupReader {
            path,
            file: BufReader::new(file),
            len: metadata.len(),
            position: 0,
            blocks: 0,
            digest: ContentDigest::default(),
            summary: None,
        };
        let mut header = [0; FILE_HEADER_BYTES];
        if reader.len < header.len() as u64 {
            return Err(Error::NotABackup(reader.path));
        }
        reader.read(&mut header)?;
        if header[..8] != MAGIC {
            return Err(Error::NotABackup(reader.path));
        }
        if crc32c::crc32c(&header[..12]) != u32_at(&header, 12) {
            return Err(Error::damaged(&reader.path, "the checksum of its header is wrong"));
        }
        match u32_at(&header, 8) {
            FORMAT_VERSION => Ok(reader),
            found => Err(Error::UnknownFormat { path: reader.path, found }),
        }
    }

    /// Length of the file.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// How much of it has been read.
    pub fn position_bytes(&self) -> u64 {
        self.position
    }

    /// What the backup has, once it has been read to its end.
    pub fn summary(&self) -> Option<&ContentSummary> {
        self.summary.as_ref()
    }

    /// The items of the next block; empty at the end.
    ///
    /// # Errors
    /// When the file is cut or damaged, or cannot be read.
    pub fn next_block(&mut self) -> Result<Vec<ContentItem>, Error> {
        if self.summary.is_some() {
            return Ok(Vec::new());
        }
        let start = self.position;
        let mut block = vec![0; BLOCK_HEADER_BYTES];
        self.read(&mut block)?;
        let header = block.first_chunk().expect("just made that long");
        let at = |what: String| format!("the block at byte {start}: {what}");
        let stored = block::stored_len(header).map_err(|what| Error::damaged(&self.path, at(what)))?;
        if stored as u64 > self.len.saturating_sub(self.position) {
            return Err(self.cut());
        }
        block.resize(BLOCK_HEADER_BYTES + stored, 0);
        self.read(&mut block[BLOCK_HEADER_BYTES..])?;
        let decoded = block::decode(&block, self.blocks);
        let (kind, content) = decoded.map_err(|what| Error::damaged(&self.path, at(what)))?;
        self.blocks += 1;
        match kind {
            BlockKind::Items => self.items(&content, start),
            BlockKind::Trailer => self.end(&content).map(|()| Vec::new()),
        }
    }

    fn items(&mut self, content: &[u8], start: u64) -> Result<Vec<ContentItem>, Error> {
        let damaged = |what: &str| Error::damaged(&self.path, format!("the block at byte {start}: {what}"));
        let mut items = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            let (len, after) = rest.split_first_chunk().ok_or_else(|| damaged("an item is cut"))?;
            let len = u32::from_le_bytes(*len) as usize;
            let (bytes, after) = after.split_at_checked(len).ok_or_else(|| damaged("an item is cut"))?;
            let item = decode_item(bytes).map_err(|error| damaged(error.message()))?;
            self.digest.add_encoded(&item, bytes);
            items.push(item);
            rest = after;
        }
        if items.is_empty() { Err(damaged("it has no items")) } else { Ok(items) }
    }

    fn end(&mut self, trailer: &[u8]) -> Result<(), Error> {
        let found = std::mem::take(&mut self.digest).finish();
        let counts: Vec<u8> = found.counts().iter().flat_map(|count| count.to_le_bytes()).collect();
        let (told, checksum) = trailer.split_at_checked(counts.len()).unwrap_or((trailer, &[]));
        let checksum: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        if checksum.len() != DIGEST_BYTES * 2 || told != counts || checksum != found.sha256 {
            return Err(Error::damaged(&self.path, "its content is not the one that its trailer tells of"));
        }
        if self.position != self.len {
            return Err(Error::damaged(&self.path, "something is behind its end"));
        }
        self.summary = Some(found);
        Ok(())
    }

    fn cut(&self) -> Error {
        Error::damaged(&self.path, format!("it ends in the middle, after {} bytes", self.len))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        match self.file.read_exact(buffer) {
            Ok(()) => {
                self.position += buffer.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == IoErrorKind::UnexpectedEof => Err(self.cut()),
            Err(error) => Err(Error::file(&self.path)(error)),
        }
    }
}

#[async_trait]
impl Export for BackupReader {
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError> {
        self.next_block().map_err(|error| {
            let kind =
                if error.kind() == ErrorKind::Corrupt { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
            ProviderError::new(kind, "export", error.to_string())
        })
    }
}
