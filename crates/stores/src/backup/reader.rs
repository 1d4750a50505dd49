//! Reading a backup. Nothing of a damaged file is taken for content, and a whole content is told only at its trailer.

use std::fs::File;
use std::io::{BufReader, ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use segno::store::{ContentItem, ErrorKind, Export, ProviderError, decode_item};

use super::block::{self, BLOCK_HEADER_BYTES, BlockKind, u32_at};
use super::{FILE_HEADER_BYTES, FORMAT_VERSION, MAGIC, WITHOUT_LEDGER};
use crate::digest::{ContentDigest, ContentSummary};
use crate::error::Error;
use crate::ledger::{self, LedgerContent, LedgerDigest, LedgerPart, LedgerSink};

/// Counts in the trailer.
const TRAILER_COUNTS: usize = 6;

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
    version: u32,
    digest: ContentDigest,
    ledger_digest: LedgerDigest,
    /// Parts of the ledger that were read with the end of the items.
    waiting: Vec<LedgerPart>,
    has_items: bool,
    /// Whether the ledger stays to be sent when the backup is read as a store.
    keeps_ledger: bool,
    ledger: Option<LedgerContent>,
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
            version: FORMAT_VERSION,
            digest: ContentDigest::default(),
            ledger_digest: LedgerDigest::default(),
            waiting: Vec::new(),
            has_items: false,
            keeps_ledger: false,
            ledger: None,
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
            version @ (WITHOUT_LEDGER | FORMAT_VERSION) => {
                reader.version = version;
                Ok(reader)
            }
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

    /// What the backup has of the ledger, once it has been read to its end.
    pub fn ledger(&self) -> Option<&LedgerContent> {
        self.ledger.as_ref()
    }

    /// The items of the next block; empty when there are no more. Parts of the ledger may follow, and without reading them
    /// the backup is not known to be whole: [`BackupReader::send_ledger`] reads it to its end.
    ///
    /// # Errors
    /// When the file is cut or damaged, or cannot be read.
    pub fn next_block(&mut self) -> Result<Vec<ContentItem>, Error> {
        if self.summary.is_some() || self.has_items {
            return Ok(Vec::new());
        }
        let (kind, start, content) = self.next_content()?;
        match kind {
            BlockKind::Items => self.items(&content, start),
            BlockKind::Ledger => {
                self.has_items = true;
                self.waiting = self.parts(&content, start)?;
                Ok(Vec::new())
            }
            BlockKind::Trailer => self.end(&content).map(|()| Vec::new()),
        }
    }

    /// Leaves the ledger to [`BackupReader::send_ledger`] when a store is filled from the backup; else it is passed over.
    #[must_use]
    pub fn keeping_ledger(mut self) -> Self {
        self.keeps_ledger = true;
        self
    }

    /// The parts of the ledger of the next block; empty at the end of the backup. All items have been read.
    ///
    /// # Errors
    /// When the file is cut or damaged, or cannot be read.
    pub fn next_parts(&mut self) -> Result<Vec<LedgerPart>, Error> {
        if !self.waiting.is_empty() || self.summary.is_some() {
            return Ok(std::mem::take(&mut self.waiting));
        }
        let (kind, start, content) = self.next_content()?;
        match kind {
            BlockKind::Ledger => self.parts(&content, start),
            BlockKind::Trailer => self.end(&content).map(|()| Vec::new()),
            BlockKind::Items => {
                Err(Error::damaged(&self.path, format!("the block at byte {start}: it is out of order")))
            }
        }
    }

    /// Sends the ledger of the backup, and reads the backup to its end. All items have been read.
    ///
    /// # Errors
    /// When the file is cut or damaged, or cannot be read, and those of the sink.
    pub async fn send_ledger(&mut self, sink: &mut dyn LedgerSink) -> Result<(), Error> {
        loop {
            let parts = self.next_parts()?;
            if parts.is_empty() {
                return Ok(());
            }
            for part in parts {
                sink.put(part).await?;
            }
        }
    }

    /// What a backup has of the ledger, by its trailer: the blocks before it are passed over.
    ///
    /// # Errors
    /// When there is none, or it is cut or damaged where it was read.
    pub fn peek_ledger(path: impl AsRef<Path>) -> Result<LedgerContent, Error> {
        let mut reader = BackupReader::open(path)?;
        loop {
            let mut header = [0; BLOCK_HEADER_BYTES];
            let start = reader.position;
            reader.read(&mut header)?;
            let at = |what: String| format!("the block at byte {start}: {what}");
            let stored =
                block::stored_len(&header).map_err(|what| Error::damaged(&reader.path, at(what)))? as u64;
            if stored > reader.len.saturating_sub(reader.position) {
                return Err(reader.cut());
            }
            if reader.position + stored == reader.len {
                let mut block = header.to_vec();
                block.resize(BLOCK_HEADER_BYTES + usize::try_from(stored).unwrap_or(usize::MAX), 0);
                reader.read(&mut block[BLOCK_HEADER_BYTES..])?;
                let decoded = block::decode(&block, reader.blocks);
                let (kind, content) = decoded.map_err(|what| Error::damaged(&reader.path, at(what)))?;
                return match kind {
                    BlockKind::Trailer => Ok(reader.trailer(&content)?.2),
                    BlockKind::Items | BlockKind::Ledger => Err(reader.cut()),
                };
            }
            let distance = i64::try_from(stored).unwrap_or(i64::MAX);
            reader.file.seek_relative(distance).map_err(Error::file(&reader.path))?;
            reader.position += stored;
            reader.blocks += 1;
        }
    }

    /// The next block: its kind, where it begins, and its content.
    fn next_content(&mut self) -> Result<(BlockKind, u64, Vec<u8>), Error> {
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
        Ok((kind, start, content))
    }

    /// The items of the next block. When there are no more, the backup is whole, unless its ledger is still to be sent.
    fn items_to_the_end(&mut self) -> Result<Vec<ContentItem>, Error> {
        let items = self.next_block()?;
        while items.is_empty() && !self.keeps_ledger && self.summary.is_none() {
            self.next_parts()?;
        }
        Ok(items)
    }

    fn parts(&mut self, content: &[u8], start: u64) -> Result<Vec<LedgerPart>, Error> {
        let damaged = || Error::damaged(&self.path, format!("the block at byte {start}: a part is damaged"));
        let mut parts = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            let (len, after) = rest.split_first_chunk().ok_or_else(damaged)?;
            let len = u32::from_le_bytes(*len) as usize;
            let (bytes, after) = after.split_at_checked(len).ok_or_else(damaged)?;
            let part = ledger::decode(bytes).ok_or_else(damaged)?;
            self.ledger_digest.add(&part);
            parts.push(part);
            rest = after;
        }
        if parts.is_empty() { Err(damaged()) } else { Ok(parts) }
    }

    /// What a trailer has: counts, checksum, and what it tells of the ledger.
    fn trailer<'t>(&self, trailer: &'t [u8]) -> Result<(&'t [u8], String, LedgerContent), Error> {
        let cut = || Error::damaged(&self.path, "its trailer cannot be read");
        let (counts, rest) = trailer.split_at_checked(TRAILER_COUNTS * 8).ok_or_else(cut)?;
        let (checksum, rest) = rest.split_at_checked(DIGEST_BYTES).ok_or_else(cut)?;
        let checksum = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        let ledger = match (self.version, rest) {
            (WITHOUT_LEDGER, []) => LedgerContent::Unknown,
            (WITHOUT_LEDGER, _) => return Err(cut()),
            (_, rest) => super::decode_ledger(rest).ok_or_else(cut)?,
        };
        Ok((counts, checksum, ledger))
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
        let (told, checksum, ledger) = self.trailer(trailer)?;
        let parts = std::mem::take(&mut self.ledger_digest).finish();
        let no_parts = LedgerDigest::default().finish();
        let is_ledger = match &ledger {
            LedgerContent::Included { .. } => parts == ledger,
            _ => parts == no_parts,
        };
        if told != counts || checksum != found.sha256 || !is_ledger {
            return Err(Error::damaged(&self.path, "its content is not the one that its trailer tells of"));
        }
        if self.position != self.len {
            return Err(Error::damaged(&self.path, "something is behind its end"));
        }
        self.summary = Some(found);
        self.ledger = Some(ledger);
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
        self.items_to_the_end().map_err(|error| {
            let kind =
                if error.kind() == ErrorKind::Corrupt { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
            ProviderError::new(kind, "export", error.to_string())
        })
    }
}
