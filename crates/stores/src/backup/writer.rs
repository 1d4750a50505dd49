//! Writing a backup: under another name until it is whole, so that a file with the right name is a whole backup.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use segno::store::{ContentItem, encode_item};

use super::block::{self, BlockKind};
use super::file_header;
use crate::digest::{ContentDigest, ContentSummary};
use crate::error::Error;
use crate::ledger::{self, LedgerContent, LedgerDigest, LedgerPart, LedgerSink};

/// Length at which a block ends, before compression.
const BLOCK_BYTES: usize = 256 * 1024;

/// Mode of a backup: it has what the store has, so only its owner may read it.
const FILE_MODE: u32 = 0o600;

/// What becomes of a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfThere {
    /// It stays, and nothing is written.
    Refuse,
    /// The new backup takes its place when it is whole.
    Replace,
}

/// What a backup has of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerEnd {
    /// The store has none.
    None,
    /// The parts that were added are all of it.
    Included,
    /// It is at this place, and not in the backup.
    Elsewhere(String),
}

/// A backup in the making. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub struct BackupWriter {
    path: PathBuf,
    if_there: IfThere,
    partial: PathBuf,
    /// Gone when the backup has been finished.
    file: Option<BufWriter<File>>,
    block: Vec<u8>,
    blocks: u64,
    /// The items are all there; parts of the ledger follow.
    has_items: bool,
    digest: ContentDigest,
    ledger: LedgerDigest,
    bytes: u64,
}

impl BackupWriter {
    /// Begins a backup. Until it is finished it has the name with `.partial` behind it.
    ///
    /// # Errors
    /// When the file is there and is to stay, when somebody else is writing it, or when it cannot be made.
    pub fn create(path: impl AsRef<Path>, if_there: IfThere) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        if if_there == IfThere::Refuse && path.exists() {
            return Err(Error::Exists(path));
        }
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(&partial).map_err(Error::file(&partial))?;
        // One that an interrupted backup left behind may be wider.
        file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(Error::file(&partial))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let busy = std::io::Error::other("another backup is being written there");
                return Err(Error::File { path: partial, source: busy });
            }
            Err(TryLockError::Error(error)) => return Err(Error::File { path: partial, source: error }),
        }
        let mut writer = BackupWriter {
            path,
            if_there,
            partial,
            file: None,
            block: Vec::with_capacity(BLOCK_BYTES),
            blocks: 0,
            has_items: false,
            digest: ContentDigest::default(),
            ledger: LedgerDigest::default(),
            bytes: 0,
        };
        // What an interrupted backup left behind goes.
        file.set_len(0).map_err(Error::file(&writer.partial))?;
        writer.file = Some(BufWriter::new(file));
        writer.write(&file_header())?;
        Ok(writer)
    }

    /// Adds an item, in the order of a transfer.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, item: &ContentItem) -> Result<(), Error> {
        let start = self.block.len();
        self.block.extend_from_slice(&[0; 4]);
        encode_item(item, &mut self.block);
        let len = u32::try_from(self.block.len() - start - 4).expect("no item has 4 GiB");
        self.block[start..start + 4].copy_from_slice(&len.to_le_bytes());
        self.digest.add_encoded(item, &self.block[start + 4..]);
        if self.block.len() >= BLOCK_BYTES { self.end_block(BlockKind::Items) } else { Ok(()) }
    }

    /// Adds a part of the ledger. No item comes after it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put_ledger(&mut self, part: &LedgerPart) -> Result<(), Error> {
        self.end_items()?;
        let start = self.block.len();
        self.block.extend_from_slice(&[0; 4]);
        ledger::encode(part, &mut self.block);
        let len = u32::try_from(self.block.len() - start - 4).expect("parts are far below 4 GiB");
        self.block[start..start + 4].copy_from_slice(&len.to_le_bytes());
        self.ledger.add(part);
        if self.block.len() >= BLOCK_BYTES { self.end_block(BlockKind::Ledger) } else { Ok(()) }
    }

    fn end_items(&mut self) -> Result<(), Error> {
        if !self.has_items && !self.block.is_empty() {
            self.end_block(BlockKind::Items)?;
        }
        self.has_items = true;
        Ok(())
    }

    /// What has been added so far.
    pub fn so_far(&self) -> &ContentSummary {
        self.digest.so_far()
    }

    /// Bytes that have been written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the backup: writes the trailer, makes everything durable and gives the file its name.
    ///
    /// # Errors
    /// When the file cannot be written or renamed.
    pub fn finish(mut self, ledger: LedgerEnd) -> Result<(ContentSummary, LedgerContent), Error> {
        self.end_items()?;
        if !self.block.is_empty() {
            self.end_block(BlockKind::Ledger)?;
        }
        let summary = std::mem::take(&mut self.digest).finish();
        let ledger = match ledger {
            LedgerEnd::None => LedgerContent::None,
            LedgerEnd::Included => std::mem::take(&mut self.ledger).finish(),
            LedgerEnd::Elsewhere(place) => LedgerContent::Elsewhere { place },
        };
        self.block.extend(summary.counts().iter().flat_map(|count| count.to_le_bytes()));
        let checksum = (0..summary.sha256.len()).step_by(2).map(|at| &summary.sha256[at..at + 2]);
        let checksum = checksum.map(|byte| u8::from_str_radix(byte, 16).expect("made of such digits"));
        self.block.extend(checksum);
        super::encode_ledger(&ledger, &mut self.block);
        self.end_block(BlockKind::Trailer)?;
        let file = self.file.take().expect("a backup that is not finished has a file");
        let file = file.into_inner().map_err(|error| Error::file(&self.partial)(error.into_error()))?;
        file.sync_all().map_err(Error::file(&self.partial))?;
        self.rename()?;
        Ok((summary, ledger))
    }

    fn rename(&self) -> Result<(), Error> {
        if self.if_there == IfThere::Refuse {
            // Unlike a rename, a link never takes the place of a file that came meanwhile.
            match fs::hard_link(&self.partial, &self.path) {
                Ok(()) => fs::remove_file(&self.partial).map_err(Error::file(&self.partial))?,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    let _ = fs::remove_file(&self.partial);
                    return Err(Error::Exists(self.path.clone()));
                }
                // Some file systems have no links.
                Err(_) => fs::rename(&self.partial, &self.path).map_err(Error::file(&self.path))?,
            }
        } else {
            fs::rename(&self.partial, &self.path).map_err(Error::file(&self.path))?;
        }
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(parent).and_then(|directory| directory.sync_all()).map_err(Error::file(parent))
    }

    fn end_block(&mut self, kind: BlockKind) -> Result<(), Error> {
        let block = block::encode(kind, &self.block, self.blocks);
        self.blocks += 1;
        self.block.clear();
        self.write(&block)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let file = self.file.as_mut().expect("a backup that is not finished has a file");
        self.bytes += bytes.len() as u64;
        file.write_all(bytes).map_err(Error::file(&self.partial))
    }
}

#[async_trait]
impl LedgerSink for BackupWriter {
    async fn put(&mut self, part: LedgerPart) -> Result<(), Error> {
        self.put_ledger(&part)
    }
}

impl Drop for BackupWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The next backup of this name removes it otherwise.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
